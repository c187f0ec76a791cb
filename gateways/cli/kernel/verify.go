package kernel

import (
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
)

func verify(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Have the server check its whole log: gapless, chained, sealed; exit code 1 when something does not hold",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.Client()
			if err != nil {
				return err
			}
			raw, err := client.VerifyAudit(c.Context())
			if err != nil {
				return err
			}
			return a.PrintReport(raw)
		},
	}
}
