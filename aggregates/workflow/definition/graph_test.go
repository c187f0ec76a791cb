package definition

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var plain = Types{"test": {}}

func codes(t *testing.T, raw string) (all []string, details string) {
	t.Helper()
	d, problems := Parse([]byte(raw))
	if d != nil {
		problems = d.Check(plain)
	}
	for _, p := range problems {
		all = append(all, p.Code+" "+p.Pointer)
		details += p.Detail + "\n"
	}
	return all, details
}

func tasks(lines ...string) string { return "workflow: w\ntasks:\n  " + strings.Join(lines, "\n  ") }

func TestWF12AJoinThatWaitsForNothing(t *testing.T) {
	got, details := codes(t, tasks("a: {type: test}", "b: {type: test}", "j: {type: test, needs: [a, nobody, a]}"))
	if !slices.Equal(got, []string{"unknown_task /tasks/j/needs/1", "join_duplicate /tasks/j/needs/2"}) ||
		!strings.Contains(details, `"nobody"`) {
		t.Fatal(got, details)
	}
	if got, _ := codes(t, tasks("a: {type: test, needs: []}", "b: {type: test}")); got != nil {
		t.Fatal("a task without predecessors is a root: ", got)
	}
}

func TestWF14CheckingAGraphCostsWhatTheGraphIs(t *testing.T) {
	t.Run("ten layers, each joined wholly to the next: each need is looked at a few times", func(t *testing.T) {
		var lines []string
		for layer := range 10 {
			for n := range 10 {
				needs, with := []string{}, ""
				for m := range 10 {
					if layer > 0 {
						needs = append(needs, fmt.Sprintf("t%d_%d", layer-1, m))
						with = ", with: {x: '${{ tasks.t0_9.output }}'}"
					}
				}
				lines = append(lines, fmt.Sprintf("t%d_%d: {type: test, needs: [%s]%s}", layer, n, strings.Join(needs, ","), with))
			}
		}
		d, problems := Parse([]byte(tasks(lines...)))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := &checker{d: d, types: plain, graph: newGraph(d)}
		c.cycles()
		c.compile()
		if len(c.problems.list) > 0 || c.graph.visited > 5*900 || c.graph.visited < 900 {
			t.Fatal(c.graph.visited, c.problems.list)
		}
	})
	t.Run("a chain of 10,000 that reads its first task is valid, without recursion", func(t *testing.T) {
		lines := []string{"t0: {type: test}"}
		for i := 1; i < TasksMax; i++ {
			lines = append(lines, fmt.Sprintf("t%d: {type: test, needs: [t%d], with: {x: '${{ tasks.t0.output }}'}}", i, i-1))
		}
		if got, details := codes(t, tasks(lines...)); got != nil {
			t.Fatal(got, details)
		}
		t.Run("one more is too large, with limit and size", func(t *testing.T) {
			got, details := codes(t, tasks(append(lines, "more: {type: test}")...))
			if !slices.Equal(got, []string{"dag_too_large /tasks"}) || !strings.Contains(details, "10000") ||
				!strings.Contains(details, "10001") {
				t.Fatal(got, details)
			}
		})
		t.Run("and closed to a ring it is one cycle", func(t *testing.T) {
			lines[0] = "t0: {type: test, needs: [t9999]}"
			got, details := codes(t, tasks(lines...))
			if !slices.Equal(got, []string{"dag_cycle /tasks/t0/needs"}) || !strings.Contains(details, "t0 → t1 → t2") ||
				len(details) > 500 {
				t.Fatal(got, details)
			}
		})
	})
	t.Run("a cycle is told with its path", func(t *testing.T) {
		got, details := codes(t, tasks("x: {type: test, needs: [z]}", "y: {type: test, needs: [x]}",
			"z: {type: test, needs: [y]}",
			"after: {type: test, needs: [y], with: {v: '${{ tasks.x.output }}'}}"))
		if !slices.Equal(got, []string{"dag_cycle /tasks/x/needs"}) || !strings.Contains(details, "x → y → z → x") {
			t.Fatal(got, details)
		}
	})
	t.Run("and so is every other, and a task that needs itself", func(t *testing.T) {
		got, details := codes(t, tasks("s: {type: test, needs: [s]}", "a: {type: test, needs: [b]}",
			"b: {type: test, needs: [a]}",
			"root: {type: test}", "c: {type: test, needs: [root, d]}", "d: {type: test, needs: [c, a]}"))
		if !slices.Equal(got, []string{
			"dag_cycle /tasks/s/needs/0", "dag_cycle /tasks/a/needs",
			"dag_cycle /tasks/c/needs",
		}) ||
			!strings.Contains(details, "s → s") || !strings.Contains(details, "a → b → a") || !strings.Contains(details,
			"c → d → c") {
			t.Fatal(got, details)
		}
	})
}

func TestWF20ReferencesAreCheckedAtPublish(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"a task that does not exist": {
			tasks("a: {type: test}", "d: {type: test, needs: [a], with: {customerId: ['${{ tasks.nobody.output.id }}']}}"),
			[]string{"unknown_task /tasks/d/with/customerId/0"},
		},
		"a sibling, oneself and a successor are no ancestors": {
			tasks("a: {type: test, with: {x: '${{ tasks.b.output }}', y: '${{ tasks.a.output }}', z: '${{ tasks.c.output }}'}}",
				"b: {type: test}", "c: {type: test, needs: [a]}"),
			[]string{"not_an_ancestor /tasks/a/with/x", "not_an_ancestor /tasks/a/with/y", "not_an_ancestor /tasks/a/with/z"},
		},
		"the same mapping is right in one place and wrong in another": {
			tasks("a: {type: test}", "b: {type: test, needs: [a], with: {x: '${{ tasks.a.output }}'}}",
				"c: {type: test, with: {x: '${{ tasks.a.output }}'}, when: '${{ tasks.b.output }}'}"),
			[]string{"not_an_ancestor /tasks/c/with/x", "not_an_ancestor /tasks/c/when"},
		},
		"any ancestor may be read, by any name, and the output reads all": {
			tasks("a.b: {type: test}", "b-1: {type: test, needs: [a.b]}",
				`c: {type: test, needs: [b-1], with: {x: '${{ tasks["a.b"].output }}', y: "${{ tasks['b-1'].output.n + 1 }}"}}`) +
				"\noutput: ['${{ tasks.c.output }}', '${{ tasks[\"a.b\"].output }}']",
			nil,
		},
		"a text of data with an expression's marks is escaped": {
			tasks("a: {type: test, with: {x: 'literal $${{ tasks.nobody.output }}', y: '${workflow.input.secret}'}}"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, details := codes(t, c.raw); !slices.Equal(got, c.want) {
				t.Fatal(got, details)
			}
		})
	}
}

func TestBoundsOfADefinition(t *testing.T) {
	t.Run("different expressions", func(t *testing.T) {
		var lines []string
		for i := range 40 {
			var parts []string
			for j := range 501 {
				parts = append(parts, fmt.Sprintf("'${{ input.n + %d }}'", i*501+j))
			}
			lines = append(lines, fmt.Sprintf("t%d: {type: test, with: {x: [%s]}}", i, strings.Join(parts, ",")))
		}
		if got, _ := codes(t, tasks(lines...)); !slices.Equal(got, []string{"expression_too_large /tasks/t39/with"}) {
			t.Fatal(got)
		}
	})
	t.Run("ten thousand tasks that say the same are compiled once", func(t *testing.T) {
		var lines []string
		for i := range TasksMax {
			lines = append(lines, fmt.Sprintf("t%d: {type: test, with: {x: '${{ size(input.n) }}'}, output: {type: object}}", i))
		}
		d, _ := Parse([]byte(tasks(lines...)))
		if ps := d.Check(plain); len(ps) > 0 {
			t.Fatal(ps)
		}
		if d.Tasks[0].WithTemplate != d.Tasks[9999].WithTemplate || d.Tasks[0].OutputSchema != d.Tasks[9999].OutputSchema {
			t.Fatal("want one of each")
		}
	})
	t.Run("schemas together", func(t *testing.T) {
		var lines []string
		for i := range 9 {
			lines = append(lines, fmt.Sprintf("t%d: {type: test, output: {description: '%d%s'}}", i, i,
				strings.Repeat("x", 250_000)))
		}
		if got, _ := codes(t, tasks(lines...)); !slices.Equal(got, []string{"too_large /tasks/t8/output"}) {
			t.Fatal(got)
		}
	})
}

func TestTypesAreHeldToTheirSchemas(t *testing.T) {
	if err := (Types{"a": {With: []byte(`{"type":"object"}`)}, "b": {}}).Validate(); err != nil {
		t.Fatal(err)
	}
	if err := (Types{"a": {With: []byte(`{"type":"text"}`)}}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "task type a") {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		tasks("a: {type: test}"), `{"workflow":"w","tasks":{"a":{"type":"test","needs":["a"]}}}`,
		tasks("x: {type: test, needs: [y], with: {a: '${{ tasks.y.output }}'}}",
			"y: {type: test, needs: [x], when: '${{ true }}'}"),
		"a: &a [*a]", "? [a]\n: b", "--- a\n--- b", `{"a":"\ud800"}`, "a: !!binary x", "{a: 1, <<: {b: 2}}", "a: |\n  x\n\ty",
		"workflow: w\ninput: {$ref: '#'}\nlabels: {a: b}\ndefaults: {retry: {base: 1s}}\n" +
			"tasks: {a: {type: test, output: true}}",
		"a: 0x1p-2\nb: 1e999999\nc: 2001-01-01\nd: ~\ne: .5", "\ufeff{}", "{\"\\u0000\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, problems := Parse(raw)
		if d == nil {
			if len(problems) == 0 {
				t.Fatal("no definition, and nothing wrong")
			}
			return
		}
		first := d.Check(plain)
		if again := d.Check(plain); !slices.Equal(first, again) {
			t.Fatalf("%v, then %v", first, again)
		}
		if len(first) > 0 {
			return
		}
		back, problems := Parse(d.Canonical())
		if len(problems) > 0 || back.Hash() != d.Hash() {
			t.Fatalf("canonical content parses to something else: %v\n%s", problems, d.Canonical())
		}
		if problems := back.Check(plain); len(problems) > 0 {
			t.Fatalf("canonical content is not valid: %v\n%s", problems, d.Canonical())
		}
	})
}
