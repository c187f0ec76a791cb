package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/sluice-platform/sluice/events"
)

var races = []rule{
	{"ES-15 a takeover races an append: the old owner commits before the new one, or not at all", func(f *fixture) {
		names := [2]string{"L1", "L2"}
		old := f.own(0, names[0])
		for round := range f.rounds {
			h := f.headOrNone(streamS)
			late := f.onHead(h, fmt.Sprint("old-", round), old.Fence)
			f.must(f.Store.Release(f.Context(), old)) // it does not know that it has lost the partition
			var lateOut []events.Verdict
			f.others.Go(func() { lateOut = f.settleQuietly(late) })
			next, err := f.Store.Acquire(f.Context(), 0, names[(round+1)%2], f.lasts())
			var mine events.Verdict
			if err == nil {
				mine = f.decideAgain(f.Store, streamS, fmt.Sprint("new-", round), next.Fence)
			}
			f.others.Wait()
			f.must(err)
			switch v := lateOut[0]; {
			case next.Fence != old.Fence+1:
				f.Fatalf("token %d follows %d", next.Fence, old.Fence)
			case v.Kind == events.Appended && v.Position < mine.Position:
			case v.Kind == events.Fenced && v.Fence == next.Fence:
			default:
				f.Fatalf("round %d: the old owner got %v, the new one %v", round, show(lateOut), mine)
			}
			old = next
		}
	}},
	{"ES-16 no event is lost under many writers", func(f *fixture) {
		const writers, each = 32, 200
		f.faults.beforeEach(yieldAtRandom())
		for w := range writers {
			f.others.Go(func() {
				s := events.Stream(fmt.Sprintf("order/acme/%d", w))
				p := events.Partition(w % partitions)
				for v := range events.Version(each) {
					out := f.settleQuietly(f.appendTo(p, s, v, fmt.Sprintf("%d-%d", w, v), 0, 1))
					if len(out) == 0 || out[0].Version != v+1 {
						f.Errorf("writer %d at %d: %v", w, v, show(out))
						return
					}
				}
			})
		}
		done := f.allDone()
		reader := f.peer()
		var seen [partitions]events.Position
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			for p := range events.Partition(partitions) {
				seen[p] = f.poll(reader, p, seen[p])
			}
		}
		sum := events.Position(0)
		for p := range events.Partition(partitions) {
			for last := events.Position(-1); last != seen[p]; {
				last, seen[p] = seen[p], f.poll(reader, p, seen[p])
			}
			sum += seen[p]
			f.wantEnd(p, seen[p])
		}
		if sum != writers*each {
			f.Fatalf("the reader has %d events of %d", sum, writers*each)
		}
	}},
	{"writers that meet on a stream each get their effect once, and no head ever goes down", func(f *fixture) {
		const writers, each = 8, 40
		f.faults.beforeEach(yieldAtRandom())
		for w := range writers {
			f.others.Go(func() {
				s := [2]events.Stream{streamA, streamB}[w%2]
				var last events.Version
				for i := range each {
					v := f.decideAgain(f.Store, s, fmt.Sprintf("%d-%d", w, i), 0)
					h := f.headOrNone(s)
					if v.Version <= last || h.Version < v.Version {
						f.Errorf("writer %d wrote version %d after %d and reads %d", w, v.Version, last, h.Version)
						return
					}
					last = v.Version
				}
			})
		}
		f.others.Wait()
		f.wantEnd(0, writers*each)
	}},
}

// yieldAtRandom lets others run for a while, a different one each time.
func yieldAtRandom() func() {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(16, 16)) //nolint:gosec // a seeded order, not a secret
	return func() {
		mu.Lock()
		n := dice.IntN(20)
		mu.Unlock()
		for range n {
			runtime.Gosched()
		}
	}
}

// headOrNone reads a head; that of a stream without events is its name. It may be called by any goroutine.
func (f *fixture) headOrNone(s events.Stream) events.Head {
	h, err := f.Store.Head(f.Context(), s)
	if errors.Is(err, events.ErrNoStream) {
		return events.Head{Stream: s}
	}
	if err != nil {
		f.Error(err)
	}
	return h
}

// onHead is one event that goes on from a head.
func (f *fixture) onHead(h events.Head, c string, fence events.Fence) *events.Append {
	a := &events.Append{
		Stream: h.Stream, Partition: h.Partition, Expected: h.Version, Command: commandOf(c), Fence: fence, N: 1,
		Events: f.frames(c, 1),
	}
	a.Hash = events.Chain(h.Hash, a.Stream, a.Expected+1, a.N, a.Envelope, a.Events)
	return a
}

// decideAgain loads and appends until there is no conflict, as the write path does for who named no version.
func (f *fixture) decideAgain(s events.Store, name events.Stream, c string, fence events.Fence) events.Verdict {
	out := make([]events.Verdict, 1)
	for range 10_000 {
		a := f.onHead(f.headOrNone(name), c, fence)
		if err := s.Append(f.Context(), a.Partition, []*events.Append{a}, out); err != nil {
			f.Error(err)
			return events.Verdict{}
		}
		if out[0].Kind != events.Conflict {
			break
		}
	}
	if out[0].Kind != events.Appended {
		f.Errorf("%s: %v", c, show(out))
	}
	return out[0]
}
