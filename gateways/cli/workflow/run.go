package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// waitAtServer is how long one request waits for the end; after it the stream is followed.
const waitAtServer = 30 * time.Second

// runFlags are what run takes.
type runFlags struct {
	file, input, key, class, correlation string
	version                              int64
	labels                               map[string]string
	wait, watch, outputs                 bool
}

// result is what `run --wait -o json` prints. Its members are a promise to scripts: all of them, always, in this order.
type result struct {
	ID        string          `json:"id"`
	Workflow  string          `json:"workflow"`
	Version   int64           `json:"version"`
	Status    string          `json:"status"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Error     *sluice.Failure `json:"error"`
	StartedAt *time.Time      `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt"`
	Tasks     []sluice.Task   `json:"tasks"`
}

func resultOf(e *sluice.Execution) result {
	tasks := e.Tasks
	if tasks == nil {
		tasks = []sluice.Task{}
	}
	return result{
		e.ID, e.Workflow, e.Version, e.Status, e.Input, e.Output, e.Error, e.StartedAt, e.EndedAt, tasks,
	}
}

func run(a *cli.App) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run NAME | -f FILE",
		Short: "Start an execution, and with --wait or --watch see it end",
		Example: "  sluice run customer-onboarding --input '{\"email\": \"ada@example.com\"}' --wait\n" +
			"  sluice run -f workflow.yaml --input @input.json --watch",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (f.file != "") {
				return cli.Usagef("run needs the name of a workflow or a file: `sluice run NAME`, `sluice run -f FILE`")
			}
			if f.file != "" && f.version != 0 {
				return cli.Usagef("--version goes with a name; a file is a version of its own")
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return f.run(c.Context(), a, name)
		},
	}
	fs := c.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "publish this definition first, and run it")
	fs.StringVar(&f.input, "input", "", "the input: JSON, or @file, or @- for what comes in")
	fs.StringVar(&f.key, "key", "", "idempotency key: the same key gives the same execution")
	fs.StringVar(&f.class, "class", "", "high, standard, bulk or longrunning")
	fs.StringVar(&f.correlation, "correlation", "", "an id of yours to find it by")
	fs.StringToStringVar(&f.labels, "label", nil, "name=value, may be repeated")
	fs.Int64Var(&f.version, "version", 0, "a version of the workflow; none: the latest")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end; exit code 1 when it failed")
	fs.BoolVar(&f.watch, "watch", false, "as --wait, and print what happens meanwhile (to the error stream)")
	fs.BoolVar(&f.outputs, "outputs", false, "print the tasks' outputs too")
	return c
}

func (f *runFlags) run(ctx context.Context, a *cli.App, name string) error {
	input, err := readJSON(a, "input", f.input)
	if err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	s := sluice.Start{
		Input: input, Version: f.version, Class: f.class, Labels: f.labels, Correlation: f.correlation, Key: f.key,
	}
	if f.file != "" {
		var content []byte
		var isYAML bool
		if name, content, isYAML, err = readDefinition(a, f.file); err != nil {
			return err
		}
		p, err := client.Publish(ctx, name, content, isYAML)
		if err != nil {
			return err
		}
		s.Version = p.Version
	}
	if f.wait && !f.watch {
		s.Wait = waitAtServer
	}
	e, err := client.Start(ctx, name, s)
	if err != nil {
		return err
	}
	if f.wait || f.watch {
		return f.end(ctx, a, client, e)
	}
	return a.Print(e, func() {
		a.Line("%s  version %d  %s", e.ID, e.Version, e.Status)
		a.Line("next: sluice executions watch %s", e.ID)
	})
}

// end sees the execution end and prints it. It outlives a restart of the server.
func (f *runFlags) end(
	ctx context.Context, a *cli.App, client *sluice.Client, started sluice.Execution,
) (err error) {
	e := started
	switch {
	case f.watch:
		e, err = follow(ctx, a.Err, client, started.ID, f.outputs)
	case started.Finished():
		e, err = client.Whole(ctx, started.ID, f.outputs)
	default:
		e, err = client.Await(ctx, started.ID, patience, f.outputs)
	}
	if err != nil {
		fmt.Fprintf(a.Err, "execution %s was accepted and goes on; see its end with `sluice executions watch %[1]s`\n",
			started.ID)
		return err
	}
	return printed(a, &e)
}

// printed prints a finished execution; a failed one is a failure.
func printed(a *cli.App, e *sluice.Execution) error {
	if err := a.Print(resultOf(e), func() { table(a, e) }); err != nil {
		return err
	}
	if e.Status != "COMPLETED" {
		return cli.ErrFailed
	}
	return nil
}
