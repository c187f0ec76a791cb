package workflow

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// cellMax is how much of a value a table shows, in characters.
const cellMax = 100

func show(a *cli.App) *cobra.Command {
	var outputs bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show one execution with its tasks",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.Client()
			if err != nil {
				return err
			}
			e, err := client.Whole(c.Context(), args[0], outputs)
			if err != nil {
				return err
			}
			return a.Print(e, func() { table(a, &e) })
		},
	}
	c.Flags().BoolVar(&outputs, "outputs", false, "with the tasks' outputs")
	return c
}

// table prints one execution for people.
func table(a *cli.App, e *sluice.Execution) {
	a.Line("%s  %s version %d  %s", e.ID, e.Workflow, e.Version, e.Status)
	a.Line("started %s  ended %s  took %s", cli.Time(e.StartedAt), cli.Time(e.EndedAt), took(e.StartedAt, e.EndedAt))
	a.Line("input   %s", cli.Compact(e.Input, cellMax))
	a.Line("output  %s", cli.Compact(e.Output, cellMax))
	if e.Error != nil {
		a.Line("error   %s", failure(e.Error))
	}
	rows := make([][]string, len(e.Tasks))
	outputs := false
	for i := range e.Tasks {
		outputs = outputs || e.Tasks[i].Output != nil
	}
	for i, t := range e.Tasks {
		rows[i] = []string{
			t.Name, t.Type, t.Status, fmt.Sprint(t.Attempt), took(t.StartedAt, t.EndedAt), failure(t.Error),
		}
		if outputs {
			rows[i] = append(rows[i], cli.Compact(t.Output, cellMax))
		}
	}
	header := []string{"task", "type", "status", "attempt", "took", "error"}
	if outputs {
		header = append(header, "output")
	}
	a.Line("")
	a.Rows(header, rows)
}

func failure(f *sluice.Failure) string {
	if f == nil {
		return "-"
	}
	s := f.Code
	if f.Task != "" {
		s = f.Task + ": " + s
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	if r := []rune(s); len(r) > cellMax {
		s = string(r[:cellMax-1]) + "…"
	}
	return s
}

func took(from, to *time.Time) string {
	if from == nil || to == nil {
		return "-"
	}
	return to.Sub(*from).Round(time.Millisecond).String()
}
