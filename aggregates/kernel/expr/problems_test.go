package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
)

func TestOfATaskOnlyItsOutputCanBeRead(t *testing.T) {
	for _, src := range []string{
		`tasks.a`, `tasks.a.outputs`, `tasks['a'].status == 'x'`, `size(tasks.a)`, `has(tasks.a)`,
		`tasks.a.status + tasks.a.output`,
	} {
		_, problems := expr.Compile(fmt.Appendf(nil, "%q", "${{ "+src+" }}"), env)
		if len(problems) != 1 || problems[0].Code != expr.CodeSyntax || !strings.Contains(problems[0].Detail, "output") {
			t.Errorf("%s: got %v", src, problems)
		}
	}
	for _, src := range []string{
		`size(tasks.a.output)`, `has(tasks.a.output)`, `tasks['b.c'].output + 1`, `tasks.a.?output.orValue(1)`,
		`tasks.a["output"].v + 1`, `tasks.?a.?output.?x.orValue(2)`, `has(tasks.a.output.x) ? 1 : 2`,
	} {
		c, problems := expr.Compile(fmt.Appendf(nil, "%q", "${{ "+src+" }}"), env)
		if len(problems) > 0 || len(c.Tasks()) != 1 {
			t.Errorf("%s: got %v", src, problems)
		}
	}
}

func TestProblemsSayWhereAndWhatToDo(t *testing.T) {
	for src, want := range map[string]struct {
		line, column int
		says         string
		silent       string
	}{
		`1 * 1.5`:                      {1, 3, "double(", ""},
		`1 + 'a'`:                      {1, 3, "(int, string)", "double("},
		`tasks.a-b.output`:             {1, 9, `tasks["NAME"].output`, ""},
		strings.Repeat("(", 100) + "1": {0, 0, "recursion limit", ""},
		"input.a +\n  size(nope)":      {2, 8, "nope", ""},
	} {
		_, problems := expr.Compile(fmt.Appendf(nil, "%q", "${{ "+src+" }}"), env)
		if len(problems) != 1 {
			t.Errorf("%s: got %v", src, problems)
			continue
		}
		p := problems[0]
		if p.Line != want.line || p.Column != want.column || !strings.Contains(p.Detail, want.says) ||
			want.silent != "" && strings.Contains(p.Detail, want.silent) {
			t.Errorf("%s: got %+v, want %+v", src, p, want)
		}
	}
}

func TestAScopeWithoutOutputsIsNoPanic(t *testing.T) {
	for _, src := range []string{"tasks.a.output", "size(tasks.a.output)"} {
		c, problems := expr.Compile(fmt.Appendf(nil, "%q", "${{ "+src+" }}"), env)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got, err := c.Eval(expr.Scope{}); err == nil || err.Code != expr.CodeMissing {
			t.Errorf("%s: got %s, %v", src, got, err)
		}
	}
}

// FuzzCompile takes expressions alone: a template is made, or every problem lies in the template and has a code.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"input", "input.a[0].?b", `tasks["b.c"].output`, "1 + 'a'", "has(tasks.a.output)", "'}}' + r'\\'",
		"{'a': [1, 2.5, null]}",
		"input.matches('a+')", "tasks[input.n].output", "[1].map(x, x * 2)", "9223372036854775808",
		"((((", "tasks.a", "\"\"\"x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(src)
		template := fmt.Appendf(nil, `{"m":["${{ %s }}"]}`, quoted)
		c, problems := expr.Compile(template, env)
		if (c == nil) != (len(problems) > 0) {
			t.Fatalf("a template, or problems: %v", problems)
		}
		for _, p := range problems {
			if p.Code == "" || p.Detail == "" || p.Line < 0 || p.Column < 0 {
				t.Fatalf("%q: %+v", src, p)
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for name, format := range map[string]string{
		"constant": `{"a":%d}`, "path": `"${{ input.a%d.b }}"`, "cel": `"${{ size(input.s) + %d }}"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, problems := expr.Compile(fmt.Appendf(nil, format, i), env); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
