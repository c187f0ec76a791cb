package platform

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
)

// benchVerb measures on a fresh log beside the given folder, which it leaves as it was.
func benchVerb(a *cli.App) *cobra.Command {
	c := BenchConfig{Dir: "."}
	v := &cobra.Command{
		Use:     "bench chain|fanout|submit|rebuild",
		Short:   "Measure this machine, as ratios to its own disk and the bare store",
		Example: "  sluice bench chain --length 5 --inflight 50 --duration 10s",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Kind = args[0]
			if c.Length < 1 || c.InFlight < 1 || c.Duration < time.Second {
				return cli.Usagef("--length and --inflight are at least 1, --duration at least 1s")
			}
			r, err := Bench(cmd.Context(), c)
			if err != nil {
				return err
			}
			a.Line("%s", r)
			return nil
		},
	}
	fs := v.Flags()
	fs.IntVar(&c.Length, "length", 5, "tasks: of the chain, or of the fan-out with its join")
	fs.IntVar(&c.InFlight, "inflight", 50, "executions at once")
	fs.DurationVar(&c.Duration, "duration", 10*time.Second, "how long to measure")
	fs.StringVar(&c.Dir, "dir", c.Dir, "folder on the disk that is measured")
	fs.IntVar(&c.Partitions, "partitions", 0, "of the log; 0: the default")
	return v
}
