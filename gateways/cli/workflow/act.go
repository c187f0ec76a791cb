package workflow

import (
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// act makes the verb of one act.
func act(a *cli.App, what sluice.Act, short string) *cobra.Command {
	var reason, key string
	c := &cobra.Command{
		Use:     string(what) + " ID --reason TEXT",
		Short:   short,
		Example: "  sluice executions " + string(what) + " ID --reason \"the customer asked\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := reasonGiven(reason); err != nil {
				return err
			}
			client, err := a.Client()
			if err != nil {
				return err
			}
			done, err := client.Do(c.Context(), args[0], what, reason, key)
			if err != nil {
				return err
			}
			return acted(a, string(what), done)
		},
	}
	actFlags(c, &reason, &key)
	return c
}

func retry(a *cli.App) *cobra.Command {
	var reason, key, with string
	c := &cobra.Command{
		Use:     "retry ID TASK --reason TEXT [--with JSON]",
		Short:   "Run a failed task again, with the same input or another",
		Example: "  sluice executions retry ID notify --reason \"mail server is back\"",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := reasonGiven(reason); err != nil {
				return err
			}
			input, err := readJSON(a, "with", with)
			if err != nil {
				return err
			}
			client, err := a.Client()
			if err != nil {
				return err
			}
			done, err := client.RetryTask(c.Context(), args[0], args[1], reason, key, input)
			if err != nil {
				return err
			}
			return acted(a, "retry of "+args[1], done)
		},
	}
	actFlags(c, &reason, &key)
	c.Flags().StringVar(&with, "with", "", "what the task gets in place of its `with`: JSON, or @file")
	return c
}

func actFlags(c *cobra.Command, reason, key *string) {
	c.Flags().StringVar(reason, "reason", "", "why; it is kept in the log")
	c.Flags().StringVar(key, "key", "", "idempotency key: the same key acts once")
}

func reasonGiven(reason string) error {
	if reason == "" {
		return cli.Usagef("an act needs a --reason; it is kept in the log")
	}
	return nil
}

// acted prints what an act has come to.
func acted(a *cli.App, what string, done sluice.Acted) error {
	return a.Print(done, func() {
		a.Line("%s accepted  %s", what, done.ID)
		a.Line("next: sluice executions show %s", done.ID)
	})
}
