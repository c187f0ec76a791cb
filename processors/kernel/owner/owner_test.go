package owner_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
	"github.com/sluice-platform/sluice/schemas"
)

// add appends one event to a count; closing ends it.
type add struct{ closing bool }

func (add) Validate() error { return nil }

type count struct {
	n    int
	over bool
}

var counts = aggregates.Decider[*count, add, events.Event]{
	Category: "count",
	Initial:  func() *count { return &count{} },
	Evolve: func(c *count, e events.Event, _ events.Version) *count {
		c.n++
		c.over = e.(events.CommandParked).Command == "close"
		return c
	},
	Open:   func(c *count) bool { return c.n > 0 && !c.over },
	Due:    func(*count) events.Time { return 0 },
	Encode: func(*count, []byte) []byte { return nil },
	Decide: func(_ *count, c add, _ commands.Meta, _ aggregates.Refs) ([]events.Event, error) {
		e := events.CommandParked{}
		if c.closing {
			e.Command = "close"
		}
		return []events.Event{e}, nil
	},
}.Untyped()

// agent notes what it is told. It is busy until its first deadline has passed.
type agent struct {
	o    *owner.Owner
	told []string
	done bool
}

func (a *agent) Read(*handle.Hot, events.Time)                  { a.told = append(a.told, "read") }
func (a *agent) Stored(*handle.Hot, []events.Fact, events.Time) { a.told = append(a.told, "stored") }
func (a *agent) Settled(*handle.Hot, handle.Machine, int) bool  { return true }
func (a *agent) Fire(*handle.Hot, events.Time)                  { a.told, a.done = append(a.told, "fire"), true }
func (a *agent) Busy(*handle.Hot) bool                          { return !a.done }
func (a *agent) Flush(events.Time) events.Time                  { return 0 }
func (a *agent) arm(h *handle.Hot, at events.Time)              { a.o.Arm(h, at) }

type dice struct{ n uint64 }

func (d *dice) Uint64() uint64 { d.n++; return d.n }

func (d *dice) NewID() (id events.ID) { id[0] = byte(d.Uint64()); return id }

const stream events.Stream = "count/acme/a"

// rig is an owner whose stream has one event and is in memory.
type rig struct {
	t     *testing.T
	store *memory.Store
	h     *handle.Handler
	o     *owner.Owner
	a     *agent
	out   owner.Out
}

func newRig(t *testing.T) *rig {
	codec, err := avro.New(events.Registered(), schemas.Avro())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: memory.NewStore(memory.StoreOptions{
		Clock: func() events.Time { return 1 }, Partitions: 1,
	})}
	all := []aggregates.Aggregate{counts}
	refs := handle.NewRefs(r.store, codec, memory.NewBlobs(), nil)
	r.h = handle.New(handle.Config{Log: r.store, Codec: codec, Refs: refs, Aggregates: all, Partitions: 1})
	r.o = owner.New(handle.NewLane(handle.LaneConfig{
		Aggregates: all, Codec: codec, Cache: refs, IDs: &dice{}, Rand: &dice{},
	}))
	r.a = &agent{o: r.o}
	r.o.Serve("count", r.a)
	r.step(1, owner.In{Machines: []owner.Offer{offer(false)}})
	r.step(1, owner.In{Loaded: r.loaded()})
	r.store1(r.out.Lane.Writes[0])
	answer := owner.Answer{Tag: r.out.Lane.Writes[0].Tag, Verdict: events.Verdict{Kind: events.Appended}}
	r.step(1, owner.In{Answers: []owner.Answer{answer}})
	r.a.told = nil
	return r
}

func offer(closing bool) owner.Offer {
	return owner.Offer{Stream: stream, Machine: handle.Machine{Command: add{closing}}}
}

func (r *rig) step(now events.Time, in owner.In) {
	r.out = owner.Out{}
	r.o.Step(now, &in, &r.out)
}

func (r *rig) loaded() []handle.Loaded {
	r.t.Helper()
	l, err := r.h.Load(context.Background(), stream)
	if err != nil {
		r.t.Fatal(err)
	}
	return []handle.Loaded{l}
}

func (r *rig) store1(w handle.Tagged) {
	r.t.Helper()
	var out [1]events.Verdict
	err := r.store.Append(context.Background(), 0, []*events.Append{w.Write.Append}, out[:])
	if err != nil || out[0].Kind != events.Appended {
		r.t.Fatal(err, out)
	}
}

func (r *rig) want(told ...string) {
	r.t.Helper()
	if !slices.Equal(r.a.told, told) {
		r.t.Fatalf("the agent was told %q, not %q", r.a.told, told)
	}
}

func TestADeadlineThatPassesWhileAnAppendIsInFlight(t *testing.T) {
	flying := func(t *testing.T) (*rig, handle.Tagged) {
		r := newRig(t)
		r.a.arm(r.o.Lane().Hot(stream), 5)
		r.step(2, owner.In{Machines: []owner.Offer{offer(false)}})
		w := r.out.Lane.Writes[0]
		r.step(6, owner.In{})
		r.want()
		return r, w
	}
	t.Run("is told when the append is stored", func(t *testing.T) {
		r, w := flying(t)
		r.step(7, owner.In{Answers: []owner.Answer{{Tag: w.Tag, Verdict: events.Verdict{Kind: events.Appended}}}})
		r.want("stored", "fire")
	})
	t.Run("is told after a conflict, once the stream has been read", func(t *testing.T) {
		r, w := flying(t)
		r.step(7, owner.In{Answers: []owner.Answer{{Tag: w.Tag, Verdict: events.Verdict{Kind: events.Conflict}}}})
		r.want()
		r.step(8, owner.In{Loaded: r.loaded()})
		r.want("read", "fire")
	})
}

func TestAStreamWhoseLastDeadlineHasPassedIsForgotten(t *testing.T) {
	r := newRig(t)
	r.a.arm(r.o.Lane().Hot(stream), 5)
	r.step(6, owner.In{})
	r.want("fire")
	if n := r.o.Lane().Len(); n != 0 {
		t.Fatalf("%d streams are in memory", n)
	}
	if !slices.Equal(r.out.Forgotten, []events.Stream{stream}) {
		t.Fatalf("forgotten: %v", r.out.Forgotten)
	}
}
