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
			b, err := client.Backup(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Print(b, func() {
				a.Line("backed up in %s, on the server's machine", b.Folder)
				a.Line("next: sluice restore --from %s --data DIR puts it into another folder, with no server on it", b.Folder)
			})
		},
	}
}
