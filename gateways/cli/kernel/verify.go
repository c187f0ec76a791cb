package kernel

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
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
			r, err := client.VerifyAudit(c.Context())
			if err != nil {
				return err
			}
			if err := a.Print(r, func() { printReport(a, &r) }); err != nil {
				return err
			}
			if !r.OK() {
				return cli.ErrFailed
			}
			return nil
		},
	}
}

func printReport(a *cli.App, r *sluice.AuditReport) {
	a.Line("read %d commits, %d events, %d streams, %d seals",
		r.Counts["commits"], r.Counts["events"], r.Counts["streams"], r.Counts["seals"])
	if len(r.NotChecked) > 0 {
		a.Line("not checked: %s", strings.Join(r.NotChecked, ", "))
	}
	if len(r.Findings) == 0 {
		a.Line("all of it holds")
		return
	}
	rows := make([][]string, len(r.Findings))
	for i, f := range r.Findings {
		versions := fmt.Sprint(f.Version)
		if f.LastVersion > f.Version {
			versions += "–" + fmt.Sprint(f.LastVersion)
		}
		rows[i] = []string{f.Kind, f.Stream, versions, fmt.Sprint(f.Partition), fmt.Sprint(f.Position), f.Detail}
	}
	a.Rows([]string{"kind", "stream", "versions", "partition", "position", "detail"}, rows)
	if r.More > 0 {
		a.Line("and %d more", r.More)
	}
	a.Line("next: keep this folder as it is, and restore the last backup that verifies into another")
}
