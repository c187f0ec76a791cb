package storetail

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/events/feedtest"
	"github.com/sluice-platform/sluice/gateways/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func store() *memory.Store {
	return memory.NewStore(memory.StoreOptions{Clock: func() events.Time { return 1 }})
}

func TestFeed(t *testing.T) {
	feedtest.Run(t, feedtest.Config{Open: func(_ *testing.T, wrap func(events.Reader) events.Reader) feedtest.Harness {
		s := store()
		feed := New(wrap(s))
		return feedtest.Harness{Store: s, Feed: feed, Committed: feed.Notify}
	}})
}

// commit appends one event to partition p.
func commit(t *testing.T, s *memory.Store, p events.Partition) {
	t.Helper()
	end, _, _ := s.End(t.Context(), p)
	out := make([]events.Verdict, 1)
	a := events.Append{
		Stream: events.StreamOf("order", "acme", string(rune('a'+p))), Partition: p, Expected: events.Version(end),
		Command: events.ID{1, byte(end)}, N: 1, Events: []byte{1},
	}
	if err := s.Append(t.Context(), p, []*events.Append{&a}, out); err != nil || out[0].Kind != events.Appended {
		t.Fatal(out[0].Kind, err)
	}
}

func TestWait(t *testing.T) {
	// waitFor says how long a wait takes of the bubble's time while do happens.
	waitFor := func(t *testing.T, f *Feed, p events.Partition, after events.Position, do func()) time.Duration {
		t.Helper()
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- f.Wait(t.Context(), p, after) }()
		synctest.Wait()
		do()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	for _, c := range []struct {
		policy string
		run    func(t *testing.T, s *memory.Store, f *Feed) time.Duration
		want   time.Duration
	}{
		{"a hint wakes who waits, at once", func(t *testing.T, s *memory.Store, f *Feed) time.Duration {
			return waitFor(t, f, 0, 0, func() { commit(t, s, 0); f.Notify(0) })
		}, 0},
		{"without a hint it takes a second", func(t *testing.T, s *memory.Store, f *Feed) time.Duration {
			return waitFor(t, f, 0, 0, func() { commit(t, s, 0) })
		}, time.Second},
		{"a hint between the read and the wait is not lost", func(t *testing.T, s *memory.Store, f *Feed) time.Duration {
			if page, err := f.Read(t.Context(), 0, 0, 10); err != nil || len(page) != 0 {
				t.Fatal(len(page), err)
			}
			commit(t, s, 0)
			f.Notify(0)
			return waitFor(t, f, 0, 0, func() {})
		}, 0},
		{"a hint that was early is used up", func(t *testing.T, _ *memory.Store, f *Feed) time.Duration {
			f.Notify(0)
			f.Notify(0)
			return waitFor(t, f, 0, 0, func() {})
		}, time.Second},
		{"a hint for another partition wakes nobody", func(t *testing.T, s *memory.Store, f *Feed) time.Duration {
			return waitFor(t, f, 0, 0, func() { commit(t, s, 1); f.Notify(1) })
		}, time.Second},
	} {
		t.Run(c.policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store()
				if got := c.run(t, s, New(s)); got != c.want {
					t.Errorf("it took %s, want %s", got, c.want)
				}
			})
		})
	}
	t.Run("a wait says why it was cut short", func(t *testing.T) {
		stopping := errors.New("stopping")
		ctx, cancel := context.WithCancelCause(t.Context())
		synctest.Test(t, func(t *testing.T) {
			s := store()
			f := New(s)
			inner, end := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Wait(inner, 0, 0) }()
			synctest.Wait()
			end(stopping)
			if err := <-ended; !errors.Is(err, stopping) {
				t.Errorf("got %v", err)
			}
		})
		cancel(nil)
		if err := New(store()).Wait(ctx, 0, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that had ended before: %v", err)
		}
	})
	t.Run("a closed store ends a wait", func(t *testing.T) {
		s := store()
		f := New(s)
		s.Close()
		if err := f.Wait(t.Context(), 0, 0); !errors.Is(err, events.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
