package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

const (
	streamA events.Stream = "order/acme/a"
	streamB events.Stream = "order/acme/b"
	streamC events.Stream = "order/acme/c"
	streamS events.Stream = "order/acme/s"
	streamT events.Stream = "order/acme/t"
)

var verdicts = []rule{
	{"a stale version conflicts and writes nothing", func(f *fixture) {
		f.want(f.do(f.append0(streamS, 0, "c1", 0, 2)), appended(2, 2))
		f.want(f.do(f.append0(streamS, 1, "c2", 0, 1)), conflict(2))
		f.want(f.do(f.append0(streamS, 3, "c3", 0, 1)), conflict(2))
		f.want(f.do(f.append0(streamS, events.NoStream, "c4", 0, 1)), conflict(2))
		f.want(f.do(f.append0(streamT, 1, "c5", 0, 1)), conflict(0))
		f.wantEnd(0, 2)
	}},
	{"a repeat is answered with the original result, however much later", func(f *fixture) {
		first := f.append0(streamS, 0, "c1", 0, 3)
		f.want(f.do(first), appended(3, 3))
		for v := events.Version(3); v < 303; v++ {
			f.do(f.append0(streamS, v, fmt.Sprint("more-", v), 0, 1))
		}
		f.clock.pass(1e9)
		f.want(f.do(first), duplicate(3, 3))
		middle := f.append0(streamS, 100, "more-100", 0, 1)
		f.want(f.do(middle), duplicate(101, 101))
		f.wantEnd(0, 303)
	}},
	{"a repeat is known by where its commit starts, not by a table of commands", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 3))
		f.want(f.do(f.append0(streamS, 1, "c1", 0, 1)), conflict(3)) // inside the commit, not at its start
		f.want(f.do(f.append0(streamT, 0, "c1", 0, 1)), appended(1, 4))
		f.want(f.do(f.append0(streamS, 3, "c1", 0, 1)), appended(4, 5))
		f.want(f.do(f.append0(streamS, 0, "c9", 0, 3)), conflict(4))
	}},
	{"verdicts are tried in the order duplicate, fenced, conflict", func(f *fixture) {
		zombie := f.token(0, 1).Fence
		f.do(f.append0(streamS, 0, "c1", zombie, 1))
		f.token(0, 2)
		f.want(f.do(f.append0(streamS, 0, "c1", zombie, 1)), duplicate(1, 1))
		f.want(f.do(f.append0(streamS, 0, "c2", zombie, 1)), fenced(2))
		f.want(f.do(f.append0(streamS, 1, "c3", zombie, 1)), fenced(2))
		f.want(f.do(f.append0(streamS, 0, "c4", 2, 1)), conflict(1))
		f.want(f.do(f.append0(streamS, 1, "c5", 2, 1)), appended(2, 2))
	}},
	{"a batch may repeat itself", func(f *fixture) {
		one, two := f.append0(streamS, 0, "c1", 0, 2), f.append0(streamS, 2, "c2", 0, 1)
		f.want(f.do(one, one, two, one, two),
			appended(2, 2), duplicate(2, 2), appended(3, 3), duplicate(2, 2), duplicate(3, 3))
		f.want(f.do(two, one), duplicate(3, 3), duplicate(2, 2))
	}},
	{"an empty batch is answered", func(f *fixture) {
		f.must(f.Store.Append(f.Context(), 0, nil, nil))
	}},
	{"a token above the highest one becomes the highest one", func(f *fixture) {
		f.want(f.do(f.append0(streamS, 0, "c1", 5, 1)), appended(1, 1))
		f.want(f.do(f.append0(streamT, 0, "c2", 4, 1)), fenced(5))
		tenure := f.token(0, 1)
		if tenure.Fence != 6 {
			f.Fatalf("the next owner got token %d, want 6", tenure.Fence)
		}
	}},
	{"ES-03 the losers of a race burn no positions", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c0", 0, 1))
		const racers = 100
		out := make([][]events.Verdict, racers)
		errs := make([]error, racers)
		for i := range racers {
			a := f.append0(streamS, 1, fmt.Sprint("c", i+1), 0, 1)
			f.others.Go(func() { out[i], errs[i] = f.try(a) })
		}
		f.others.Wait()
		won := 0
		for i := range racers {
			f.must(errs[i])
			if out[i][0].Kind == events.Appended {
				won++
				f.want(out[i], appended(2, 2))
			} else {
				f.want(out[i], conflict(2))
			}
		}
		if won != 1 {
			f.Fatalf("%d of the racers won", won)
		}
		f.want(f.do(f.append0(streamT, 0, "d", 0, 1)), appended(1, 3))
	}},
	{"ES-04 an append of no events is a fault, and nothing is touched", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		for _, n := range []int{0, -1} {
			none := f.append0(streamS, 1, "y", 0, 1)
			none.N = n
			_, err := f.try(f.append0(streamT, 0, "c2", 0, 1), none)
			f.wantErr(err, events.ErrInvalidAppend)
			none.Events = nil
			_, err = f.try(none)
			f.wantErr(err, events.ErrInvalidAppend)
		}
		f.wantEnd(0, 1)
	}},
	{"ES-06 one loser aborts none of its neighbours in a group commit", func(f *fixture) {
		before := f.faults.commitsSoFar()
		f.want(
			f.do(
				f.append0(streamA, 0, "c1", 0, 2), f.append0(streamA, 0, "c2", 0, 1), f.append0(streamB, 0, "c3", 0, 1),
				f.append0(streamC, 5, "c4", 0, 1), f.append0(streamA, 2, "c5", 0, 1),
			),
			appended(2, 2), conflict(2), appended(1, 3), conflict(0), appended(3, 4),
		)
		if n := f.faults.commitsSoFar() - before; n != 1 && !f.Features.NoHooks {
			f.Fatalf("the batch took %d commits to disk, want 1", n)
		}
		var order []string
		for _, c := range f.tail(0) {
			order = append(order, fmt.Sprintf("%s %d+%d at %d", c.Stream.ID(), c.First, c.N, c.Position))
		}
		if got, want := strings.Join(order, ", "), "a 1+2 at 2, b 1+1 at 3, a 3+1 at 4"; got != want {
			f.Fatalf("the log holds %s; want %s", got, want)
		}
	}},
	{"ES-07 a late repeat is a duplicate even of a zombie, and all else it appends is fenced", func(f *fixture) {
		seventh := f.token(0, 7)
		first := f.append0(streamS, 0, "c1", 7, 1)
		f.want(f.do(first), appended(1, 1))
		for v := events.Version(1); v < 5; v++ {
			f.do(f.append0(streamS, v, fmt.Sprint("more-", v), 7, 1))
		}
		f.must(f.Store.Release(f.Context(), seventh))
		f.token(0, 8)
		f.want(f.do(first), duplicate(1, 1))
		f.want(f.do(f.append0(streamS, 5, "c9", 7, 1)), fenced(8))
		f.want(f.do(f.append0(streamS, 4, "c10", 7, 1)), fenced(8))
		f.want(f.do(f.append0(streamT, 0, "c12", 7, 1)), fenced(8))
		f.wantEnd(0, 5)
		f.want(f.do(f.append0(streamS, 5, "c11", 0, 1)), appended(6, 6))
	}},
	{"a fence holds in its own partition only", func(f *fixture) {
		f.token(0, 3)
		f.token(1, 1)
		f.want(f.do(f.appendTo(1, streamT, 0, "c1", 1, 1)), appended(1, 1))
		f.want(f.do(f.append0(streamS, 0, "c2", 1, 1)), fenced(3))
	}},
}

var limits = []rule{
	{"a stream stays in the partition of its birth", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		_, err := f.try(f.appendTo(1, streamT, 0, "c2", 0, 1), f.appendTo(1, streamS, 1, "c3", 0, 1))
		f.wantErr(err, events.ErrInvalidAppend)
		f.wantEnd(0, 1)
		f.wantEnd(1, 0)
		if _, err := f.Store.Head(f.Context(), streamT); err == nil {
			f.Fatal("a neighbour of the refused append was stored")
		}
	}},
	{"a repeat that names another partition is refused too", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		_, err := f.try(f.appendTo(1, streamS, 0, "c1", 0, 1))
		f.wantErr(err, events.ErrInvalidAppend)
	}},
	{"what is not well formed is refused, with all that came with it", func(f *fixture) {
		for what, spoil := range map[string]func(*events.Append){
			"a partition that is not the call's": func(a *events.Append) { a.Partition = 1 },
			"a stream without an id":             func(a *events.Append) { a.Stream = "order/acme" },
			"a stream of four parts":             func(a *events.Append) { a.Stream = "order/acme/a/b" },
			"no stream":                          func(a *events.Append) { a.Stream = "" },
			"a version below none":               func(a *events.Append) { a.Expected = -1 },
			"a token below none":                 func(a *events.Append) { a.Fence = -1 },
			"no command id":                      func(a *events.Append) { a.Command = events.ID{} },
			"events without bytes":               func(a *events.Append) { a.Events = nil },
		} {
			bad := f.append0(streamS, 0, "c1", 0, 1)
			spoil(bad)
			batch := []*events.Append{f.append0(streamT, 0, "c2", 0, 1), bad}
			err := f.Store.Append(f.Context(), 0, batch, make([]events.Verdict, 2))
			if !errors.Is(err, events.ErrInvalidAppend) {
				f.Errorf("%s: got %v, want %v", what, err, events.ErrInvalidAppend)
			}
		}
		f.wantEnd(0, 0)
	}},
	{"a partition that is not there is refused", func(f *fixture) {
		for _, p := range []events.Partition{-1, partitions} {
			_, err := f.try(f.appendTo(p, streamS, 0, "c1", 0, 1))
			f.wantErr(err, events.ErrInvalidAppend)
		}
	}},
	{"an answer that has no room is refused", func(f *fixture) {
		batch := []*events.Append{f.append0(streamS, 0, "c1", 0, 1), f.append0(streamT, 0, "c2", 0, 1)}
		f.wantErr(f.Store.Append(f.Context(), 0, batch, make([]events.Verdict, 1)), events.ErrInvalidAppend)
		f.wantEnd(0, 0)
	}},
	{"the largest commit is taken, a larger one is refused before anything is touched", func(f *fixture) {
		fits := f.append0(streamS, 0, "c1", 0, 1)
		fits.N, fits.Events = 0, nil
		frame := len(f.frame(nil, nil, events.Origin{})) // around a body
		for room := events.CommitBytesMax - len(fits.Envelope); room > 0; room = room - frame - events.EventsBytesMax {
			fits.Events = f.frame(fits.Events, make([]byte, min(events.EventsBytesMax, room-frame)), events.Origin{})
			fits.N++
		}
		f.chain(fits)
		large := *fits
		large.Envelope = append(slices.Clone(fits.Envelope), 0)
		_, err := f.try(f.append0(streamT, 0, "c2", 0, 1), &large)
		f.wantErr(err, events.ErrTooLarge)
		f.wantEnd(0, 0)
		f.want(f.do(fits), appended(events.Version(fits.N), events.Position(fits.N)))
		f.wantStored(fits)
	}},
	{"the longest commit is taken, a longer one is refused", func(f *fixture) {
		many := f.append0(streamS, 0, "c1", 0, events.CommitEventsMax)
		f.want(f.do(many), appended(events.CommitEventsMax, events.CommitEventsMax))
		more := f.append0(streamT, 0, "c2", 0, events.CommitEventsMax+1)
		_, err := f.try(more)
		f.wantErr(err, events.ErrTooLarge)
		f.want(f.do(f.append0(streamS, events.CommitEventsMax, "c3", 0, 1)),
			appended(events.CommitEventsMax+1, events.CommitEventsMax+1))
	}},
}
