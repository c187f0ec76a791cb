package projections

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// fold applies the events of one partition, in order, to rows in memory, and parks the streams it cannot apply.
// It is the part that runner and rebuild share: the same events give the same rows, whoever asks.
type fold struct {
	model  *Model
	codec  events.Codec
	rows   *rows
	parked map[events.Stream]*Parked
	// touched are streams whose parking the batch under way changes, in order of first change.
	touched    []events.Stream
	isTouched  map[events.Stream]bool
	categories map[string]bool
	types      map[events.Type]bool // nil: every type
	applied    int64                // events that Apply took, for counts
}

func newFold(m *Model, codec events.Codec) *fold {
	f := &fold{
		model: m, codec: codec, rows: newRows(m),
		parked: map[events.Stream]*Parked{}, isTouched: map[events.Stream]bool{}, categories: map[string]bool{},
	}
	for _, c := range m.Categories {
		f.categories[c] = true
	}
	if len(m.Types) > 0 {
		f.types = map[events.Type]bool{}
		for _, t := range m.Types {
			f.types[t] = true
		}
	}
	return f
}

// commit applies one commit's events from version from on (0: all of them). When rows are missing it stops, says at
// which version, and gathers the keys in rows.missed; the caller fills them and calls again from there.
func (f *fold) commit(c *events.Commit, from events.Version) (stopped events.Version) {
	if !f.categories[c.Stream.Category()] {
		return 0
	}
	if p := f.parked[c.Stream]; p != nil {
		f.wait(p, int64(c.Last()-max(from, c.First)+1))
		return 0
	}
	var env *events.Envelope
	rest := c.Events
	for v := c.First; v <= c.Last(); v++ {
		frame, after, err := events.NextFrame(rest)
		if rest = after; err != nil {
			f.park(c, v, ParkDamaged, err.Error())
			return 0
		}
		if v < from {
			continue
		}
		if !f.wants(frame.Type) {
			if events.SchemaOf(frame.Type) == 0 {
				f.park(c, v, ParkUnknownSchema, string(frame.Type))
				return 0
			}
			continue
		}
		if env == nil {
			if env, err = events.ParseEnvelope(c.Envelope); err != nil {
				f.park(c, v, ParkDamaged, err.Error())
				return 0
			}
		}
		if ok, miss := f.event(c, v, &frame, env); miss {
			return v
		} else if !ok {
			return 0
		}
	}
	return 0
}

func (f *fold) wants(t events.Type) bool {
	return f.types[t] || f.types == nil && events.SchemaOf(t) > 0
}

// event applies one event. Not ok: the stream is parked now. A miss changes nothing.
func (f *fold) event(c *events.Commit, v events.Version, frame *events.Frame, env *events.Envelope) (ok, miss bool) {
	r, err := f.record(c, v, frame, env)
	if err != nil {
		reason := ParkDamaged
		if errors.Is(err, events.ErrUnknownEvent) {
			reason = ParkUnknownSchema
		}
		f.park(c, v, reason, err.Error())
		return false, false
	}
	f.rows.miss = false
	changes, panicked := f.apply(r)
	if f.rows.miss {
		return false, true
	}
	if panicked != nil {
		f.park(c, v, ParkPanic, fmt.Sprint(panicked))
		return false, false
	}
	if err := f.model.CheckChanges(changes); err != nil {
		f.park(c, v, ParkWrongRow, err.Error())
		return false, false
	}
	f.rows.put(changes)
	f.applied++
	return true, false
}

func (f *fold) record(
	c *events.Commit, v events.Version, frame *events.Frame, env *events.Envelope,
) (events.Recorded, error) {
	e, err := f.codec.Decode(frame.Type, frame.Schema, frame.Body)
	r := events.Recorded{
		Stream: c.Stream, Version: v, Partition: c.Partition, Position: c.Before() + events.Position(v-c.First) + 1,
		At: c.At, Command: c.Command, Actor: env.Actor, Cause: env.Cause, Commit: env,
		Type: frame.Type, Schema: frame.Schema, Event: e, Body: frame.Body,
	}
	if o := frame.Origin; o != (events.Origin{}) {
		r.Command, r.Actor, r.Cause = o.Command, o.Actor, o.Cause
	}
	return r, err
}

// scout applies a commit's events only to learn which rows they will ask for; nothing else comes of it.
func (f *fold) scout(c *events.Commit, from events.Version) {
	if !f.categories[c.Stream.Category()] || f.parked[c.Stream] != nil {
		return
	}
	env, err := events.ParseEnvelope(c.Envelope)
	rest := c.Events
	for v := c.First; v <= c.Last() && err == nil; v++ {
		var frame events.Frame
		if frame, rest, err = events.NextFrame(rest); err != nil || v < from || !f.wants(frame.Type) {
			continue
		}
		var r events.Recorded
		if r, err = f.record(c, v, &frame, env); err == nil {
			f.apply(r)
		}
	}
}

func (f *fold) apply(r events.Recorded) (changes []Change, panicked any) {
	defer func() { panicked = recover() }()
	return f.model.Apply(r, f.rows.get), nil
}

// detailMax bounds what is kept of a failure's words, in bytes.
const detailMax = 500

func (f *fold) park(c *events.Commit, v events.Version, why ParkReason, detail string) {
	p := &Parked{
		Stream: c.Stream, Version: v, Position: c.Before() + events.Position(v-c.First) + 1, Part: c.Partition,
		Reason: why, Detail: detail[:min(len(detail), detailMax)],
	}
	f.parked[c.Stream] = p
	f.wait(p, int64(c.Last()-v+1))
}

func (f *fold) wait(p *Parked, n int64) {
	p.Waiting += n
	f.touch(p.Stream)
}

func (f *fold) touch(s events.Stream) {
	if !f.isTouched[s] {
		f.isTouched[s] = true
		f.touched = append(f.touched, s)
	}
}

// parking is what the batch under way changes about parked streams.
func (f *fold) parking() (park []Parked, unpark []events.Stream) {
	for _, s := range f.touched {
		if p := f.parked[s]; p != nil {
			park = append(park, *p)
		} else {
			unpark = append(unpark, s)
		}
	}
	return park, unpark
}

// parkedStreams lists them by name.
func (f *fold) parkedStreams() []events.Stream { return slices.Sorted(maps.Keys(f.parked)) }

// committed says that the view has all changes of the batch under way.
func (f *fold) committed() {
	f.rows.committed()
	f.touched = f.touched[:0]
	clear(f.isTouched)
}

// reset drops all state, and takes the parked streams that the view has.
func (f *fold) reset(parked []Parked) {
	f.rows.forget()
	f.touched = f.touched[:0]
	clear(f.isTouched)
	clear(f.parked)
	for i := range parked {
		p := parked[i]
		f.parked[p.Stream] = &p
	}
}
