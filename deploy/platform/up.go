package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
	"github.com/sluice-platform/sluice/gateways/sqlite"
)

// up runs a system until ctx ends. The folder is taken before the port, so that a second instance hears which process
// has the folder; the API ends before the roles, so that whoever waits for an execution still gets an answer.
func up(ctx context.Context, a *cli.App, cfg Config) (err error) {
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	s, err := Open(ctx, cfg, logger)
	if errors.Is(err, sqlite.ErrInUse) {
		return fmt.Errorf("%w\nnext: one folder has one server; ask that one, or give this one its own --data", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w\nnext: --listen 127.0.0.1:0 takes a free port", cfg.Listen, err)
	}
	roles, stopRoles := context.WithCancel(context.WithoutCancel(ctx))
	serving, stopServing := context.WithCancelCause(ctx)
	defer stopServing(nil)
	ended := make(chan error, 1)
	go func() {
		err := s.Run(roles)
		stopServing(err)
		ended <- err
	}()
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		if ready(serving, listener.Addr()) {
			greet(a, cfg, listener.Addr())
		}
	}()
	err = s.Serve(serving, listener)
	stopServing(err)
	<-greeted
	logger.Info("stopping", "waits_at_most", cfg.Drain)
	stopRoles()
	err = errors.Join(err, <-ended)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// readyAgain is the wait between two questions whether the server is ready.
const readyAgain = 10 * time.Millisecond

// ready waits until the server takes work; false when ctx ended first. It asks as everybody does.
func ready(ctx context.Context, at net.Addr) bool {
	client, err := sluice.New("http://"+at.String(), nil)
	for err == nil {
		if client.Ready(ctx) == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(readyAgain):
		}
	}
	return false
}

// greet says where the server is and what to try first.
func greet(a *cli.App, cfg Config, at net.Addr) {
	data, err := filepath.Abs(cfg.Data)
	if err != nil {
		data = cfg.Data
	}
	server := ""
	if at.String() != Default().Listen {
		server = " --server http://" + at.String()
	}
	a.Line("sluice is on http://%s, data in %s", at, data)
	a.Line("try, in another terminal:")
	a.Line("  sluice apply -f FILE%s", server)
	a.Line("  sluice run NAME --wait%s", server)
	a.Line("  sluice executions list%s", server)
	a.Line("stop with Ctrl-C; what runs is finished first, within %s, and the rest goes on at the next start", cfg.Drain)
}
