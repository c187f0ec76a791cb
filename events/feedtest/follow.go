package feedtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// follower reads one partition as every consumer must: it takes a commit only when its first event is at seen + 1,
// drops what lies at or below seen, and turns to the store for a hole.
type follower struct {
	p      events.Partition
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	seen     events.Position
	versions map[events.Stream]events.Version
	moved    chan struct{} // closed when seen moves
}

// follow starts a reader that ends with the test.
func (f *fixture) follow(p events.Partition) *follower {
	ctx, cancel := context.WithCancel(f.Context())
	r := &follower{
		p: p, cancel: cancel, done: make(chan struct{}), versions: map[events.Stream]events.Version{},
		moved: make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		if err := r.run(ctx, f); err != nil && ctx.Err() == nil {
			f.Error(err)
		}
	}()
	f.Cleanup(r.stop)
	return r
}

func (r *follower) stop() {
	r.cancel()
	<-r.done
}

func (r *follower) run(ctx context.Context, f *fixture) error {
	for ctx.Err() == nil {
		page, err := f.Feed.Read(ctx, r.p, r.position(), 100)
		if err != nil {
			return err
		}
		before := r.position()
		for i := range page {
			if page[i].Before() > r.position() {
				if err := r.fill(ctx, f, page[i].Before()); err != nil {
					return err
				}
			}
			if err := r.take(&page[i]); err != nil {
				return err
			}
		}
		if r.position() == before {
			if err := f.Feed.Wait(ctx, r.p, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill takes what the feed left out from the store.
func (r *follower) fill(ctx context.Context, f *fixture, upto events.Position) error {
	for r.position() < upto {
		page, err := f.veil.Tail(ctx, r.p, r.position(), 100)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.take(&page[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *follower) take(c *events.Commit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case c.Partition != r.p:
		return fmt.Errorf("a commit of partition %d in the feed of %d", c.Partition, r.p)
	case c.Position <= r.seen:
		return nil // a repeat
	case c.Before() != r.seen:
		return nil // a hole that the store has not filled yet
	case c.First != r.versions[c.Stream]+1:
		return fmt.Errorf("%s goes on from version %d at %d", c.Stream, r.versions[c.Stream], c.First)
	}
	r.seen = c.Position
	r.versions[c.Stream] = c.Last()
	close(r.moved)
	r.moved = make(chan struct{})
	return nil
}

func (r *follower) position() events.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// until waits for the reader to have seen a position. Each commit must come within one poll of the last one, the first
// of since; what has begun is delivered at once.
func (r *follower) until(f *fixture, want events.Position, since time.Time) {
	f.Helper()
	late := time.NewTimer(pollMax + f.slack - time.Since(since))
	defer late.Stop()
	for {
		r.mu.Lock()
		seen, moved := r.seen, r.moved
		r.mu.Unlock()
		if seen >= want {
			return
		}
		select {
		case <-moved:
			late.Reset(pollMax + f.slack)
		case <-late.C:
			f.Fatalf("the reader of partition %d has seen %d of %d", r.p, seen, want)
		}
	}
}

// veil is a store that hides what comes after a position, as one does whose replica lags.
type veil struct {
	events.Reader

	mu    sync.Mutex
	drawn bool
	upto  events.Position
}

// draw hides what comes after a position in every partition.
func (v *veil) draw(upto events.Position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drawn, v.upto = true, upto
}

func (v *veil) lift() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drawn = false
}

// shown returns the last position that is shown of those up to end.
func (v *veil) shown(end events.Position) events.Position {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drawn {
		return min(end, v.upto)
	}
	return end
}

// Tail implements events.Reader.
func (v *veil) Tail(ctx context.Context, p events.Partition, after events.Position, most int) ([]events.Commit, error) {
	page, err := v.Reader.Tail(ctx, p, after, most)
	for i := range page {
		if v.shown(page[i].Position) != page[i].Position {
			return page[:i], err
		}
	}
	return page, err
}

// End implements events.Reader.
func (v *veil) End(ctx context.Context, p events.Partition) (events.Position, events.Fence, error) {
	end, fence, err := v.Reader.End(ctx, p)
	return v.shown(end), fence, err
}

// append adds k events to a stream.
func (f *fixture) append(p events.Partition, s events.Stream, expected events.Version, k int) error {
	a := &events.Append{
		Stream: s, Partition: p, Expected: expected, N: k,
		Command: events.Derive("feedtest", string(s), fmt.Sprint(expected)), Events: make([]byte, k),
	}
	out := make([]events.Verdict, 1)
	if err := f.Store.Append(f.Context(), p, []*events.Append{a}, out); err != nil {
		return err
	}
	if out[0].Kind != events.Appended {
		return fmt.Errorf("append to %s at %d: %s", s, expected, out[0].Kind)
	}
	return nil
}
