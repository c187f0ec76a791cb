package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
)

var unknown = []rule{
	{"a call whose context has ended touches nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		a := f.append0(streamS, 0, "c1", 0, 1)
		before := f.faults.commitsSoFar()
		err := f.Store.Append(ctx, 0, []*events.Append{a}, make([]events.Verdict, 1))
		if !errors.Is(err, context.Canceled) || errors.Is(err, events.ErrUnknown) {
			f.Fatalf("got %v, want only that the context has ended", err)
		}
		if f.faults.commitsSoFar() != before {
			f.Fatal("something was committed")
		}
		f.wantEnd(0, 0)
		f.want(f.do(a), appended(1, 1))
	}},
	{"ES-05 (a) a reply that was lost: the same append again is a duplicate", func(f *fixture) {
		a := f.withSnapshot()
		f.loseReply(a)
		f.want(f.settle(a), duplicate(2, 2))
		f.wantOnce(a)
	}},
	{"ES-05 (b) a request that was lost: the same append again is appended, on the first free position", func(f *fixture) {
		a := f.withSnapshot()
		f.loseRequest(a)
		f.want(f.settle(a), appended(2, 2))
		f.wantOnce(a)
	}},
	{"ES-05 (c) a commit behind its caller's timeout: one of the two is appended, one a duplicate", func(f *fixture) {
		if f.Features.NoHooks {
			f.cancelAnywhere()
			return
		}
		a := f.withSnapshot()
		h := f.abandon(a)
		again := make(chan []events.Verdict, 1)
		f.others.Go(func() { again <- f.settleQuietly(a) })
		f.faults.letGo(h, nil)
		f.want(<-again, duplicate(2, 2))
		f.wantOnce(a)
	}},
	{"ES-05 (c) a commit behind its caller's timeout that fails: the other is appended", func(f *fixture) {
		if f.Features.NoHooks {
			f.cancelAnywhere()
			return
		}
		a := f.withSnapshot()
		h := f.abandon(a)
		again := make(chan []events.Verdict, 1)
		f.others.Go(func() { again <- f.settleQuietly(a) })
		f.faults.letGo(h, errFault)
		f.want(<-again, appended(2, 2))
		f.wantOnce(a)
	}},
	{"ES-05 (d) a lost request that another command overtook is a conflict, and may be decided again", func(f *fixture) {
		a := f.withSnapshot()
		f.loseRequest(a)
		f.want(f.do(f.append0(streamS, 0, "other", 0, 1)), appended(1, 1))
		f.want(f.settle(a), conflict(1))
		f.want(f.do(f.append0(streamS, 1, "c1", 0, 2)), appended(3, 3))
		if h := f.head(streamS); h.SnapshotAt != 0 || len(h.Snapshot) != 0 {
			f.Fatalf("the snapshot of an append that was refused stands at %d", h.SnapshotAt)
		}
	}},
	{"ES-05 (e) a lost reply is a duplicate also behind 300 further commits", func(f *fixture) {
		a := f.withSnapshot()
		f.loseReply(a)
		for v := events.Version(2); v < 302; v++ {
			f.do(f.append0(streamS, v, fmt.Sprint("more-", v), 0, 1))
		}
		f.want(f.settle(a), duplicate(2, 2))
		if h := f.head(streamS); h.Version != 302 || h.SnapshotAt != 2 {
			f.Fatalf("the head is at %d with a snapshot at %d, want 302 and 2", h.Version, h.SnapshotAt)
		}
	}},
	{"ES-05 (f) the sync of a group fails once: each of its appends has its effect once", func(f *fixture) {
		if f.Features.NoHooks {
			f.cancelAnywhere()
			return
		}
		h := f.faults.holdNext()
		f.others.Go(func() { f.settleQuietly(f.append0(streamT, 0, "first", 0, 1)) })
		f.await("a commit to hold", h.reached)
		f.faults.failNext()
		out := make([][]events.Verdict, 5)
		for i := range out { // they queue behind the commit that is held, and go to disk together where a store groups
			a := f.append0(events.Stream(fmt.Sprint("order/acme/f", i)), 0, fmt.Sprint("c", i), 0, 1)
			f.others.Go(func() { out[i] = f.settleQuietly(a) })
		}
		f.faults.letGo(h, nil)
		f.others.Wait()
		for _, v := range out {
			if len(v) != 1 || v[0].Kind != events.Appended && v[0].Kind != events.Duplicate || v[0].Version != 1 {
				f.Fatalf("got %v, want appended or duplicate, at version 1", v)
			}
		}
		f.wantEnd(0, 6)
	}},
	{"a batch whose commit fails is unknown as a whole, and nothing of it is stored", func(f *fixture) {
		if f.Features.NoHooks {
			f.cancelAnywhere()
			return
		}
		batch := f.batchOfThree()
		f.faults.failNext()
		_, err := f.try(batch...)
		f.wantErr(err, events.ErrUnknown)
		f.wantEnd(0, 0)
		f.want(f.settle(batch...), appended(2, 2), conflict(2), appended(1, 3))
	}},
	{"a batch whose reply is lost is a batch of duplicates, and its losers lose again", func(f *fixture) {
		batch := f.batchOfThree()
		f.loseReply(batch...)
		f.want(f.settle(batch...), duplicate(2, 2), conflict(2), duplicate(1, 3))
		f.wantEnd(0, 3)
	}},
	{"ES-01 a later position never becomes visible before an earlier one", func(f *fixture) {
		f.overtake(nil, 51)
	}},
	{"ES-01 nor when the earlier one is rolled back", func(f *fixture) {
		f.overtake(errFault, 50)
	}},
	{"ES-02 refused and rolled back appends leave no hole above the checkpoint", func(f *fixture) {
		f.token(0, 2)
		f.do(f.append0(streamS, 0, "c0", 2, 10))
		f.want(f.do(f.append0(streamS, 3, "c1", 2, 1)), conflict(10))
		f.want(f.do(f.append0(streamS, 10, "c2", 1, 4)), fenced(2))
		f.loseRequest(f.append0(streamT, 0, "c3", 2, 7))
		f.want(f.settle(f.append0(streamA, 0, "c4", 2, 1)), appended(1, 11))
		f.want(f.settle(f.append0(streamB, 0, "c5", 2, 1)), appended(1, 12))
	}},
}

// withSnapshot is append(s, NoStream, c1, –, 2) with a new snapshot.
func (f *fixture) withSnapshot() *events.Append {
	a := f.append0(streamS, 0, "c1", 0, 2)
	a.Head = events.HeadUpdate{Open: true, Snapshot: []byte("state at 2")}
	return a
}

func (f *fixture) batchOfThree() []*events.Append {
	return []*events.Append{
		f.append0(streamA, 0, "c1", 0, 2), f.append0(streamA, 0, "c2", 0, 1), f.append0(streamB, 0, "c3", 0, 1),
	}
}

// wantOnce says that a was stored once, whole, and nothing else was.
func (f *fixture) wantOnce(a *events.Append) {
	f.Helper()
	f.wantStored(a)
	f.wantEnd(0, events.Position(a.N))
	h := f.head(a.Stream)
	if h.Version != events.Version(a.N) || h.SnapshotAt != h.Version || string(h.Snapshot) != string(a.Head.Snapshot) {
		f.Fatalf("the head is at version %d with the snapshot %q at %d", h.Version, h.Snapshot, h.SnapshotAt)
	}
}

// loseReply submits a batch that is stored and whose answer nobody hears.
func (f *fixture) loseReply(batch ...*events.Append) {
	f.Helper()
	if f.Features.NoHooks {
		f.do(batch...)
		return
	}
	f.faults.loseNext()
	_, err := f.try(batch...)
	f.wantErr(err, events.ErrUnknown)
}

// loseRequest submits a batch that fails at its commit; without hooks it never gets to the store.
func (f *fixture) loseRequest(batch ...*events.Append) {
	f.Helper()
	if f.Features.NoHooks {
		return
	}
	f.faults.failNext()
	_, err := f.try(batch...)
	f.wantErr(err, events.ErrUnknown)
}

// abandon submits an append and leaves while it waits just before its commit. The caller must be let go then, with
// ErrUnknown, and nothing be visible.
func (f *fixture) abandon(a *events.Append) *held {
	f.Helper()
	h := f.faults.holdNext()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	answer := make(chan error, 1)
	f.others.Go(func() {
		answer <- f.Store.Append(ctx, a.Partition, []*events.Append{a}, make([]events.Verdict, 1))
	})
	f.await("a commit to hold", h.reached)
	f.wantEnd(a.Partition, 0)
	cancel()
	select {
	case err := <-answer:
		f.wantErr(err, events.ErrUnknown)
	case <-time.After(guard):
		f.Fatalf("a caller whose context has ended is not let go, for %s", guard)
	}
	return h
}

// settleQuietly is settle for other goroutines than the test's own.
func (f *fixture) settleQuietly(batch ...*events.Append) []events.Verdict {
	for range 100 {
		out, err := f.try(batch...)
		if err == nil {
			return out
		}
		if !errors.Is(err, events.ErrUnknown) {
			f.Error(err)
			return nil
		}
	}
	f.Error("unknown after 100 tries")
	return nil
}

// cancelAnywhere is for a store that cannot be held: calls are cancelled at whatever moment they have come to, and
// submitted again. Each has its effect once.
func (f *fixture) cancelAnywhere() {
	f.Helper()
	for v := range events.Version(f.rounds) {
		a := f.append0(streamS, v, fmt.Sprint("c", v), 0, 1)
		ctx, cancel := context.WithCancel(f.Context())
		go cancel()
		err := f.Store.Append(ctx, 0, []*events.Append{a}, make([]events.Verdict, 1))
		if err != nil && !errors.Is(err, events.ErrUnknown) && !errors.Is(err, context.Canceled) {
			f.Fatal(err)
		}
		out := f.settle(a)
		if k := out[0].Kind; k != events.Appended && k != events.Duplicate || out[0].Version != v+1 {
			f.Fatalf("got %v, want appended or duplicate at %d", show(out), v+1)
		}
	}
	f.wantEnd(0, events.Position(f.rounds))
}

// overtake has A wait just before its commit while B, if it can be had another process, appends 50 times to the same
// partition and a reader polls. What the reader has is gapless at every poll.
func (f *fixture) overtake(end error, want int) {
	f.Helper()
	other, reader := f.peer(), f.peer()
	var h *held
	if !f.Features.NoHooks {
		h = f.faults.holdNext()
	}
	first := f.append0(streamA, 0, "c1", 0, 1)
	f.others.Go(func() {
		if _, err := f.try(first); err != nil && !errors.Is(err, events.ErrUnknown) {
			f.Error(err)
		}
	})
	if h != nil {
		f.await("a commit to hold", h.reached)
	}
	f.others.Go(func() {
		for v := range events.Version(50) {
			a := f.append0(streamB, v, fmt.Sprint("b", v), 0, 1)
			out := make([]events.Verdict, 1)
			err := other.Append(f.Context(), 0, []*events.Append{a}, out)
			for errors.Is(err, events.ErrUnknown) {
				err = other.Append(f.Context(), 0, []*events.Append{a}, out)
			}
			if err != nil || out[0].Version != v+1 {
				f.Errorf("B's append at %d: %v, %v", v, show(out), err)
				return
			}
		}
	})
	seen := events.Position(0)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 50 { // polls while A is held; B may have to wait for it, or else it comes far in this time
		<-tick.C
		seen = f.poll(reader, 0, seen)
	}
	if h != nil {
		f.faults.letGo(h, end)
	}
	done := f.allDone()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		seen = f.poll(reader, 0, seen)
	}
	if h == nil && end != nil {
		want++ // what cannot be held cannot be rolled back
	}
	if seen != events.Position(want) {
		f.Fatalf("the reader has %d events, want %d", seen, want)
	}
}

// allDone is closed when the test's goroutines have ended.
func (f *fixture) allDone() <-chan struct{} {
	done := make(chan struct{})
	go func() { f.others.Wait(); close(done) }()
	return done
}

// poll reads what is behind seen, which must go on there without a gap.
func (f *fixture) poll(r events.Reader, p events.Partition, seen events.Position) events.Position {
	f.Helper()
	page, err := r.Tail(f.Context(), p, seen, 1000)
	f.must(err)
	for _, c := range page {
		if c.Before() != seen {
			f.Fatalf("the reader has seen %d and gets a commit of positions %d to %d", seen, c.Before()+1, c.Position)
		}
		seen = c.Position
	}
	return seen
}

// peer is the store as another process sees it, or the store itself where there can be no other.
func (f *fixture) peer() events.Store {
	f.Helper()
	if f.Features.OneProcess {
		return f.Store
	}
	s, err := f.Peer(f.T)
	f.must(err)
	return s
}
