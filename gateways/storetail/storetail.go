// Package storetail is the feed that reads the store itself: embedded, and for history everywhere.
// It never remembers how far a reader has come, and never keeps a commit.
package storetail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// pollEvery is how long a reader waits at most without a hint (DESIGN §5). A hint may be early or lost; this is not.
const pollEvery = time.Second

// Feed delivers what a store holds. It is safe for concurrent use, and has nothing to close.
type Feed struct {
	reader events.Reader

	mu    sync.Mutex
	hints map[events.Partition]chan struct{} // closed at the next hint; there is one while somebody waits
}

var _ events.Feed = (*Feed)(nil)

// New makes the feed of a store.
func New(r events.Reader) *Feed {
	return &Feed{reader: r, hints: map[events.Partition]chan struct{}{}}
}

// Read implements events.Feed: it is the store's Tail, without holes.
func (f *Feed) Read(ctx context.Context, p events.Partition, after events.Position, most int) ([]events.Commit, error) {
	return f.reader.Tail(ctx, p, after, most)
}

// Wait implements events.Feed. It returns at once while the store has something after the position: a hint that came
// between the caller's Read and this call would be lost otherwise. So a reader that cannot take what it has read,
// because a damaged store shows a hole, must pace itself. An error is the context's or the store's.
func (f *Feed) Wait(ctx context.Context, p events.Partition, after events.Position) error {
	hint := f.hint(p) // before the store is asked: what is committed behind the answer closes it
	end, _, err := f.reader.End(ctx, p)
	if err != nil {
		return fmt.Errorf("end of partition %d: %w", p, err)
	}
	if end > after {
		return nil
	}
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	select {
	case <-hint:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Notify wakes who waits for a partition. Whoever has committed to it calls this; to call it too early, too often or
// not at all costs latency only.
func (f *Feed) Notify(p events.Partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.hints[p]; c != nil {
		close(c)
		delete(f.hints, p)
	}
}

func (f *Feed) hint(p events.Partition) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.hints[p]
	if c == nil {
		c = make(chan struct{})
		f.hints[p] = c
	}
	return c
}
