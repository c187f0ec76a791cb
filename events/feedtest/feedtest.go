// Package feedtest is the contract of events.Feed, runnable against any adapter.
// It never asks a feed for more than DESIGN §5: it may be late, repeat, and leave holes, and nothing is lost by that.
package feedtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/events"
)

const (
	partitions = 4
	// pollMax is how long a wait may take without a hint.
	pollMax = time.Second
)

// Config says how the feed under test is opened.
type Config struct {
	// Open makes a feed over an empty store. The feed reads the store only through wrap(store).
	Open func(t *testing.T, wrap func(events.Reader) events.Reader) Harness
	// RealTime: the feed cannot run inside synctest, because something outside the process takes part in it.
	RealTime bool
}

// Harness is one feed under test.
type Harness struct {
	Store events.Store // of 4 partitions
	Feed  events.Feed
	// Committed tells the feed that a partition has more. nil: it finds out by itself.
	Committed func(events.Partition)
}

// Run holds an adapter to the contract of events.Feed.
func Run(t *testing.T, cfg Config) {
	for _, r := range []struct {
		policy string
		hold   func(*fixture)
	}{
		{"an empty partition yields nothing", (*fixture).empty},
		{"a page goes on after any position, in order, with at most so many commits", (*fixture).pages},
		{"who has everything waits for a second at most", (*fixture).idle},
		{"a wait ends with its context", (*fixture).cancelled},
		{"a commit that nobody told of is delivered within one poll", (*fixture).untold},
		{"a hint for one partition is no news of another", (*fixture).apart},
		{"a reader that comes late gets everything from the start", (*fixture).late},
		{"many readers get everything, each for itself", (*fixture).many},
		{"ES-16 no event is lost under many writers", (*fixture).writers},
		{"ES-17 a wake-up that comes before the row can be read loses nothing", (*fixture).early},
	} {
		t.Run(r.policy, func(t *testing.T) {
			if cfg.RealTime {
				r.hold(open(t, cfg))
				return
			}
			synctest.Test(t, func(t *testing.T) { r.hold(open(t, cfg)) })
		})
	}
}

// fixture is one feed under test and the store behind it.
type fixture struct {
	*testing.T
	Harness
	veil  *veil
	slack time.Duration // between a poll and what comes of it: a moment inside synctest, more on a real machine
}

func open(t *testing.T, cfg Config) *fixture {
	f := &fixture{T: t, slack: time.Millisecond}
	if cfg.RealTime {
		f.slack = 5 * time.Second
	}
	f.Harness = cfg.Open(t, func(r events.Reader) events.Reader {
		f.veil = &veil{Reader: r}
		return f.veil
	})
	if f.Committed == nil {
		f.Committed = func(events.Partition) {}
	}
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) empty() {
	for p := range events.Partition(partitions) {
		page, err := f.Feed.Read(f.Context(), p, 0, 10)
		f.must(err)
		if len(page) != 0 {
			f.Fatalf("partition %d yields %d commits", p, len(page))
		}
	}
}

func (f *fixture) pages() {
	for v, k := range []int{3, 1, 5, 2} {
		f.must(f.append(0, events.Stream(fmt.Sprint("order/acme/", v)), 0, k))
	}
	f.Committed(0)
	for after := range events.Position(12) {
		for _, most := range []int{1, 2, 10} {
			// A feed may be late: it gets some time to come to what the store has.
			for polls := 0; ; polls++ {
				page, err := f.Feed.Read(f.Context(), 0, after, most)
				f.must(err)
				if len(page) > most {
					f.Fatalf("%d commits in a page of at most %d", len(page), most)
				}
				last := after
				for _, c := range page {
					if c.Position <= last || c.Partition != 0 {
						f.Fatalf("a commit at %d of partition %d follows position %d", c.Position, c.Partition, last)
					}
					last = c.Position
				}
				if len(page) > 0 || after == 11 {
					break
				}
				if polls == 10 {
					f.Fatalf("nothing after %d, in 10 polls", after)
				}
				f.must(f.Feed.Wait(f.Context(), 0, after))
			}
		}
	}
}

func (f *fixture) idle() {
	f.must(f.append(0, "order/acme/1", 0, 1))
	began := time.Now()
	f.must(f.Feed.Wait(f.Context(), 0, 1))
	if d := time.Since(began); d > pollMax+f.slack {
		f.Fatalf("waited for %s", d)
	}
}

func (f *fixture) cancelled() {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- f.Feed.Wait(ctx, 0, 0) }()
	cancel()
	if err := <-ended; err == nil && time.Since(began) > f.slack {
		f.Fatal("waited on although its context had ended")
	}
}

func (f *fixture) untold() {
	r := f.follow(0)
	<-time.After(10 * time.Millisecond) // the reader has found nothing and waits
	f.must(f.append(0, "order/acme/1", 0, 2))
	r.until(f, 2, time.Now())
}

func (f *fixture) apart() {
	one, two := f.follow(1), f.follow(2)
	for v := range 5 {
		f.must(f.append(1, "order/acme/1", events.Version(v), 1))
		f.Committed(1)
		f.Committed(2)
	}
	one.until(f, 5, time.Now())
	two.stop()
	if two.seen != 0 {
		f.Fatalf("the reader of partition 2 has seen %d", two.seen)
	}
}

func (f *fixture) late() {
	for v := range 300 {
		f.must(f.append(0, "order/acme/1", events.Version(v), 1))
	}
	f.Committed(0)
	f.follow(0).until(f, 300, time.Now())
}

func (f *fixture) many() {
	readers := make([]*follower, 10)
	for i := range readers {
		readers[i] = f.follow(0)
	}
	for v := range 100 {
		f.must(f.append(0, "order/acme/1", events.Version(v), 1))
		f.Committed(0)
	}
	for _, r := range readers {
		r.until(f, 100, time.Now())
	}
}

func (f *fixture) writers() {
	const writers, each = 32, 200
	var readers []*follower
	for p := range events.Partition(partitions) {
		readers = append(readers, f.follow(p))
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			p := events.Partition(w % partitions)
			dice := rand.New(rand.NewPCG(16, uint64(w))) //nolint:gosec // a seeded order, not a secret
			for v := range events.Version(each) {
				if err := f.append(p, events.Stream(fmt.Sprint("order/acme/", w)), v, 1); err != nil {
					f.Error(err)
					return
				}
				if dice.IntN(4) > 0 { // some hints are lost
					f.Committed(p)
				}
			}
		})
	}
	wg.Wait()
	sum := events.Position(0)
	for _, r := range readers {
		r.until(f, writers*each/partitions, time.Now())
		sum += r.seen
	}
	if sum != writers*each {
		f.Fatalf("the readers have %d events of %d", sum, writers*each)
	}
}

// early has a store signal what it hides for 300 ms more: the reader finds nothing and waits again. No further append
// ever comes.
func (f *fixture) early() {
	r := f.follow(0)
	f.veil.draw(0)
	<-time.After(10 * time.Millisecond)
	f.must(f.append(0, "order/acme/1", 0, 1))
	f.Committed(0)
	<-time.After(300 * time.Millisecond)
	if seen := r.position(); seen != 0 {
		f.Fatalf("the reader has seen %d of what is hidden", seen)
	}
	f.veil.lift()
	r.until(f, 1, time.Now())
}
