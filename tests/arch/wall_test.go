package arch

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// shared is the domain that its siblings may know; it knows none of them.
const shared = "kernel"

// domains can each be taken out of the tree by deleting what they own by name.
var domains = []string{"workflow", "scaling", "traffic"}

// owns is the line with which a wire file lists what only its domain uses: adapters, tests, examples. Paths follow,
// divided by spaces.
const owns = "//sluice:owns "

// owner names the domain that p belongs to: by the name of a folder, of a file (workflow_execution.go,
// wire_workflow.go), or by a line in the domain's wire file. It is "" for what all domains share.
func owner(p string, listed map[string]string) string {
	parts := strings.Split(p, "/")
	for _, part := range parts[1:] {
		part = strings.TrimPrefix(strings.TrimSuffix(part, ".go"), "wire_")
		first, _, _ := strings.Cut(part, "_")
		for _, d := range append(domains, shared) {
			if part == d || first == d && strings.HasSuffix(p, ".go") && part == strings.TrimPrefix(base(p), "wire_") {
				return d
			}
		}
	}
	for listedPath, d := range listed {
		if under(p, listedPath) {
			return d
		}
	}
	return ""
}

func base(p string) string { return strings.TrimSuffix(path.Base(p), ".go") }

// listings reads the lines of the wire files.
func listings(tr *tree) map[string]string {
	m := map[string]string{}
	for _, f := range tr.files {
		d, ok := strings.CutPrefix(base(f.path), "wire_")
		if !ok || !slices.Contains(domains, d) {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, line := range group.List {
				paths, ok := strings.CutPrefix(line.Text, owns)
				for _, p := range strings.Fields(paths) {
					if ok {
						m[strings.TrimSuffix(p, "/")] = d
					}
				}
			}
		}
	}
	return m
}

func TestOwner(t *testing.T) {
	listed := map[string]string{"gateways/tasks": "workflow"}
	for p, want := range map[string]string{
		"commands/workflow_execution.go":       "workflow",
		"commands/workflow_execution_test.go":  "workflow",
		"events/traffic_budget.go":             "traffic",
		"aggregates/kernel/expr/expr.go":       "kernel",
		"processors/scaling/drain/drain.go":    "scaling",
		"gateways/http/workflow/executions.go": "workflow",
		"schemas/avro/workflow/submitted.avsc": "workflow",
		"deploy/platform/wire_workflow.go":     "workflow",
		"gateways/tasks/http/http.go":          "workflow",
		"gateways/memory/log.go":               "",
		"projections/views.go":                 "",
		"main.go":                              "",
		"docs/workflow_notes.md":               "",
	} {
		if got := owner(p, listed); got != want {
			t.Errorf("%s belongs to %q, want %q", p, got, want)
		}
	}
}

func TestDomainWall(t *testing.T) {
	hold(t, wall, nil,
		example{
			"a domain may know the kernel and what all share",
			map[string]string{
				"processors/workflow/w.go": `package w
import ("github.com/sluice-platform/sluice/processors/kernel"; "github.com/sluice-platform/sluice/projections")`,
			},
			nil,
		},
		example{
			"a domain knows no other domain, in whatever layer",
			map[string]string{
				"projections/scaling/p.go":      `package p; import "github.com/sluice-platform/sluice/projections/workflow"`,
				"gateways/http/traffic/t.go":    `package t; import "github.com/sluice-platform/sluice/processors/scaling"`,
				"aggregates/workflow/a_test.go": `package a; import "github.com/sluice-platform/sluice/aggregates/traffic/limit"`,
			},
			[]string{"aggregates/workflow/a_test.go", "gateways/http/traffic/t.go", "projections/scaling/p.go"},
		},
		example{
			"the kernel knows none of its siblings",
			map[string]string{
				"processors/kernel/owner/o.go": `package owner; import "github.com/sluice-platform/sluice/processors/workflow"`,
			},
			[]string{"processors/kernel/owner/o.go"},
		},
		example{
			"what all share names no domain, unless a wire file lists it",
			map[string]string{
				"deploy/platform/up.go":            `package platform; import "github.com/sluice-platform/sluice/processors/workflow"`,
				"deploy/platform/wire_workflow.go": "//sluice:owns gateways/tasks/\npackage platform",
				"gateways/tasks/http/h.go":         `package http; import "github.com/sluice-platform/sluice/processors/workflow"`,
			},
			[]string{"deploy/platform/up.go"},
		},
		example{
			"within one package a file of one domain uses no name that another's file declares",
			map[string]string{
				"commands/traffic_budget.go":      "package commands\ntype Budget struct{}\nconst budgetMax = 3",
				"commands/traffic_price.go":       "package commands\ntype Price struct{ of Budget }",
				"commands/workflow_execution.go":  "package commands\ntype Execution struct{ of Budget }",
				"commands/workflow_definition.go": "package commands\nvar x = budgetMax",
				"commands/codes.go":               "package commands\ntype any1 = Price",
				"commands/workflow_schedule.go":   "package commands\ntype Schedule struct{ Budget int }\nfunc f(Price int) int { return Price }",
			},
			[]string{"commands/codes.go", "commands/workflow_definition.go", "commands/workflow_execution.go"},
		},
		example{
			"a name belongs to its domain in other packages too",
			map[string]string{
				"events/traffic_budget.go":   "package events\ntype BudgetSpent struct{}",
				"events/workflow_e.go":       "package events\ntype TaskCompleted struct{}",
				"aggregates/workflow/e/e.go": "package e\nimport \"github.com/sluice-platform/sluice/events\"\nvar _ events.BudgetSpent\nvar _ events.TaskCompleted",
				"projections/run.go":         "package projections\nimport \"github.com/sluice-platform/sluice/events\"\nvar _ events.TaskCompleted",
			},
			[]string{"aggregates/workflow/e/e.go", "projections/run.go"},
		},
	)
}

// wall keeps domains apart: by imports, and by declared names in the packages that they share.
func wall(tr *tree) (found []finding) {
	listed := listings(tr)
	declared := declarations(tr, listed)
	for _, f := range tr.files {
		from := owner(f.path, listed)
		stranger := func(d string) bool { return d != "" && d != shared && d != from }
		for _, imp := range f.imported() {
			if dir, our := ours(imp); our && stranger(owner(dir, listed)) {
				found = append(found, finding{f.path, "imports " + dir + " of another domain"})
			}
		}
		for _, name := range f.ast.Unresolved {
			if d := declared[f.dir()+"."+name.Name]; stranger(d) {
				found = append(found, finding{f.path, "uses " + name.Name + " of " + d})
			}
		}
		for _, u := range f.uses(f.ast) {
			dir, _ := ours(u.pkg)
			if d := declared[dir+"."+u.name]; stranger(d) && owner(dir, listed) == "" {
				found = append(found, finding{f.path, "uses " + u.pkg + "." + u.name + " of " + d})
			}
		}
	}
	return found
}

// declarations says which domain's file declares a name, by folder.name.
func declarations(tr *tree, listed map[string]string) map[string]string {
	m := map[string]string{}
	for _, f := range tr.files {
		for name := range f.ast.Scope.Objects {
			m[f.dir()+"."+name] = owner(f.path, listed)
		}
	}
	return m
}

// without lists the tree's files less those of one domain. What is left must build.
func without(tr *tree, domain string) (left []string, err error) {
	listed := listings(tr)
	err = fs.WalkDir(tr, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (hidden(p) || nestedModule(tr, p)):
			return fs.SkipDir
		case !d.IsDir() && owner(p, listed) != domain:
			left = append(left, p)
		}
		return nil
	})
	return left, err
}

// present lists the domains that the tree has.
func present(tr *tree) (some []string) {
	for _, d := range domains {
		if slices.ContainsFunc(tr.files, func(f *file) bool { return owner(f.path, nil) == d }) {
			some = append(some, d)
		}
	}
	return some
}
