package handle_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/schemas"
)

// reach brings a tally to a number, if the tally knows of Since.
type reach struct {
	To, Since int
	Text      string
	Needs     bool
}

func (reach) Validate() error { return nil }

var something = aggregates.Ref{Kind: aggregates.RefBlob, Hash: events.Hash{1}}

// tallies count events.
func tallies() aggregates.Aggregate {
	return aggregates.Decider[*int, reach, events.Event]{
		Category: "tally", Reducer: 1,
		Initial: func() *int { return new(int) },
		Evolve:  func(n *int, _ events.Event, _ events.Version) *int { *n++; return n },
		Open:    func(*int) bool { return true },
		Due:     func(*int) events.Time { return 0 },
		Encode:  func(n *int, b []byte) []byte { return binary.AppendVarint(b, int64(*n)) },
		Decide: func(n *int, c reach, _ commands.Meta, refs aggregates.Refs) ([]events.Event, error) {
			if c.Since > *n {
				return nil, &aggregates.Ahead{Detail: "not so far"}
			}
			if _, ok := refs.Get(something); c.Needs && !ok {
				return nil, &aggregates.Missing{Refs: []aggregates.Ref{something}}
			}
			if *n >= c.To {
				return nil, nil
			}
			return []events.Event{events.CommandParked{Body: events.InlinePayload([]byte(c.Text))}}, nil
		},
	}.Untyped()
}

type seeded struct{ *rand.Rand }

func (s seeded) NewID() (id events.ID) {
	binary.LittleEndian.PutUint64(id[:], s.Uint64())
	return id
}

// lanes is a lane over a log in memory.
type lanes struct {
	t     *testing.T
	store *memory.Store
	agg   aggregates.Aggregate
	codec events.Codec
	refs  *handle.Refs
	h     *handle.Handler
	lane  *handle.Lane
	out   handle.LaneOut
}

const tally events.Stream = "tally/acme/a"

func newLanes(t *testing.T) *lanes {
	l := &lanes{t: t, agg: tallies(), store: memory.NewStore(memory.StoreOptions{
		Clock: func() events.Time { return 1 }, Partitions: 1,
	})}
	codec, err := avro.New(events.Registered(), schemas.Avro())
	if err != nil {
		t.Fatal(err)
	}
	l.codec, l.refs = codec, handle.NewRefs(l.store, codec, memory.NewBlobs(), nil)
	l.h = handle.New(handle.Config{
		Log: l.store, Codec: codec, Refs: l.refs, Aggregates: []aggregates.Aggregate{l.agg}, Partitions: 1,
	})
	dice := seeded{rand.New(rand.NewPCG(1, 2))}
	l.lane = handle.NewLane(handle.LaneConfig{
		Aggregates: []aggregates.Aggregate{l.agg}, Codec: codec, Cache: l.refs, IDs: dice, Rand: dice, Actor: "owner",
	})
	return l
}

// decide returns what the lane wants after it has worked through its commands.
func (l *lanes) decide() handle.LaneOut {
	l.lane.Decide(1, &l.out)
	out := l.out
	l.out = handle.LaneOut{}
	return out
}

func (l *lanes) offer(cs ...reach) handle.LaneOut {
	for _, c := range cs {
		l.lane.Offer(tally, handle.Machine{Command: c, Receipt: 1})
	}
	return l.decide()
}

func (l *lanes) read() handle.Loaded {
	l.t.Helper()
	in, err := l.h.Load(context.Background(), tally)
	if err != nil {
		l.t.Fatal(err)
	}
	return in
}

func (l *lanes) append(w *handle.Write) events.Verdict {
	l.t.Helper()
	var out [1]events.Verdict
	if err := l.store.Append(context.Background(), 0, []*events.Append{w.Append}, out[:]); err != nil {
		l.t.Fatal(err)
	}
	return out[0]
}

// job is a caller's command up to its append.
func (l *lanes) job(c reach, id byte) (*handle.Job, *handle.Write) {
	l.t.Helper()
	j := handle.NewJob(tally, c, commands.Meta{Command: events.ID{id}, Tenant: "acme"}, l.agg, l.codec, l.refs, 1)
	next := j.Loaded(l.read(), 1, 0)
	if next.Write == nil {
		l.t.Fatalf("%+v decides nothing", c)
	}
	return j, next.Write
}

func TestTheLaneHearsOfAnothersAppendWhileItsOwnIsInFlight(t *testing.T) {
	l := newLanes(t)
	l.offer(reach{To: 1})
	l.lane.Take(l.read(), &l.out)
	own := l.decide().Writes[0]
	verdict := l.append(&own.Write)
	j, theirs := l.job(reach{To: 2}, 9)
	j.Answer(l.append(theirs), 1, 0)
	news, ok := j.Fresh()
	if !ok {
		t.Fatal("the job has nothing to hand over")
	}
	l.lane.Take(news, &l.out)
	l.lane.Answer(own.Tag, verdict, &l.out)
	if out := l.decide(); len(out.Loads) != 1 {
		t.Fatalf("the stream is not read again: %+v", out)
	}
	l.lane.Take(l.read(), &l.out)
	if h := l.lane.Hot(tally); !h.Usable() || h.Version != 2 {
		t.Fatalf("version %d", h.Version)
	}
}

func TestACommandAheadOfTheStateIsSettledOnlyOnAReadOfItsOwn(t *testing.T) {
	l := newLanes(t)
	l.lane.Touch(tally, 1)
	l.decide()
	l.lane.Take(l.read(), &l.out) // at version 0, some time ago
	_, theirs := l.job(reach{To: 1}, 9)
	l.append(theirs)
	out := l.offer(reach{To: 2, Since: 1})
	if len(out.Loads) != 1 || len(out.Settled) != 0 {
		t.Fatalf("it was decided on what was read before it came: %+v", out)
	}
	l.lane.Take(l.read(), &l.out)
	if out := l.decide(); len(out.Writes) != 1 {
		t.Fatalf("it decides nothing on the log as it is: %+v", out)
	}

	t.Run("a hand-over is no read", func(t *testing.T) {
		l := newLanes(t)
		l.offer(reach{To: 9, Since: 9})
		l.lane.Take(l.read(), &l.out)
		l.decide()
		j, theirs := l.job(reach{To: 1}, 9)
		j.Answer(l.append(theirs), 1, 0)
		news, _ := j.Fresh()
		l.lane.Take(news, &l.out)
		if out := l.decide(); len(out.Settled) != 0 {
			t.Fatalf("settled: %+v", out.Settled)
		}
	})
	t.Run("one of no log that we know is settled in the end", func(t *testing.T) {
		l := newLanes(t)
		l.offer(reach{To: 9, Since: 9})
		l.lane.Take(l.read(), &l.out)
		l.decide()
		l.lane.Take(l.read(), &l.out)
		if out := l.decide(); len(out.Settled) != 1 {
			t.Fatalf("%+v", out)
		}
	})
}

func TestABatchIsBoundedByItsPayloads(t *testing.T) {
	l := newLanes(t)
	var all []reach
	for i := range 200 {
		all = append(all, reach{To: i + 1, Text: strings.Repeat("x", events.InlineMax)})
	}
	l.offer(all...)
	l.lane.Take(l.read(), &l.out)
	w := l.decide().Writes[0].Write.Append
	if n := len(w.Events); n > 300<<10 || w.N < 2 {
		t.Fatalf("%d events of %d bytes", w.N, n)
	}
}

func TestReferencesThatAnAgentWantsAreReadWhateverIsUnderWay(t *testing.T) {
	l := newLanes(t)
	l.offer(reach{To: 1, Needs: true})
	l.lane.Take(l.read(), &l.out)
	if out := l.decide(); len(out.Refs) != 1 {
		t.Fatalf("%+v", out)
	}
	l.lane.Want(l.lane.Hot(tally), []aggregates.Ref{something}, &l.out)
	l.lane.Resolve(tally, handle.Pinned{{Ref: something, Value: []byte("1")}}, &l.out)
	if len(l.out.Read) != 1 {
		t.Fatal("the agent is not asked again")
	}
}

func TestAnAppendWhoseReplyWasLostIsHandedOverAllTheSame(t *testing.T) {
	l := newLanes(t)
	j, w := l.job(reach{To: 1}, 9)
	l.append(w)
	again := j.Answer(events.Verdict{}, 1, 0)
	if again.Write == nil || again.Write.Append != w.Append {
		t.Fatalf("unknown is not settled by the same append: %+v", again)
	}
	next := j.Answer(l.append(again.Write), 1, 0)
	if !next.Load {
		t.Fatalf("%+v", next)
	}
	if next = j.Loaded(l.read(), 1, 0); !next.Done {
		t.Fatalf("%+v", next)
	}
	out, err := j.Result()
	if err != nil || out.Nothing || out.Version != 1 || out.Position != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if l, ok := j.Fresh(); !ok || l.Version != 1 {
		t.Fatal("nobody tells the owner")
	}
}
