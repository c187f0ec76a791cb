package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// ban forbids names of a package (none given: the package itself) in some folders.
type ban struct {
	pkg     string
	names   []string
	folders []string
}

var (
	deterministic = []string{"aggregates", "projections", "commands", "events", "processors"}
	pure          = []string{"aggregates", "projections"}
)

// bans is what would make the same input give another output: clocks, dice, the world. Ports stand for them.
var bans = []ban{
	{"time", []string{
		"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker",
		"Local", "LoadLocation",
	}, deterministic},
	{"context", []string{
		"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause",
	}, deterministic},
	{"math/rand", nil, deterministic},
	{"math/rand/v2", nil, deterministic},
	{"crypto/rand", nil, deterministic},
	{"hash/maphash", nil, deterministic}, // seeded anew by every process
	{"os", nil, deterministic},
	{"os/exec", nil, deterministic},
	{"io/ioutil", nil, deterministic},
	{"syscall", nil, deterministic},
	{"net", nil, deterministic},
	{"net/http", nil, deterministic},
	{"database/sql", nil, deterministic},
	{"log", nil, pure},
	{"log/slog", nil, pure},
	{"fmt", []string{"Print", "Printf", "Println"}, deterministic},
}

func TestBannedCalls(t *testing.T) {
	hold(t, bannedCalls, nil,
		example{
			"every way to read or wait for the clock",
			map[string]string{"aggregates/a.go": `package a
import "time"
import c "context"
func f() { time.Now(); time.Since(x); time.Until(x); time.After(1); time.AfterFunc(1, f); time.Sleep(1) }
func g() { time.Tick(1); time.NewTimer(1); time.NewTicker(1); c.WithTimeout(x, 1); c.WithDeadlineCause(x, y, z) }
var fine = time.Second + time.Duration(3)`},
			slices.Repeat([]string{"aggregates/a.go"}, 11),
		},
		example{
			"also as a value, not only as a call",
			map[string]string{"processors/p.go": "package p\nimport \"time\"\nvar now = time.Now"},
			[]string{"processors/p.go"},
		},
		example{
			"dice and the world, by import, in each deterministic layer",
			map[string]string{
				"commands/c.go":             `package c; import "math/rand"`,
				"commands/handle/h.go":      `package h; import "math/rand/v2"`,
				"events/e.go":               `package e; import "crypto/rand"`,
				"processors/kernel/t/t.go":  `package t; import _ "os"`,
				"projections/p.go":          `package p; import . "net"`,
				"projections/workflow/x.go": `package p; import "log/slog"`,
			},
			[]string{
				"commands/c.go", "commands/handle/h.go", "events/e.go", "processors/kernel/t/t.go", "projections/p.go",
				"projections/workflow/x.go",
			},
		},
		example{
			"names are not brought in by a dot",
			map[string]string{"aggregates/a.go": `package a; import . "time"`},
			[]string{"aggregates/a.go"},
		},
		example{
			"tests, suites and the layers that touch the world are free",
			map[string]string{
				"aggregates/a_test.go":     "package a\nimport \"time\"\nvar t = time.Now()",
				"events/storetest/s.go":    "package s\nimport \"time\"\nvar t = time.Now()",
				"deploy/platform/clock.go": "package p\nimport \"time\"\nvar t = time.Now()",
				"aggregates/b.go":          "package a\nfunc f(time clock) { time.Now() }",
			},
			nil,
		},
	)
}

func bannedCalls(tr *tree) (found []finding) {
	for _, f := range tr.files {
		if f.isTest() || f.isSuite() {
			continue
		}
		for _, b := range bans {
			if !under(f.path, b.folders...) || !slices.Contains(f.imported(), b.pkg) {
				continue
			}
			switch dotted := f.imports()["."] == b.pkg; {
			case b.names == nil:
				found = append(found, finding{f.path, "imports " + b.pkg})
			case dotted:
				found = append(found, finding{f.path, "imports " + b.pkg + " by a dot"})
			}
			for _, u := range f.uses(f.ast) {
				if u.pkg == b.pkg && slices.Contains(b.names, u.name) {
					found = append(found, finding{f.path, b.pkg + "." + u.name})
				}
			}
		}
	}
	return found
}

// steppers are state machines: Step(input, now) effects. The platform drives them with goroutines, the simulation with
// one loop and one seeded order.
func stepper(p string) bool {
	return under(p, "aggregates", "processors", "projections") ||
		under(p, "commands/handle") && len(base(p)) >= 4 && base(p)[:4] == "lane"
}

func TestSteppers(t *testing.T) {
	hold(t, steppers, exceptions{
		"processors/workflow/ports.go":     "Attempts.Begin gives a blocking handler the signal that it should stop",
		"processors/workflow/live/live.go": "it keeps those signals; nothing waits on them here",
	},
		example{
			"no goroutine, no channel, no select",
			map[string]string{
				"processors/kernel/owner/o.go": "package o\nfunc f() { go f() }",
				"projections/run.go":           "package p\ntype q struct{ in chan int }",
				"processors/workflow/r.go":     "package r\nfunc f() { select {} }",
				"commands/handle/lane.go":      "package h\nfunc f() { x <- 1 }",
				"commands/handle/lane_hot.go":  "package h\nfunc f() { <-x }",
				"aggregates/workflow/d.go":     "package d\nimport \"sync\"\nvar wg sync.WaitGroup",
			},
			[]string{
				"aggregates/workflow/d.go", "commands/handle/lane.go", "commands/handle/lane_hot.go",
				"processors/kernel/owner/o.go", "processors/workflow/r.go", "projections/run.go",
			},
		},
		example{
			"drivers and tests may",
			map[string]string{
				"deploy/platform/drive.go":          "package p\nfunc f() { go f() }",
				"processors/kernel/owner/o_test.go": "package o\nfunc f() { go f() }",
				"commands/handle/handle.go":         "package h\nfunc f() { <-x }",
			},
			nil,
		},
	)
}

func steppers(tr *tree) (found []finding) {
	for _, f := range tr.files {
		if f.isTest() || f.isSuite() || !stepper(f.path) {
			continue
		}
		add := func(text string) { found = append(found, finding{f.path, text}) }
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add("starts a goroutine")
			case *ast.SelectStmt:
				add("selects")
			case *ast.ChanType:
				add("names a channel")
			case *ast.SendStmt:
				add("sends to a channel")
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					add("receives from a channel")
				}
			}
			return true
		})
		for _, u := range f.uses(f.ast) {
			if u.pkg == "sync" && slices.Contains([]string{"WaitGroup", "Cond"}, u.name) || u.pkg == errgroup {
				add("waits for goroutines by " + u.pkg + "." + u.name)
			}
		}
	}
	return found
}

const errgroup = "golang.org/x/sync/errgroup"

// writers may name events.Appender, the only way into the log, or a store that contains it.
var writers = []string{
	"events", "commands/handle", "gateways/memory", "gateways/sqlite", "gateways/postgres", "gateways/cosmos",
	"tests/simulation", "deploy",
}

func TestOnlyHandleWrites(t *testing.T) {
	appender := "import \"github.com/sluice-platform/sluice/events\"\nvar a events.Appender"
	store := "import \"github.com/sluice-platform/sluice/events\"\nvar a events.Store"
	hold(t, onlyHandleWrites, nil,
		example{
			"nobody else names the appender, under whatever name it goes",
			map[string]string{
				"processors/kernel/owner/o.go": "package o\n" + appender,
				"gateways/http/h.go":           "package h\n" + store,
				"projections/p.go":             "package p\nimport ev \"github.com/sluice-platform/sluice/events\"\ntype w interface{ ev.Appender }",
				"aggregates/a.go":              "package a\nimport . \"github.com/sluice-platform/sluice/events\"",
			},
			[]string{"aggregates/a.go", "gateways/http/h.go", "processors/kernel/owner/o.go", "projections/p.go"},
		},
		example{
			"the write path, the adapters and those that put them together do",
			map[string]string{
				"commands/handle/handle.go":   "package h\n" + appender,
				"gateways/memory/log.go":      "package m\n" + store,
				"deploy/platform/up.go":       "package p\n" + store,
				"events/storetest/suite.go":   "package s\n" + appender,
				"gateways/http/exec_test.go":  "package h\n" + store,
				"tests/simulation/harness.go": "package s\n" + appender,
			},
			nil,
		},
	)
}

func onlyHandleWrites(tr *tree) (found []finding) {
	for _, f := range tr.files {
		if f.isTest() || under(f.path, writers...) {
			continue
		}
		if f.imports()["."] == module+"/events" {
			found = append(found, finding{f.path, "imports events by a dot"})
		}
		for _, u := range f.uses(f.ast) {
			if u.pkg == module+"/events" && (u.name == "Appender" || u.name == "Store") {
				found = append(found, finding{f.path, "names events." + u.name})
			}
		}
	}
	return found
}
