package execution_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
)

// transitions says what every command comes to in every status: the wire names of its events without their domain, –
// for nothing, ahead, or the code of its refusal. Each column is an execution of transitionTasks in that status: a is
// under way and b needs it, s is a timer that is due, x is dead-lettered in FAILED and under way elsewhere.
var transitions = map[string][]string{
	//                 NONE PENDING RUNNING PAUSED COMPLETED FAILED CANCELLED TIMED_OUT
	"SubmitExecution": {
		"execution_submitted timer_started tasks_ready", "–", "–", "–", "–", "–", "–", "–",
	},
	"CancelExecution": {
		"not_found", "execution_cancelled", "execution_cancelled", "execution_cancelled", "execution_finished",
		"execution_finished", "–", "execution_finished",
	},
	"TerminateExecution": {
		"not_found", "execution_cancelled", "execution_cancelled", "execution_cancelled", "execution_finished",
		"execution_cancelled", "–", "execution_finished",
	},
	"PauseExecution": {
		"not_found", "execution_paused", "execution_paused", "–", "execution_finished", "execution_finished",
		"execution_finished", "execution_finished",
	},
	"ResumeExecution": {
		"not_found", "–", "–", "execution_resumed", "execution_finished", "execution_finished",
		"execution_finished", "execution_finished",
	},
	"RetryTask": {
		"not_found", "not_dead_lettered", "not_dead_lettered", "not_dead_lettered", "execution_finished",
		"task_retried", "execution_finished", "execution_finished",
	},
	"StartTask": {
		"ahead", "ahead", "task_started", "task_started", "–", "task_started", "–", "–",
	},
	"RecordResult": {
		"ahead", "ahead", "task_completed tasks_ready", "task_completed tasks_ready", "–",
		"task_completed tasks_ready", "–", "–",
	},
	"TimeOutTask": {"ahead", "–", "task_failed", "task_failed", "–", "task_failed", "–", "–"},
	"FireTimer": {
		"ahead", "–", "task_completed", "task_completed", "–", "task_completed", "–", "–",
	},
	"TimeOutExecution": {
		"ahead", "execution_timed_out", "execution_timed_out", "execution_timed_out", "–", "–", "–", "–",
	},
	"HoldTasks": {"ahead", "–", "tasks_held", "–", "–", "–", "–", "–"},
}

const transitionTasks = `
deadline: 1h
tasks:
  a: {type: http}
  b: {type: http, needs: [a]}
  s: {type: sleep, with: {for: 1s}}
  x: {type: http}
`

// ordinals of transitionTasks: levels first.
const taskA, taskS, taskX, taskB = 0, 1, 2, 3

func commandsOf(p *dag.Plan) []commands.ExecutionCommand {
	return []commands.ExecutionCommand{
		submit(p, ""),
		commands.CancelExecution{},
		commands.TerminateExecution{},
		commands.PauseExecution{},
		commands.ResumeExecution{},
		commands.RetryTask{Task: "x"},
		commands.StartTask{Task: taskA, Attempt: 1, Worker: "w1"},
		success(taskA, 1, "1"),
		commands.TimeOutTask{Task: taskA, Attempt: 1},
		commands.FireTimer{Task: taskS},
		commands.TimeOutExecution{},
		commands.HoldTasks{Tasks: []int32{taskA}, Reason: "slot_type"},
	}
}

// pasts are the histories of the columns.
func pasts(p *dag.Plan) [][]event {
	first := submitted(p, "")
	first.Deadline = 3600 * second
	began := []event{first, startedTimer(taskS), ready(taskA, taskX)}
	with := func(more ...event) []event { return append(append([]event(nil), began...), more...) }
	return [][]event{
		nil,
		{first},
		began, with(paused), with(ended...), with(dead(taskX, 1, "permanent"), failed(taskX)),
		with(cancelled), with(timedOut),
	}
}

func TestTransitions(t *testing.T) {
	p := planOf(t, transitionTasks)
	columns := pasts(p)
	all := commandsOf(p)
	if len(columns) != len(execution.Statuses) || len(all) != len(transitions) {
		t.Fatalf("%d columns and %d rows for %d statuses and %d commands", len(columns), len(transitions),
			len(execution.Statuses), len(all))
	}
	for _, c := range all {
		name := reflect.TypeOf(c).Name()
		row, ok := transitions[name]
		if !ok || len(row) != len(columns) {
			t.Fatalf("%s has %d cells", name, len(row))
		}
		for status, want := range row {
			t.Run(fmt.Sprintf("%s while %s", name, execution.Status(status)), func(t *testing.T) {
				s := running(t, p, columns[status]...)
				if got := s.State().Status(); got != execution.Status(status) {
					t.Fatalf("the history comes to %v", got)
				}
				o := s.When(c, meta{At: 3600 * second})
				es, err := o.Events()
				if got := outcome(es, err); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				if err == nil {
					o.Then(es...)
				}
			})
		}
	}
}

func outcome(es []event, err error) string {
	var refusal *commands.Error
	var ahead *aggregates.Ahead
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.As(err, &ahead):
		return "ahead"
	case err != nil:
		return err.Error()
	case len(es) == 0:
		return "–"
	}
	var names []string
	for _, e := range es {
		_, name, _ := strings.Cut(string(e.EventType()), ".")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
