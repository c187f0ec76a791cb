package execution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

func TestSubmit(t *testing.T) {
	one := planOf(t, "tasks: {a: {type: http}}")
	t.Run("roots are ready in the same append", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: http}, c: {type: http, needs: [a]}}")
		running(t, p).When(submit(p, "{}")).Then(submitted(p, "{}"), ready(0, 1))
	})
	t.Run("those of another class stand in an event of their own, and a list where they are no range", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: http, class: bulk}, c: {type: http}}")
		running(t, p).When(submit(p, "")).Then(submitted(p, ""),
			ready(0, 2), events.TasksReady{From: 1, To: 2, Class: "bulk"})
	})
	t.Run("the submitter's class stands before the tasks' own", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: http, class: bulk}}")
		c, e := submit(p, ""), submitted(p, "")
		c.Class, e.Class = "high", "high"
		running(t, p).When(c).Then(e, events.TasksReady{From: 0, To: 2, Class: "high"})
	})
	t.Run("the submitter's labels stand before the definition's, sorted", func(t *testing.T) {
		p := planOf(t, "labels: {team: x, area: y}\ntasks: {a: {type: http}}")
		c, e := submit(p, ""), submitted(p, "")
		c.Labels = []events.Label{{Name: "zone", Value: "1"}, {Name: "team", Value: "mine"}}
		e.Labels = []events.Label{{Name: "area", Value: "y"}, {Name: "team", Value: "mine"}, {Name: "zone", Value: "1"}}
		running(t, p).When(c).Then(e, ready(0))
	})
	t.Run("the deadline is counted from when it is decided", func(t *testing.T) {
		p := planOf(t, "deadline: 10m\ntasks: {a: {type: http}}")
		e := submitted(p, "")
		e.Deadline = 7 + 600*second
		s := running(t, p).When(submit(p, ""), meta{At: 7}).Then(e, ready(0))
		if s.State().Deadline() != e.Deadline || s.State().Due() != e.Deadline {
			t.Errorf("deadline %d, due %d", s.State().Deadline(), s.State().Due())
		}
	})
	t.Run("every violation of the input's schema is named, with its place in the request", func(t *testing.T) {
		p := planOf(t, "input: {type: object, required: [email], properties: {n: {type: integer}}}\ntasks: {a: {type: http}}")
		e := running(t, p).When(submit(p, `{"n":"x"}`)).ThenRefused(commands.CodeInputMismatch)
		if e.Kind != commands.Invalid || len(e.Violations) != 2 {
			t.Fatalf("%+v", e)
		}
		for _, v := range e.Violations {
			if !strings.HasPrefix(v.Pointer, "/input") || v.Detail == "" {
				t.Errorf("%+v", v)
			}
		}
		running(t, p).When(submit(p, "")).ThenRefused(commands.CodeInputMismatch) // no input is null
	})
	t.Run("an input that is a blob is read for its schema, and stays a blob", func(t *testing.T) {
		p := planOf(t, "input: {type: object}\ntasks: {a: {type: transform, with: {value: \"${{ input.x }}\"}}}")
		s, blob := running(t, p).Blob([]byte(`{"x":"` + strings.Repeat("y", 5000) + `"}`))
		c, e := submit(p, ""), submitted(p, "")
		c.Input, e.Input = blob, blob
		s.When(c).Then(e, pure(0, 0, `"`+strings.Repeat("y", 5000)+`"`), events.ExecutionCompleted{})
		s, blob = running(t, p).Blob([]byte(`[` + strings.Repeat("1,", 5000) + `1]`))
		c.Input = blob
		s.When(c).ThenRefused(commands.CodeInputMismatch)
	})
	t.Run("an input above the maximum is refused with both sizes", func(t *testing.T) {
		c := submit(one, "")
		c.Input = events.Payload{Blob: make([]byte, 32), Size: events.BlobBytesMax + 1}
		e := running(t, one).When(c).ThenRefused(commands.CodeInputTooLarge)
		if !strings.Contains(e.Reason, "33554432") || !strings.Contains(e.Reason, "33554433") {
			t.Error(e.Reason)
		}
	})
	t.Run("WF-24 the same start again is the same execution, whatever it says", func(t *testing.T) {
		other := submit(one, `{"other":1}`)
		other.Class = "bulk"
		running(t, one, submitted(one, "{}"), ready(0)).When(other).ThenNothing()
	})
	t.Run("the plan is asked for where it is needed, and only there", func(t *testing.T) {
		given(t).With(planRef(one), one).When(submit(one, "")).Then(submitted(one, ""), ready(0))
		bare := given(t, submitted(one, ""), ready(0))
		bare.When(submit(one, "")).ThenNothing()
		bare.When(commands.PauseExecution{}).Then(events.ExecutionPaused{})
		bare.When(commands.ResumeExecution{}).ThenNothing()
		bare.When(commands.CancelExecution{}).Then(events.ExecutionCancelled{})
		bare.When(commands.StartTask{Attempt: 1, Worker: "w1"}).Then(events.TaskStarted{Attempt: 1, Worker: "w1"})
		bare.When(commands.HoldTasks{Tasks: []int32{0}, Reason: "slot_type"}).
			Then(events.TasksHeld{Tasks: []int32{0}, Reason: "slot_type"})
	})
	t.Run("a plan of another size than the execution began with is a fault, not a panic", func(t *testing.T) {
		two := planOf(t, "tasks: {a: {type: http}, b: {type: http}}")
		if _, err := given(t, submitted(one, ""), ready(0)).With(planRef(one), two).
			When(success(0, 1, "1")).Events(); err == nil {
			t.Error("it was decided")
		}
	})
}

func TestPureExecutionsEndWhereTheyBegin(t *testing.T) {
	p := planOf(t, `
tasks:
  a: {type: transform, with: {value: "${{ input.n }}"}}
  b: {type: transform, needs: [a], with: {value: {twice: "${{ [tasks.a.output, tasks.a.output] }}"}}}
output: {a: "${{ tasks.a.output }}", b: "${{ tasks.b.output.twice[1] }}"}
`)
	s := running(t, p).When(submit(p, `{"n":3}`), meta{At: 9}).Then(submitted(p, `{"n":3}`),
		pure(0, 9, "3"), pure(1, 9, `{"twice":[3,3]}`, 2),
		events.ExecutionCompleted{Output: text(`{"a":3,"b":3}`), Refs: []int64{2, 3}})
	if v, size := s.State().Result(); v != 4 || size != int64(len(`{"a":3,"b":3}`)) {
		t.Errorf("the result is at %d with %d bytes", v, size)
	}
	if s.State().Open() || s.State().Due() != 0 || s.State().Settled() != 2 {
		t.Errorf("%v, %d settled", s.State().Status(), s.State().Settled())
	}
}

func TestReferencesComeInFewRounds(t *testing.T) {
	// Each step of a chain reads an output of its own that is in the log long since, behind a condition that reads
	// another: one by one they would take a round each.
	const n = 200
	var b strings.Builder
	b.WriteString("tasks:\n  go: {type: http}\n")
	for i := range n {
		name, old := suffix("s", i), suffix("o", i)
		b.WriteString("  " + old + ": {type: http}\n  " + name + ": {type: transform, needs: [go, " + old)
		if i > 0 {
			b.WriteString(", " + suffix("s", i-1))
		}
		b.WriteString("], when: \"${{ tasks." + old + ".output > 0 }}\", " +
			"with: {value: \"${{ tasks." + old + ".output }}\"}}\n")
	}
	b.WriteString("output: \"${{ tasks." + suffix("o", 0) + ".output }}\"\n")
	p := planOf(t, b.String())
	past := []event{submitted(p, ""), events.TasksReady{To: n + 1, Class: class}}
	for i := range n {
		o, _ := p.Ordinal(suffix("o", i))
		past = append(past, completed(o, 1, "1"))
	}
	root, _ := p.Ordinal("go")
	o := running(t, p, past...).When(success(root, 1, "1"))
	es, err := o.Events()
	if err != nil || len(es) != n+2 {
		t.Fatalf("%d events, %v", len(es), err)
	}
	if o.Rounds() != 1 {
		t.Errorf("%d rounds, want 1 of at most %d", o.Rounds(), aggregates.RefRoundsMax)
	}
}

func suffix(s string, i int) string {
	const digits = "0123456789"
	return s + string([]byte{digits[i/100%10], digits[i/10%10], digits[i%10]})
}

// TestLinear holds the work to the number of edges: ten times the steps take about ten times as long, here at most
// forty. The times are only compared with each other.
func TestLinear(t *testing.T) {
	for name, make := range map[string]func(n int) func(){
		"a chain of pure steps, without recursion": func(n int) func() {
			p := chain(t, n, "type: transform, with: {value: 1}")
			return func() { decideOnce(t, p) }
		},
		"a fan-out of pure steps into a join": func(n int) func() {
			var b strings.Builder
			b.WriteString("tasks:\n")
			var needs []string
			for i := range n {
				name := "b" + suffix("", i/1000) + suffix("", i%1000)
				b.WriteString("  " + name + ": {type: transform, with: {value: 1}}\n")
				needs = append(needs, name)
			}
			b.WriteString("  z: {type: transform, with: {value: 1}, needs: [" + strings.Join(needs, ", ") + "]}\n")
			p := planOf(t, b.String())
			return func() { decideOnce(t, p) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			small, large := make(300), make(3000)
			if s, l := fastest(small), fastest(large); l > 40*s {
				t.Errorf("300 steps take %v, 3,000 take %v", s, l)
			}
		})
	}
}

func decideOnce(t *testing.T, p *dag.Plan) {
	es, err := given(t).With(planRef(p), p).When(submit(p, "")).Events()
	if err != nil || len(es) != len(p.Tasks)+2 {
		t.Fatalf("%d events of %d tasks, %v", len(es), len(p.Tasks), err)
	}
}

func fastest(f func()) (least time.Duration) {
	for range 5 {
		start := time.Now()
		f()
		if d := time.Since(start); least == 0 || d < least {
			least = d
		}
	}
	return least
}
