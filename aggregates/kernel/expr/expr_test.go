package expr_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
)

var env = expr.Env{Tasks: []string{"a", "a__b", "b.c"}}

func scope(input string, outputs map[string]string) expr.Scope {
	return expr.Scope{Input: []byte(input), Output: func(task string) ([]byte, bool) {
		o, ok := outputs[task]
		return []byte(o), ok
	}}
}

func TestEval(t *testing.T) {
	in := scope(`{"n":12345678901234567890123,"d":1.10,"s":"x","i":3,"l":[10,20],"Space Value":7,"o":{"k":null}}`,
		map[string]string{"a": `{"body":[{"id":"7"}]}`, "b.c": `{"v":2}`})
	for template, want := range map[string]string{
		`{"a":1.10,"b":["x"]}`:                                    `{"a":1.10,"b":["x"]}`,
		`"${{ input.n }}"`:                                        `12345678901234567890123`,
		`"${{ input.d }}"`:                                        `1.10`,
		`"${{input[\"Space Value\"]}}"`:                           `7`,
		`"${{ input.l[1] }}"`:                                     `20`,
		`"${{ tasks.a.output.body[0].id }}"`:                      `"7"`,
		`"${{ tasks[\"b.c\"].output.v }}"`:                        `2`,
		`"id-${{ tasks.a.output.body[0].id }}/${{ input.i }}"`:    `"id-7/3"`,
		`"${{ {'risk': size(input.s) % 7} }}"`:                    `{"risk":1}`,
		`"${{ {'a': {'b': 1}} }}"`:                                `{"a":{"b":1}}`,
		`"${{ {'b': 1, 'a': 2} }}"`:                               `{"a":2,"b":1}`,
		`"${{ input.i + 1 }}"`:                                    `4`,
		`"${{ '}}' + \"}}\" }}"`:                                  `"}}}}"`,
		`"$${{ input.i }}"`:                                       `"${{ input.i }}"`,
		`{"a":"${{ input.?customer.?id }}","b":1}`:                `{"b":1}`,
		`["${{ input.?customer.?id }}",2]`:                        `[2]`,
		`"${{ input.?customer.?id }}"`:                            `null`,
		`"<${{ input.?customer.?id }}>"`:                          `"<>"`,
		`"${{ input.o.k }}"`:                                      `null`,
		`"${{ double(input.i) * 1.5 }}"`:                          `4.5`,
		`"${{ input.l.map(x, x * 2) }}"`:                          `[20,40]`,
		`"${{ tasks.a.output.body.size() > 0 && input.i == 3 }}"`: `true`,
		`"${{ has(input.nope) ? 1 : 2 }}"`:                        `2`,
		`{"x":"${{ input }}"}`:                                    ``,
	} {
		c, problems := expr.Compile([]byte(template), env)
		if len(problems) > 0 {
			t.Errorf("%s: %v", template, problems)
			continue
		}
		got, err := c.Eval(in)
		if want == "" {
			continue
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", template, got, err, want)
		}
	}
}

func TestEvalFails(t *testing.T) {
	in := scope(`{"n":12345678901234567890123,"s":"x","i":3}`, map[string]string{"a": `{"v":1}`})
	for template, code := range map[string]string{
		`{"customerId":"${{ input.customer.id }}"}`: expr.CodeMissing,
		`"${{ input.customer.id + 'x' }}"`:          expr.CodeMissing,
		`"${{ tasks.a.output.w }}"`:                 expr.CodeMissing,
		`"${{ tasks.a__b.output }}"`:                expr.CodeMissing,
		`"${{ input.n + 1 }}"`:                      expr.CodeRange,
		`"${{ 9223372036854775807 + input.i }}"`:    expr.CodeRange,
		`"${{ input.i * 1.5 }}"`:                    expr.CodeType,
		`"${{ input.i / 0 }}"`:                      expr.CodeFailed,
		`"${{ 1.0 / 0.0 }}"`:                        expr.CodeType,
		`"${{ [1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,` +
			`7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, a)))))) }}"`: expr.CodeCost,
	} {
		c, problems := expr.Compile([]byte(template), env)
		if len(problems) > 0 {
			t.Errorf("%s: %v", template, problems)
			continue
		}
		got, err := c.Eval(in)
		if err == nil || err.Code != code {
			t.Errorf("%s: got %s, %v; want %s", template, got, err, code)
		}
	}
}

func TestWF20DataIsNeverEvaluatedAndABadPathIsNeverNull(t *testing.T) {
	in := scope(`{"note":"${workflow.input.secret} ${{ input.secret }}","Space Value":7,"secret":"x"}`,
		map[string]string{"a__b": `{"id":9}`})
	c, problems := expr.Compile([]byte(
		`{"note":"${{ input.note }}","v":"${{ input['Space Value'] }}","t":"${{ tasks.a__b.output }}",`+
			`"twice":"[${{ input.note }}]"}`), env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, err := c.Eval(in)
	want := `{"note":"${workflow.input.secret} ${{ input.secret }}","v":7,"t":{"id":9},` +
		`"twice":"[${workflow.input.secret} ${{ input.secret }}]"}`
	if err != nil || string(got) != want {
		t.Fatalf("got %s, %v; want %s", got, err, want)
	}
	c, _ = expr.Compile([]byte(`{"customerId":"${{ input.customer.id }}"}`), env)
	if got, err := c.Eval(in); err == nil || err.Code != expr.CodeMissing || err.Place != "/customerId" ||
		!strings.Contains(err.Detail, "input.customer") {
		t.Fatalf("got %s, %v", got, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for template, code := range map[string]string{
		`"${{ tasks.nobody.output }}"`:       expr.CodeTask,
		`"${{ tasks.nobody.output.x + 1 }}"`: expr.CodeTask,
		`"${{ tasks[input.name].output }}"`:  expr.CodeTask,
		`"${{ tasks }}"`:                     expr.CodeTask,
		`"${{ inputs.a }}"`:                  expr.CodeSyntax,
		`"${{ 1 + }}"`:                       expr.CodeSyntax,
		`"${{ }}"`:                           expr.CodeSyntax,
		`"${{ input.a"`:                      expr.CodeSyntax,
		`"${{ 1 + 'a' }}"`:                   expr.CodeType,
		`{"a":`:                              expr.CodeJSON,
		`{"a":1,"a":2}`:                      expr.CodeJSON,
		`"${{ '` + strings.Repeat("a", 5000) + `' }}"`: expr.CodeTooLarge,
	} {
		_, problems := expr.Compile([]byte(template), env)
		if len(problems) == 0 || problems[0].Code != code {
			t.Errorf("%.60s: got %v, want %s", template, problems, code)
		}
	}
	_, problems := expr.Compile([]byte(`{"a":"${{ 1 + }}","b":["${{ tasks.x.output }}"]}`), env)
	if len(problems) != 2 || problems[0].Pointer != "/a" || problems[1].Pointer != "/b/0" {
		t.Errorf("every problem at once, each with its place: %v", problems)
	}
}

func TestWhatATemplateReads(t *testing.T) {
	c, problems := expr.Compile([]byte(`{"b":"${{ tasks['b.c'].output.x }}","a":"${{ size(tasks.a.output) + 1 }}"}`), env)
	if len(problems) > 0 || strings.Join(c.Tasks(), " ") != "a b.c" || c.UsesInput() || c.Constant() {
		t.Fatal(problems, c.Tasks())
	}
	if c, _ = expr.Compile([]byte(`{"x": [1, "y"]}`), env); !c.Constant() {
		t.Fatal("want a constant")
	}
}

func FuzzEval(f *testing.F) {
	for _, s := range []string{
		`"${{ input.a }}"`, `{"a":"x${{ tasks.a.output.b[0] }}"}`, `"${{ {'a': size(input.s)} }}"`, `"$${{"`, `"${{ '}}'"`,
		`["${{ input.?a.b[?0] }}",{"${{":1}]`, `"${{ input.map(k, input[k]) }}${{ [input, 1.5, null] }}"`,
		`"${{ input.s.replace('a', 'b').split('') }}"`, `"${{ r'\\' + \"\"\"x\"\"\" }}"`, `"${{ {1: 2, true: input.?q} }}"`,
		`"${{ timestamp('2026-01-01T00:00:00Z') + duration('1s') }}"`, `"${{ input.a == input ? 1 : optional.none() }}"`,
		`"${{ math.greatest(input.a, 2) / 0 }}"`, `"${{ [1, 2].exists(x, x > input.a) }}"`, `"${{ has(input.a.b) }}"`,
	} {
		f.Add(s, `{"a":1,"s":"x"}`)
		f.Add(s, `{"a":{"b":[1e400,12345678901234567890123]},"s":"\u00e9"} `)
	}
	f.Fuzz(func(t *testing.T, template, input string) {
		c, problems := expr.Compile([]byte(template), env)
		if (c == nil) != (len(problems) > 0) {
			t.Fatalf("a template, or problems: %v", problems)
		}
		if c == nil {
			return
		}
		in := scope(input, map[string]string{"a": input})
		first, err := c.Eval(in)
		second, again := c.Eval(in)
		if string(first) != string(second) || (err == nil) != (again == nil) || err != nil && *err != *again {
			t.Fatalf("%s on %s: %s, %v, then %s, %v", template, input, first, err, second, again)
		}
		if err == nil && !jsontext.Value(first).IsValid() {
			t.Fatalf("%s on %s: %s is not JSON", template, input, first)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	in := scope(`{"a":{"b":7},"s":"text"}`, nil)
	for name, template := range map[string]string{
		"constant": `{"a":1}`, "path": `"${{ input.a.b }}"`,
		"cel": `"${{ size(input.s) % 7 }}"`,
	} {
		c, _ := expr.Compile([]byte(template), env)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Eval(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
