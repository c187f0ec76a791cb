package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

// read locks the store for reading. The caller unlocks it unless there is an error.
func (s *Store) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return events.ErrClosed
	}
	return nil
}

func (s *Store) partition(p events.Partition) (*partition, error) {
	if p < 0 || int(p) >= len(s.parts) {
		return nil, fmt.Errorf("there is no partition %d among %d", p, len(s.parts))
	}
	return s.parts[p], nil
}

// Head implements events.Reader.
func (s *Store) Head(ctx context.Context, name events.Stream) (events.Head, error) {
	if err := s.read(ctx); err != nil {
		return events.Head{}, err
	}
	defer s.mu.RUnlock()
	st := s.streams[name]
	if st == nil {
		return events.Head{}, fmt.Errorf("head of %.80q: %w", string(name), events.ErrNoStream)
	}
	h := st.head
	h.Snapshot = bytes.Clone(h.Snapshot)
	return h, nil
}

// Commits implements events.Reader.
func (s *Store) Commits(ctx context.Context, name events.Stream, after events.Version,
	most int,
) ([]events.Commit, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	st := s.streams[name]
	if st == nil {
		return nil, nil
	}
	i := sort.Search(len(st.commits), func(i int) bool { return st.commits[i].First > after })
	return page(st.commits[i:], most), nil
}

// CommitAt implements events.Reader.
func (s *Store) CommitAt(ctx context.Context, name events.Stream, v events.Version) (events.Commit, error) {
	if err := s.read(ctx); err != nil {
		return events.Commit{}, err
	}
	defer s.mu.RUnlock()
	st := s.streams[name]
	if st == nil || v < 1 || v > st.head.Version {
		return events.Commit{}, fmt.Errorf("%.80q at version %d: %w", string(name), v, events.ErrNoStream)
	}
	i := sort.Search(len(st.commits), func(i int) bool { return st.commits[i].Last() >= v })
	return own(st.commits[i]), nil
}

// Tail implements events.Reader.
func (s *Store) Tail(ctx context.Context, p events.Partition, after events.Position,
	most int,
) ([]events.Commit, error) {
	part, err := s.partition(p)
	if err != nil {
		return nil, err
	}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	i := sort.Search(len(part.commits), func(i int) bool { return part.commits[i].Position > after })
	return page(part.commits[i:], most), nil
}

// page copies at most most commits.
func page(from []*events.Commit, most int) []events.Commit {
	n := max(0, min(most, len(from)))
	if n == 0 {
		return nil
	}
	out := make([]events.Commit, n)
	for i := range out {
		out[i] = own(from[i])
	}
	return out
}

// own copies a commit, its bytes too: they are the caller's.
func own(c *events.Commit) events.Commit {
	mine := *c
	both := make([]byte, len(c.Envelope)+len(c.Events))
	n := copy(both, c.Envelope)
	copy(both[n:], c.Events)
	mine.Envelope, mine.Events = both[:n:n], both[n:]
	return mine
}

// OpenHeads implements events.Reader.
func (s *Store) OpenHeads(ctx context.Context, p events.Partition, after events.Stream,
	most int,
) ([]events.Head, error) {
	part, err := s.partition(p)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock() // the order by name is made here, when it is asked for
	defer s.mu.Unlock()
	if s.closed {
		return nil, events.ErrClosed
	}
	if part.sorted == nil {
		for _, st := range part.open {
			part.sorted = append(part.sorted, st)
		}
		slices.SortFunc(part.sorted, func(a, b *stream) int {
			return strings.Compare(string(a.head.Stream), string(b.head.Stream))
		})
	}
	i := sort.Search(len(part.sorted), func(i int) bool { return part.sorted[i].head.Stream > after })
	var out []events.Head
	for _, st := range part.sorted[i:min(len(part.sorted), i+max(0, most))] {
		h := st.head
		h.Snapshot = nil
		out = append(out, h)
	}
	return out, nil
}

// End implements events.Reader.
func (s *Store) End(ctx context.Context, p events.Partition) (events.Position, events.Fence, error) {
	part, err := s.partition(p)
	if err != nil {
		return 0, 0, err
	}
	if err := s.read(ctx); err != nil {
		return 0, 0, err
	}
	defer s.mu.RUnlock()
	return part.end, part.fence, nil
}

// Log implements events.Reader.
func (s *Store) Log(ctx context.Context) (events.LogInfo, error) {
	if err := s.read(ctx); err != nil {
		return events.LogInfo{}, err
	}
	defer s.mu.RUnlock()
	return events.LogInfo{
		ID: s.opt.ID, Incarnation: s.incarnation, Partitions: len(s.parts),
		Features: events.Features{PositionAtAppend: true, FenceScope: "partition"},
	}, nil
}
