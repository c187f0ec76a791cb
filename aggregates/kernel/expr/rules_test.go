package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
)

func TestNumbers(t *testing.T) {
	in := scope(`{"i":9223372036854775807,"over":9223372036854775808,"big":12345678901234567890123,"d":1.10,`+
		`"two64":18446744073709551616,"e":1e3,"huge":1e999,"tiny":1e-999,"zero":0e-999,"neg":-9223372036854775808}`, nil)
	for e, want := range map[string]string{
		`input.i`: "9223372036854775807", `input.big`: "12345678901234567890123", `input.d`: "1.10", `input.e`: "1e3",
		`input.huge`: "1e999", ` input . big `: "12345678901234567890123", `(input.d)`: "1.10",
		`input['\u0064']`: "1.10", `[input.d]`: "[1.1]", `input.two64 + 0.0`: "18446744073709552000",
		`input.over + 0.0`: "9223372036854776000", `input.neg + 0`: "-9223372036854775808", `input.zero + 1.0`: "1",
		`input.e + 0.5`: "1000.5", `size(input) > 3`: "true", `2.0e-7 + 0.0`: "2e-07",
	} {
		if got, err := eval(t, expression(e), in); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", e, got, err, want)
		}
	}
	for e, place := range map[string]string{
		`input.big + 1`: "input.big", `[input.huge]`: "input.huge", `{'x': input}`: "input.big",
		`input.tiny * 2.0`: "input.tiny", `input.i + 1`: "input.i + 1", `input.big == 1`: "input.big",
	} {
		_, err := eval(t, fmt.Sprintf(`{"a":{"b/c":%s}}`, expression(e)), in)
		if err == nil || err.Code != expr.CodeRange || err.Place != "/a/b~1c" || !strings.Contains(err.Detail, place) {
			t.Errorf("%s: got %v", e, err)
		}
	}
	for _, e := range []string{`1.0 / 0.0`, `-1.0 / 0.0`, `0.0 / 0.0`} {
		if got, err := eval(t, expression(e), in); err == nil {
			t.Errorf("%s: got %s, want an error", e, got)
		}
	}
}

func TestWhatIsOptionalAndNotThereIsLeftOut(t *testing.T) {
	in := scope(`{"a":{"b":1,"n":null},"s":"x","l":[1]}`, map[string]string{"a": `{"v":1}`})
	for template, want := range map[string]string{
		`{"x":"${{ input.?c.d.e }}","y":"${{ input.?a.b }}"}`:              `{"y":1}`,
		`{"x":"${{ input.?a.c }}"}`:                                        `{}`,
		`{"x":"${{ input.a.?n }}"}`:                                        `{"x":null}`,
		`{"x":"${{ input.?s.t }}","y":"${{ input.l[?3] }}"}`:               `{}`,
		`["${{ input.?c }}","${{ input.l[?0] }}","${{ input.?c }}"]`:       `[1]`,
		`{"x":["${{ input.?c }}"],"y":{"z":"${{ input.?c }}"}}`:            `{"x":[],"y":{}}`,
		`"${{ tasks['b.c'].?output.v }}"`:                                  `null`,
		`{"x":"${{ tasks.a__b.?output }}","y":"${{ tasks.a.?output.v }}"}`: `{"y":1}`,
		`"${{ {'p': input.?c, 'q': input.?s, ?'r': input.?c} }}"`:          `{"q":"x"}`,
		`"${{ [input.?c, input.?s] }}"`:                                    `["x"]`,
		`"${{ input.?c.orValue('none') }}"`:                                `"none"`,
		`"${{ tasks.a__b.?output.?v.orValue(7) }}"`:                        `7`,
	} {
		if got, err := eval(t, template, in); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", template, got, err, want)
		}
	}
	for _, template := range []string{`"${{ tasks.a__b.output.?v }}"`, `"${{ tasks.a__b.output.?v.orValue(1) }}"`} {
		if got, err := eval(t, template, in); err == nil || err.Code != expr.CodeMissing {
			t.Errorf("%s: an output that is not there is missing, got %s, %v", template, got, err)
		}
	}
}

// TestAPathIsWhatCELMakesOfIt holds the copying of paths to CEL's own meaning, on values that CEL does not change.
func TestAPathIsWhatCELMakesOfIt(t *testing.T) {
	in := scope(`{"a":{"b":[{"c":"x"},null,[]],"":1,"d e":true},"s":"t","n":null,"l":[[1],"y"]}`, nil)
	steps := []string{
		`.a`, `.b`, `.c`, `.s`, `.n`, `.l`, `["d e"]`, `[""]`, `[0]`, `[1]`, `[9]`, `.?a`, `.?b`,
		`.?q`, `[?0]`, `[?"c"]`,
	}
	var paths func(prefix string, depth int)
	tried := 0
	paths = func(prefix string, depth int) {
		tried++
		p, problems := expr.Compile([]byte(fmt.Sprintf("%q", "${{ "+prefix+" }}")), env)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", prefix, problems)
		}
		// An identity that keeps it from being a path.
		f, problems := expr.Compile([]byte(fmt.Sprintf("%q", "${{ true ? "+prefix+" : "+prefix+" }}")), env)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", prefix, problems)
		}
		got, gotErr := p.Eval(in)
		want, wantErr := f.Eval(in)
		if string(got) != string(want) && !strings.Contains(string(got), `{`) || code(gotErr) != code(wantErr) {
			t.Errorf("%s: as a path %s, %v; as a formula %s, %v", prefix, got, gotErr, want, wantErr)
		}
		if depth > 0 {
			for _, s := range steps {
				paths(prefix+s, depth-1)
			}
		}
	}
	paths("input", 3)
	if tried < 4000 {
		t.Fatal(tried)
	}
}

func code(e *expr.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// TestTextFunctionsMeanWhatCELsDo holds our bounded functions to those of CEL's string extension.
func TestTextFunctionsMeanWhatCELsDo(t *testing.T) {
	theirs, err := cel.NewEnv(ext.Strings(ext.StringsVersion(4)))
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{`''`, `'a'`, `'aXbé€😀b'`, `' \t x '`, `'ab,,ab'`}
	var calls []string
	for _, s := range texts {
		calls = append(calls, s+".trim()", s+".lowerAscii()", s+".upperAscii()")
		for _, n := range []string{"-1", "0", "1", "3", "7", "99"} {
			calls = append(calls, s+".charAt("+n+")", s+".substring("+n+")")
			for _, m := range []string{"-1", "0", "2", "7", "99"} {
				calls = append(calls, s+".substring("+n+", "+m+")")
			}
		}
		for _, u := range append(texts, `'b'`, `','`, `'😀'`) {
			calls = append(calls, s+".indexOf("+u+")", s+".lastIndexOf("+u+")", s+".split("+u+")",
				s+".replace("+u+", '<>')", "["+s+", "+u+", 'z'].join()", "["+s+", 'y', "+u+"].join("+u+")")
		}
	}
	for _, call := range append(calls, "[].join()", "[].join('x')") {
		tree, issues := theirs.Compile(call)
		if issues.Err() != nil {
			t.Fatal(call, issues.Err())
		}
		program, err := theirs.Program(tree)
		if err != nil {
			t.Fatal(err)
		}
		want, _, wantErr := program.Eval(map[string]any{})
		got, gotErr := eval(t, expression(strings.ReplaceAll(call, `\t`, "\t")), scope(`null`, nil))
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s: got %s, %v; CEL %v, %v", call, got, gotErr, want, wantErr)
		}
		if wantErr != nil || gotErr != nil {
			continue
		}
		again, err2 := eval(t, expression(fmt.Sprintf(`%s == %s`, call, literal(want.Value()))), scope(`null`, nil))
		if err2 != nil || again != "true" {
			t.Errorf("%s: got %s; CEL %v", call, got, want.Value())
		}
	}
}

func literal(v any) string {
	if l, ok := v.([]string); ok {
		parts := make([]string, len(l))
		for i, s := range l {
			parts[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprintf("%#v", v)
}

func TestAValueThatStandsTwiceIsReadOnce(t *testing.T) {
	asked := 0
	in := expr.Scope{Input: []byte(`{}`), Output: func(string) ([]byte, bool) {
		asked++
		return []byte(`{"x":1,"y":2}`), true
	}}
	got, err := eval(t, `["${{ tasks.a.output.x }}","${{ tasks.a.output.x }}","${{ tasks.a.output.y + 1 }}",`+
		`"${{ tasks.a.output.y + 1 }}"]`, in)
	if err != nil || got != `[1,1,3,3]` || asked != 1 {
		t.Fatalf("got %s, %v, asked %d times", got, err, asked)
	}
}

func TestTemplates(t *testing.T) {
	t.Run("a member's name has no expression, and is told from its escape", func(t *testing.T) {
		_, problems := expr.Compile([]byte(`{"${{ input.k }}":1}`), env)
		if len(problems) != 1 || problems[0].Code != expr.CodeSyntax || problems[0].Pointer != "/${{ input.k }}" {
			t.Fatalf("got %v", problems)
		}
		if got, err := eval(t, `{"$${{ input.k }}":"${{ input }}"}`, scope(`1`, nil)); err != nil ||
			got != `{"${{ input.k }}":1}` {
			t.Fatalf("got %s, %v", got, err)
		}
	})
	t.Run("a condition is one whole expression that may be true or false", func(t *testing.T) {
		for template, want := range map[string]bool{
			`"${{ input.a }}"`: true, `"${{ size(input.a) > 1 }}"`: true, `"${{ size(input.a) }}"`: false,
			`"${{ true }} && ${{ false }}"`: false, `" ${{ true }}"`: false, `true`: false, `["${{ true }}"]`: false,
			`"${{ input.a ? input.b : input.c }}"`: true, `"${{ 'yes' }}"`: false,
		} {
			if c, problems := expr.Compile([]byte(template), env); len(problems) > 0 || c.Condition() != want {
				t.Errorf("%s: %v", template, problems)
			}
		}
	})
	t.Run("it knows where a task is read first", func(t *testing.T) {
		c, _ := expr.Compile([]byte(`{"x":["${{ input }}","${{ tasks['b.c'].output }}"],`+
			`"y":"${{ tasks['b.c'].output.z + tasks.a.output }}"}`), env)
		if c.Place("b.c") != "/x/1" || c.Place("a") != "/y" || c.Place("a__b") != "" {
			t.Fatal(c.Place("b.c"), c.Place("a"))
		}
	})
	t.Run("stored JSON that is damaged is an error, never a panic", func(t *testing.T) {
		for _, doc := range []string{
			``, ` `, `{`, `{"a":}`, `{"a":1`, `[1,`, `{"a":1}x`, `{"a":1,"a":2}`, `"\ud800"`,
			"\"\xff\"", `nul`, `+1`,
		} {
			for _, e := range []string{
				`input`, `input.a`, `input[0]`, `input.?a`, `[input]`, `size(input)`,
				`input == 1`, `input.a + 1`, `has(input.a)`,
			} {
				if got, err := eval(t, expression(e), scope(doc, nil)); err == nil && e != `input.?a` {
					t.Errorf("%s on %q: got %s", e, doc, got)
				}
			}
		}
	})
	t.Run("what stands behind the value is refused", func(t *testing.T) {
		if _, problems := expr.Compile([]byte(`{} {}`), env); len(problems) != 1 || problems[0].Code != expr.CodeJSON {
			t.Fatal(problems)
		}
	})
}
