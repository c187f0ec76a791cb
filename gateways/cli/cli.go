// Package cli is what all command-line verbs share: where the server is, how answers are printed, what exit codes mean.
// It never speaks to a store, and knows nothing of any domain; those are in the folders below.
package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// ServerDefault is where `sluice up` listens.
const ServerDefault = "http://127.0.0.1:7510"

// App is one call of the program.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Server   string // address of the API
	Output   Format
	Views    []string // that this build's server has
	began    bool     // the command line was understood
}

// New makes an App on the process's own streams. SLUICE_SERVER is the default of --server.
func New() *App {
	a := &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Output: Table, Server: ServerDefault}
	if s := os.Getenv("SLUICE_SERVER"); s != "" {
		a.Server = s
	}
	return a
}

// Client makes the client of the chosen server.
func (a *App) Client() (*sluice.Client, error) {
	c, err := sluice.New(a.Server, nil)
	if err != nil {
		return nil, Usagef("--server: %s", err)
	}
	return c, nil
}

// Verbs makes the commands of one part of the program.
type Verbs func(*App) []*cobra.Command

// Run runs args and returns the exit code. What went wrong is on a.Err by then.
func (a *App) Run(ctx context.Context, args []string, parts ...Verbs) int {
	root := a.root(parts)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	if !a.began {
		err = &UsageError{err.Error()}
	}
	return a.fail(err)
}

func (a *App) root(parts []Verbs) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Run workflows that survive anything, from one process with one folder",
		Long: "Sluice runs workflows on an event log.\n\n" +
			"Exit codes: 0 done; 1 the execution failed, or the server refused; 2 the command line is wrong;\n" +
			"3 the server is unreachable.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) { a.began = true },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.Server, "server", a.Server, "address of the server (environment: SLUICE_SERVER)")
	flags.VarP(&a.Output, "output", "o", "form of the answer: table, json or yaml")
	for _, p := range parts {
		root.AddCommand(p(a)...)
	}
	return root
}

// Group makes a command that only holds others.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usagef("there is no `%s %s`; see `%[1]s --help`", c.CommandPath(), args[0])
			}
			return Usagef("`%s` alone does nothing; see `%[1]s --help`", c.CommandPath())
		},
	}
	g.AddCommand(verbs...)
	return g
}
