package workflow

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// historyPage is how many events one request asks for.
const historyPage = 500

func history(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "events ID",
		Short: "Print the whole history of an execution",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.Client()
			if err != nil {
				return err
			}
			all, err := events(c.Context(), client, args[0])
			if err != nil {
				return err
			}
			return a.Print(sluice.Page[sluice.Event]{Items: all}, func() {
				rows := make([][]string, len(all))
				for i, e := range all {
					rows[i] = []string{cli.Time(e.Time), e.Type, cli.Compact(e.Data, cellMax)}
				}
				a.Rows([]string{"time", "event", "data"}, rows)
			})
		},
	}
}

func events(ctx context.Context, client *sluice.Client, id string) ([]sluice.Event, error) {
	all := []sluice.Event{}
	for cursor := ""; ; {
		p, err := client.Events(ctx, id, cursor, historyPage)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if cursor = p.NextCursor; cursor == "" {
			return all, nil
		}
	}
}
