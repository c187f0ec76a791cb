package simulation

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/events"
)

// ledger reads the log behind everybody's back and holds it to what must be true of every commit. It folds each
// execution by itself: what the domain's processes believe is compared with this.
type ledger struct {
	codec   events.Codec
	refs    map[events.Hash]*dag.Plan
	streams map[events.Stream]*history
	order   []events.Stream // by birth
	seen    events.Position
	fence   events.Fence // highest that was ever given out
	trace   hash.Hash64
	stats   *Stats
}

// history is one execution as the log has it.
type history struct {
	stream    events.Stream
	state     *execution.State
	plan      *dag.Plan
	version   events.Version
	hash      events.Hash
	facts     []events.Recorded
	commands  map[events.ID]int // commits of each
	completed map[int32]bool
	settled   map[int32]events.Time // when done or skipped
	ready     map[int32]bool
}

func newLedger(codec events.Codec, st *Stats) *ledger {
	return &ledger{
		codec: codec, streams: map[events.Stream]*history{}, refs: map[events.Hash]*dag.Plan{},
		trace: fnv.New64a(), stats: st,
	}
}

// commit takes the next commit of the log. The first thing that does not hold is an error.
func (l *ledger) commit(c *events.Commit) error {
	if c.Before() != l.seen {
		return fmt.Errorf("position %d follows %d", c.Before()+1, l.seen)
	}
	l.seen = c.Position
	if c.Fence != 0 && c.Fence < l.fence {
		return fmt.Errorf("position %d has token %d, and %d was given out before", c.Position, c.Fence, l.fence)
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(c.At))
	_, _ = l.trace.Write(word[:])
	_, _ = l.trace.Write(c.Hash[:])
	_, _ = l.trace.Write(c.Command[:])
	l.stats.Commits++
	l.stats.Events += c.N
	recorded, err := events.Decode(c, l.codec)
	if err != nil {
		return err
	}
	h := l.streams[c.Stream]
	if h == nil {
		h = &history{
			stream: c.Stream, state: &execution.State{}, commands: map[events.ID]int{},
			completed: map[int32]bool{}, settled: map[int32]events.Time{}, ready: map[int32]bool{},
		}
		l.streams[c.Stream] = h
		l.order = append(l.order, c.Stream)
	}
	if c.First != h.version+1 {
		return fmt.Errorf("%s goes on at version %d behind %d", c.Stream, c.First, h.version)
	}
	if h.commands[c.Command]++; h.commands[c.Command] > 1 {
		return fmt.Errorf("command %s has two commits in %s", c.Command, c.Stream)
	}
	h.hash = c.Hash
	for i := range recorded {
		if err := l.fact(h, &recorded[i]); err != nil {
			return fmt.Errorf("%s version %d (%s): %w", c.Stream, recorded[i].Version, recorded[i].Type, err)
		}
	}
	return nil
}

func (l *ledger) fact(h *history, r *events.Recorded) error {
	e, ok := r.Event.(events.ExecutionEvent)
	if !ok {
		return fmt.Errorf("no event of an execution: %T", r.Event)
	}
	var err error
	switch e := e.(type) {
	case events.ExecutionSubmitted:
		if h.plan = l.refs[e.Definition]; h.plan == nil || h.version != 0 {
			err = fmt.Errorf("submitted at version %d with definition %s", r.Version, e.Definition)
		}
	case events.TasksReady:
		for t := e.From; t < e.To; t++ {
			err = first(err, h.mayRun(t))
		}
		for _, t := range e.Tasks {
			err = first(err, h.mayRun(t))
		}
	case events.TimerStarted:
		err = h.mayRun(e.Task)
	case events.TaskCompleted:
		if h.completed[e.Task] {
			err = fmt.Errorf("task %d completes twice", e.Task)
		}
		h.completed[e.Task] = true
		err = first(err, h.mayRun(e.Task))
		h.settled[e.Task] = r.Commit.OccurredAt
	case events.TaskSkipped:
		err = h.mayRun(e.Task)
		h.settled[e.Task] = r.Commit.OccurredAt
	case events.TaskFailed:
		err = h.mayRun(e.Task)
	case events.TasksHeld:
		l.stats.Held++
	case events.TaskResultLate:
		l.stats.Late++
	case events.TaskRetried:
		l.stats.Retried++
	case events.ExecutionCompleted:
		if len(h.settled) != len(h.plan.Tasks) {
			err = fmt.Errorf("completed with %d of %d tasks settled", len(h.settled), len(h.plan.Tasks))
		}
	}
	if err != nil {
		return err
	}
	h.state = execution.Evolve(h.state, e, r.Version)
	h.version = r.Version
	h.facts = append(h.facts, *r)
	return nil
}

// mayRun says whether all that a task needs is settled.
func (h *history) mayRun(t int32) error {
	if h.plan == nil || t < 0 || int(t) >= len(h.plan.Tasks) {
		return fmt.Errorf("there is no task %d", t)
	}
	for _, n := range h.plan.Tasks[t].Needs {
		if _, ok := h.settled[n]; !ok {
			return fmt.Errorf("task %d before its predecessor %d", t, n)
		}
	}
	h.ready[t] = true
	return nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
