package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDomainsComeOut takes each domain out of a copy of the tree: what is left must build and vet, tests included.
// A tree with one domain has nobody to take it out for.
func TestDomainsComeOut(t *testing.T) {
	whole := repository(t)
	if some := present(whole); len(some) > 1 {
		for _, d := range some {
			t.Run(d, func(t *testing.T) {
				if out, err := buildWithout(t, whole, d); err != nil {
					t.Errorf("without %s: %v\n%s", d, err, out)
				}
			})
		}
	}
}

func TestBuildWithout(t *testing.T) {
	small := func(up string) *tree {
		tr, err := load(mapFS(map[string]string{
			"go.mod":                           "module " + module + "\n\ngo 1.26\n",
			"commands/meta.go":                 "package commands\n\ntype Meta struct{}\n",
			"commands/workflow_execution.go":   "package commands\n\ntype SubmitExecution struct{ Meta }\n",
			"commands/traffic_budget.go":       "package commands\n\ntype SetBudget struct{ Meta }\n",
			"gateways/tasks/t.go":              "package tasks\n\nimport \"" + module + "/commands\"\n\nvar X commands.SubmitExecution\n",
			"deploy/platform/up.go":            up,
			"deploy/platform/wire_workflow.go": "//sluice:owns gateways/tasks/\n\npackage platform\n\nfunc workflow() {}\n",
		}))
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	t.Run("what a domain owns goes, what all share stays", func(t *testing.T) {
		left, err := without(small("package platform\n"), "workflow")
		want := []string{"commands/meta.go", "commands/traffic_budget.go", "deploy/platform/up.go", "go.mod"}
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("left %q, %v; want %q", left, err, want)
		}
	})
	t.Run("a tree whose shared code knows no domain builds without one", func(t *testing.T) {
		if out, err := buildWithout(t, small("package platform\n"), "workflow"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("a tree whose shared code calls a domain does not", func(t *testing.T) {
		out, err := buildWithout(t, small("package platform\n\nvar _ = workflow\n"), "workflow")
		if err == nil || !strings.Contains(out, "workflow") {
			t.Errorf("built: %v\n%s", err, out)
		}
	})
}

// buildWithout copies the tree less one domain and lets the go command judge it.
func buildWithout(t *testing.T, tr *tree, domain string) (output string, err error) {
	t.Helper()
	left, err := without(tr, domain)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, p := range left {
		content, err := fs.ReadFile(tr, p)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"generate", "./..."}, {"build", "./..."}, {"vet", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "go " + strings.Join(args, " ") + "\n" + string(out), err
		}
	}
	return "", nil
}
