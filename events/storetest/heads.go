package storetest

import (
	"bytes"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

var heads = []rule{
	{"a head says whether its stream is open, and until when", func(f *fixture) {
		for v, u := range []events.HeadUpdate{
			{Open: true},
			{Open: true, Due: start + 40e6},
			{Open: true, Due: start + 90e6},
			{Open: true}, // clears the deadline
			{Due: start + 50e6},
			{},
		} {
			a := f.append0(streamS, events.Version(v), fmt.Sprint("c", v), 0, 1)
			a.Head = u
			f.do(a)
			h := f.head(streamS)
			want := events.Head{
				Stream: streamS, Version: events.Version(v) + 1, Hash: a.Hash, Open: u.Open, Due: u.Due, Snapshot: h.Snapshot,
			}
			if fmt.Sprint(h) != fmt.Sprint(want) || len(h.Snapshot) != 0 {
				f.Fatalf("the head is %+v, want %+v", h, want)
			}
		}
	}},
	{"ES-27 a snapshot is kept with its version until the next one", func(f *fixture) {
		for v, snapshot := range [][]byte{nil, []byte("v2"), nil, nil, []byte("v5"), nil} {
			a := f.append0(streamS, events.Version(v), fmt.Sprint("c", v), 0, 1)
			a.Head.Snapshot = snapshot
			f.do(a)
			want, at := "", events.Version(0)
			switch {
			case v >= 4:
				want, at = "v5", 5
			case v >= 1:
				want, at = "v2", 2
			}
			if h := f.head(streamS); string(h.Snapshot) != want || h.SnapshotAt != at {
				f.Fatalf("at version %d the snapshot is %q of version %d, want %q of %d", v+1, h.Snapshot, h.SnapshotAt, want, at)
			}
		}
	}},
	{"a snapshot may be small or large, in any order", func(f *fixture) {
		for v, size := range []int{100, 8 << 10, 8<<10 + 1, 300 << 10, 50, 8 << 10, 2 << 20, 10} {
			a := f.append0(streamS, events.Version(v), fmt.Sprint("c", v), 0, 2)
			a.N, a.Events = 1, f.frames("one", 1)
			a.Head.Snapshot = bytes.Repeat([]byte{byte(v), 0xff}, size/2)
			f.chain(a)
			f.do(a)
			if h := f.head(streamS); !bytes.Equal(h.Snapshot, a.Head.Snapshot) || h.SnapshotAt != events.Version(v)+1 {
				f.Fatalf("a snapshot of %d bytes came back with %d, of version %d", size, len(h.Snapshot), h.SnapshotAt)
			}
		}
	}},
	{"what is not appended changes no head", func(f *fixture) {
		f.token(0, 2)
		first := f.append0(streamS, 0, "c1", 2, 1)
		first.Head = events.HeadUpdate{Open: true, Due: start + 60e6, Snapshot: []byte("kept")}
		f.do(first)
		before := f.head(streamS)
		loud := events.HeadUpdate{Open: false, Due: 1, Snapshot: []byte("not mine")}
		repeat := *first
		repeat.Head = loud
		stale := f.append0(streamS, 0, "c2", 2, 1)
		stale.Head = loud
		zombie := f.append0(streamS, 1, "c3", 1, 1)
		zombie.Head = loud
		f.want(f.do(&repeat, stale, zombie), duplicate(1, 1), conflict(1), fenced(2))
		if after := f.head(streamS); fmt.Sprint(after) != fmt.Sprint(before) {
			f.Fatalf("the head became %+v from %+v", after, before)
		}
	}},
	{"the last of several appends in a batch makes the head", func(f *fixture) {
		one, two := f.append0(streamS, 0, "c1", 0, 1), f.append0(streamS, 1, "c2", 0, 1)
		one.Head = events.HeadUpdate{Open: true, Due: start + 60e6, Snapshot: []byte("one")}
		f.do(one, two)
		h := f.head(streamS)
		if h.Open || h.Due != 0 || h.Version != 2 || h.SnapshotAt != 1 || string(h.Snapshot) != "one" || h.Hash != two.Hash {
			f.Fatalf("the head is %+v", h)
		}
	}},
	{"open heads are listed by name, in pages, each partition's own", func(f *fixture) {
		var want []events.Head
		names := []events.Stream{
			"a/acme/1", "b/acme/1", "b/acme/10", "b/acme/2", "b/acme2/1", "order/ACME/1", "order/acme/1", "order/acmé/1",
		}
		for i := range names { // written in another order than they are listed in
			s := names[(i*5+3)%len(names)]
			a := f.append0(s, 0, "open "+string(s), 0, 1)
			a.Head = events.HeadUpdate{Open: true, Due: events.Time(len(s)) * 60e6, Snapshot: []byte("not listed")}
			closed := f.append0(s+"x", 0, "closed "+string(s), 0, 1)
			f.do(a, closed)
		}
		other := f.appendTo(1, "b/acme/3", 0, "elsewhere", 0, 1)
		other.Head.Open = true
		f.do(other)
		for _, s := range names {
			want = append(want, f.head(s))
		}
		for _, most := range []int{1, 3, 100} {
			f.wantOpen(0, most, want)
		}
		f.do(f.append0(names[2], 1, "done", 0, 1))
		f.wantOpen(0, 3, append(want[:2:2], want[3:]...))
		again := f.append0(names[2], 2, "opened again", 0, 1)
		again.Head.Open = true
		f.do(again)
		want[2] = f.head(names[2])
		f.wantOpen(0, 2, want)
		f.wantOpen(1, 2, []events.Head{f.head("b/acme/3")})
		f.wantOpen(2, 2, nil)
	}},
}

// wantOpen pages through a partition's open heads.
func (f *fixture) wantOpen(p events.Partition, most int, want []events.Head) {
	f.Helper()
	var got []events.Head
	for after := events.Stream(""); ; {
		page, err := f.Store.OpenHeads(f.Context(), p, after, most)
		f.must(err)
		if len(page) > most {
			f.Fatalf("a page of at most %d has %d heads", most, len(page))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1].Stream
	}
	if len(got) != len(want) {
		f.Fatalf("partition %d has %d open heads, want %d", p, len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		w.Snapshot, w.SnapshotAt, g.SnapshotAt = nil, 0, 0
		if len(g.Snapshot) != 0 {
			f.Fatalf("the head of %s is listed with its snapshot", g.Stream)
		}
		g.Snapshot = nil
		if fmt.Sprint(g) != fmt.Sprint(w) {
			f.Fatalf("open head %d is %+v, want %+v", i, g, w)
		}
	}
}
