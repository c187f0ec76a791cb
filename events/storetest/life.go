package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

var life = []rule{
	{"a closed store says so to everybody, and may be closed again", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		own := f.own(0, "A")
		s := f.Store
		f.must(s.Close())
		f.must(s.Close())
		ctx := f.Context()
		a := f.append0(streamS, 1, "c2", 0, 1)
		for what, call := range map[string]func() error{
			"Append":    func() error { return s.Append(ctx, 0, []*events.Append{a}, make([]events.Verdict, 1)) },
			"Head":      func() error { _, err := s.Head(ctx, streamS); return err },
			"Commits":   func() error { _, err := s.Commits(ctx, streamS, 0, 1); return err },
			"CommitAt":  func() error { _, err := s.CommitAt(ctx, streamS, 1); return err },
			"Tail":      func() error { _, err := s.Tail(ctx, 0, 0, 1); return err },
			"OpenHeads": func() error { _, err := s.OpenHeads(ctx, 0, "", 1); return err },
			"End":       func() error { _, _, err := s.End(ctx, 0); return err },
			"Log":       func() error { _, err := s.Log(ctx); return err },
			"Acquire":   func() error { _, err := s.Acquire(ctx, 0, "B", f.lasts()); return err },
			"Renew":     func() error { _, err := s.Renew(ctx, own, f.lasts()); return err },
			"Release":   func() error { return s.Release(ctx, own) },
			"Owners":    func() error { _, err := s.Owners(ctx); return err },
			"PutSeal":   func() error { return s.PutSeal(ctx, sealAt(0, 1, 1)) },
			"SealsOf":   func() error { _, err := s.SealsOf(ctx, 0, 0, 1); return err },
		} {
			if err := call(); !errors.Is(err, events.ErrClosed) {
				f.Errorf("%s: got %v, want %v", what, err, events.ErrClosed)
			}
		}
		f.reopen()
	}},
	{"a store that is opened anew is the same, byte by byte", func(f *fixture) {
		fence := f.token(1, 4).Fence
		for i, k := range []int{1, 3, 2} {
			a := f.append0(streamS, f.versionOf(streamS), fmt.Sprint("c", i), 0, k)
			a.Head = events.HeadUpdate{Open: true, Due: start + 60e6}
			if i == 1 {
				a.Head.Snapshot = []byte(strings.Repeat("state", 4000))
			}
			f.do(a, f.append0(streamT, f.versionOf(streamT), fmt.Sprint("t", i), 0, 1))
		}
		f.do(f.appendTo(1, streamA, 0, "a", fence, 2))
		f.must(f.Store.PutSeal(f.Context(), sealAt(1, 1, 2)))
		before := f.picture()
		f.reopen()
		if f.Features.Forgets {
			return
		}
		if after := f.picture(); after != before {
			f.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
		f.want(f.do(f.appendTo(1, streamB, 0, "b", fence-1, 1)), fenced(fence))
		f.want(f.do(f.appendTo(1, streamA, 0, "a", fence, 2)), duplicate(2, 2))
		f.want(f.do(f.append0(streamS, 6, "on", 0, 1)), appended(7, 10))
		f.want(f.do(f.append0(streamC, 0, "new", 0, 1)), appended(1, 11))
	}},
	{"a repeat is known also to a store that was opened since", func(f *fixture) {
		a := f.withSnapshot()
		f.loseReply(a)
		f.reopen()
		if f.Features.Forgets {
			return
		}
		f.want(f.settle(a), duplicate(2, 2))
		f.wantOnce(a)
	}},
	{"a commit that failed leaves nothing for the next opening", func(f *fixture) {
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		f.loseRequest(f.append0(streamS, 1, "c2", 0, 2), f.append0(streamT, 0, "c3", 0, 1))
		f.reopenKept()
		f.wantEnd(0, events.Position(f.versionOf(streamS)))
	}},
	{"a second process sees the same log, or is refused", func(f *fixture) {
		if f.Features.OneProcess {
			if f.Peer != nil {
				if _, err := f.Peer(f.T); err == nil {
					f.Fatal("a second process was let in")
				}
			}
			f.want(f.do(f.append0(streamS, 0, "c1", 0, 1)), appended(1, 1)) // the first one is none the worse for it
			return
		}
		other := f.peer()
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		out := make([]events.Verdict, 1)
		f.must(other.Append(f.Context(), 0, []*events.Append{f.append0(streamS, 0, "c2", 0, 1)}, out))
		f.want(out, conflict(1))
		f.must(other.Append(f.Context(), 0, []*events.Append{f.append0(streamS, 1, "c3", 0, 1)}, out))
		f.want(out, appended(2, 2))
		f.want(f.do(f.append0(streamS, 1, "c4", 0, 1)), conflict(2))
	}},
}

// versionOf is 0 for a stream without events.
func (f *fixture) versionOf(s events.Stream) events.Version { return f.headOrNone(s).Version }

// reopen closes the store and opens its data anew. Where a store forgets, what it opens must be empty.
func (f *fixture) reopen() {
	f.Helper()
	f.must(f.Store.Close())
	if f.Features.Forgets {
		f.Harness = f.again()
		f.wantEnd(0, 0)
		return
	}
	f.Store = f.Reopen(f.T)
}

// reopenKept is reopen where nothing would be left to look at otherwise.
func (f *fixture) reopenKept() {
	f.Helper()
	if !f.Features.Forgets {
		f.reopen()
	}
}

// picture is all that can be read, but for how long tenures last from now.
func (f *fixture) picture() string {
	f.Helper()
	var b strings.Builder
	info, err := f.Store.Log(f.Context())
	f.must(err)
	fmt.Fprintf(&b, "%+v\n", info)
	for p := range events.Partition(partitions) {
		end, fence, err := f.Store.End(f.Context(), p)
		f.must(err)
		fmt.Fprintf(&b, "partition %d: %d %d\n", p, end, fence)
		for _, c := range f.tail(p) {
			fmt.Fprintf(&b, "%+v\n%+v\n", c, f.head(c.Stream))
		}
		open, err := f.Store.OpenHeads(f.Context(), p, "", 100)
		f.must(err)
		sealed, err := f.Store.SealsOf(f.Context(), p, 0, 100)
		f.must(err)
		fmt.Fprintf(&b, "%+v\n%+v\n", open, sealed)
	}
	owners, err := f.Store.Owners(f.Context())
	f.must(err)
	for _, o := range owners {
		o.Left = 0
		fmt.Fprintf(&b, "%+v\n", o)
	}
	return b.String()
}
