package handle_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/processors/kernel/sealer"
)

// stored is a good log in a real store, sealed by its sealer, and an audit of it.
func stored(t *testing.T) (*memory.Store, handle.Audit) {
	t.Helper()
	ctx, s := context.Background(), newShelf(t)
	now := start
	log := memory.NewStore(memory.StoreOptions{
		Clock: func() events.Time { now++; return now }, Partitions: 2, ID: s.info.ID,
	})
	s.told = func(c events.Commit, h events.Head) {
		a := events.Append{
			Stream: c.Stream, Partition: c.Partition, Expected: c.First - 1, Command: c.Command, N: c.N,
			Envelope: c.Envelope, Events: c.Events, Hash: c.Hash, Head: events.HeadUpdate{Open: h.Open, Due: h.Due},
		}
		if h.SnapshotAt == c.Last() {
			a.Head.Snapshot = h.Snapshot
		}
		var v [1]events.Verdict
		if err := log.Append(ctx, c.Partition, []*events.Append{&a}, v[:]); err != nil || v[0].Kind != events.Appended {
			t.Fatal(v[0].Kind, err)
		}
	}
	one := body(t, 7)
	for i := range 2500 {
		p := events.Partition(i % 2)
		s.append(t, p, events.Stream([]string{"order/acme/a", "order/acme/b"}[p]), 1, one, one)
	}
	info, err := log.Log(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for p := range events.Partition(2) {
		tail, err := log.Tail(ctx, p, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		out, err := sealer.New(info, p, events.Seal{}, s.pair).Step(now+1e9, tail)
		if err != nil || len(out.Seals) != 1 {
			t.Fatal(out, err)
		}
		if err := log.PutSeal(ctx, out.Seals[0]); err != nil {
			t.Fatal(err)
		}
	}
	a := s.audit(t)
	a.Log, a.Seals = log, log
	return log, a
}

// tampered reads a store whose commits somebody has changed.
type tampered struct {
	*memory.Store
	harm func(*events.Commit)
}

func (r tampered) Tail(ctx context.Context, p events.Partition, after events.Position, n int) ([]events.Commit, error) {
	cs, err := r.Store.Tail(ctx, p, after, n)
	for i := range cs {
		r.harm(&cs[i])
	}
	return cs, err
}

func TestVerifyOfAStore(t *testing.T) {
	log, a := stored(t)
	t.Run("a log written through a store, page after page, has no findings", func(t *testing.T) {
		want := handle.AuditCounts{
			Commits: 2500, Events: 5000, Streams: 2, Seals: 2, Blobs: 10_000, Refolded: 2, Snapshots: 2,
		}
		if r := verify(t, a); !r.OK() || r.Counts != want {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("one byte changed on the way out is named", func(t *testing.T) {
		a := a
		a.Log = tampered{log, func(c *events.Commit) {
			if c.Position == 2400 && c.Partition == 1 {
				c.Events[17] ^= 1
			}
		}}
		if got := shorts(verify(t, a)); !slices.Equal(got, []string{"hash_chain order/acme/b 2399-2400"}) {
			t.Fatal(got)
		}
	})
}
