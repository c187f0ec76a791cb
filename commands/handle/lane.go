package handle

import (
	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Lane is the write path of a partition's owner: it keeps hot states in memory, takes all machine commands that wait
// for one stream, decides them one after another, and appends once. The append at Exact validates the cached state.
// It is a state machine: it never blocks, and nothing leaves it on the word of an event that is not stored yet.
type Lane struct {
	cfg   LaneConfig
	aggs  map[string]aggregates.Aggregate
	hots  map[events.Stream]*Hot
	dirty []*Hot
	fly   map[uint64]*flight
	tag   uint64
	stats LaneStats
}

// LaneConfig is what a Lane is made of.
type LaneConfig struct {
	Partition  events.Partition
	Fence      events.Fence
	Aggregates []aggregates.Aggregate
	Codec      events.Codec
	Cache      *Refs
	IDs        commands.IDs
	Rand       commands.Rand
	Actor      string // of the envelope
}

// Machine is one machine command on its way. Receipt 0 means that nobody waits for its settlement.
type Machine struct {
	Command commands.Command
	Origin  events.Origin // beside the envelope when a batch answers several commands
	Receipt uint64

	sought bool // the stream was to be read anew because the command was ahead of it
}

// Hot is one stream in the lane's memory.
type Hot struct {
	Loaded
	Agg  aggregates.Aggregate
	Data any // the agent's own

	queue   []Machine
	fly     *flight
	pinned  Pinned
	rounds  int
	loading bool // a load is under way
	asking  bool // references are under way
	wanted  bool // the agent wants them, not a decision
	stale   bool // must be loaded before the next decision
	reads   int  // loads that were asked for and have not come
	fresh   bool // read from the log when no other load was under way, and nothing was decided since
	dirty   bool

	// Of the owner's timer heap.
	Due     events.Time
	Index   int  // -1: not in the heap
	Overdue bool // its deadline passed while an append was in flight or the state was not in memory
}

// InFlight says that the state is ahead of the log: an append has not answered yet.
func (h *Hot) InFlight() bool { return h.fly != nil }

// Usable says that the state may be read by an agent: loaded, and not known to be old.
func (h *Hot) Usable() bool { return h.State != nil && !h.stale }

type flight struct {
	hot      *Hot
	write    Write
	machines []Machine
	yields   []int // events per machine command
	facts    []events.Fact
	bytes    int // of their payloads
	first    events.Version
}

// Settled is a machine command that is done with: what it decided is stored, or it decided nothing.
type Settled struct {
	Hot     *Hot
	Machine Machine
	Events  int
}

// Stored is what an append of the lane's own has made a fact.
type Stored struct {
	Hot   *Hot
	First events.Version
	Facts []events.Fact
}

// RefsWanted asks for references of a stream.
type RefsWanted struct {
	Stream events.Stream
	Refs   []aggregates.Ref
}

// Tagged is a write whose answer must carry the tag.
type Tagged struct {
	Tag   uint64
	Write Write
}

// LaneOut collects what a lane wants done.
type LaneOut struct {
	Writes  []Tagged
	Loads   []events.Stream
	Refs    []RefsWanted
	Settled []Settled
	Stored  []Stored
	Read    []*Hot // states that were read anew from the log
	Parked  []Parked
	Fenced  bool
}

// Reset empties o and keeps its memory.
func (o *LaneOut) Reset() {
	clear(o.Writes)
	clear(o.Settled)
	clear(o.Stored)
	clear(o.Read)
	*o = LaneOut{
		Writes: o.Writes[:0], Loads: o.Loads[:0], Refs: o.Refs[:0], Settled: o.Settled[:0],
		Stored: o.Stored[:0], Read: o.Read[:0], Parked: o.Parked[:0],
	}
}

// LaneStats counts since the lane began.
type LaneStats struct{ Appends, Events, Machines, Nothing, Conflicts, Reloads, Bytes int64 }

// NewLane makes an empty lane.
func NewLane(cfg LaneConfig) *Lane {
	l := &Lane{
		cfg: cfg, aggs: map[string]aggregates.Aggregate{},
		hots: map[events.Stream]*Hot{}, fly: map[uint64]*flight{},
	}
	for _, a := range cfg.Aggregates {
		l.aggs[a.Category()] = a
	}
	return l
}

// Stats returns the counts so far.
func (l *Lane) Stats() LaneStats { return l.stats }

// Hot returns a stream in memory, or nil.
func (l *Lane) Hot(s events.Stream) *Hot { return l.hots[s] }

// Len is how many streams are in memory.
func (l *Lane) Len() int { return len(l.hots) }

// Dirty says that Decide has work.
func (l *Lane) Dirty() bool { return len(l.dirty) > 0 }

// Flights is how many appends have not answered yet.
func (l *Lane) Flights() int { return len(l.fly) }

func (l *Lane) hot(s events.Stream) *Hot {
	h := l.hots[s]
	if h == nil {
		agg := l.aggs[s.Category()]
		if agg == nil {
			return nil
		}
		h = &Hot{Loaded: Loaded{Stream: s, Partition: l.cfg.Partition}, Agg: agg, stale: true, Index: -1}
		l.hots[s] = h
	}
	return h
}

func (l *Lane) mark(h *Hot) {
	if !h.dirty {
		h.dirty = true
		l.dirty = append(l.dirty, h)
	}
}

// Offer queues a machine command. One for a category that nobody serves is dropped, and false returned.
func (l *Lane) Offer(s events.Stream, m Machine) bool {
	h := l.hot(s)
	if h == nil {
		return false
	}
	h.queue = append(h.queue, m)
	l.mark(h)
	return true
}

// Touch has a stream read if its state is not in memory, or if v is above what memory knows.
func (l *Lane) Touch(s events.Stream, v events.Version) {
	h := l.hot(s)
	if h == nil || h.Usable() && h.Version >= v {
		return
	}
	h.stale = true
	l.mark(h)
}

// Take gives the lane a stream that was read, or that somebody else has just appended to. A state older than the one
// in memory is dropped.
func (l *Lane) Take(in Loaded, out *LaneOut) {
	h := l.hot(in.Stream)
	if h == nil {
		return
	}
	if in.read {
		h.reads = max(h.reads-1, 0)
	}
	last := in.read && h.reads == 0
	switch {
	case h.fly != nil:
		// Whether it is news shows when the append has answered: then it is read.
		h.stale = h.stale || in.Version > h.Version
		return
	case h.Usable() && h.Version >= in.Version, h.Version > in.Version:
		h.fresh = h.fresh || last && h.Usable()
		if h.loading { // a read that was overtaken: once more
			h.loading = false
			l.mark(h)
		}
		return
	}
	h.Loaded = in
	h.loading, h.stale, h.fresh, h.pinned, h.rounds = false, false, last, nil, 0
	out.Read = append(out.Read, h)
	if len(h.queue) > 0 {
		l.mark(h)
	}
}

// Want has references of a stream loaded into the cache; the stream then counts as read once more.
func (l *Lane) Want(h *Hot, refs []aggregates.Ref, out *LaneOut) {
	h.wanted = true // when others are under way it is asked again after them
	if !h.asking {
		h.asking = true
		out.Refs = append(out.Refs, RefsWanted{h.Stream, refs})
	}
}

// Resolve gives the lane references that it asked for.
func (l *Lane) Resolve(s events.Stream, refs Pinned, out *LaneOut) {
	h := l.hots[s]
	if h == nil {
		return
	}
	h.asking = false
	h.pinned = append(h.pinned, refs...)
	if h.wanted && h.Usable() && h.fly == nil {
		out.Read = append(out.Read, h)
	}
	h.wanted = false
	l.mark(h)
}

// Drop forgets a stream. Its queue must be empty and nothing in flight.
func (l *Lane) Drop(h *Hot) {
	if len(h.queue) == 0 && h.fly == nil && !h.loading {
		delete(l.hots, h.Stream)
	}
}

// Shrink forgets a stream's state but not the stream: it is read again before the next decision.
func (l *Lane) Shrink(h *Hot) {
	if len(h.queue) == 0 && h.fly == nil && !h.loading {
		h.State, h.Keys, h.pinned, h.stale = nil, nil, nil, true
	}
}

// Idle says that a stream has nothing queued, under way or in flight.
func (h *Hot) Idle() bool { return len(h.queue) == 0 && h.fly == nil && !h.loading && !h.asking }
