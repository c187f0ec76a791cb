// Command sluice is the whole platform in one program: the server and the verbs that speak to it.
// It decides nothing itself: flags go in, deploy/platform or gateways/cli come out.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-platform/sluice/gateways/cli"
	"github.com/sluice-platform/sluice/gateways/cli/kernel"
)

// parts are what the program consists of; a domain's wire file adds its own.
var (
	parts = []cli.Verbs{kernel.Verbs}
	views []string
)

func main() { os.Exit(run()) }

// run ends at the first interrupt in order, at the second at once.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := cli.New()
	a.Views = views
	return a.Run(ctx, os.Args[1:], parts...)
}
