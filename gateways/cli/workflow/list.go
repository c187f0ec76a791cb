package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

func list(a *cli.App) *cobra.Command {
	var f sluice.Filter
	var from, before string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List executions, a page at a time",
		Example: "  sluice executions list --status FAILED --from 2h",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.From, err = moment("from", from); err != nil {
				return err
			}
			if f.Before, err = moment("before", before); err != nil {
				return err
			}
			f.Status = strings.ToUpper(f.Status)
			client, err := a.Client()
			if err != nil {
				return err
			}
			p, err := client.Executions(c.Context(), f)
			if err != nil {
				return err
			}
			if p.Items == nil {
				p.Items = []sluice.Execution{}
			}
			return a.Print(p, func() { listed(a, p) })
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.Workflow, "workflow", "", "of this workflow only")
	fs.Int64Var(&f.Version, "version", 0, "of this version only")
	fs.StringVar(&f.Status, "status", "", "PENDING, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED or TIMED_OUT")
	fs.StringVar(&f.Correlation, "correlation", "", "with this id of yours")
	fs.StringVar(&f.ErrorCode, "error-code", "", "failed with this code")
	fs.StringVar(&from, "from", "", "submitted at or after: a time (RFC 3339), or how long ago (2h)")
	fs.StringVar(&before, "before", "", "submitted before: a time (RFC 3339), or how long ago (2h)")
	fs.IntVar(&f.Limit, "limit", 0, "length of the page, at most 500; none: 50")
	fs.StringVar(&f.Cursor, "cursor", "", "where the page before has ended")
	return c
}

func listed(a *cli.App, p sluice.Page[sluice.Execution]) {
	rows := make([][]string, len(p.Items))
	for i, e := range p.Items {
		rows[i] = []string{
			e.ID, e.Workflow, fmt.Sprint(e.Version), e.Status, cli.Time(e.StartedAt), took(e.StartedAt, e.EndedAt),
			failure(e.Error),
		}
	}
	a.Rows([]string{"id", "workflow", "version", "status", "started", "took", "error"}, rows)
	if p.NextCursor != "" {
		a.Line("next: the same with --cursor %s", p.NextCursor)
	}
}

// moment reads a time, or a duration before now.
func moment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, cli.Usagef("--%s %q is neither a time like 2026-01-31T12:00:00Z nor a duration like 2h", flag, s)
	}
	return t, nil
}
