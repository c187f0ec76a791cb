package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// againAfter is the wait before a stream that ended early is read on.
const againAfter = 200 * time.Millisecond

func watch(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "watch ID",
		Short: "Print what happens in an execution until it ends; exit code 1 when it failed",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.Client()
			if err != nil {
				return err
			}
			out := a.Out
			if a.Output != cli.Table {
				out = a.Err // the answer alone is on the output stream
			}
			e, err := follow(c.Context(), out, client, args[0], false)
			if err != nil {
				return err
			}
			return printed(a, &e)
		},
	}
}

// follow prints the events of an execution until it has finished, and returns it.
func follow(
	ctx context.Context, out io.Writer, client *sluice.Client, id string, outputs bool,
) (sluice.Execution, error) {
	after := ""
	for {
		err := client.Follow(ctx, id, after, patience, func(m sluice.Message) error {
			after = m.ID
			switch m.Event {
			case "end":
				return nil // the result is printed by whoever asked
			case "resync":
				_, err := fmt.Fprintln(out, "… some events are too old to be streamed; see `sluice executions events "+id+"`")
				return err
			default:
			}
			_, err := fmt.Fprintln(out, line(m))
			return err
		})
		if err != nil {
			return sluice.Execution{}, err
		}
		e, err := client.Whole(ctx, id, outputs)
		if err != nil || e.Finished() {
			return e, err
		}
		select { // the end was told, and a read that is behind does not show it yet
		case <-ctx.Done():
			return e, context.Cause(ctx)
		case <-time.After(againAfter):
		}
	}
}

// line is one event for people.
func line(m sluice.Message) string {
	var e sluice.Event
	if err := json.Unmarshal(m.Data, &e); err != nil || e.Type == "" {
		return m.Event + "  " + cli.Compact(m.Data, cellMax)
	}
	return cli.Time(e.Time) + "  " + e.Type + "  " + cli.Compact(e.Data, cellMax)
}
