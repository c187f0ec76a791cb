package execution_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/decidertest"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// types are those of a small deployment: http may be repeated, charge may not.
var types = definition.Types{
	"http": {}, "charge": {Repeatable: func([]byte) bool { return false }},
	"transform": {Pure: true}, "sleep": {Timer: true},
}

type (
	spec  = decidertest.Spec[*execution.State, commands.ExecutionCommand, events.ExecutionEvent]
	event = events.ExecutionEvent
	meta  = commands.Meta
)

var given = decidertest.For(execution.Decider)

// planOf compiles a definition; its first line, the name, is left out.
func planOf(t testing.TB, source string) *dag.Plan {
	t.Helper()
	d, problems := definition.Parse([]byte("workflow: w\n" + source))
	if len(problems) == 0 {
		problems = d.Check(types)
	}
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	p, err := dag.New(d, types)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planRef(p *dag.Plan) aggregates.Ref {
	return aggregates.Ref{Kind: aggregates.RefPlan, Hash: p.Hash}
}

// running is an execution of a definition with this past.
func running(t testing.TB, p *dag.Plan, past ...event) spec {
	t.Helper()
	return given(t, past...).With(planRef(p), p)
}

func submit(p *dag.Plan, input string) commands.SubmitExecution {
	c := commands.SubmitExecution{Workflow: "w", Version: 1, Definition: p.Hash}
	if input != "" {
		c.Input = events.InlinePayload([]byte(input))
	}
	return c
}

// submitted is the event that submit comes to.
func submitted(p *dag.Plan, input string) events.ExecutionSubmitted {
	c := submit(p, input)
	return events.ExecutionSubmitted{
		Workflow: "w", Version: 1, Definition: p.Hash, Tasks: int32(len(p.Tasks)), Input: c.Input, Class: p.Class,
		Labels: p.Labels,
	}
}

const class = "standard"

func ready(ts ...int32) events.TasksReady {
	if last := ts[len(ts)-1]; int(last-ts[0]) == len(ts)-1 {
		return events.TasksReady{From: ts[0], To: last + 1, Class: class}
	}
	return events.TasksReady{Tasks: ts, Class: class}
}

func text(s string) events.Payload { return events.InlinePayload([]byte(s)) }

// success is the result of an attempt, completed the event that it comes to.
func success(t, attempt int32, output string) commands.RecordResult {
	return commands.RecordResult{
		Task: t, Attempt: attempt, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 3,
		Output: text(output),
	}
}

func completed(t, attempt int32, output string) events.TaskCompleted {
	return events.TaskCompleted{
		Task: t, Attempt: attempt, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 3,
		Output: text(output),
	}
}

// pure is a step that is decided at a time.
func pure(t int32, at events.Time, output string, refs ...int64) events.TaskCompleted {
	return events.TaskCompleted{Task: t, SentAt: at, StartedAt: at, EndedAt: at, Output: text(output), Refs: refs}
}

func failure(t, attempt int32, class events.FailureClass) commands.RecordResult {
	return commands.RecordResult{
		Task: t, Attempt: attempt, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 3,
		Failure: &commands.Failure{Class: class, Code: "broken", Message: "it broke"},
	}
}

// retrying and dead are what a failure comes to.
func retrying(t, attempt int32, class events.FailureClass, at events.Time) events.TaskFailed {
	return events.TaskFailed{
		Task: t, Attempt: attempt, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 3, Class: class, Code: "broken",
		Message: "it broke", Next: events.NextRetry, RetryAt: at,
	}
}

func dead(t, attempt int32, class events.FailureClass) events.TaskFailed {
	e := retrying(t, attempt, class, 0)
	e.Next = events.NextDeadLetter
	return e
}

func failed(t int32) events.ExecutionFailed {
	return events.ExecutionFailed{Task: t, Code: "broken", Message: "it broke"}
}

// stepDead is a step that is decided in place and fails, at time 0.
func stepDead(t int32, code, message string) []event {
	return []event{
		events.TaskFailed{
			Task: t, Attempt: 1, Class: events.Permanent, Code: code, Message: message, Next: events.NextDeadLetter,
		},
		events.ExecutionFailed{Task: t, Code: code, Message: message},
	}
}

const second = events.Time(time.Second / time.Microsecond)

// fanout is n tasks into one join.
func fanout(t testing.TB, n int) *dag.Plan {
	t.Helper()
	var b strings.Builder
	b.WriteString("tasks:\n")
	var needs []string
	for i := range n {
		name := fmt.Sprintf("b%05d", i)
		fmt.Fprintf(&b, "  %s: {type: http}\n", name)
		needs = append(needs, name)
	}
	fmt.Fprintf(&b, "  z: {type: http, needs: [%s]}\n", strings.Join(needs, ", "))
	return planOf(t, b.String())
}

// chain is n tasks one after another.
func chain(t testing.TB, n int, task string) *dag.Plan {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "tasks:\n  t00000: {%s}\n", task)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  t%05d: {%s, needs: [t%05d]}\n", i, task, i-1)
	}
	return planOf(t, b.String())
}

// onlyPlan gives every decision its plan, and nothing else.
type onlyPlan struct{ p *dag.Plan }

func (o onlyPlan) Get(r aggregates.Ref) (any, bool) { return o.p, r.Kind == aggregates.RefPlan }

// blobRef is the blob that an event's payload moves to when it is too large for the event.
func blobRef(e event) (aggregates.Ref, any) {
	body := e.(events.Carrier).Carried().Inline
	return aggregates.Ref{Kind: aggregates.RefBlob, Hash: sha256.Sum256(body)}, body
}
