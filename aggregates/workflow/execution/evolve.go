package execution

import (
	"maps"
	"math"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// tasksMax bounds what a state may claim; definitions are far smaller.
const tasksMax = 1 << 20

// Evolve applies one fact in place. It cannot fail: what is in the log has happened, whatever today's rules say, and
// it needs no definition. A fact of a task that there is not, or that has ended, changes nothing.
func Evolve(s *State, e events.ExecutionEvent, v events.Version) *State {
	switch e := e.(type) {
	case events.ExecutionSubmitted:
		s.submitted(e)
	case events.TasksReady:
		s.tasksReady(e)
	case events.TimerStarted:
		s.timerStarted(e)
	case events.TaskStarted:
		s.taskStarted(e)
	case events.TaskCompleted:
		s.completed(e, v)
	case events.TaskFailed:
		s.failed(e, v)
	case events.TaskSkipped:
		s.begin()
		s.settle(e.Task, s.skipped)
	case events.TasksHeld:
		s.tasksHeld(e)
	case events.TaskResultLate:
		s.resultLate(e, v)
	case events.TaskRetried:
		s.retried(e, v)
	case events.ExecutionPaused:
		s.status = Paused
	case events.ExecutionResumed:
		s.status = Running
	case events.ExecutionCancelled:
		s.status = Cancelled
	case events.ExecutionTimedOut:
		s.status = TimedOut
	case events.ExecutionCompleted:
		s.status, s.result, s.resultSize = Completed, v, e.Output.Size
	case events.ExecutionFailed:
		s.status, s.failure = Failed, e
	}
	return s
}

func (s *State) submitted(e events.ExecutionSubmitted) {
	if s.status != None {
		return
	}
	s.tasks = min(max(e.Tasks, 0), tasksMax)
	words := wordsOf(s.tasks)
	all := make(bitset, 3*words)
	s.status, s.workflow, s.version, s.definition = Pending, e.Workflow, e.Version, e.Definition
	s.class, s.deadline, s.parent, s.input = e.Class, e.Deadline, e.Parent, e.Input.Size
	s.done, s.skipped, s.ready = all[:words:words], all[words:2*words:2*words], all[2*words:]
}

// begin is the first fact of a task.
func (s *State) begin() {
	if s.status == Pending {
		s.status = Running
	}
}

func (s *State) tasksReady(e events.TasksReady) {
	s.begin()
	for t := max(e.From, 0); t < min(e.To, s.tasks); t++ {
		s.setReady(t)
	}
	for _, t := range e.Tasks {
		s.setReady(t)
	}
}

// setReady says whether the task is, after that.
func (s *State) setReady(t int32) bool {
	if s.ready.has(t) {
		return true
	}
	if !s.known(t) || s.isSettled(t) {
		return false
	}
	s.ready.set(t)
	s.pending++
	return true
}

// put keeps what is known of a ready task, and forgets the entry when nothing is.
func (s *State) put(t int32, f flight) {
	was := s.flights[t]
	if was.waiting() {
		s.waits.remove(wait{was.at, t})
	}
	if f.waiting() {
		s.waits.add(wait{f.at, t})
	}
	if was.phase == deadLetter {
		s.dead--
	}
	if f.phase == deadLetter {
		s.dead++
	}
	switch {
	case f == flight{}:
		delete(s.flights, t)
	case s.flights == nil:
		s.flights = map[int32]flight{t: f}
	default:
		s.flights[t] = f
	}
}

func (s *State) timerStarted(e events.TimerStarted) {
	s.begin()
	if s.setReady(e.Task) {
		f := s.flights[e.Task]
		f.phase, f.at = timer, e.Until
		s.put(e.Task, f)
	}
}

func (s *State) taskStarted(e events.TaskStarted) {
	if !s.ready.has(e.Task) {
		return
	}
	f := s.flights[e.Task]
	f.begun, f.started, f.held = true, Started{Worker: e.Worker, SentAt: e.SentAt, StartedAt: e.StartedAt}, false
	if f.phase == backOff {
		f.phase, f.at = sendable, 0
	}
	s.put(e.Task, f)
}

func (s *State) tasksHeld(e events.TasksHeld) {
	for _, t := range e.Tasks {
		if s.ready.has(t) {
			f := s.flights[t]
			f.held = true
			s.put(t, f)
		}
	}
}

// settle ends a task, once.
func (s *State) settle(t int32, how bitset) bool {
	if !s.known(t) || s.isSettled(t) {
		return false
	}
	how.set(t)
	s.settled++
	if s.ready.has(t) {
		s.ready.clear(t)
		s.pending--
	}
	if len(s.flights) > 0 {
		s.put(t, flight{})
	}
	return true
}

func (s *State) completed(e events.TaskCompleted, v events.Version) {
	s.begin()
	if !s.settle(e.Task, s.done) {
		return
	}
	if s.ends == nil {
		s.ends = make([]end, s.tasks)
	}
	s.ends[e.Task] = end{version: v, attempt: e.Attempt, size: uint32(min(max(e.Output.Size, 0), math.MaxUint32))}
}

// toldBit stands for the attempt in flight.told.
func toldBit(attempt int32) uint64 { return 1 << min(max(attempt-1, 0), 63) }

func (s *State) failed(e events.TaskFailed, v events.Version) {
	s.begin()
	if !s.setReady(e.Task) {
		return
	}
	f := s.flights[e.Task]
	f.begun, f.started, f.held, f.at, f.code, f.failed = false, Started{}, false, 0, "", v
	if e.Class != events.TimedOut { // an attempt whose time was up may still tell its own end
		f.told |= toldBit(e.Attempt)
	}
	if e.Next == events.NextRetry {
		f.phase, f.attempt, f.at = backOff, next(e.Attempt), e.RetryAt
	} else {
		f.phase, f.attempt, f.code = deadLetter, e.Attempt, e.Code
	}
	s.put(e.Task, f)
}

// next is the attempt after one; there are never more than fit.
func next(attempt int32) int32 { return min(attempt, math.MaxInt32-1) + 1 }

func (s *State) resultLate(e events.TaskResultLate, v events.Version) {
	if !s.ready.has(e.Task) {
		return
	}
	f := s.flights[e.Task]
	f.told |= toldBit(e.Attempt)
	if e.Class == "" {
		f.late = v
	}
	s.put(e.Task, f)
}

func (s *State) retried(e events.TaskRetried, v events.Version) {
	if !s.setReady(e.Task) {
		return
	}
	was := s.flights[e.Task]
	f := flight{
		attempt: e.Attempt, spent: e.Attempt - 1, with: was.with, told: was.told, late: was.late, failed: was.failed,
	}
	if !e.With.Empty() {
		f.with = v
	}
	s.put(e.Task, f)
	if s.status == Failed {
		s.status, s.failure = Running, events.ExecutionFailed{}
	}
}

// clone copies what Evolve changes in place.
func (s *State) clone() *State {
	c := *s
	c.done, c.skipped, c.ready = slices.Clone(s.done), slices.Clone(s.skipped), slices.Clone(s.ready)
	c.ends, c.flights, c.waits = slices.Clone(s.ends), maps.Clone(s.flights), slices.Clone(s.waits)
	return &c
}
