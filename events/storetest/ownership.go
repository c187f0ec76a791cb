package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/sluice-platform/sluice/events"
)

var ownership = []rule{
	{"a partition has one owner, and another is told who it is", func(f *fixture) {
		lasts := f.lasts()
		one, err := f.Store.Acquire(f.Context(), 1, "L1", lasts)
		f.must(err)
		if one.Partition != 1 || one.Fence != 1 || one.Owner != "L1" || one.Left <= 0 || one.Left > lasts {
			f.Fatalf("got %+v", one)
		}
		if !f.Features.OwnClock && (one.Until != start.Add(lasts) || one.Left != lasts) {
			f.Fatalf("got %+v", one)
		}
		held, err := f.Store.Acquire(f.Context(), 1, "L2", lasts)
		f.wantErr(err, events.ErrHeld)
		if held.Owner != "L1" || held.Fence != 1 || held.Until != one.Until {
			f.Fatalf("who was refused heard of %+v", held)
		}
		if _, fence, err := f.Store.End(f.Context(), 1); err != nil || fence != 1 {
			f.Fatalf("the partition's token is %d, %v; want 1", fence, err)
		}
		other, err := f.Store.Acquire(f.Context(), 2, "L2", lasts)
		f.must(err)
		if other.Fence != 1 {
			f.Fatalf("the first token of partition 2 is %d", other.Fence)
		}
	}},
	{"ES-12 the token is the authority: who was not replaced may write, who was is fenced", func(f *fixture) {
		one := f.own(3, "L1")
		f.want(f.do(f.appendTo(3, streamS, 0, "c1", one.Fence, 1)), appended(1, 1))
		_, err := f.Store.Acquire(f.Context(), 3, "L2", f.lasts())
		f.wantErr(err, events.ErrHeld)
		f.outlive(one)
		if out := f.do(f.appendTo(3, streamS, 1, "c2", one.Fence, 1)); out[0].Kind != events.Appended {
			f.Fatalf("L1 got %v although nobody had replaced it", show(out))
		}
		two := f.own(3, "L2")
		if two.Fence != one.Fence+1 {
			f.Fatalf("L2 got token %d after %d", two.Fence, one.Fence)
		}
		f.want(f.do(f.appendTo(3, streamT, 0, "c3", one.Fence, 1)), fenced(two.Fence))
		f.want(f.do(f.appendTo(3, streamS, 2, "c4", one.Fence, 1)), fenced(two.Fence))
		f.wantEnd(3, 2)
	}},
	{"ES-13 the token rises on every acquisition, also on the same owner's", func(f *fixture) {
		one := f.own(0, "A")
		f.outlive(one)
		two := f.own(0, "A")
		if one.Fence != 1 || two.Fence != 2 {
			f.Fatalf("the tokens are %d and %d, want 1 and 2", one.Fence, two.Fence)
		}
		f.want(f.do(f.append0(streamS, 0, "queued", 1, 1)), fenced(2))
		if three := f.own(0, "A"); three.Fence != 3 { // while it still owns the partition
			f.Fatalf("the third token is %d", three.Fence)
		}
	}},
	{"ES-14 (a) who is in time prolongs its tenure, under the same token", func(f *fixture) {
		one := f.own(0, "A")
		f.clock.pass(9_900 * time.Millisecond)
		again, err := f.Store.Renew(f.Context(), one, f.lasts())
		f.must(err)
		if again.Fence != one.Fence || again.Owner != "A" || again.Until <= one.Until {
			f.Fatalf("renewed %+v to %+v", one, again)
		}
		if !f.Features.OwnClock && (again.Until != start.Add(19_900*time.Millisecond) || again.Left != f.lasts()) {
			f.Fatalf("renewed to %+v", again)
		}
		_, err = f.Store.Acquire(f.Context(), 0, "B", f.lasts())
		f.wantErr(err, events.ErrHeld)
	}},
	{"ES-14 (b) what has ended is not renewed, although nobody has acquired it since", func(f *fixture) {
		one := f.own(0, "A")
		f.outlive(one)
		_, err := f.Store.Renew(f.Context(), one, f.lasts())
		f.wantErr(err, events.ErrNotOwner)
		if two := f.own(0, "A"); two.Fence != one.Fence+1 {
			f.Fatalf("acquired anew with token %d after %d", two.Fence, one.Fence)
		}
	}},
	{"ES-14 (c) only the store's clock counts, whatever year it believes in", func(f *fixture) {
		const decades = 30 * 365 * 24 * time.Hour
		for i, away := range []time.Duration{-decades, 0, decades} { // from the machine's clock, to both sides
			f.clock.set(start.Add(away))
			p := events.Partition(i)
			one := f.own(p, "A")
			f.clock.pass(9_900 * time.Millisecond)
			one, err := f.Store.Renew(f.Context(), one, f.lasts())
			f.must(err)
			_, err = f.Store.Acquire(f.Context(), p, "B", f.lasts())
			f.wantErr(err, events.ErrHeld)
			f.outlive(one)
			f.own(p, "B")
		}
	}},
	{"ES-14 (d) an acquisition that had to wait is judged by the time at which it is decided", func(f *fixture) {
		if f.Features.NoHooks || f.Features.OwnClock { // it cannot be made to wait, or time be made to pass: it gets there
			f.outlive(f.own(0, "A"))
			f.own(0, "B")
			return
		}
		f.own(0, "A")
		f.clock.pass(5 * time.Second)
		h := f.faults.holdNext()
		f.others.Go(func() { f.settleQuietly(f.append0(streamS, 0, "c1", 0, 1)) })
		f.await("a commit to hold", h.reached)
		reads := f.clock.readsSoFar()
		answer := make(chan error, 1)
		f.others.Go(func() { _, err := f.Store.Acquire(f.Context(), 0, "B", f.lasts()); answer <- err })
		for range 10_000 { // gives one that reads the clock too early the time to do so
			if len(answer) > 0 || f.clock.readsSoFar() > reads {
				break
			}
			runtime.Gosched()
		}
		early := len(answer) > 0
		f.clock.pass(12 * time.Second)
		f.faults.letGo(h, nil)
		if err := <-answer; err != nil && (!early || !errors.Is(err, events.ErrHeld)) {
			f.Fatalf("at the time of its decision nobody owned the partition: %v", err)
		}
	}},
	{"a tenure that another's has replaced is not renewed", func(f *fixture) {
		one := f.own(0, "A")
		f.outlive(one)
		two := f.own(0, "B")
		_, err := f.Store.Renew(f.Context(), one, f.lasts())
		f.wantErr(err, events.ErrNotOwner)
		forged := two
		forged.Owner = "A"
		_, err = f.Store.Renew(f.Context(), forged, f.lasts())
		f.wantErr(err, events.ErrNotOwner)
	}},
	{"what nobody acquired is not renewed", func(f *fixture) {
		for _, fence := range []events.Fence{0, 1} {
			_, err := f.Store.Renew(f.Context(), events.Tenure{Partition: 0, Fence: fence, Owner: "A"}, f.lasts())
			f.wantErr(err, events.ErrNotOwner)
		}
	}},
	{"who releases lets the next one in at once, under a higher token", func(f *fixture) {
		one := f.own(0, "A")
		f.must(f.Store.Release(f.Context(), one))
		f.must(f.Store.Release(f.Context(), one))
		_, err := f.Store.Renew(f.Context(), one, f.lasts())
		f.wantErr(err, events.ErrNotOwner)
		if two := f.own(0, "B"); two.Fence != 2 {
			f.Fatalf("the next token is %d, want 2", two.Fence)
		}
		if err := f.Store.Release(f.Context(), one); err != nil && !errors.Is(err, events.ErrNotOwner) {
			f.Fatal(err)
		}
		_, err = f.Store.Acquire(f.Context(), 0, "C", f.lasts())
		f.wantErr(err, events.ErrHeld) // a late release does not end another's tenure
	}},
	{"all tenures are listed by partition, ended ones too", func(f *fixture) {
		if all, err := f.Store.Owners(f.Context()); err != nil || len(all) != 0 {
			f.Fatalf("at first: %+v, %v", all, err)
		}
		ended := f.own(2, "B")
		f.outlive(ended)
		f.own(1, "A")
		f.must(f.Store.Release(f.Context(), f.own(3, "C")))
		f.own(0, "A")
		all, err := f.Store.Owners(f.Context())
		f.must(err)
		var got []string
		for p, t := range all {
			got = append(got, fmt.Sprint(t.Owner, " ", t.Fence, " ", t.Left > 0))
			if int(t.Partition) != p {
				f.Fatalf("partition %d comes at place %d", t.Partition, p)
			}
		}
		if want := "[A 1 true A 1 true B 1 false C 1 false]"; fmt.Sprint(got) != want {
			f.Fatalf("got %v, want %s", got, want)
		}
	}},
	{"a tenure outlives the process that holds the store", func(f *fixture) {
		one := f.own(0, "A")
		f.reopen()
		if f.Features.Forgets {
			return
		}
		_, err := f.Store.Acquire(f.Context(), 0, "B", f.lasts())
		f.wantErr(err, events.ErrHeld)
		again, err := f.Store.Renew(f.Context(), one, f.lasts())
		f.must(err)
		f.must(f.Store.Release(f.Context(), again))
		if two := f.own(0, "B"); two.Fence != one.Fence+1 {
			f.Fatalf("after a restart the next token is %d", two.Fence)
		}
	}},
}

// lasts is how long the suite's tenures are: by hand 10 s, by a server's clock short, since they must truly run out.
func (f *fixture) lasts() time.Duration {
	if f.Features.OwnClock {
		return 300 * time.Millisecond
	}
	return 10 * time.Second
}

func (f *fixture) own(p events.Partition, owner string) events.Tenure {
	f.Helper()
	t, err := f.Store.Acquire(f.Context(), p, owner, f.lasts())
	f.must(err)
	return t
}

// outlive returns when t has ended by the store's clock.
func (f *fixture) outlive(t events.Tenure) {
	f.Helper()
	if !f.Features.OwnClock {
		f.clock.set(t.Until.Add(100 * time.Millisecond))
		return
	}
	for deadline := time.Now().Add(guard); time.Now().Before(deadline); {
		all, err := f.Store.Owners(f.Context())
		f.must(err)
		for _, o := range all {
			if o.Partition == t.Partition && (o.Fence != t.Fence || o.Left <= 0) {
				return
			}
		}
	}
	f.Fatalf("%+v does not end", t)
}
