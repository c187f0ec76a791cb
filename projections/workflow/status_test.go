package workflow_test

import (
	"testing"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections/workflow"
)

// TestTheListSaysWhatTheAggregateSays plays every way of up to four steps that the aggregate can decide.
func TestTheListSaysWhatTheAggregateSays(t *testing.T) {
	start := []events.ExecutionEvent{submission("onboard", 1), events.TasksReady{To: 5, Class: "standard"}}
	dead := events.TaskFailed{Task: 0, Attempt: 1, Next: events.NextDeadLetter}
	steps := [][]events.ExecutionEvent{
		{events.ExecutionPaused{}},
		{events.ExecutionResumed{}},
		{events.ExecutionCancelled{}},
		{events.ExecutionTimedOut{}},
		{events.ExecutionCompleted{}},
		{dead, events.ExecutionFailed{Code: "c"}},
		{events.TaskRetried{Task: 0, Attempt: 2}},
	}
	w := newWorld(t)
	want := map[string]string{}
	var play func(path string, facts []events.ExecutionEvent)
	play = func(path string, facts []events.ExecutionEvent) {
		s := execution.Decider.Initial()
		var all []events.Event
		for i, e := range facts {
			s = execution.Evolve(s, e, events.Version(i+1))
			all = append(all, e)
		}
		want[path] = s.Status().String()
		w.add(stream("acme", path), "", all...)
		closed := s.Status() == execution.Completed || s.Status() == execution.Cancelled || s.Status() == execution.TimedOut
		if len(path) == 4 || closed { // the decider emits nothing that changes a closed execution
			return
		}
		for i, step := range steps {
			play(path+string(rune('a'+i)), append(facts[:len(facts):len(facts)], step...))
		}
	}
	play("e", start)
	w.feed(workflow.Executions())
	seen := 0
	for _, status := range execution.Statuses {
		for _, r := range w.list(workflow.Executions(), "executions", "acme", map[string]any{"status": status}) {
			if id := r[workflow.ID].(string); want[id] != status {
				t.Errorf("%s: listed %s, the aggregate says %s", id, status, want[id])
			}
			seen++
		}
	}
	if seen != len(want) || seen < 100 {
		t.Errorf("%d of %d", seen, len(want))
	}
}
