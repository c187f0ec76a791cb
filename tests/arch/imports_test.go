package arch

import (
	"slices"
	"strings"
	"testing"
)

// mayImport is the dependency diagram: a folder, and the folders that it may know. The longest match rules, on both
// sides. What has no line here (main.go, tests/) may know all.
var mayImport = map[string][]string{
	"schemas":                {},
	"events":                 {"schemas"},
	"events/storetest":       {"events", "schemas"},
	"events/feedtest":        {"events", "schemas"},
	"commands":               {"events", "schemas"},
	"aggregates":             {"commands", "events", "schemas"},
	"aggregates/decidertest": {"aggregates", "commands", "events", "schemas"},
	"commands/handle":        {"aggregates", "commands", "events", "schemas"},
	"projections":            {"aggregates", "events", "schemas"},
	"processors":             {"aggregates", "commands", "commands/handle", "events", "schemas"},
	"gateways": {
		"aggregates", "commands", "commands/handle", "events", "processors", "projections", "schemas",
	},
	"deploy": {
		"aggregates", "commands", "commands/handle", "events", "gateways", "processors", "projections", "schemas",
	},
}

func TestLayers(t *testing.T) {
	hold(t, layers, nil,
		example{
			"a layer may know those before it",
			map[string]string{
				"commands/a.go":              `package commands; import "github.com/sluice-platform/sluice/events"`,
				"commands/handle/h.go":       `package handle; import "github.com/sluice-platform/sluice/aggregates"`,
				"aggregates/workflow/d/s.go": `package d; import "github.com/sluice-platform/sluice/aggregates/kernel/expr"`,
				"tests/bench/b.go":           `package bench; import "github.com/sluice-platform/sluice/deploy/platform"`,
			},
			nil,
		},
		example{
			"a layer may not know those behind it",
			map[string]string{
				"aggregates/a.go":  `package aggregates; import "github.com/sluice-platform/sluice/commands/handle"`,
				"events/e.go":      `package events; import "github.com/sluice-platform/sluice/commands"`,
				"projections/p.go": `package projections; import "github.com/sluice-platform/sluice/processors"`,
				"processors/p.go":  `package processors; import "github.com/sluice-platform/sluice/gateways/memory"`,
				"gateways/g/g.go":  `package g; import "github.com/sluice-platform/sluice/deploy/platform"`,
			},
			[]string{"aggregates/a.go", "events/e.go", "gateways/g/g.go", "processors/p.go", "projections/p.go"},
		},
		example{
			"the write path is not part of the commands it serves",
			map[string]string{
				"commands/a.go": `package commands; import "github.com/sluice-platform/sluice/commands/handle"`,
			},
			[]string{"commands/a.go"},
		},
		example{
			"a contract suite is for tests",
			map[string]string{
				"gateways/memory/log.go":      `package memory; import "github.com/sluice-platform/sluice/events/storetest"`,
				"gateways/memory/log_test.go": `package memory; import "github.com/sluice-platform/sluice/events/storetest"`,
			},
			[]string{"gateways/memory/log.go"},
		},
	)
}

// layers compares imports with the diagram. Test files may use any adapter and suite; the wall still binds them.
func layers(tr *tree) (found []finding) {
	for _, f := range tr.files {
		from, bound := layer(f.path)
		if f.isTest() || !bound {
			continue
		}
		for _, imp := range f.imported() {
			dir, our := ours(imp)
			if !our {
				continue
			}
			to, known := layer(dir)
			switch {
			case isSuite(dir) && f.isProduct():
				found = append(found, finding{f.path, "imports the contract suite " + dir})
			case !known:
				found = append(found, finding{f.path, "imports " + dir + ", which nothing may"})
			case to != from && !slices.Contains(mayImport[from], to):
				found = append(found, finding{f.path, "imports " + dir + ": " + from + " may know only " +
					strings.Join(mayImport[from], ", ")})
			}
		}
	}
	return found
}

// layer names the line of the diagram that p falls under.
func layer(p string) (longest string, ok bool) {
	for f := range mayImport {
		if under(p, f) && len(f) > len(longest) {
			longest = f
		}
	}
	return longest, longest != ""
}

// leaves are the gateways that others may use. They use no gateway themselves.
var leaves = []string{"gateways/http", "gateways/sdk/go", "gateways/egress", "gateways/telemetry"}

func TestGateways(t *testing.T) {
	hold(t, gateways, nil,
		example{
			"a gateway may use the leaves and its own subfolders",
			map[string]string{
				"gateways/tasks/http/h.go":  `package http; import "github.com/sluice-platform/sluice/gateways/egress"`,
				"gateways/sqlite/s.go":      `package sqlite; import "github.com/sluice-platform/sluice/gateways/sqlite/schema"`,
				"gateways/http/kernel/k.go": `package kernel; import "github.com/sluice-platform/sluice/gateways/http"`,
			},
			nil,
		},
		example{
			"a gateway may use no other gateway",
			map[string]string{
				"gateways/sqlite/s.go":     `package sqlite; import "github.com/sluice-platform/sluice/gateways/memory"`,
				"gateways/tasks/test/t.go": `package test; import "github.com/sluice-platform/sluice/gateways/tasks/http"`,
			},
			[]string{"gateways/sqlite/s.go", "gateways/tasks/test/t.go"},
		},
		example{
			"a leaf uses no gateway, another leaf included",
			map[string]string{
				"gateways/egress/e.go":    `package egress; import "github.com/sluice-platform/sluice/gateways/telemetry"`,
				"gateways/telemetry/t.go": `package telemetry; import "github.com/sluice-platform/sluice/gateways/blob"`,
			},
			[]string{"gateways/egress/e.go", "gateways/telemetry/t.go"},
		},
	)
}

// families are the folders of gateways/ that hold one gateway a subfolder.
var families = []string{"gateways/tasks", "gateways/sources", "gateways/fleets", "gateways/providers", "gateways/sdk"}

func gateways(tr *tree) (found []finding) {
	for _, f := range tr.files {
		if !under(f.path, "gateways") || f.isTest() {
			continue
		}
		from := gateway(f.dir())
		for _, imp := range f.imported() {
			dir, _ := ours(imp)
			to := gateway(dir)
			switch {
			case to == "" || to == from:
			case slices.Contains(leaves, from):
				found = append(found, finding{f.path, "imports " + dir + ": a leaf uses no gateway"})
			case !slices.Contains(leaves, to):
				found = append(found, finding{f.path, "imports " + dir + ": of gateways only the leaves are shared"})
			}
		}
	}
	return found
}

// gateway names the gateway that dir belongs to.
func gateway(dir string) string {
	if !under(dir, "gateways") || dir == "gateways" {
		return ""
	}
	parts := strings.Split(dir, "/")
	if n := 2; !under(dir, families...) || len(parts) == n {
		return strings.Join(parts[:n], "/")
	}
	return strings.Join(parts[:3], "/")
}

// outside says where a library may be used, by prefix of its import path. A library that stands in no line may be
// used by the folders that touch the world, and by tests.
var outside = map[string][]string{
	"net/http":                 world,
	"net":                      world,
	"database/sql":             world,
	"google.golang.org/grpc":   world,
	"cel.dev/cel-go":           {"aggregates/kernel/expr"},
	"github.com/google/cel-go": {},
	// It reads and writes texts and touches nothing; encoding/json takes doubled names and bad UTF-8.
	"github.com/go-json-experiment/json": slices.Concat(world, []string{"aggregates", "processors"}),
	"github.com/hamba/avro":              {"gateways/avro"},
	// Pure computations over texts that are at hand.
	"github.com/santhosh-tekuri/jsonschema": {"aggregates/kernel/schema"},
	"go.yaml.in/yaml":                       {"aggregates/workflow/definition", "gateways"},
	"github.com/twmb/avro":                  {}, // reads back in tests what the other wrote
	"zombiezen.com/go/sqlite":               {"gateways/sqlite"},
	"modernc.org/sqlite":                    {"gateways/sqlite"},
	"modernc.org/libc":                      {"gateways/sqlite"},
	"github.com/ncruces":                    {"gateways/sqlite"},
}

var world = []string{"gateways", "deploy", "tests", "examples", "main.go"}

func TestLibraries(t *testing.T) {
	hold(t, libraries, nil,
		example{
			"the standard library is free but for what touches the world",
			map[string]string{
				"aggregates/a.go":        `package aggregates; import ("strings"; "slices")`,
				"processors/p.go":        `package processors; import "net/http"`,
				"commands/handle/h.go":   `package handle; import "database/sql"`,
				"gateways/http/chain.go": `package http; import "net/http"`,
			},
			[]string{"commands/handle/h.go", "processors/p.go"},
		},
		example{
			"an engine stays in its one package",
			map[string]string{
				"aggregates/kernel/expr/e.go":        `package expr; import "cel.dev/cel-go/cel"`,
				"aggregates/workflow/execution/e.go": `package execution; import "cel.dev/cel-go/cel"`,
				"gateways/avro/a.go":                 `package avro; import "github.com/hamba/avro/v2"`,
				"deploy/platform/p.go":               `package platform; import "zombiezen.com/go/sqlite"`,
			},
			[]string{"aggregates/workflow/execution/e.go", "deploy/platform/p.go"},
		},
		example{
			"the second Avro reader is for tests only",
			map[string]string{
				"gateways/avro/a.go":      `package avro; import "github.com/twmb/avro"`,
				"gateways/avro/a_test.go": `package avro; import "github.com/twmb/avro"`,
				"events/e_test.go":        `package events; import "github.com/hamba/avro/v2"`,
			},
			[]string{"events/e_test.go", "gateways/avro/a.go"},
		},
		example{
			"pure layers use an outside library only by a line in the table",
			map[string]string{
				"aggregates/a.go":   `package aggregates; import "example.com/driver"`,
				"gateways/x/x.go":   `package x; import "example.com/driver"`,
				"events/e_test.go":  `package events; import "pgregory.net/rapid"`,
				"events/golden.go":  `package events; import "github.com/sluice-platform/sluice/schemas"`,
				"tests/run/main.go": `package main; import "example.com/driver"`,
			},
			[]string{"aggregates/a.go"},
		},
	)
}

func libraries(tr *tree) (found []finding) {
	for _, f := range tr.files {
		for _, imp := range f.imported() {
			if _, our := ours(imp); our || mayUse(f, imp) {
				continue
			}
			found = append(found, finding{f.path, "imports " + imp + ", which is for other folders"})
		}
	}
	return found
}

func mayUse(f *file, imp string) bool {
	best := ""
	for p := range outside {
		if under(imp, p) && len(p) > len(best) {
			best = p
		}
	}
	std := !strings.Contains(strings.Split(imp, "/")[0], ".")
	switch {
	case best == "net" && imp != "net":
		return true // net/url and the like are arithmetic on text; net/http has its own line
	case best == "github.com/twmb/avro":
		return f.isTest()
	case best != "":
		return under(f.path, outside[best]...)
	default:
		return std || f.isTest() || f.isSuite() || under(f.path, world...)
	}
}
