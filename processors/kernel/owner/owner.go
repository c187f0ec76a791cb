// Package owner runs one log partition: its lane, its timers, and the agents of each domain, as one state machine.
// It never blocks, starts no goroutine and reads no clock: Step takes what has come in and says what is to be done.
package owner

import (
	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

// Agent is what a domain does with the streams of one category in a partition that it owns. Its methods are called
// inside Step, with streams whose state may be read; none of them may keep a state beyond the call.
type Agent interface {
	// Read says that a stream was read from the log, or taken over from whoever appended: whatever the agent believed
	// of it is compared with the state. It is called again after references that it wanted have come.
	Read(h *handle.Hot, now events.Time)
	// Stored says that facts decided here are in the log.
	Stored(h *handle.Hot, facts []events.Fact, now events.Time)
	// Settled says that a machine command is done with, and returns whether what it reported still counts.
	Settled(h *handle.Hot, m handle.Machine, facts int) (counts bool)
	// Fire says that the stream's deadline has passed; nothing of it is in flight.
	Fire(h *handle.Hot, now events.Time)
	// Busy says that the agent still has something of the stream under way: it is not forgotten yet.
	Busy(h *handle.Hot) bool
	// Flush is called at the end of a step, to do at once what the step has gathered. It returns when it wants the
	// next step at the latest; 0 for no matter when.
	Flush(now events.Time) events.Time
}

// In is what has come in since the last step.
type In struct {
	Answers  []Answer
	Loaded   []handle.Loaded // asked for, or handed over by whoever has just appended
	Resolved []Resolved
	Touched  []Touched
	Machines []Offer
}

// Answer is the store's verdict on a write.
type Answer struct {
	Tag     uint64
	Verdict events.Verdict
}

// Resolved brings references that were asked for.
type Resolved struct {
	Stream events.Stream
	Refs   handle.Pinned
}

// Touched is a hint that somebody else has moved a stream; at take-over, that it is open.
type Touched struct {
	Stream  events.Stream
	Version events.Version
}

// Offer is a machine command for a stream.
type Offer struct {
	Stream  events.Stream
	Machine handle.Machine
}

// Reset empties in and keeps its memory.
func (in *In) Reset() {
	clear(in.Loaded)
	clear(in.Resolved)
	clear(in.Machines)
	*in = In{
		Answers: in.Answers[:0], Loaded: in.Loaded[:0], Resolved: in.Resolved[:0],
		Touched: in.Touched[:0], Machines: in.Machines[:0],
	}
}

// Receipt answers whoever waits for a machine command.
type Receipt struct {
	Receipt uint64
	Counts  bool
}

// Out is what a step wants done. Lane.Stored, Settled and Read have been dealt with already.
type Out struct {
	Lane      handle.LaneOut
	Receipts  []Receipt
	Forgotten []events.Stream // nothing of them is in memory any more
	Wake      events.Time     // step again then at the latest; 0: only when something comes in
}

// Reset empties out and keeps its memory.
func (o *Out) Reset() {
	o.Lane.Reset()
	o.Receipts, o.Forgotten, o.Wake = o.Receipts[:0], o.Forgotten[:0], 0
}

// Owner is one partition's. After a Fenced out it does nothing any more.
type Owner struct {
	lane   *handle.Lane
	agents map[string]Agent
	order  []Agent
	timers timers
	out    *Out // of the step that runs
	fenced bool
}

// New makes an owner over its lane.
func New(l *handle.Lane) *Owner { return &Owner{lane: l, agents: map[string]Agent{}} }

// Serve gives the streams of a category to an agent.
func (o *Owner) Serve(category string, a Agent) {
	o.agents[category] = a
	o.order = append(o.order, a)
}

// Lane is the owner's lane, for its counts.
func (o *Owner) Lane() *handle.Lane { return o.lane }

// Timers is how many streams have a deadline.
func (o *Owner) Timers() int { return len(o.timers) }

// Arm sets a deadline of a stream, unless it has an earlier one. For agents.
func (o *Owner) Arm(h *handle.Hot, at events.Time) { o.timers.arm(h, at) }

// Offer queues a machine command that an agent gives. For agents.
func (o *Owner) Offer(h *handle.Hot, m handle.Machine) { o.lane.Offer(h.Stream, m) }

// Want has references loaded, after which the stream is Read again. For agents.
func (o *Owner) Want(h *handle.Hot, refs ...aggregates.Ref) { o.lane.Want(h, refs, &o.out.Lane) }

// decideRounds bounds how often agents may give the lane more work within one step; what is left waits for the next.
const decideRounds = 4

// Step takes in and adds to out what is to be done. Same calls, same outs.
func (o *Owner) Step(now events.Time, in *In, out *Out) {
	if o.fenced {
		out.Lane.Fenced = true
		return
	}
	o.out = out
	o.take(in, out)
	o.tell(now, out)
	for h := o.timers.due(now); h != nil; h = o.timers.due(now) {
		o.fire(h, now)
		o.retire(h, now) // what the deadline was for may have been the last of it
	}
	for range decideRounds {
		o.lane.Decide(now, &out.Lane)
		o.tell(now, out)
		out.Wake = 0
		for _, a := range o.order {
			out.wakeAt(a.Flush(now))
		}
		if !o.lane.Dirty() {
			break
		}
	}
	if o.lane.Dirty() {
		out.wakeAt(now)
	}
	out.wakeAt(o.Deadline())
	o.fenced, o.out = out.Lane.Fenced, nil
}

// Deadline is the earliest of all streams' deadlines, 0 for none. What agents arm between two steps moves it.
func (o *Owner) Deadline() events.Time {
	if len(o.timers) == 0 {
		return 0
	}
	return o.timers[0].Due
}

// wakeAt keeps the earliest time that is not 0.
func (o *Out) wakeAt(t events.Time) {
	if t != 0 && (o.Wake == 0 || t < o.Wake) {
		o.Wake = t
	}
}

func (o *Owner) take(in *In, out *Out) {
	for i := range in.Answers {
		o.lane.Answer(in.Answers[i].Tag, in.Answers[i].Verdict, &out.Lane)
	}
	for i := range in.Loaded {
		o.lane.Take(in.Loaded[i], &out.Lane)
	}
	for i := range in.Resolved {
		o.lane.Resolve(in.Resolved[i].Stream, in.Resolved[i].Refs, &out.Lane)
	}
	for i := range in.Touched {
		o.lane.Touch(in.Touched[i].Stream, in.Touched[i].Version)
	}
	for i := range in.Machines {
		if !o.lane.Offer(in.Machines[i].Stream, in.Machines[i].Machine) {
			out.Receipts = append(out.Receipts, Receipt{Receipt: in.Machines[i].Machine.Receipt})
		}
	}
}

// tell passes on to the agents what the lane has brought about, and forgets the streams that are done with.
func (o *Owner) tell(now events.Time, out *Out) {
	l := &out.Lane
	for i := range l.Stored {
		s := &l.Stored[i]
		a := o.agent(s.Hot)
		if a == nil {
			continue
		}
		a.Stored(s.Hot, s.Facts, now)
		o.catchUp(a, s.Hot, now)
	}
	for _, h := range l.Read {
		if a := o.agent(h); a != nil && h.Usable() && !h.InFlight() {
			a.Read(h, now)
			o.catchUp(a, h, now)
		}
	}
	for i := range l.Settled {
		s := &l.Settled[i]
		counts := false
		if a := o.agent(s.Hot); a != nil {
			counts = a.Settled(s.Hot, s.Machine, s.Events)
		}
		if s.Machine.Receipt != 0 {
			out.Receipts = append(out.Receipts, Receipt{s.Machine.Receipt, counts})
		}
	}
	for i := range l.Stored {
		o.retire(l.Stored[i].Hot, now)
	}
	for _, h := range l.Read {
		o.retire(h, now)
	}
	for i := range l.Settled {
		o.retire(l.Settled[i].Hot, now)
	}
	l.Stored, l.Read, l.Settled = l.Stored[:0], l.Read[:0], l.Settled[:0]
}

func (o *Owner) agent(h *handle.Hot) Agent { return o.agents[h.Stream.Category()] }

// farAway is from when on a stream with nothing but a deadline keeps only that in memory.
const farAway = 30_000_000 // µs

// retire forgets a stream that is finished, and the state of one that only waits for a far deadline.
func (o *Owner) retire(h *handle.Hot, now events.Time) {
	if !h.Idle() || !h.Usable() || o.lane.Hot(h.Stream) != h {
		return
	}
	if a := o.agent(h); a != nil && a.Busy(h) {
		return
	}
	switch {
	case !h.Agg.Open(h.State):
		o.timers.drop(h)
		o.forget(h)
	case h.Index < 0: // it waits for a person, whose append hands it over or touches it
		o.forget(h)
	case h.Due > now+farAway:
		o.lane.Shrink(h)
	}
}

func (o *Owner) forget(h *handle.Hot) {
	o.lane.Drop(h)
	o.out.Forgotten = append(o.out.Forgotten, h.Stream)
}

// fire waits for the answer to an append in flight, since the state is ahead of the log until then: nothing may leave
// on its word. A state that is not in memory, or is known to be old, is read before.
func (o *Owner) fire(h *handle.Hot, now events.Time) {
	switch {
	case h.InFlight():
		h.Overdue = true
	case !h.Usable():
		h.Overdue = true
		o.lane.Touch(h.Stream, h.Version+1)
	default:
		if a := o.agent(h); a != nil {
			a.Fire(h, now)
		}
	}
}

// catchUp fires a deadline that has passed while nothing could be done about it. Whatever became of the append that was
// in flight, the deadline is out of the heap.
func (o *Owner) catchUp(a Agent, h *handle.Hot, now events.Time) {
	if h.Overdue && h.Usable() && !h.InFlight() {
		h.Overdue = false
		a.Fire(h, now)
	}
}
