// Package kernel holds the verbs about the log as a whole: audit, views, backups.
// It never opens a data folder; what works offline is the platform's.
package kernel

import (
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
)

// Verbs are all of them.
func Verbs(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		cli.Group("audit", "Hold the log to its promises", verify(a)), replay(a), backup(a),
	}
}
