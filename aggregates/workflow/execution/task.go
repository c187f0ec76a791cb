package execution

import "github.com/sluice-platform/sluice/events"

// TaskStatus is where a task stands, in the words of the API.
type TaskStatus string

// The statuses of tasks. The log does not say that a back-off has ended: RETRY_SCHEDULED with a RetryAt in the past is
// a task that may be sent, like SCHEDULED.
const (
	TaskPending        TaskStatus = "PENDING"         // what it needs is not settled
	TaskWaitingSlot    TaskStatus = "WAITING_SLOT"    // has waited for a slot for over 250 ms
	TaskScheduled      TaskStatus = "SCHEDULED"       // ready; sent, or about to be
	TaskRunning        TaskStatus = "RUNNING"         // its start is in the log; a timer runs
	TaskRetryScheduled TaskStatus = "RETRY_SCHEDULED" // waits for its next attempt
	TaskCompleted      TaskStatus = "COMPLETED"
	TaskSkipped        TaskStatus = "SKIPPED"
	TaskDeadLettered   TaskStatus = "DEAD_LETTERED" // an operator may retry it
	TaskCancelled      TaskStatus = "CANCELLED"     // the execution was, before the task had ended
	TaskTimedOut       TaskStatus = "TIMED_OUT"     // the execution did, before the task had ended
)

// TaskStatuses lists them all, for tables that must be complete.
var TaskStatuses = []TaskStatus{
	TaskPending, TaskWaitingSlot, TaskScheduled, TaskRunning, TaskRetryScheduled,
	TaskCompleted, TaskSkipped, TaskDeadLettered, TaskCancelled, TaskTimedOut,
}

// TaskView is one task as the log has it.
type TaskView struct {
	Status  TaskStatus
	Attempt int32          // the current one, or the one that completed it; 0 before it is ready, and for a pure step
	Done    events.Version // of its TaskCompleted; 0: it is not
	Output  int64          // bytes of the output that Done carries; 0: none
	RetryAt events.Time    // of a back-off
	Until   events.Time    // of a timer
	Started Started        // of the current attempt, where the log knows it
	Code    string         // of a dead letter
	Failed  events.Version // of the last TaskFailed of a task that is not settled
	Late    events.Version // of a TaskResultLate with a success that did not count
	With    events.Version // of the event that replaces its mapping
}

// Task is what is known of one task; the zero TaskView is that of none.
func (s *State) Task(t int32) TaskView {
	if !s.known(t) {
		return TaskView{}
	}
	f := s.flights[t]
	v := TaskView{
		Status: s.TaskStatus(t), Started: f.started, Code: f.code, Failed: f.failed, Late: f.late, With: f.with,
		RetryAt: s.RetryAt(t),
	}
	if f.phase == timer {
		v.Until = f.at
	}
	switch {
	case s.done.has(t):
		e := s.ends[t]
		v.Attempt, v.Done, v.Output = e.attempt, e.version, int64(e.size)
	case s.ready.has(t):
		v.Attempt = f.number()
	}
	return v
}

// TaskStatus is where a task stands.
func (s *State) TaskStatus(t int32) TaskStatus {
	f := s.flights[t]
	switch {
	case s.done.has(t):
		return TaskCompleted
	case s.skipped.has(t):
		return TaskSkipped
	case f.phase == deadLetter:
		return TaskDeadLettered
	case s.status == Cancelled:
		return TaskCancelled
	case s.status == TimedOut:
		return TaskTimedOut
	case f.held:
		return TaskWaitingSlot
	case f.phase == backOff:
		return TaskRetryScheduled
	case f.phase == timer || f.begun:
		return TaskRunning
	case s.ready.has(t):
		return TaskScheduled
	default:
		return TaskPending
	}
}

// Attempt is the number of a ready task's current attempt; 1 for one that has not run.
func (s *State) Attempt(t int32) int32 {
	f := s.flights[t]
	return f.number()
}

// Sendable says that an attempt is the open one of its task: ready, under way, or in back-off.
func (s *State) Sendable(t, attempt int32) bool {
	if !s.counting() || !s.ready.has(t) {
		return false
	}
	f := s.flights[t]
	return (f.phase == sendable || f.phase == backOff) && attempt == f.number()
}

// EachReady calls f, in order, for the tasks that may be sent, now or after their back-off. f must not change the
// state.
func (s *State) EachReady(f func(t int32)) {
	s.ready.each(func(t int32) {
		if p := s.flights[t].phase; p == sendable || p == backOff {
			f(t)
		}
	})
}

// RetryAt is when a task's back-off ends; 0 when it is in none.
func (s *State) RetryAt(t int32) events.Time {
	if f := s.flights[t]; f.phase == backOff {
		return f.at
	}
	return 0
}

// Started says who works on a task's current attempt, as far as the log knows.
func (s *State) Started(t int32) (Started, bool) {
	f := s.flights[t]
	return f.started, f.begun
}

// OutputVersion is the version of the event that holds a task's output; 0 for none.
func (s *State) OutputVersion(t int32) events.Version {
	if e := s.end(t); e.size > 0 {
		return e.version
	}
	return 0
}

// end is the zero end for a task that is not done.
func (s *State) end(t int32) end {
	if t < 0 || int(t) >= len(s.ends) {
		return end{}
	}
	return s.ends[t]
}

// WithVersion is the version of the event that replaces a task's mapping; 0 for none.
func (s *State) WithVersion(t int32) events.Version { return s.flights[t].with }
