package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
)

func eval(t *testing.T, template string, in expr.Scope) (string, *expr.Error) {
	t.Helper()
	c, problems := expr.Compile([]byte(template), env)
	if len(problems) > 0 {
		t.Fatalf("%.200s: %v", template, problems)
	}
	got, err := c.Eval(in)
	return string(got), err
}

func expression(e string) string { return fmt.Sprintf("%q", "${{ "+e+" }}") }

func TestTheSameExpressionComesToTheSameEveryTime(t *testing.T) {
	var members []string
	for i := range 50 {
		members = append(members, fmt.Sprintf(`"k%02d":%d`, i*7%50, i))
	}
	in := scope(`{"m":{`+strings.Join(members, ",")+`}}`, nil)
	for _, e := range []string{
		`input.m.map(k, k)`, `input.m.map(k, input.m[k])`, `input.m.filter(k, k > 'k1').join('-')`,
		`{'c': 1, 'a': 2, 'd': 3, 'b': 4, 'e': 5}.map(k, k)`, `{'c': 1, 'a': 2, 'd': 3, 'b': 4, 'e': 5}`,
		`[{'z': 1, 'y': 2, 'x': 3}].map(m, m.map(k, k))`, `{3: 'c', 1: 'a', 2: 'b'}.map(k, k)`,
	} {
		first, err := eval(t, expression(e), in)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		for range 30 {
			if again, _ := eval(t, expression(e), in); again != first {
				t.Fatalf("%s: %s, then %s", e, first, again)
			}
		}
	}
	unsorted := scope(`{"b":1,"c":{"z":1,"y":2},"a":3}`, nil)
	for e, want := range map[string]string{
		`input.map(k, k).join() + {'b': 1, 'a': 2}.map(k, k).join()`: `"abcab"`,
		`[input]`: `[{"a":3,"b":1,"c":{"y":2,"z":1}}]`, `{'r': input.c, 'q': 0}`: `{"q":0,"r":{"y":2,"z":1}}`,
	} {
		if got, err := eval(t, expression(e), unsorted); got != want {
			t.Errorf("maps are gone through in the order of their keys: %s gives %s, %v", e, got, err)
		}
	}
}

func TestNothingGrowsWithoutBound(t *testing.T) {
	big := strings.Repeat("a", 200_000)
	items := strings.Repeat(`"a",`, 200_000)
	in := scope(`{"s":"`+big+`","l":[`+strings.TrimSuffix(items, ",")+`]}`, nil)
	for e, code := range map[string]string{
		`input.s.replace('a', input.s)`:                              expr.CodeTooLarge,
		`input.s.replace('', input.s)`:                               expr.CodeTooLarge,
		`input.s.split('')`:                                          expr.CodeTooLarge,
		`input.l.map(x, input.s).join()`:                             expr.CodeCost,
		`[1,2,3,4,5,6,7,8,9].map(x, input.s).join(input.s)`:          expr.CodeTooLarge,
		`input.l.map(x, input.l)`:                                    expr.CodeCost,
		`input.l.exists(x, input.l.exists(y, x != 'a' && y != 'a'))`: expr.CodeCost,
	} {
		if got, err := eval(t, expression(e), in); err == nil || err.Code != code {
			t.Errorf("%s: got %.60s, %.200v; want %s", e, got, err, code)
		}
	}
	t.Run("a result that repeats a large text stops at the limit of outputs", func(t *testing.T) {
		got, err := eval(t, expression(`input.l.filter(x, true).map(x, input)`),
			scope(`{"s":"`+big+`","l":[`+strings.TrimSuffix(strings.Repeat(`1,`, 5000), ",")+`]}`, nil))
		if err == nil || err.Code != expr.CodeTooLarge || !strings.Contains(err.Detail, "the result has more than") {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	})
	t.Run("the expressions of one template share one budget", func(t *testing.T) {
		in := scope(`{"l":[`+strings.TrimSuffix(strings.Repeat(`"a",`, 20_000), ",")+`]}`, nil)
		same, other := []string{}, []string{}
		for i := range 40 {
			same = append(same, expression(`input.l.exists(x, x == 'b')`))
			other = append(other, expression(fmt.Sprintf(`input.l.exists(x, x == 'b%d')`, i)))
		}
		if _, err := eval(t, "["+strings.Join(same, ",")+"]", in); err != nil {
			t.Fatalf("one that stands forty times is evaluated once: %v", err)
		}
		if _, err := eval(t, "["+strings.Join(other, ",")+"]", in); err == nil || err.Code != expr.CodeCost {
			t.Fatalf("forty that differ: %v", err)
		}
	})
	t.Run("a template has a limit of different expressions", func(t *testing.T) {
		var parts []string
		for i := range expr.FormulasMax + 1 {
			parts = append(parts, expression(fmt.Sprintf(`%d + input.i`, i)))
		}
		_, problems := expr.Compile([]byte("["+strings.Join(parts, ",")+"]"), env)
		if len(problems) != 1 || problems[0].Code != expr.CodeTooLarge || problems[0].Pointer != "/1000" {
			t.Fatalf("got %v", problems)
		}
	})
}

func TestDepthIsBounded(t *testing.T) {
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	if _, problems := expr.Compile([]byte(deep), env); len(problems) != 1 || problems[0].Code != expr.CodeJSON {
		t.Errorf("a template: %v", problems)
	}
	in := scope(`{"d":`+deep+`}`, nil)
	if got, err := eval(t, expression(`input.d`), in); err != nil || got != deep {
		t.Errorf("a copy needs no depth, got %v", err)
	}
	for _, e := range []string{`input.d` + strings.Repeat(`[0]`, 200)} {
		if _, err := eval(t, expression(e), in); err == nil || err.Code != expr.CodeJSON {
			t.Errorf("%.60s: got %v", e, err)
		}
	}
	for _, e := range []string{
		strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500), strings.Repeat("[", 500) + strings.Repeat("]", 500),
		"true" + strings.Repeat("?1:true", 300), strings.Repeat("input.l.map(x, ", 100) + "x" + strings.Repeat(")", 100),
	} {
		if _, problems := expr.Compile([]byte(expression(e)), env); len(problems) != 1 {
			t.Errorf("%.40s: got %v", e, problems)
		}
	}
}

func TestWhatWouldReadTheMachineOrCostByDataIsRefused(t *testing.T) {
	for e, code := range map[string]string{
		`timestamp(input.t).getHours('Europe/Rome')`: expr.CodeSyntax,
		`timestamp(input.t).getHours(input.zone)`:    expr.CodeSyntax,
		`input.s.matches(input.pattern)`:             expr.CodeSyntax,
		`matches(input.s, input.pattern)`:            expr.CodeSyntax,
		`input.s.matches('(')`:                       expr.CodeSyntax,
		`now()`:                                      expr.CodeSyntax,
		`12345678901234567890123 + input.i`:          expr.CodeRange,
		`lists.range(1000000000)`:                    expr.CodeSyntax,
	} {
		_, problems := expr.Compile([]byte(expression(e)), env)
		if len(problems) != 1 || problems[0].Code != code || problems[0].Line != 1 || problems[0].Column < 1 {
			t.Errorf("%s: got %v, want %s and its place", e, problems, code)
		}
	}
	in := scope(`{"t":"2026-01-15T11:30:00Z","s":"abc"}`, nil)
	for e, want := range map[string]string{
		`timestamp(input.t).getHours('+02:00')`: "13", `timestamp(input.t).getHours()`: "11",
		`timestamp(input.t).getHours('UTC')`: "11", `input.s.matches('^a.c$')`: "true",
		`timestamp(input.t) + duration('1h')`: `"2026-01-15T12:30:00Z"`,
	} {
		if got, err := eval(t, expression(e), in); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", e, got, err, want)
		}
	}
}
