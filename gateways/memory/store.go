package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/sluice-platform/sluice/events"
)

// StoreOptions says what a Store is made of.
type StoreOptions struct {
	Clock      func() events.Time // the only one: recorded_at and ownership are judged by it
	Partitions int                // 0: 4
	ID         events.ID          // of the log; zero: drawn at random

	// BeforeCommit is called before each batch is looked at, with its partition locked; it may block. With an error
	// nothing is stored and the call gets ErrUnknown. Nil costs nothing.
	BeforeCommit func() error
	// AfterCommit is called behind each batch that was stored; it may block. With an error the call gets ErrUnknown.
	AfterCommit func() error
}

// PartitionsDefault is how many partitions a small log has.
const PartitionsDefault = 4

// Store keeps a log in this process and forgets it when the process ends. Given the same calls in the same order it
// gives the same answers: nothing in it depends on chance, and on time only through its clock.
type Store struct {
	opt     StoreOptions
	parts   []*partition
	orphans sync.WaitGroup // appends whose caller has left

	mu          sync.RWMutex // what follows, and what the partitions hold beside their locks
	streams     map[events.Stream]*stream
	incarnation events.Incarnation
	closed      bool
}

// partition is locked from before a batch is looked at until it is stored, so that positions become visible in order.
// Readers do not wait for that lock: they see what is stored.
type partition struct {
	lock    sync.Mutex
	commits []*events.Commit
	end     events.Position
	at      events.Time
	fence   events.Fence
	tenure  events.Tenure // Fence 0: nobody ever owned it
	seals   []events.Seal
	open    map[events.Stream]*stream
	sorted  []*stream // open by name; nil: not known
}

type stream struct {
	head    events.Head
	commits []*events.Commit
}

// NewStore makes an empty log in incarnation 1.
func NewStore(opt StoreOptions) *Store {
	if opt.Partitions == 0 {
		opt.Partitions = PartitionsDefault
	}
	if opt.ID == (events.ID{}) {
		_, _ = rand.Read(opt.ID[:]) // never fails, says its documentation
	}
	s := &Store{opt: opt, streams: map[events.Stream]*stream{}, incarnation: 1}
	for range opt.Partitions {
		s.parts = append(s.parts, &partition{open: map[events.Stream]*stream{}})
	}
	return s
}

// Append implements events.Appender. A context that ends while a hook blocks makes the call unknown.
func (s *Store) Append(ctx context.Context, p events.Partition, batch []*events.Append, out []events.Verdict) error {
	if err := events.CheckBatch(p, len(s.parts), batch, out); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to partition %d: %w", p, err)
	}
	if s.opt.BeforeCommit == nil && s.opt.AfterCommit == nil {
		return s.append(p, batch, out)
	}
	verdicts := make([]events.Verdict, len(batch))
	done := make(chan error, 1)
	s.orphans.Go(func() { done <- s.append(p, batch, verdicts) })
	select {
	case err := <-done:
		copy(out, verdicts)
		return err
	case <-ctx.Done():
		return fmt.Errorf("append to partition %d: %w: %w", p, events.ErrUnknown, ctx.Err())
	}
}

func (s *Store) append(p events.Partition, batch []*events.Append, out []events.Verdict) error {
	part := s.parts[p]
	part.lock.Lock()
	defer part.lock.Unlock()
	if before := s.opt.BeforeCommit; before != nil {
		if err := before(); err != nil {
			return fmt.Errorf("append to partition %d: %w: %w", p, events.ErrUnknown, err)
		}
	}
	if err := s.store(part, batch, out); err != nil {
		return err
	}
	if after := s.opt.AfterCommit; after != nil {
		if err := after(); err != nil {
			return fmt.Errorf("append to partition %d: %w: %w", p, events.ErrUnknown, err)
		}
	}
	return nil
}

func (s *Store) store(part *partition, batch []*events.Append, out []events.Verdict) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return events.ErrClosed
	}
	for _, a := range batch {
		if st := s.streams[a.Stream]; st != nil && st.head.Partition != a.Partition {
			return fmt.Errorf("append to %s: %w: it lives in partition %d, not %d",
				a.Stream, events.ErrInvalidAppend, st.head.Partition, a.Partition)
		}
	}
	part.at = max(part.at, s.opt.Clock())
	for i, a := range batch {
		out[i] = s.judge(part, a)
	}
	return nil
}

// judge answers one append and stores it if nothing stands against it.
func (s *Store) judge(part *partition, a *events.Append) events.Verdict {
	st := s.streams[a.Stream]
	var version events.Version
	if st != nil {
		version = st.head.Version
		if c := st.startingAt(a.Expected + 1); c != nil && c.Command == a.Command {
			return events.Verdict{Kind: events.Duplicate, Version: c.Last(), Position: c.Position, At: c.At}
		}
	}
	switch {
	case a.Fence != 0 && a.Fence < part.fence:
		return events.Verdict{Kind: events.Fenced, Fence: part.fence}
	case a.Expected != version:
		return events.Verdict{Kind: events.Conflict, Version: version}
	}
	if st == nil {
		st = &stream{head: events.Head{Stream: a.Stream, Partition: a.Partition}}
		s.streams[a.Stream] = st
	}
	part.fence = max(part.fence, a.Fence)
	part.end += events.Position(a.N)
	c := &events.Commit{
		Stream: a.Stream, Partition: a.Partition, First: version + 1, N: a.N, Position: part.end,
		Command: a.Command, Fence: a.Fence, At: part.at, Envelope: a.Envelope, Events: a.Events, Hash: a.Hash,
	}
	part.commits = append(part.commits, c)
	st.commits = append(st.commits, c)
	part.move(st, c, &a.Head)
	return events.Verdict{Kind: events.Appended, Version: c.Last(), Position: c.Position, At: c.At}
}

// move brings a stream's head behind c.
func (part *partition) move(st *stream, c *events.Commit, u *events.HeadUpdate) {
	h := &st.head
	if was := h.Open; was != u.Open {
		part.sorted = nil
		if u.Open {
			part.open[h.Stream] = st
		} else {
			delete(part.open, h.Stream)
		}
	}
	h.Version, h.Hash, h.Open, h.Due = c.Last(), c.Hash, u.Open, u.Due
	if u.Snapshot != nil {
		h.Snapshot, h.SnapshotAt = u.Snapshot, h.Version
	}
}

// startingAt returns the commit whose first event is v, or nil.
func (st *stream) startingAt(v events.Version) *events.Commit {
	n := len(st.commits)
	if v > st.head.Version {
		return nil
	}
	i := sort.Search(n, func(i int) bool { return st.commits[i].First >= v })
	if i == n || st.commits[i].First != v {
		return nil
	}
	return st.commits[i]
}

// Close ends the store: every later call gets ErrClosed. It waits for appends whose callers have left. Repeating it
// is safe.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.orphans.Wait()
	return nil
}

// Clone copies the log as it is now into a store of its own, open and with the same options: a backup, to be put
// back later.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := NewStore(s.opt)
	to.incarnation = s.incarnation
	for name, st := range s.streams {
		to.streams[name] = &stream{head: st.head, commits: slices.Clone(st.commits)}
	}
	for i, from := range s.parts {
		p := to.parts[i]
		p.commits, p.seals = slices.Clone(from.commits), slices.Clone(from.seals)
		p.end, p.at, p.fence, p.tenure = from.end, from.at, from.fence, from.tenure
		for name := range from.open {
			p.open[name] = to.streams[name]
		}
	}
	return to
}

// SetIncarnation says that the log was restored, promoted or imported.
func (s *Store) SetIncarnation(i events.Incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incarnation = i
}
