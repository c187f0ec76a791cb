// Package live keeps which attempts count and who works on them, within one process, so that a worker need not ask the
// store. It is presence and never truth: what it forgets is in the log.
package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Counts asks the log whether an attempt that this process has not sent still counts. It may say yes too often: a
// result that does not count is recorded as late.
type Counts func(ctx context.Context, it workflow.Item) (bool, error)

// shards keeps owners and workers out of each other's way.
const shards = 64

// Attempts is workflow.Attempts for workers in the process of the owners. The dispatcher tells it what is sent and
// what is closed; workers begin and end; a GET asks who works. It is safe for concurrent use.
type Attempts struct {
	clock  commands.Clock
	counts Counts
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	streams map[events.Stream]*execution
}

// execution is one stream that an owner of this process keeps: what is not in tasks is closed.
type execution struct {
	owned bool // Sent was called: tasks is complete
	tasks map[int32]*attempt
}

type attempt struct {
	number int32
	worker string // empty: nobody works on it
	since  events.Time
	gone   chan struct{} // made when a worker begins, closed when the attempt is
}

// New makes an empty Attempts.
func New(clock commands.Clock, counts Counts) *Attempts {
	a := &Attempts{clock: clock, counts: counts}
	for i := range a.shards {
		a.shards[i].streams = map[events.Stream]*execution{}
	}
	return a
}

func (a *Attempts) of(s events.Stream) *shard { return &a.shards[events.PartitionOf(s, shards)] }

// Sent says that the attempt is the current one of its task; call it before the send. An older attempt of the task is
// closed. Repeating it, for an attempt that is sent again, is free.
func (a *Attempts) Sent(it workflow.Item) {
	sh := a.of(it.Stream)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[it.Stream]
	if x == nil {
		x = &execution{tasks: map[int32]*attempt{}}
		sh.streams[it.Stream] = x
	}
	x.owned = true
	x.current(it.Task, it.Attempt)
}

// current makes number the attempt of the task, unless a later one is.
func (x *execution) current(task, number int32) *attempt {
	at := x.tasks[task]
	if at == nil {
		at = &attempt{number: number}
		x.tasks[task] = at
	}
	if at.number < number {
		at.close()
		*at = attempt{number: number}
	}
	return at
}

func (at *attempt) close() {
	if at.gone != nil {
		close(at.gone)
		at.gone = nil
	}
}

// Closed says that the attempt, and every older one of the task, has ended: its result was recorded, or its time was
// up. Whoever works on it is told. Repeating it is free.
func (a *Attempts) Closed(s events.Stream, task, number int32) {
	sh := a.of(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[s]
	if x == nil {
		return
	}
	if at := x.tasks[task]; at != nil && at.number <= number {
		at.close()
		delete(x.tasks, task)
	}
	sh.forgetIfIdle(s, x)
}

// ClosedAll says that the execution has ended: nothing of it counts, and nothing more is kept of it.
func (a *Attempts) ClosedAll(s events.Stream) {
	sh := a.of(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if x := sh.streams[s]; x != nil {
		for _, task := range slices.Sorted(maps.Keys(x.tasks)) { // whoever is told is told in one order
			x.tasks[task].close()
		}
		delete(sh.streams, s)
	}
}

// Forget says that no owner of this process keeps the execution any more: its state was dropped from memory, or its
// partition went elsewhere. What runs goes on, and what begins from now on asks the log.
func (a *Attempts) Forget(s events.Stream) {
	sh := a.of(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[s]
	if x == nil {
		return
	}
	x.owned = false
	for task, at := range x.tasks {
		if at.worker == "" {
			delete(x.tasks, task)
		}
	}
	sh.forgetIfIdle(s, x)
}

func (sh *shard) forgetIfIdle(s events.Stream, x *execution) {
	if !x.owned && len(x.tasks) == 0 {
		delete(sh.streams, s)
	}
}

// Begin says that a worker starts on an attempt. The answer comes from memory when an owner of this process keeps the
// execution; else the log is asked. workflow.ErrGone: it does not count, or a worker of this process has it. Every
// other error is the log's: try again, or release the item. After an error there is nothing to end.
func (a *Attempts) Begin(ctx context.Context, it workflow.Item, worker string) (<-chan struct{}, error) {
	sh := a.of(it.Stream)
	gone, known, err := sh.begin(it, worker, a.clock.Now(), false)
	if known || err != nil {
		return gone, err
	}
	ok, err := a.counts(ctx, it)
	if err != nil {
		return nil, fmt.Errorf("ask whether attempt %d of task %d of %s counts: %w", it.Attempt, it.Task, it.Stream, err)
	}
	if !ok {
		return nil, workflow.ErrGone
	}
	gone, _, err = sh.begin(it, worker, a.clock.Now(), true)
	return gone, err
}

// begin answers from memory; known is false when only the log can tell. With counted it has told.
func (sh *shard) begin(
	it workflow.Item, worker string, now events.Time, counted bool,
) (gone <-chan struct{}, known bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[it.Stream]
	var at *attempt
	if x != nil {
		at = x.tasks[it.Task]
	}
	switch {
	case at != nil && (at.number > it.Attempt || at.number == it.Attempt && at.worker != ""):
		return nil, true, workflow.ErrGone
	case at != nil && at.number == it.Attempt:
	case x != nil && x.owned && at == nil:
		return nil, true, workflow.ErrGone
	case !counted: // another process sent it, or a later attempt than this one knows
		return nil, false, nil
	case x == nil:
		x = &execution{tasks: map[int32]*attempt{}}
		sh.streams[it.Stream] = x
		fallthrough
	default:
		at = x.current(it.Task, it.Attempt)
	}
	at.worker, at.since, at.gone = worker, now, make(chan struct{})
	return at.gone, true, nil
}

// End takes a worker's presence back. The attempt itself stays current until it is closed, so that it may begin again
// elsewhere. Repeating it is free.
func (a *Attempts) End(it workflow.Item) {
	sh := a.of(it.Stream)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[it.Stream]
	if x == nil {
		return
	}
	at := x.tasks[it.Task]
	if at == nil || at.number != it.Attempt {
		return
	}
	at.worker, at.since, at.gone = "", 0, nil
	if !x.owned {
		delete(x.tasks, it.Task)
	}
	sh.forgetIfIdle(it.Stream, x)
}

// Presence is one attempt that a worker of this process runs.
type Presence struct {
	Task, Attempt int32
	Worker        string
	Since         events.Time
}

// Working lists who works on an execution, by task.
func (a *Attempts) Working(s events.Stream) []Presence {
	sh := a.of(s)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	x := sh.streams[s]
	if x == nil {
		return nil
	}
	var ps []Presence
	for task, at := range x.tasks {
		if at.worker != "" {
			ps = append(ps, Presence{Task: task, Attempt: at.number, Worker: at.worker, Since: at.since})
		}
	}
	slices.SortFunc(ps, func(p, q Presence) int { return int(p.Task) - int(q.Task) })
	return ps
}

// Kept counts the executions and the attempts in memory, for gauges and for tests that nothing leaks.
func (a *Attempts) Kept() (executions, attempts int) {
	for i := range a.shards {
		sh := &a.shards[i]
		sh.mu.Lock()
		executions += len(sh.streams)
		for _, x := range sh.streams {
			attempts += len(x.tasks)
		}
		sh.mu.Unlock()
	}
	return executions, attempts
}
