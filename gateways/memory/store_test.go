package memory

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/events/storetest"
)

var _ events.Store = (*Store)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, o StoreOptions) *Store {
	s := NewStore(o)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Config{Open: func(t *testing.T, o storetest.Options) storetest.Harness {
		s := openStore(t, StoreOptions{
			Clock: o.Clock, Partitions: o.Partitions, BeforeCommit: o.BeforeCommit, AfterCommit: o.AfterCommit,
		})
		return storetest.Harness{
			Store: s,
			Reopen: func(t *testing.T) events.Store { // what a process keeps, it can only copy
				s.Close()
				s = s.Clone()
				t.Cleanup(func() { s.Close() })
				return s
			},
			Peer: func(*testing.T) (events.Store, error) { return s, nil },
		}
	}})
}

// TestStoreByOtherMeans holds the same store to what the suite asks of an adapter that can do less.
func TestStoreByOtherMeans(t *testing.T) {
	storetest.Run(t, storetest.Config{Rounds: 100, Open: func(t *testing.T, o storetest.Options) storetest.Harness {
		clock := func() events.Time { return events.TimeOf(time.Now()) }
		return storetest.Harness{
			Store:    openStore(t, StoreOptions{Clock: clock, Partitions: o.Partitions}),
			Features: storetest.Features{OwnClock: true, NoHooks: true, Forgets: true, OneProcess: true},
		}
	}})
}

func TestClone(t *testing.T) {
	s := openStore(t, StoreOptions{Clock: func() events.Time { return 1 }, ID: events.ID{1}})
	add := func(s *Store, expected events.Version, c byte) events.Verdict {
		t.Helper()
		out := make([]events.Verdict, 1)
		a := events.Append{Stream: "a/b/c", Expected: expected, Command: events.ID{c}, N: 1, Events: []byte{c}}
		a.Head.Open = expected == 0
		if err := s.Append(t.Context(), 0, []*events.Append{&a}, out); err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	add(s, 0, 1)
	old := s.Clone()
	add(s, 1, 2)
	t.Run("an older copy goes on from where it was made, apart from the original", func(t *testing.T) {
		if v := add(old, 1, 3); v.Kind != events.Appended || v.Version != 2 {
			t.Errorf("the copy says %v", v)
		}
		one, _ := s.CommitAt(t.Context(), "a/b/c", 2)
		two, _ := old.CommitAt(t.Context(), "a/b/c", 2)
		if one.Command != (events.ID{2}) || two.Command != (events.ID{3}) {
			t.Errorf("the original holds %s, the copy %s", one.Command, two.Command)
		}
		if open, _ := old.OpenHeads(t.Context(), 0, "", 10); len(open) != 0 {
			t.Errorf("the copy has %d open heads", len(open))
		}
	})
	t.Run("a copy keeps the log's id; its incarnation is set by who puts it back", func(t *testing.T) {
		old.SetIncarnation(2)
		one, _ := s.Log(t.Context())
		two, _ := old.Log(t.Context())
		if one.ID != two.ID || one.Incarnation != 1 || two.Incarnation != 2 {
			t.Errorf("the original is %+v, the copy %+v", one, two)
		}
	})
}

// BenchmarkStore appends one event to one of 1,000 streams, in batches of 16, and reads it back by the tail.
func BenchmarkStore(b *testing.B) {
	s := NewStore(StoreOptions{Clock: func() events.Time { return 1 }, Partitions: 1})
	streams := make([]events.Stream, 1000)
	for i := range streams {
		streams[i] = events.StreamOf("execution", "acme", fmt.Sprint(i))
	}
	versions := make([]events.Version, len(streams))
	envelope, body := make([]byte, 100), make([]byte, 300)
	out := make([]events.Verdict, 16)
	b.ReportAllocs()
	seen := events.Position(0)
	for n := 0; n < b.N; n += len(out) {
		batch := make([]*events.Append, len(out))
		for i := range batch {
			k := (n + i) % len(streams)
			batch[i] = &events.Append{
				Stream: streams[k], Expected: versions[k], Command: events.ID{1, byte(n), byte(n >> 8), byte(n >> 16), byte(i)},
				N: 1, Envelope: envelope, Events: body,
			}
			versions[k]++
		}
		if err := s.Append(b.Context(), 0, batch, out); err != nil || out[15].Kind != events.Appended {
			b.Fatal(err, out[15])
		}
		page, err := s.Tail(b.Context(), 0, seen, 100)
		if err != nil || len(page) != len(batch) {
			b.Fatal(err, len(page))
		}
		seen = page[len(page)-1].Position
	}
}
