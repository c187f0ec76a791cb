package platform

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/cli"
	"github.com/sluice-platform/sluice/gateways/sqlite"
)

// Verbs are those that need no server: they are one, or work on a folder that no server has open.
func Verbs(a *cli.App) []*cobra.Command {
	return []*cobra.Command{upVerb(a), restoreVerb(a), doctorVerb(a), openapiVerb(a), benchVerb(a)}
}

func upVerb(a *cli.App) *cobra.Command {
	cfg := Default()
	cfg.EgressAllow = []string{"127.0.0.1", "[::1]", "localhost"}
	c := &cobra.Command{
		Use:     "up",
		Short:   "Run the platform in this process, on one folder, for this machine only",
		Example: "  sluice up\n  sluice up --data /var/lib/sluice --listen 127.0.0.1:7510",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := loopbackOnly(cfg.Listen); err != nil {
				return cli.Usagef("--listen: %s", err)
			}
			if err := cfg.Validate(); err != nil {
				return cli.Usagef("%s", err)
			}
			return up(c.Context(), a, cfg)
		},
	}
	fs := c.Flags()
	fs.StringVar(&cfg.Data, "data", cfg.Data, "folder of the log, the views and the blobs; made if it is not there")
	fs.StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the API, loopback only; port 0 takes a free one")
	fs.IntVar(&cfg.Workers, "workers", cfg.Workers, "tasks that run at once")
	fs.IntVar(&cfg.Partitions, "partitions", cfg.Partitions, "of the log; an existing one grows to it")
	fs.StringSliceVar(&cfg.EgressAllow, "egress-allow", cfg.EgressAllow,
		"hosts that http tasks may call: names, *.suffixes, addresses, each with :port or not; replaces the default")
	fs.DurationVar(&cfg.Drain, "drain", cfg.Drain, "how long a stop waits for running tasks")
	return c
}

// loopbackOnly refuses an address that other machines reach: without configuration everybody who reaches the API is
// the local developer.
func loopbackOnly(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not like 127.0.0.1:7510", listen)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%q is reached from other machines, and `up` knows nobody but the local developer; "+
		"use a loopback address like 127.0.0.1:7510, and a proxy that knows your users before it", listen)
}

func restoreVerb(a *cli.App) *cobra.Command {
	var from, data string
	var replace bool
	c := &cobra.Command{
		Use:     "restore --from DIR --data DIR",
		Short:   "Put a backup in place, with the server stopped",
		Example: "  sluice restore --from sluice-data/backups/before-upgrade --data restored",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" || data == "" {
				return cli.Usagef("restore needs --from, the folder of a backup, and --data, where it goes")
			}
			r, err := sqlite.Restore(c.Context(), sqlite.RestoreOptions{
				From: from, To: data, Blobs: filepath.Join(data, "blobs"), Replace: replace,
			})
			if errors.Is(err, sqlite.ErrNotEmpty) {
				return fmt.Errorf("%w\nnext: --replace moves it aside, or restore into another folder", err)
			}
			if err != nil {
				return err
			}
			return a.Print(restored{data, r.Incarnation, r.Aside, r.Manifest}, func() {
				a.Line("restored into %s, as of %s, incarnation %d", data, cli.Time(&r.Manifest.TakenAt), r.Incarnation)
				if r.Aside != "" {
					a.Line("the log that was there is in %s", r.Aside)
				}
				a.Line("next: sluice doctor --data %s && sluice up --data %[1]s", data)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "folder of the backup")
	c.Flags().StringVar(&data, "data", "", "data folder that it goes to")
	c.Flags().BoolVar(&replace, "replace", false, "replace the log that is there; it is moved aside")
	return c
}

// restored is what restore prints for programs.
type restored struct {
	Data        string             `json:"data"`
	Incarnation events.Incarnation `json:"incarnation"`
	Aside       string             `json:"aside,omitempty"`
	Backup      sqlite.Manifest    `json:"backup"`
}

func doctorVerb(a *cli.App) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use:   "doctor --data DIR",
		Short: "Check a data folder that no server has open; exit code 1 when something is wrong",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if data == "" {
				return cli.Usagef("doctor needs --data, the folder to look at")
			}
			d := Examine(c.Context(), data)
			if err := a.Print(d, func() { printDiagnosis(a, d) }); err != nil {
				return err
			}
			if !d.Healthy {
				return cli.ErrFailed
			}
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", "", "data folder of a stopped server")
	return c
}

func printDiagnosis(a *cli.App, d Diagnosis) {
	rows := make([][]string, len(d.Checks))
	for i, c := range d.Checks {
		rows[i] = []string{c.Name, string(c.Result), c.Detail}
	}
	a.Rows([]string{"check", "result", "detail"}, rows)
	for _, next := range d.Next {
		a.Line("next: %s", next)
	}
}

// openapiVerb prints what `task gen` keeps in schemas/openapi.yaml; a table of it would help nobody.
func openapiVerb(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the description of the HTTP API (OpenAPI 3.1), as YAML or with -o json",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.Output == cli.JSON {
				return a.Print(api(nil).API.OpenAPI(), nil)
			}
			text, err := OpenAPI()
			if err != nil {
				return fmt.Errorf("describe the API: %w", err)
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
}
