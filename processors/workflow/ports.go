// Package workflow holds the ports between the owner of executions, the queue that carries their tasks, and the
// workers that run them. A worker never writes execution state: it reports, and the owner decides.
package workflow

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Item is one attempt on its way to a worker: ids only, never a payload.
type Item struct {
	Stream     events.Stream // the execution
	Partition  events.Partition
	Task       int32 // ordinal in the plan
	Attempt    int32
	Type       string // task type
	Class      string // queue
	Definition events.Hash
	// Outputs holds, in the order of the plan's WithRefs, the versions of the stream that carry the outputs which the
	// task's mapping reads; 0 where the task was skipped.
	Outputs  []events.Version
	With     events.Version // version that carries an operator's replacement of the mapping, 0 for none
	SentAt   events.Time
	SlotWait time.Duration
	Trace    string // W3C traceparent
	// Correlation is the execution's; empty: the id of the execution.
	Correlation string
}

// Delivery is an item in a worker's hands until its lock ends.
type Delivery struct {
	Item
	Receipt string // the queue's own; needed to settle and renew
	Until   events.Time
}

// Outcome is how a delivery is settled.
type Outcome uint8

// The outcomes.
const (
	Accept  Outcome = iota // done with it: the result was reported, or it no longer counts
	Release                // not started: deliver it again, to anybody
	Reject                 // cannot be read by anybody: keep it out of the way
)

// Settlement settles one delivery.
type Settlement struct {
	Receipt string
	Class   string
	Outcome Outcome
}

// ErrLockLost says that a delivery's lock has ended: somebody else may have the item.
var ErrLockLost = errors.New("lock on the item has ended")

// ErrQueueFull says that a class has as many items as its adapter allows; nothing of the call was put. Send later:
// what waits is in the log.
var ErrQueueFull = errors.New("queue is full")

// ErrNoClass says that a class is none of Classes; nothing of the call was done.
var ErrNoClass = errors.New("no such class of the queue")

// QueueStats describes one class of the queue.
type QueueStats struct {
	Depth     int         // waiting
	Delivered int         // in workers' hands
	Rejected  int         // kept out of the way since the queue began
	Oldest    events.Time // SentAt of the oldest item that waits, 0 when none does
}

// TaskQueue carries items, and is never truth: it may lose, double or reorder them, since the owner's dispatch
// deadline sends again whatever no result was seen for. No session keys, no not-before.
type TaskQueue interface {
	// Send puts items into the queues of their classes: all of them, or none and an error.
	Send(ctx context.Context, items []Item) error
	// Receive waits for at least one item of the class and of one of the types (none given: any), and locks at most
	// max of them for the given time. It returns none and ctx's error when ctx ends first; with a ctx that has ended
	// already it takes what is there and does not wait.
	Receive(ctx context.Context, class string, types []string, max int, lock time.Duration) ([]Delivery, error)
	// Settle ends deliveries. A lock that has ended is not an error: the settlement is then without effect.
	Settle(ctx context.Context, ss []Settlement) error
	// Renew prolongs a lock; ErrLockLost when it has ended.
	Renew(ctx context.Context, d Delivery, lock time.Duration) error
	// Stats describes a class.
	Stats(ctx context.Context, class string) (QueueStats, error)
}

// Classes are the queues, from the most urgent.
var Classes = []string{"high", "standard", "bulk", "longrunning"}

// Report is what a worker tells the owner of an execution: StartTask or RecordResult.
type Report struct {
	Stream    events.Stream
	Partition events.Partition
	Command   commands.ExecutionCommand
	// Done, if not nil, is called once after the owner's append has answered: counts says whether the report's attempt
	// was the current one. It must not block. It is not called when the process ends first.
	Done func(counts bool)
}

// Reports carries reports to the owner of their partition. It may lose them: the owner sends the task again.
type Reports interface {
	Report(ctx context.Context, r Report) error
}

// ErrGone says that an attempt no longer counts: cancelled, superseded, or finished.
var ErrGone = errors.New("attempt no longer counts")

// Attempts answers whether an attempt still counts, and shows who works on it.
type Attempts interface {
	// Begin says that a worker starts on an attempt; ErrGone when it does not count or another worker of this process
	// has it. Gone is closed when the attempt stops counting while it runs.
	Begin(ctx context.Context, it Item, worker string) (gone <-chan struct{}, err error)
	// End takes the presence back. Repeating is free.
	End(it Item)
}

// Work is what a handler gets.
type Work struct {
	Item
	Name        string        // the task's name in its definition
	Key         events.ID     // task execution id: the same for every attempt; the downstream's Idempotency-Key
	With        []byte        // the evaluated mapping, a JSON text
	Correlation string        // of the execution
	Timeout     time.Duration // the context given ends with it
	Heartbeat   func()        // tells the watchdog and the owner that the work goes on
}

// Handler runs the tasks of one type.
type Handler interface {
	// Run does the work. It returns a JSON text of at most events.BlobBytesMax, or a failure. It must return soon
	// after ctx ends; the cause of ctx says why (ErrGone, a timeout, a drain).
	Run(ctx context.Context, w Work) (output []byte, failure *commands.Failure)
}
