package handle

import (
	"errors"
	"slices"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

const (
	// batchMax is how many machine commands one append of a stream answers.
	batchMax = 256
	// batchEventsMax bounds the events of one append well below events.CommitEventsMax: what one command decides
	// (a fan-out of pure steps) comes on top.
	batchEventsMax = 1024
	// batchBytesMax bounds the payloads of one append well below events.CommitBytesMax, with the same on top.
	batchBytesMax = 256 << 10
)

// Decide works through every stream that has commands and nothing in flight.
func (l *Lane) Decide(now events.Time, out *LaneOut) {
	for i := 0; i < len(l.dirty); i++ { // a batch that decides nothing marks its stream again
		h := l.dirty[i]
		h.dirty = false
		switch {
		case h.fly != nil || h.loading || h.asking:
		case h.stale || h.State == nil:
			l.load(h, out)
		case len(h.queue) > 0:
			l.batch(h, now, out)
		}
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
}

func (l *Lane) load(h *Hot, out *LaneOut) {
	h.loading, h.stale, h.fresh = true, true, false
	h.reads++
	l.stats.Reloads++
	out.Loads = append(out.Loads, h.Stream)
}

// verdict is what became of one command of a batch.
type verdict uint8

const (
	taken  verdict = iota // decided, or settled without events
	waits                 // it needs what is being read: it stays at the front
	closes                // it belongs to the next batch
)

func (l *Lane) batch(h *Hot, now events.Time, out *LaneOut) {
	f := &flight{hot: h, first: h.Version + 1}
	at := max(now, h.At)
	n := 0
	for n < len(h.queue) && n < batchMax && len(f.facts) < batchEventsMax && f.bytes < batchBytesMax {
		what := l.one(h, &h.queue[n], at, n, f, out)
		if what == waits && n == 0 {
			return
		}
		if what != taken {
			break
		}
		n++
	}
	f.machines = slices.Clone(h.queue[:n])
	h.queue = slices.Delete(h.queue, 0, n)
	l.stats.Machines += int64(n)
	h.pinned, h.rounds, h.fresh = nil, 0, false
	if len(f.facts) == 0 {
		l.stats.Nothing += int64(n)
		l.settle(f, out)
		if len(h.queue) > 0 {
			l.mark(h)
		}
		return
	}
	l.launch(f, at, out)
}

// one decides one command on the state that the batch has come to, and evolves it, so that the next one sees it.
func (l *Lane) one(h *Hot, m *Machine, at events.Time, n int, f *flight, out *LaneOut) verdict {
	meta := commands.Meta{
		Command: m.Origin.Command, Actor: m.Origin.Actor, Cause: m.Origin.Cause, Tenant: h.Stream.Tenant(),
		Fence: l.cfg.Fence, At: at, Entropy: l.cfg.Rand.Uint64(), Version: h.Version + events.Version(len(f.facts)),
	}
	es, err := l.decide(h, m.Command, meta)
	var missing *aggregates.Missing
	var ahead *aggregates.Ahead
	switch {
	case errors.As(err, &missing):
		if n > 0 {
			return closes // those before it are not held back by its references
		}
		if h.rounds++; h.rounds <= aggregates.RefRoundsMax {
			h.asking = true
			out.Refs = append(out.Refs, RefsWanted{h.Stream, missing.Refs})
			return waits
		}
		l.park(h, m, meta, commands.CodeTooManyRefs, out)
	case errors.As(err, &ahead):
		if n > 0 {
			return closes
		}
		if !m.sought || !h.fresh { // what others have appended since it was last read may be what it speaks of
			m.sought = true
			l.load(h, out)
			return waits
		}
		// Read since it came, and still behind: a command of no log that we know. It decides nothing.
	case errors.Is(err, ErrPanic):
		l.park(h, m, meta, err.Error(), out)
	case err != nil:
		var refusal *commands.Error
		if !errors.As(err, &refusal) {
			l.park(h, m, meta, err.Error(), out)
		}
	}
	for _, e := range es {
		f.facts = append(f.facts, l.settleFact(h, e, f, m.Origin))
	}
	f.yields = append(f.yields, len(es))
	return taken
}

// settleFact evolves the state by one event, its payload moved to a blob if it is too large. Until the append has
// answered only this batch may see the payload: the version may yet be another's.
func (l *Lane) settleFact(h *Hot, e events.Event, f *flight, o events.Origin) events.Fact {
	v := h.Version + events.Version(len(f.facts)) + 1
	if c, ok := e.(events.Carrier); ok {
		if p := c.Carried(); len(p.Inline) > 0 {
			r := aggregates.Ref{Kind: aggregates.RefPayload, Version: v}
			h.pinned = append(h.pinned, PinnedRef{r, p.Inline})
		}
		kept := f.write.keep(c, h.Stream.Tenant())
		if c, ok := kept.(events.Carrier); ok {
			f.bytes += len(c.Carried().Inline)
		}
		e = kept
	}
	h.State = h.Agg.Evolve(h.State, e, v)
	return events.Fact{Event: e, Origin: o}
}

func (l *Lane) decide(h *Hot, c commands.Command, m commands.Meta) ([]events.Event, error) {
	v := view{h.pinned, l.cfg.Cache, h.Stream}
	if need := h.Agg.Needs(h.State, c, m); len(need) > 0 {
		lacks := need[:0:0]
		for _, r := range need {
			if _, ok := v.Get(r); !ok {
				lacks = append(lacks, r)
			}
		}
		if len(lacks) > 0 {
			return nil, &aggregates.Missing{Refs: lacks}
		}
	}
	return Decide(h.Agg, h.State, c, m, v)
}

func (l *Lane) park(h *Hot, m *Machine, meta commands.Meta, fault string, out *LaneOut) {
	out.Parked = append(out.Parked, Parked{Stream: h.Stream, Command: m.Command, Meta: meta, Fault: fault})
}

// launch makes the batch an append. An event carries its own origin only when the envelope's is not its.
func (l *Lane) launch(f *flight, at events.Time, out *LaneOut) {
	h := f.hot
	env := &events.Envelope{Actor: l.cfg.Actor, OccurredAt: at}
	if one := f.soleOrigin(); one != nil {
		env.Actor, env.Cause = one.Actor, one.Cause
		for i := range f.facts {
			f.facts[i].Origin = events.Origin{}
		}
	}
	w, err := packEvolved(&h.Loaded, h.Agg, l.cfg.Codec, f.facts, env, l.cfg.IDs.NewID(), l.cfg.Fence)
	if err != nil { // an event that cannot be encoded is a fault of ours: nothing of the batch happens
		for i := range f.machines {
			l.park(h, &f.machines[i], commands.Meta{Tenant: h.Stream.Tenant(), At: at}, err.Error(), out)
		}
		h.stale = true
		l.mark(h)
		return
	}
	w.Blobs = f.write.Blobs
	f.write = w
	l.tag++
	l.fly[l.tag] = f
	h.fly = f
	l.stats.Appends++
	l.stats.Events += int64(len(f.facts))
	l.stats.Bytes += int64(len(w.Append.Envelope) + len(w.Append.Events) + len(w.Append.Head.Snapshot))
	out.Writes = append(out.Writes, Tagged{l.tag, w})
}

// soleOrigin returns the origin that all events share, or nil.
func (f *flight) soleOrigin() *events.Origin {
	for i := range f.facts {
		if f.facts[i].Origin != f.facts[0].Origin {
			return nil
		}
	}
	return &f.facts[0].Origin
}

func (l *Lane) settle(f *flight, out *LaneOut) {
	for i, m := range f.machines {
		out.Settled = append(out.Settled, Settled{Hot: f.hot, Machine: m, Events: f.yields[i]})
	}
}

// publish lets everybody see the payloads that are now in the log.
func (l *Lane) publish(f *flight) {
	for i := range f.facts {
		if c, ok := f.facts[i].Event.(events.Carrier); ok {
			if p := c.Carried(); len(p.Inline) > 0 {
				l.cfg.Cache.PutPayload(f.hot.Stream, f.first+events.Version(i), p.Inline)
			}
		}
	}
}

// Answer gives the lane the verdict on a write. Unknown is settled by the very same append. After a conflict, or a
// duplicate behind which anything may stand, the commands are decided again on what the log says.
func (l *Lane) Answer(tag uint64, v events.Verdict, out *LaneOut) {
	f := l.fly[tag]
	if f == nil {
		return
	}
	if v.Kind == events.Unknown {
		out.Writes = append(out.Writes, Tagged{tag, f.write})
		return
	}
	h := f.hot
	delete(l.fly, tag)
	h.fly = nil
	switch v.Kind {
	case events.Appended:
		l.publish(f)
		out.Stored = append(out.Stored, Stored{Hot: h, First: f.first, Facts: f.facts})
		l.settle(f, out)
	case events.Fenced:
		out.Fenced = true
		return
	default:
		l.stats.Conflicts++
		h.queue = append(f.machines, h.queue...)
		h.State, h.Version, h.stale = nil, 0, true
	}
	if len(h.queue) > 0 || h.stale {
		l.mark(h)
	}
}
