// Package workflow holds the verbs that publish workflows, run them and act on their executions.
// It never decides what an execution may do; the server does.
package workflow

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// patience is how long a watch outlives a server that does not answer: a restart takes less.
const patience = 30 * time.Second

// Verbs are all of them.
func Verbs(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		apply(a), run(a),
		cli.Group("executions", "See and steer executions",
			list(a), show(a), watch(a), history(a),
			act(a, sluice.Cancel, "End an execution; what runs is told to stop"),
			act(a, sluice.Pause, "Start no further task of an execution"),
			act(a, sluice.Resume, "Go on with a paused execution"),
			act(a, sluice.Terminate, "End an execution at once, without waiting for what runs"),
			retry(a),
			act(a, sluice.Replay, "Run a finished execution again, as a new one with the same input"),
		),
	}
}
