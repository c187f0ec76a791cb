// Package execution decides what may happen to one run of a workflow.
// It never looks at a payload that it was not given, and keeps none: a state knows which event holds an output.
package execution

import (
	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Category is the first part of an execution's stream name: execution/tenant/uuid.
const Category = "execution"

// Decider is the execution aggregate.
var Decider = aggregates.Decider[*State, commands.ExecutionCommand, events.ExecutionEvent]{
	Category: Category,
	Reducer:  1,
	Initial:  func() *State { return &State{} },
	Evolve:   Evolve,
	Needs:    Needs,
	Decide:   Decide,
	Open:     (*State).Open,
	Due:      (*State).Due,
	Encode:   (*State).Encode,
	Decode:   DecodeState,
}

// Status is where an execution stands.
type Status uint8

// The statuses. None is that of a stream without events.
const (
	None Status = iota
	Pending
	Running
	Paused
	Completed
	Failed
	Cancelled
	TimedOut
)

// Statuses are their names, by number.
var Statuses = [...]string{"NONE", "PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}

func (s Status) String() string { return Statuses[s] }

// State is one execution, folded. Tasks are bits by ordinal; only what is beyond "ready, first attempt, nothing known
// of it" has an entry of its own.
type State struct {
	status     Status
	workflow   string
	version    int64
	definition events.Hash
	tasks      int32
	class      string
	deadline   events.Time
	parent     string
	input      int64          // bytes
	result     events.Version // of ExecutionCompleted
	resultSize int64
	failure    events.ExecutionFailed

	done    bitset // completed
	skipped bitset
	ready   bitset // may run, runs, waits for its next attempt, or is dead-lettered
	settled int32  // how many are done or skipped
	pending int32  // how many are ready
	dead    int32  // how many of these are dead-lettered

	ends    []end // of done tasks, by ordinal; nil until the first
	flights map[int32]flight
	waits   waits // of flights, by time
}

// end says which event completed a task.
type end struct {
	version events.Version
	attempt int32
	size    uint32 // bytes of the output
}

// flight is what is known of a ready task beyond its being ready.
type flight struct {
	phase   phase
	held    bool
	begun   bool   // started says by whom
	attempt int32  // 0 stands for 1
	spent   int32  // attempts before an operator's last retry
	told    uint64 // the attempts whose own end is in the log: bit k−1 for attempt k, the last bit for all above
	at      events.Time
	with    events.Version
	failed  events.Version // of its last TaskFailed
	late    events.Version // of a success that came too late to count
	code    string         // of a dead letter
	started Started
}

// phase is what a ready task waits for.
type phase uint8

const (
	sendable   phase = iota // a worker
	backOff                 // its next attempt, at flight.at
	timer                   // flight.at
	deadLetter              // an operator
)

func (f *flight) waiting() bool { return f.phase == backOff || f.phase == timer }

// number is the current attempt's.
func (f *flight) number() int32 { return max(f.attempt, 1) }

// Started says who works on an attempt since when, by the worker's own claim.
type Started struct {
	Worker            string
	SentAt, StartedAt events.Time
}

// Status is where the execution stands.
func (s *State) Status() Status { return s.status }

// Open says that an owner has work with it: it has not ended. A failed one has, until an operator retries a task.
func (s *State) Open() bool { return s.status == Pending || s.status == Running || s.status == Paused }

// Dispatching says that ready tasks are sent.
func (s *State) Dispatching() bool { return s.status == Pending || s.status == Running }

// counting says that results of tasks still count.
func (s *State) counting() bool { return s.Open() || s.status == Failed }

// Workflow names the definition that the execution is bound to.
func (s *State) Workflow() string { return s.workflow }

// Version is the definition's that the execution is bound to.
func (s *State) Version() int64 { return s.version }

// Definition names the content that the execution is bound to.
func (s *State) Definition() events.Hash { return s.definition }

// Parent is the execution that this one replays, or empty.
func (s *State) Parent() string { return s.parent }

// Deadline is when the execution times out; 0: never. A pause does not move it.
func (s *State) Deadline() events.Time { return s.deadline }

// Tasks is how many tasks the plan has.
func (s *State) Tasks() int32 { return s.tasks }

// Settled is how many tasks are done or skipped.
func (s *State) Settled() int32 { return s.settled }

// Input is the size of the input in bytes, 0 for none. Event 1 carries it.
func (s *State) Input() int64 { return s.input }

// Result says which event carries the output of a completed execution, and its size in bytes, 0 for none.
func (s *State) Result() (version events.Version, size int64) { return s.result, s.resultSize }

// Class is the execution's: the submitter's, or else the definition's.
func (s *State) Class() string { return s.class }

// TaskClass is the queue that a task goes to. A class that the submitter chose stands before the tasks' own.
func (s *State) TaskClass(p *dag.Plan, t int32) string {
	if s.class != p.Class {
		return s.class
	}
	return p.Tasks[t].Class
}

// Failure is why a FAILED execution failed. While it runs again after an operator's retry there is none.
func (s *State) Failure() events.ExecutionFailed { return s.failure }

// Due is the earliest deadline that the state knows: the execution's, a timer's, or a back-off's; 0 for none.
func (s *State) Due() events.Time {
	if !s.Open() {
		return 0
	}
	if next := s.NextWait(); next != 0 && (s.deadline == 0 || next < s.deadline) {
		return next
	}
	return s.deadline
}

func (s *State) known(t int32) bool { return t >= 0 && t < s.tasks }

func (s *State) isSettled(t int32) bool { return s.done.has(t) || s.skipped.has(t) }

// isOpen says that something will still come of a ready task by itself.
func (s *State) isOpen(t int32) bool { return s.ready.has(t) && s.flights[t].phase != deadLetter }

// open is how many tasks are.
func (s *State) open() int32 { return s.pending - s.dead }
