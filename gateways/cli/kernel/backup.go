package kernel

import (
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
)

func backup(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "backup NAME",
		Short:   "Have the server copy its log and blobs, while it goes on working",
		Example: "  sluice backup before-upgrade",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.Client()
			if err != nil {
				return err
			}
			raw, err := client.Backup(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Print(raw, func() {
				a.Line("backed up as %s", args[0])
				a.Line("%s", cli.Compact(raw, 1000))
				a.Line("next: `sluice restore --from DIR --data DIR`, with the server stopped, puts it in place")
			})
		},
	}
}
