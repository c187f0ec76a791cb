package execution_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// drawPlan draws a definition of up to 12 tasks of every kind, whose mappings and conditions may fail.
func drawPlan(t *rapid.T, tb testing.TB) *dag.Plan {
	n := rapid.IntRange(1, 12).Draw(t, "tasks")
	var b strings.Builder
	b.WriteString("tasks:\n")
	for i := range n {
		var needs []string
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "need") == 0 {
				needs = append(needs, fmt.Sprintf("t%02d", j))
			}
		}
		read := "input.n"
		if len(needs) > 0 && rapid.Bool().Draw(t, "reads an output") {
			read = "tasks." + rapid.SampledFrom(needs).Draw(t, "read") + ".output"
		}
		fmt.Fprintf(&b, "  t%02d: {", i)
		switch rapid.IntRange(0, 5).Draw(t, "type") {
		case 0:
			fmt.Fprintf(&b, "type: charge")
		case 1, 2:
			fmt.Fprintf(&b, "type: transform, with: {value: \"${{ %s }}\"}", read)
		case 3:
			b.WriteString("type: sleep, with: {for: 1s}")
		default:
			fmt.Fprintf(&b, "type: http, retry: {maxAttempts: %d}", rapid.IntRange(1, 3).Draw(t, "attempts"))
		}
		if rapid.IntRange(0, 3).Draw(t, "when") == 0 {
			fmt.Fprintf(&b, ", when: \"${{ %s > 4 }}\"", read)
		}
		fmt.Fprintf(&b, ", needs: [%s]}\n", strings.Join(needs, ", "))
	}
	return planOf(tb, b.String())
}

// world runs one execution and holds it to the laws after every command.
type world struct {
	t    *rapid.T
	plan *dag.Plan
	s    *execution.State
	log  []event
	at   events.Time

	settled  map[int32]bool
	snapshot []byte
	taken    int // how many events it covers
}

// Get answers from the log alone, as handle does.
func (w *world) Get(r aggregates.Ref) (any, bool) {
	switch {
	case r.Kind == aggregates.RefPlan:
		return w.plan, true
	case r.Kind == aggregates.RefPayload && r.Version >= 1 && int(r.Version) <= len(w.log):
		return w.log[r.Version-1].(events.Carrier).Carried().Inline, true
	default:
		return nil, false
	}
}

func (w *world) do(c commands.ExecutionCommand) {
	m := meta{At: w.at, Entropy: rapid.Uint64().Draw(w.t, "entropy"), Version: events.Version(len(w.log))}
	before := w.s.Encode(nil)
	es, err := execution.Decide(w.s, c, m, w)
	same, err2 := execution.Decide(w.s, c, m, w)
	if !reflect.DeepEqual(es, same) || fmt.Sprint(err) != fmt.Sprint(err2) {
		w.t.Fatalf("%T gives %+v, %v, and then %+v, %v", c, es, err, same, err2)
	}
	if !bytes.Equal(w.s.Encode(nil), before) {
		w.t.Fatalf("deciding %T changed the state", c)
	}
	var refusal *commands.Error
	var ahead *aggregates.Ahead
	if err != nil && !errors.As(err, &refusal) && !errors.As(err, &ahead) {
		w.t.Fatalf("%T: %v", c, err)
	}
	for _, e := range es {
		w.holds(c, e)
		w.log = append(w.log, e)
		w.s = execution.Evolve(w.s, e, events.Version(len(w.log)))
	}
	if retry, ok := c.(commands.RetryTask); ok {
		if t, known := w.plan.Ordinal(retry.Task); known && (w.plan.Tasks[t].Pure || w.plan.Tasks[t].Timer) {
			return // a person may mean that twice
		}
	}
	m.Version = events.Version(len(w.log))
	if again, err := execution.Decide(w.s, c, m, w); len(es) > 0 && (err != nil || len(again) > 0) {
		w.t.Fatalf("%+v again gives %+v, %v", c, again, err)
	}
}

// holds are the laws of a single event, from the log so far.
func (w *world) holds(c commands.ExecutionCommand, e event) {
	if s := w.s.Status(); s == execution.Completed || s == execution.Cancelled || s == execution.TimedOut {
		w.t.Fatalf("after the end %T brings %T", c, e)
	}
	began := func(t int32) {
		for _, n := range w.plan.Tasks[t].Needs {
			if !w.settled[n] {
				w.t.Fatalf("%T of task %d before its need %d", e, t, n)
			}
		}
	}
	once := func(t int32) {
		began(t)
		if w.settled[t] {
			w.t.Fatalf("task %d is settled twice, by %T", t, e)
		}
		w.settled[t] = true
	}
	switch e := e.(type) {
	case events.TasksReady:
		for t := e.From; t < e.To; t++ {
			began(t)
		}
		for _, t := range e.Tasks {
			began(t)
		}
	case events.TimerStarted:
		began(e.Task)
	case events.TaskFailed:
		began(e.Task)
	case events.TaskCompleted:
		once(e.Task)
	case events.TaskSkipped:
		once(e.Task)
	case events.ExecutionCompleted:
		if len(w.settled) != len(w.plan.Tasks) {
			w.t.Fatalf("completed with %d of %d tasks", len(w.settled), len(w.plan.Tasks))
		}
	default: // nothing of a task's order
	}
}

// check are the laws of a state and its log.
func (w *world) check() {
	folded := &execution.State{}
	for i, e := range w.log {
		folded = execution.Evolve(folded, e, events.Version(i+1))
	}
	bytesOf := w.s.Encode(nil)
	if !bytes.Equal(folded.Encode(nil), bytesOf) {
		w.t.Fatalf("the log folds to another state")
	}
	if w.snapshot != nil {
		s, err := execution.DecodeState(w.snapshot)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := w.taken; i < len(w.log); i++ {
			s = execution.Evolve(s, w.log[i], events.Version(i+1))
		}
		if !bytes.Equal(s.Encode(nil), bytesOf) || s.Due() != w.s.Due() || s.Settled() != w.s.Settled() {
			w.t.Fatalf("snapshot and tail come to another state")
		}
	}
	if w.s.Open() && len(w.openTasks()) == 0 {
		w.t.Fatalf("%v, and nothing will ever come of it: %+v", w.s.Status(), w.log)
	}
	if w.s.Settled() != int32(len(w.settled)) {
		w.t.Fatalf("%d settled, of %d in the log", w.s.Settled(), len(w.settled))
	}
}

// openTasks are those of which something will come by itself.
func (w *world) openTasks() (ts []int32) {
	for t := range w.s.Tasks() {
		switch w.s.TaskStatus(t) {
		case execution.TaskScheduled, execution.TaskRunning, execution.TaskRetryScheduled, execution.TaskWaitingSlot:
			ts = append(ts, t)
		}
	}
	return ts
}

func (w *world) draw() commands.ExecutionCommand {
	t := int32(rapid.IntRange(0, len(w.plan.Tasks)-1).Draw(w.t, "task"))
	attempt := w.s.Attempt(t) + int32(rapid.IntRange(-1, 1).Draw(w.t, "attempt"))
	switch rapid.IntRange(0, 16).Draw(w.t, "command") {
	case 0:
		return commands.PauseExecution{}
	case 1:
		return commands.ResumeExecution{}
	case 2:
		return commands.StartTask{Task: t, Attempt: attempt, Worker: "w1", StartedAt: w.at}
	case 3:
		return commands.TimeOutTask{Task: t, Attempt: attempt, Why: "timeout"}
	case 4:
		return commands.HoldTasks{Tasks: []int32{t}, Reason: "slot_type"}
	case 5, 6, 7:
		return commands.FireTimer{Task: t}
	case 8:
		return submit(w.plan, "")
	case 9, 10:
		class := rapid.SampledFrom([]events.FailureClass{
			events.Transient, events.Throttled, events.Permanent, events.TimedOut,
		}).Draw(w.t, "class")
		return failure(t, attempt, class)
	case 11:
		return w.retry(t)
	case 12:
		if rapid.IntRange(0, 20).Draw(w.t, "end") == 0 {
			return rapid.SampledFrom([]commands.ExecutionCommand{
				commands.CancelExecution{}, commands.TerminateExecution{}, commands.TimeOutExecution{},
			}).Draw(w.t, "how")
		}
		return commands.ResumeExecution{}
	default:
		return success(t, attempt, fmt.Sprint(rapid.IntRange(0, 9).Draw(w.t, "output")))
	}
}

// retry edits the input of a step, so that it succeeds.
func (w *world) retry(t int32) commands.RetryTask {
	c := commands.RetryTask{Task: w.plan.Tasks[t].Name}
	switch {
	case w.plan.Tasks[t].Pure:
		c.With = text(`{"value":5}`)
	case w.plan.Tasks[t].Timer:
		c.With = text(`{"for":"1s"}`)
	}
	return c
}

// finish brings whatever is left to its end: everything succeeds, every dead letter is retried.
func (w *world) finish() {
	for range 10 * len(w.plan.Tasks) {
		w.at += 3600 * second
		if w.s.Status() == execution.Paused {
			w.do(commands.ResumeExecution{})
		}
		for t := range w.s.Tasks() {
			switch v := w.s.Task(t); {
			case !w.s.Open() && w.s.Status() != execution.Failed:
				return
			case v.Status == execution.TaskDeadLettered:
				w.do(w.retry(t))
			case v.Until != 0:
				w.do(commands.FireTimer{Task: t})
			case w.s.Sendable(t, v.Attempt):
				w.do(success(t, v.Attempt, "5"))
			}
		}
		w.check()
	}
	w.t.Fatalf("it never ends: %v, %+v", w.s.Status(), w.log)
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &world{t: r, plan: drawPlan(r, t), s: &execution.State{}, settled: map[int32]bool{}, at: 1}
		w.do(submit(w.plan, fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 9).Draw(r, "n"))))
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			w.at += events.Time(rapid.IntRange(0, 2_000_000).Draw(r, "later"))
			w.do(w.draw())
			w.check()
			if rapid.IntRange(0, 5).Draw(r, "snapshot") == 0 {
				w.snapshot, w.taken = w.s.Encode(nil), len(w.log)
			}
		}
		w.finish()
	})
}
