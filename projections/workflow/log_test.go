package workflow_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/schemas"
)

func codec(t testing.TB) events.Codec {
	t.Helper()
	c, err := avro.New(events.Registered(), schemas.Avro())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chronicle writes facts of executions into a store.
type chronicle struct {
	testing.TB
	codec    events.Codec
	store    events.Store
	parts    int
	versions map[events.Stream]events.Version
	heads    map[events.Stream]events.Hash
	n        uint64
	batches  map[events.Partition][]*events.Append
}

func newChronicle(t testing.TB, s events.Store, parts int) *chronicle {
	return &chronicle{
		TB: t, codec: codec(t), store: s, parts: parts, versions: map[events.Stream]events.Version{},
		heads: map[events.Stream]events.Hash{}, batches: map[events.Partition][]*events.Append{},
	}
}

func stream(tenant, id string) events.Stream { return events.StreamOf("execution", tenant, id) }

// add queues one commit; flush appends what is queued.
func (c *chronicle) add(s events.Stream, correlation string, facts ...events.Event) {
	c.Helper()
	var frames []byte
	var err error
	for _, e := range facts {
		if frames, err = events.AppendFrame(frames, events.Fact{Event: e}, c.codec); err != nil {
			c.Fatal(err)
		}
	}
	a := &events.Append{
		Stream: s, Partition: events.PartitionOf(s, c.parts), Expected: c.versions[s], N: len(facts), Events: frames,
		Envelope: (&events.Envelope{Actor: "ann", Correlation: correlation}).Append(nil),
	}
	c.n++
	binary.LittleEndian.PutUint64(a.Command[:], c.n)
	a.Hash = events.Chain(c.heads[s], s, a.Expected+1, a.N, a.Envelope, a.Events)
	c.heads[s] = a.Hash
	c.versions[s] += events.Version(len(facts))
	c.batches[a.Partition] = append(c.batches[a.Partition], a)
	if len(c.batches[a.Partition]) == 200 {
		c.flush(a.Partition)
	}
}

func (c *chronicle) flush(p events.Partition) {
	c.Helper()
	batch := c.batches[p]
	c.batches[p] = nil
	if len(batch) == 0 {
		return
	}
	out := make([]events.Verdict, len(batch))
	if err := c.store.Append(context.Background(), p, batch, out); err != nil {
		c.Fatal(err)
	}
	for i, v := range out {
		if v.Kind != events.Appended {
			c.Fatalf("%s at %d: %v", batch[i].Stream, batch[i].Expected, v)
		}
	}
}

func (c *chronicle) flushAll() {
	c.Helper()
	for p := range c.parts {
		c.flush(events.Partition(p))
	}
}

func submission(workflow string, version int64) events.ExecutionSubmitted {
	return events.ExecutionSubmitted{Workflow: workflow, Version: version, Tasks: 5, Class: "standard"}
}

// world is a store with live views of both models.
type world struct {
	*chronicle
	ports projections.Ports
	clock events.Time
	views map[string]projections.View
}

const worldParts = 3

func newWorld(t *testing.T) *world {
	w := &world{views: map[string]projections.View{}, clock: 1_000}
	store := memory.NewStore(memory.StoreOptions{Partitions: worldParts, Clock: func() events.Time { return w.clock }})
	w.chronicle = newChronicle(t, store, worldParts)
	w.ports = projections.Ports{Log: store, Views: memory.NewViews()}
	return w
}

// live makes a view of m that answers, folded from the log as it is.
func live(t testing.TB, ports projections.Ports, c events.Codec, m projections.Model, parts int) projections.View {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.Check())
	v, err := ports.Views.Begin(ctx, m)
	must(err)
	at, parked := map[events.Partition]events.Checkpoint{}, []projections.Parked(nil)
	for p := range events.Partition(parts) {
		end, _, err := ports.Log.End(ctx, p)
		must(err)
		f, err := ports.Fold(ctx, v, p, c, end, func(int64) {})
		must(err)
		at[p], parked = f.At, append(parked, f.Parked...)
	}
	must(ports.Views.Loaded(ctx, v, at, parked))
	must(ports.Views.Swap(ctx, v))
	return v
}

// feed brings the live views up to the log.
func (w *world) feed(ms ...projections.Model) {
	w.Helper()
	w.flushAll()
	for _, m := range ms {
		if _, ok := w.views[m.Name]; !ok {
			w.views[m.Name] = live(w, w.ports, w.codec, m, w.parts)
		}
		for p := range events.Partition(w.parts) {
			if err := w.ports.CatchUp(context.Background(), w.views[m.Name], p, w.codec); err != nil {
				w.Fatal(err)
			}
		}
	}
}

func (w *world) list(m projections.Model, table, tenant string, where map[string]any) []projections.Row {
	w.Helper()
	p, err := w.ports.Views.List(context.Background(), m, table, projections.Query{Tenant: tenant, Where: where, Limit: 500})
	if err != nil {
		w.Fatal(err)
	}
	if p.Incomplete > 0 || p.More {
		w.Fatalf("incomplete: %d, more: %v", p.Incomplete, p.More)
	}
	return p.Rows
}

func show(r projections.Row) string { return fmt.Sprint([]any(r)...) }
