package definition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

var types = definition.Types{
	"http": {
		Repeatable: func(with []byte) bool { return !strings.Contains(string(with), `"method":"POST"`) },
		With: []byte(`{"type":"object","required":["url"],"properties":{"url":{"type":"string"},` +
			`"method":{"enum":["GET","POST"]}}}`),
	},
	"transform": {Pure: true}, "sleep": {Timer: true}, "test": {},
}

// onboarding is the README's workflow.
const onboarding = `workflow: customer-onboarding
description: what a new customer goes through
labels: {team: growth}
input: {type: object, required: [email], properties: {email: {type: string, format: email}}}
defaults: {timeout: 30s, retry: {maxAttempts: 5, base: 2s, factor: 2, cap: 5m}}
deadline: 10m
tasks:
  create: {type: http, with: {method: POST, url: "https://crm.example/customers", json: "${{ input }}"}}
  verify: {type: http, needs: [create], with: {url: "https://idv.example/check/${{ tasks.create.output.body.id }}"}}
  score:  {type: transform, needs: [create], with: {value: "${{ {'risk': size(input.email) % 7} }}"}}
  settle: {type: sleep, needs: [verify], with: {for: 2s}}
  notify: {type: http, needs: [verify, score, settle], when: "${{ tasks.score.output.risk < 5 }}",
           retry: {maxAttempts: 3}, with: {url: "https://mail.example"}, class: high, repeatable: false}
output: {customer: "${{ tasks.create.output.body.id }}", risk: "${{ tasks.score.output.risk }}"}
`

// found lists problems as "code pointer".
func found(raw string) (all []string) {
	d, problems := definition.Parse([]byte(raw))
	if d != nil {
		problems = d.Check(types)
	}
	for _, p := range problems {
		all = append(all, p.Code+" "+p.Pointer)
	}
	return all
}

func parsed(t *testing.T, raw string) *definition.Definition {
	t.Helper()
	d, problems := definition.Parse([]byte(raw))
	if len(problems) == 0 {
		problems = d.Check(types)
	}
	if len(problems) > 0 {
		t.Fatalf("%.300s: %v", raw, problems)
	}
	return d
}

// expect holds a definition to exactly these problems.
func expect(t *testing.T, raw string, want ...string) {
	t.Helper()
	if got := found(raw); !slices.Equal(got, want) {
		t.Errorf("%.300s\n got %q\nwant %q", raw, got, want)
	}
}

func TestADefinitionIsReadWhole(t *testing.T) {
	d := parsed(t, onboarding)
	if d.Workflow != "customer-onboarding" || d.Deadline != 10*time.Minute || d.Class != "standard" ||
		len(d.Labels) != 1 || len(d.Tasks) != 5 || d.InputSchema == nil || d.OutputTemplate == nil {
		t.Fatalf("%+v", d)
	}
	n := d.Tasks[4]
	if n.Name != "notify" || n.Class != "high" || n.Retry.MaxAttempts != 3 || n.Retry.Base != 2*time.Second ||
		n.Retry.Factor != 2 || n.Retry.Cap != 5*time.Minute || !n.Retry.Jitter || *n.Repeatable ||
		n.Timeout != 30*time.Second ||
		!slices.Equal(n.Needs, []string{"verify", "score", "settle"}) || n.WhenTemplate == nil || n.WithTemplate == nil {
		t.Fatalf("%+v", n)
	}
}

func TestTheSameContentIsTheSameVersion(t *testing.T) {
	yaml := parsed(t, `
# a comment
tasks:
  b: {with: {n: 1.10, big: 12345678901234567890123, s: 'it''s "é"', t: "x\ty", date: 2026-01-01, yes: yes},
      type: test, needs: [a]}
  "a":
    type: test
workflow: w
`)
	json := parsed(t, `{"workflow":"w","tasks":{"a":{"type":"test"},"b":{"needs":["a"],"type":"test",
		"with":{"big":12345678901234567890123,"date":"2026-01-01","n":1.10,"s":"it's \"\u00e9\"","t":"x\ty","yes":"yes"}}}}`)
	if string(yaml.Canonical()) != string(json.Canonical()) || yaml.Hash() != json.Hash() {
		t.Fatalf("\n%s\n%s", yaml.Canonical(), json.Canonical())
	}
	for _, digits := range []string{"12345678901234567890123", "1.10"} {
		if !strings.Contains(string(yaml.Canonical()), digits) {
			t.Errorf("%s is not in %s", digits, yaml.Canonical())
		}
	}
	again := parsed(t, string(yaml.Canonical()))
	if again.Hash() != yaml.Hash() {
		t.Fatalf("canonical content parses to itself: %s", again.Canonical())
	}
	if parsed(t, "\ufeff"+string(yaml.Canonical())).Hash() != yaml.Hash() {
		t.Fatal("a byte order mark is no content")
	}
	if other := parsed(t, strings.Replace(string(yaml.Canonical()), "1.10", "1.1", 1)); other.Hash() == yaml.Hash() {
		t.Fatal("1.1 is other content than 1.10")
	}
}

func TestWhatMeansMoreThanItShowsIsRefused(t *testing.T) {
	const rest = "\ntasks: {a: {type: test}}"
	for raw, want := range map[string]string{
		"workflow: w\nworkflow: v" + rest:                         "duplicate_key /workflow",
		"workflow: &a w" + rest:                                   "yaml_alias /workflow",
		"workflow: w\ntasks: {a: &x {type: test}, b: *x}":         "yaml_alias /tasks/a yaml_alias /tasks/b",
		"workflow: w\ntasks: {a: {<<: {type: test}, type: test}}": "yaml_merge /tasks/a/<<",
		"workflow: !!str w" + rest:                                "yaml_tag /workflow",
		"workflow: w\nlabels: {? [a] : b}" + rest:                 "yaml_key /labels",
		"workflow: w" + rest + "\n---\nworkflow: v":               "several_documents ",
		"workflow: \"w\\0\"" + rest:                               "bad_text /workflow",
		"workflow: w\x00" + rest:                                  "not_text ",
		"workflow: \xff" + rest:                                   "not_text ",
		"workflow: [":                                             "bad_yaml ",
		"":                                                        "empty ",
		"# nothing":                                               "empty ",
		"just words":                                              "wrong_type ",
		"- a":                                                     "wrong_type ",
		"[]":                                                      "wrong_type ",
		`{"workflow":"w","workflow":"v","tasks":{"a":{"type":"test"}}}`: "duplicate_key /workflow",
		`{"workflow":"\ud800","tasks":{"a":{"type":"test"}}}`:           "bad_json /workflow",
		`{"workflow":"w\u0000","tasks":{"a":{"type":"test"}}}`:          "bad_text /workflow",
		`{"workflow":"w","tasks":{"a":{"type":"test"}}} {}`:             "bad_json ",
		`{"workflow":"w","tasks":{"a":{"type":"test"}},}`:               "bad_json ",
		`{"workflow":`:                            "bad_json /workflow",
		task("with: {n: 0x1F}"):                   "yaml_number /tasks/a/with/n",
		task("with: {n: .inf}"):                   "yaml_number /tasks/a/with/n",
		task("with: {n: .nan}"):                   "yaml_number /tasks/a/with/n",
		task("with: {n: 010}"):                    "yaml_number /tasks/a/with/n",
		task("with: {n: +1}"):                     "yaml_number /tasks/a/with/n",
		"{workflow: w, tasks: {a: {type: test}}}": "",
		task("with: {n: 1_000}"):                  "yaml_number /tasks/a/with/n",
		"workflow: w\ntasks: {a: {type: test, with: {x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) +
			"}}}": "too_deep /tasks/a/with/x" + strings.Repeat("/0", 61),
		`{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) +
			`}`: "too_deep /x" + strings.Repeat("/0", 63),
	} {
		if got := strings.Join(found(raw), " "); got != want {
			t.Errorf("%.200q\n got %q\nwant %q", raw, got, want)
		}
	}
	if ps := found(strings.Repeat("a", definition.BytesMax+1)); !slices.Equal(ps, []string{"too_large "}) {
		t.Error(ps)
	}
}

func TestEveryProblemIsToldAtOnceWithItsPlace(t *testing.T) {
	raw := `workflow: a b
colour: red
class: fast
deadline: 0s
input: {type: text}
tasks:
  one: {type: htpp, timeout: 90, typo: 1}
  two: {type: test, needs: [one, nobody, two, one], with: {x: "${{ tasks.three.output }}", y: "${{ 1 + }}"}}
  three: {type: call, map: [1], when: "${{ 1 }}", retry: {base: 10m, factor: 0.5}}
  two: {type: test}
  four: {type: http, with: {method: PUT}, output: {minimum: "1"}}
`
	want := []struct {
		problem      string
		line, column int
	}{
		{"bad_name /workflow", 1, 11},
		{"unknown_field /colour", 2, 1},
		{"unknown_class /class", 3, 8},
		{"bad_duration /deadline", 4, 11},
		{"bad_schema /input/type", 5, 15},
		{"unknown_type /tasks/one/type", 7, 15},
		{"wrong_type /tasks/one/timeout", 7, 30},
		{"unknown_field /tasks/one/typo", 7, 34},
		{"unknown_task /tasks/two/needs/1", 8, 34},
		{"dag_cycle /tasks/two/needs/2", 8, 42},
		{"join_duplicate /tasks/two/needs/3", 8, 47},
		{"not_an_ancestor /tasks/two/with/x", 8, 63},
		{"expression_syntax /tasks/two/with/y", 8, 95},
		{"not_yet /tasks/three/type", 9, 17},
		{"not_yet /tasks/three/map", 9, 23},
		{"bad_condition /tasks/three/when", 9, 39},
		{"bad_duration /tasks/three/retry/base", 9, 65},
		{"bad_number /tasks/three/retry/factor", 9, 78},
		{"duplicate_key /tasks/two", 10, 3},
	}
	d, problems := definition.Parse([]byte(raw))
	if problems != nil {
		t.Fatal(problems)
	}
	got := d.Check(types)
	for _, p := range got {
		if p.Detail == "" {
			t.Errorf("%v says nothing of what to do", p)
		}
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(p definition.Problem) bool { return p.Code+" "+p.Pointer == w.problem })
		if i < 0 {
			t.Errorf("%s is not told", w.problem)
			continue
		}
		if got[i].Line != w.line || got[i].Column != w.column {
			t.Errorf("%s: told at %d:%d, stands at %d:%d", w.problem, got[i].Line, got[i].Column, w.line, w.column)
		}
	}
	for _, w := range []string{
		"bad_mapping /tasks/four/with/method", "bad_mapping /tasks/four/with/url",
		"bad_schema /tasks/four/output/minimum",
	} {
		if !slices.ContainsFunc(got, func(p definition.Problem) bool { return p.Code+" "+p.Pointer == w }) {
			t.Errorf("%s is not told", w)
		}
	}
	if len(got) != len(want)+3 {
		for _, p := range got {
			t.Log(p)
		}
		t.Errorf("%d problems", len(got))
	}
	t.Run("and the same in JSON", func(t *testing.T) {
		d, _ := definition.Parse([]byte("{\n  \"workflow\": \"é\",\n" +
			"  \"tasks\": { \"a\": {\"type\": \"test\", \"x\": 1}, \"a\": 1 }\n}"))
		ps := d.Check(types)
		if len(ps) != 3 || ps[0].Line != 2 || ps[0].Column != 15 || ps[1].Column != 36 || ps[2].Column != 45 {
			t.Fatalf("%+v", ps)
		}
	})
	t.Run("a text that is no definition has a bounded list", func(t *testing.T) {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "f%d: 1\n", i)
		}
		if ps := found(b.String()); len(ps) != definition.ProblemsMax+1 || ps[len(ps)-1] != "too_many " {
			t.Fatal(len(ps), ps[len(ps)-1])
		}
	})
}

func task(fields string) string { return "workflow: w\ntasks: {a: {type: test, " + fields + "}}" }

func TestWF11NumbersAsTextAndDurationsCutShortAreRefused(t *testing.T) {
	for fields, want := range map[string]string{
		`retry: {maxAttempts: "10"}`:       "bad_number /tasks/a/retry/maxAttempts",
		`retry: {factor: "2"}`:             "bad_number /tasks/a/retry/factor",
		`retry: {jitter: "true"}`:          "wrong_type /tasks/a/retry/jitter",
		`retry: {base: 2}`:                 "wrong_type /tasks/a/retry/base",
		`retry: {maxAttempts: 1.5}`:        "bad_number /tasks/a/retry/maxAttempts",
		`retry: {maxAttempts: 0}`:          "bad_number /tasks/a/retry/maxAttempts",
		`retry: {maxAttempts: 101}`:        "bad_number /tasks/a/retry/maxAttempts",
		`timeout: "90"`:                    "bad_duration /tasks/a/timeout",
		`timeout: -5s`:                     "bad_duration /tasks/a/timeout",
		`timeout: "1h 30m"`:                "bad_duration /tasks/a/timeout",
		`timeout: P1M`:                     "bad_duration /tasks/a/timeout",
		`timeout: ""`:                      "bad_duration /tasks/a/timeout",
		`heartbeat: 1d2`:                   "bad_duration /tasks/a/heartbeat",
		`repeatable: "yes"`:                "wrong_type /tasks/a/repeatable",
		`timeout: PT1M30S, heartbeat: 90s`: "",
		`retry: {maxAttempts: 100, base: 1.5h, cap: P1D, factor: 1.0, jitter: false}`: "",
	} {
		if got := strings.Join(found(task(fields)), " "); got != want {
			t.Errorf("%s: got %q, want %q", fields, got, want)
		}
	}
	expect(t, "workflow: w\ndefaults: {retry: {maxAttempts: '10'}}\ntasks: {a: {type: test}}",
		"bad_number /defaults/retry/maxAttempts")
	d := parsed(t, task("timeout: PT1M30S, heartbeat: 42m30s"))
	if d.Tasks[0].Timeout != 90*time.Second || d.Tasks[0].Heartbeat != 2550*time.Second {
		t.Fatal(d.Tasks[0])
	}
}

func TestWF10ARetryThatFallsOrIsUnboundedIsRefused(t *testing.T) {
	for fields, want := range map[string]string{
		`factor: 0.5`: "bad_number /tasks/a/retry/factor", `factor: 0`: "bad_number /tasks/a/retry/factor",
		`factor: -1`: "bad_number /tasks/a/retry/factor", `factor: 1e999`: "bad_number /tasks/a/retry/factor",
		`factor: .nan`: "yaml_number /tasks/a/retry/factor", `factor: .inf`: "yaml_number /tasks/a/retry/factor",
		`factor: 1e308`: "", `factor: 1`: "", `base: 0s`: "bad_duration /tasks/a/retry/base",
		`base: 10s, cap: 5s`: "bad_duration /tasks/a/retry/cap", `cap: 1s`: "bad_duration /tasks/a/retry/cap",
		`base: 10m`: "bad_duration /tasks/a/retry/base", `base: 10m, cap: 1h`: "",
		`cap: 25h`: "bad_duration /tasks/a/retry/cap", `delay: 1s`: "unknown_field /tasks/a/retry/delay",
	} {
		if got := strings.Join(found(task("retry: {"+fields+"}")), " "); got != want {
			t.Errorf("%s: got %q, want %q", fields, got, want)
		}
	}
}

func TestWF19Names(t *testing.T) {
	for name, good := range map[string]bool{
		"a/b": false, "a b": false, "a#b?c": false, "%2F": false, "\u00e9": false, "e\u0301": false, "😀": false,
		strings.Repeat("a", 300): false, "a.b_c-1": true, "a__b": true, strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false, "": false, ".a": false, "-a": false, "_a": false, "1": true, "A": true,
	} {
		for _, raw := range []string{
			fmt.Sprintf(`{"workflow":%q,"tasks":{"t":{"type":"test"}}}`, name),
			fmt.Sprintf(`{"workflow":"w","tasks":{%q:{"type":"test"}}}`, name),
			fmt.Sprintf("workflow: w\ntasks:\n  %q: {type: test}\n", name),
		} {
			ps := found(raw)
			if good && len(ps) > 0 || !good && (len(ps) != 1 || !strings.HasPrefix(ps[0], "bad_name ")) {
				t.Errorf("%q: %v", raw, ps)
			}
		}
	}
}

func TestReservedFormsAreNotYet(t *testing.T) {
	for _, word := range []string{"map", "call", "await", "compensate"} {
		expect(t, task(word+": x"), "not_yet /tasks/a/"+word)
		expect(t, "workflow: w\ntasks: {a: {type: "+word+"}}", "not_yet /tasks/a/type")
		expect(t, "workflow: w\n"+word+": {}\ntasks: {a: {type: test}}", "not_yet /"+word)
	}
	expect(t, "workflow: w\ndefaults: {retry: {jitters: 1}, needs: []}\ntasks: {a: {type: test}}",
		"unknown_field /defaults/retry/jitters", "unknown_field /defaults/needs")
	d, _ := definition.Parse([]byte("workflow: w\ntasks: {a: {type: htpp}}"))
	if ps := d.Check(types); len(ps) != 1 || !strings.Contains(ps[0].Detail, "http, sleep, test, transform") {
		t.Error("an unknown type is refused with those that are known: ", ps)
	}
}
