package kernel

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

func replay(a *cli.App) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "replay VIEW | --all",
		Short:   "Build a view anew from the log, beside the live one, and swap it in",
		Example: "  sluice replay executions\n  sluice replay --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == all {
				return cli.Usagef("replay needs the name of a view, or --all")
			}
			if all {
				args = a.Views
			}
			client, err := a.Client()
			if err != nil {
				return err
			}
			answers := map[string]json.RawMessage{}
			for _, view := range args {
				raw, err := rebuild(c.Context(), a, client, view)
				if err != nil {
					return err
				}
				answers[view] = raw
			}
			return a.Print(answers, func() {
				for _, view := range args {
					a.Line("%s is built anew", view)
				}
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every view")
	return c
}

// rebuild shows how far the server is, where somebody looks.
func rebuild(ctx context.Context, a *cli.App, client *sluice.Client, view string) (json.RawMessage, error) {
	w := io.Discard
	if f, ok := a.Err.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		w = f
	}
	bars := mpb.NewWithContext(ctx, mpb.WithOutput(w), mpb.WithWidth(60))
	bar := bars.AddBar(0,
		mpb.PrependDecorators(decor.Name(view+" "), decor.CountersNoUnit("%d / %d events")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name("  "), decor.Elapsed(decor.ET_STYLE_GO)),
	)
	raw, err := client.Rebuild(ctx, view, func(p sluice.Progress) {
		bar.SetTotal(p.Total, false)
		bar.SetCurrent(p.Done)
	})
	if err != nil {
		bar.Abort(false)
	} else {
		bar.SetTotal(-1, true)
	}
	bars.Wait()
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return raw, err
}
