package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

// model is what the callers of a store know: what they have asked, and what was acknowledged.
type model struct {
	mu    sync.Mutex
	asked map[events.ID]*events.Append
	acked map[events.ID]events.Verdict
	next  uint64
}

func newModel() *model {
	return &model{asked: map[events.ID]*events.Append{}, acked: map[events.ID]events.Verdict{}}
}

// append makes an append to a stream that is at version v with hash prev.
func (m *model) append(r *rand.Rand, s events.Stream, p events.Partition, v events.Version,
	prev events.Hash,
) *events.Append {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	a := &events.Append{
		Stream: s, Partition: p, Expected: v, Command: events.Derive("model", fmt.Sprint(m.next)), N: 1 + r.IntN(3),
		Envelope: fmt.Appendf(nil, "envelope %d", m.next), Events: make([]byte, 1+r.IntN(3000)),
		Head: events.HeadUpdate{Open: r.IntN(2) == 0, Due: events.Time(r.IntN(3))},
	}
	for i := range a.Events {
		a.Events[i] = byte(r.Uint32())
	}
	if r.IntN(10) == 0 {
		a.Head.Snapshot = make([]byte, r.IntN(2*snapshotInlineMax))
	}
	a.Hash = events.Chain(prev, s, v+1, a.N, a.Envelope, a.Events)
	m.asked[a.Command] = a
	return a
}

func (m *model) ack(a *events.Append, v events.Verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[a.Command] = v
}

// run has a caller append to its own streams until an error other than ErrUnknown, or n times. An append whose outcome
// is unknown is submitted again, as the write path does, at most three times.
func (m *model) run(ctx context.Context, s *Store, r *rand.Rand, caller, n int) error {
	for i := range n {
		name := events.Stream(fmt.Sprintf("order/acme/%d-%d", caller, r.IntN(4)))
		h, err := s.Head(ctx, name)
		if err != nil && !errors.Is(err, events.ErrNoStream) {
			return err
		}
		a := m.append(r, name, events.PartitionOf(name, PartitionsDefault), h.Version, h.Hash)
		out := make([]events.Verdict, 1)
		for range 4 {
			if err = s.Append(ctx, a.Partition, []*events.Append{a}, out); !errors.Is(err, events.ErrUnknown) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("append %d: %w", i, err)
		}
		if k := out[0].Kind; k != events.Appended && k != events.Duplicate {
			return fmt.Errorf("append %d to %s at %d: %s", i, name, a.Expected, k)
		}
		m.ack(a, out[0])
	}
	return nil
}

// check holds the log to the promises of DESIGN §3: positions and versions are gapless, hashes chain, heads say what
// the commits say; every acknowledged append is there, and nothing that was not asked for, whole.
func (m *model) check(ctx context.Context, s *Store) error {
	stored, err := audit(ctx, s)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range stored {
		a := m.asked[id]
		if a == nil || c.Stream != a.Stream || c.First != a.Expected+1 || c.N != a.N || c.Hash != a.Hash {
			return fmt.Errorf("%s holds at version %d what nobody asked for", c.Stream, c.First)
		}
	}
	for id, v := range m.acked {
		c, ok := stored[id]
		if !ok || c.Position != v.Position || c.Last() != v.Version || c.At != v.At {
			return fmt.Errorf("acknowledged at position %d and not there: %s at version %d (it is at position %d)",
				v.Position, m.asked[id].Stream, v.Version, c.Position)
		}
	}
	return nil
}

// audit checks what needs no knowledge of what was asked.
func audit(ctx context.Context, s *Store) (map[events.ID]events.Commit, error) {
	stored := map[events.ID]events.Commit{}
	last := map[events.Stream]events.Commit{}
	for p := range events.Partition(s.info.Partitions) {
		var seen events.Position
		for {
			page, err := s.Tail(ctx, p, seen, 100)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				before := last[c.Stream]
				switch {
				case c.Before() != seen:
					return nil, fmt.Errorf("partition %d goes on from %d at %d", p, seen, c.Before()+1)
				case c.First != before.Last()+1 && before.N > 0 || before.N == 0 && c.First != 1:
					return nil, fmt.Errorf("%s goes on at version %d", c.Stream, c.First)
				case events.Chain(before.Hash, c.Stream, c.First, c.N, c.Envelope, c.Events) != c.Hash:
					return nil, fmt.Errorf("the hash of %s at version %d is another", c.Stream, c.First)
				}
				seen, last[c.Stream], stored[c.Command] = c.Position, c, c
			}
		}
		end, _, err := s.End(ctx, p)
		if err != nil || end != seen {
			return nil, fmt.Errorf("partition %d ends at %d, not %d: %w", p, seen, end, err)
		}
	}
	for name, c := range last {
		h, err := s.Head(ctx, name)
		if err != nil || h.Version != c.Last() || h.Hash != c.Hash || h.Partition != c.Partition || h.SnapshotAt > h.Version {
			return nil, fmt.Errorf("the head of %s is at %d, its last commit at %d, or the hash differs: %w", name, h.Version,
				c.Last(), err)
		}
	}
	return stored, nil
}

// rounds is how often a random test is run: a few times, or as SLUICE_SOAK_ROUNDS says.
func rounds(t *testing.T, few int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("SLUICE_SOAK_ROUNDS"))
	if err != nil {
		return few
	}
	t.Logf("%d rounds", n)
	return n
}
