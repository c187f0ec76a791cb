package workflow

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/gateways/cli"
)

func apply(a *cli.App) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Publish a workflow from a YAML or JSON file",
		Example: "  sluice apply -f workflow.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usagef("apply needs a file: `sluice apply -f workflow.yaml`")
			}
			name, content, isYAML, err := readDefinition(a, file)
			if err != nil {
				return err
			}
			client, err := a.Client()
			if err != nil {
				return err
			}
			p, err := client.Publish(c.Context(), name, content, isYAML)
			if err != nil {
				return err
			}
			return a.Print(p, func() {
				a.Rows([]string{"workflow", "version", "tasks", "hash"},
					[][]string{{p.Workflow, fmt.Sprint(p.Version), fmt.Sprint(p.Tasks), p.Hash[:min(len(p.Hash), 12)]}})
			})
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the definition; - reads what comes in")
	return c
}
