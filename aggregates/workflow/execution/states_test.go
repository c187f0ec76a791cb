package execution_test

import (
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/events"
)

// Facts that need no more than their names.
var (
	paused    = events.ExecutionPaused{}
	cancelled = events.ExecutionCancelled{}
	timedOut  = events.ExecutionTimedOut{Deadline: 3600 * second}
	ended     = []event{
		completed(taskA, 1, "1"), completed(taskX, 1, "1"), completed(taskS, 0, ""), completed(taskB, 1, "1"),
		events.ExecutionCompleted{},
	}
)

func startedTimer(t int32) events.TimerStarted { return events.TimerStarted{Task: t, Until: second} }

// TestEveryStateOfATaskIsInTheLog derives each state of seed view 16, and each arrow between two, from events alone.
func TestEveryStateOfATaskIsInTheLog(t *testing.T) {
	p := planOf(t, transitionTasks)
	began := []event{submitted(p, ""), startedTimer(taskS), ready(taskA, taskX)}
	held := events.TasksHeld{Tasks: []int32{taskA}, Reason: "slot_tenant"}
	started := events.TaskStarted{Task: taskA, Attempt: 1, Worker: "w1", StartedAt: 1}
	again := events.TaskStarted{Task: taskA, Attempt: 2, Worker: "w1", StartedAt: 1}
	retried := retrying(taskA, 1, events.Transient, 5)
	seen := map[execution.TaskStatus]bool{}
	for _, c := range []struct {
		name    string
		task    int32
		history []event
		want    execution.TaskStatus
	}{
		{"its needs are not met", taskB, nil, execution.TaskPending},
		{"it is ready", taskA, nil, execution.TaskScheduled},
		{"it waits for a slot", taskA, []event{held}, execution.TaskWaitingSlot},
		{"its slot is there, and it runs", taskA, []event{held, started}, execution.TaskRunning},
		{"it runs, and its start is journalled", taskA, []event{started}, execution.TaskRunning},
		{"a timer runs", taskS, nil, execution.TaskRunning},
		{"it is done", taskA, []event{completed(taskA, 1, "1")}, execution.TaskCompleted},
		{"it failed, and has attempts left", taskA, []event{started, retried}, execution.TaskRetryScheduled},
		{"its time was up, and it has attempts left", taskA, []event{
			retrying(taskA, 1, events.TimedOut, 5),
		}, execution.TaskRetryScheduled},
		{"it is tried again", taskA, []event{retried, again}, execution.TaskRunning},
		{"it waits for a slot again", taskA, []event{retried, held}, execution.TaskWaitingSlot},
		{"it failed for good", taskA, []event{dead(taskA, 1, events.Permanent), failed(taskA)}, execution.TaskDeadLettered},
		{"an operator retries it", taskA, []event{
			dead(taskA, 1, events.Permanent), failed(taskA), events.TaskRetried{Task: taskA, Attempt: 2},
		}, execution.TaskScheduled},
		{"its branch is not taken", taskB, []event{
			completed(taskA, 1, "1"), events.TaskSkipped{Task: taskB, Why: "when"},
		}, execution.TaskSkipped},
		{"it was cancelled while it ran", taskA, []event{started, cancelled}, execution.TaskCancelled},
		{"it was cancelled in its back-off", taskA, []event{retried, cancelled}, execution.TaskCancelled},
		{"it was cancelled before it was ready", taskB, []event{cancelled}, execution.TaskCancelled},
		{"it was done before the cancel", taskA, []event{completed(taskA, 1, "1"), cancelled}, execution.TaskCompleted},
		{"the deadline of the execution passed", taskA, []event{started, timedOut}, execution.TaskTimedOut},
		{"it stays a dead letter whatever comes", taskA, []event{
			dead(taskA, 1, events.Permanent), failed(taskA), cancelled,
		}, execution.TaskDeadLettered},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := running(t, p, append(slices.Clone(began), c.history...)...).State()
			if got := s.Task(c.task).Status; got != c.want || s.TaskStatus(c.task) != got {
				t.Errorf("got %v, want %v", got, c.want)
			}
			seen[c.want] = true
		})
	}
	for _, s := range execution.TaskStatuses {
		if !seen[s] {
			t.Errorf("no history comes to %v", s)
		}
	}
}

func TestTheStateAnswers(t *testing.T) {
	p := planOf(t, transitionTasks)
	first := submitted(p, `{"x":1}`)
	first.Deadline, first.Parent, first.Class = 3600*second, "parent", "bulk"
	s := running(t, p, first, startedTimer(taskS), ready(taskA, taskX),
		retrying(taskX, 1, events.Transient, 9*second)).State()
	if s.Workflow() != "w" || s.Version() != 1 || s.Definition() != p.Hash || s.Parent() != "parent" || s.Tasks() != 4 ||
		s.Class() != "bulk" || s.TaskClass(p, taskA) != "bulk" || s.Input() != 7 {
		t.Errorf("%+v", s)
	}
	if s.Due() != second || s.NextWait() != second {
		t.Errorf("due %d, next wait %d", s.Due(), s.NextWait())
	}
	var waits []int32
	s.EachWait(20*second, func(t int32, _ events.Time, timer bool) bool {
		waits = append(waits, t)
		return timer
	})
	s.EachWait(8*second, func(t int32, _ events.Time, _ bool) bool { waits = append(waits, t); return true })
	s.EachRetry(func(t int32, at events.Time) { waits = append(waits, t, int32(at/second)) })
	s.EachTimer(func(t int32, until events.Time) { waits = append(waits, t, int32(until/second)) })
	if want := []int32{taskS, taskX, taskS, taskX, 9, taskS, 1}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	var sendable []int32
	s.EachReady(func(t int32) { sendable = append(sendable, t) })
	if !slices.Equal(sendable, []int32{taskA, taskX}) || s.RetryAt(taskX) != 9*second || s.RetryAt(taskA) != 0 {
		t.Errorf("ready are %v", sendable)
	}
	if s.Sendable(taskS, 1) || s.Sendable(taskX, 1) || !s.Sendable(taskX, 2) || s.Sendable(taskB, 1) || s.Sendable(-1, 1) {
		t.Error("what may be sent is wrong")
	}
	if s.Task(-1) != (execution.TaskView{}) || s.Task(4) != (execution.TaskView{}) || s.OutputVersion(-1) != 0 {
		t.Error("there is no such task")
	}
}
