package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

var reads = []rule{
	{"an empty log is empty everywhere", func(f *fixture) {
		for p := range events.Partition(partitions) {
			end, fence, err := f.Store.End(f.Context(), p)
			f.must(err)
			if end != 0 || fence != 0 || len(f.tail(p)) != 0 {
				f.Fatalf("partition %d ends at %d with token %d", p, end, fence)
			}
		}
		f.wantNoStream(streamS, 1)
	}},
	{"a log says what it is, the same every time", func(f *fixture) {
		one, err := f.Store.Log(f.Context())
		f.must(err)
		f.do(f.append0(streamS, 0, "c1", 0, 1))
		two, err := f.Store.Log(f.Context())
		f.must(err)
		if one != two || one.ID == (events.ID{}) || one.Incarnation != 1 || one.Partitions != partitions {
			f.Fatalf("got %+v, then %+v", one, two)
		}
	}},
	{"every field of a commit comes back, byte by byte", func(f *fixture) {
		fence := f.token(2, 3).Fence
		a := f.appendTo(2, streamS, 0, "c1", fence, 1)
		env := events.Envelope{
			Actor: "ann", Reason: "zażółć", Correlation: "story", Cause: "cause", Trace: "00-1-2-01", OccurredAt: start - 5,
			KeyID: "k1", KeyDigest: events.Hash{31: 7},
		}
		a.Envelope = env.Append(nil)
		origin := events.Origin{Command: commandOf("own"), Actor: "worker", Cause: "result"}
		a.Events = f.frame(f.frame(a.Events, nil, events.Origin{}), every256(), origin)
		a.N = 3
		f.chain(a)
		v := f.do(a)[0]
		c := f.wantStored(a)
		if c.Position != v.Position || c.At != v.At || c.Position != 3 {
			f.Fatalf("the commit says %d at %d, its verdict %d at %d", c.Position, c.At, v.Position, v.At)
		}
		rs, err := events.Decode(&c, codec{})
		f.must(err)
		last := rs[2]
		if *last.Commit != env || last.Command != origin.Command || last.Actor != origin.Actor ||
			last.Cause != origin.Cause || rs[1].Actor != "ann" ||
			!bytes.Equal(last.Body, every256()) || last.Version != 3 || last.Position != 3 {
			f.Fatalf("decoded to %+v", last)
		}
	}},
	{"an envelope may be empty", func(f *fixture) {
		a := f.append0(streamS, 0, "c1", 0, 1)
		a.Envelope = nil
		f.chain(a)
		f.do(a)
		f.wantStored(a)
	}},
	{"a tail goes on anywhere, also inside a commit, and a page holds whole commits", func(f *fixture) {
		ends := f.fourCommits()
		for after := range ends[3] + 2 {
			for _, most := range []int{1, 2, 3, 100} {
				var want []events.Position
				for _, e := range ends {
					if e > after && len(want) < most {
						want = append(want, e)
					}
				}
				page, err := f.Store.Tail(f.Context(), 0, after, most)
				f.must(err)
				var got []events.Position
				for _, c := range page {
					got = append(got, c.Position)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					f.Fatalf("after %d at most %d: commits that end at %v, want %v", after, most, got, want)
				}
			}
		}
	}},
	{"a stream is read from any version, in pages", func(f *fixture) {
		ends := f.fourCommits()
		f.do(f.append0(streamT, 0, "other", 0, 1))
		for after := range events.Version(ends[3]) + 2 {
			for _, most := range []int{1, 2, 100} {
				var want []events.Version
				for i := range ends {
					first := events.Version(1)
					if i > 0 {
						first = events.Version(ends[i-1]) + 1
					}
					if first > after && len(want) < most {
						want = append(want, first)
					}
				}
				page, err := f.Store.Commits(f.Context(), streamS, after, most)
				f.must(err)
				var got []events.Version
				for _, c := range page {
					got = append(got, c.First)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					f.Fatalf("after version %d at most %d: commits from %v, want %v", after, most, got, want)
				}
			}
		}
	}},
	{"each event's commit is found by version", func(f *fixture) {
		ends := f.fourCommits()
		for v := events.Version(1); v <= events.Version(ends[3]); v++ {
			c, err := f.Store.CommitAt(f.Context(), streamS, v)
			f.must(err)
			if v < c.First || v > c.Last() || c.Stream != streamS {
				f.Fatalf("version %d was found in the commit of %s, versions %d to %d", v, c.Stream, c.First, c.Last())
			}
		}
		for _, v := range []events.Version{-1, 0, events.Version(ends[3]) + 1, 1 << 40} {
			f.wantNoCommit(streamS, v)
		}
	}},
	{"what is read is the reader's: writing to it changes nothing in the store", func(f *fixture) {
		a := f.append0(streamS, 0, "c1", 0, 2)
		a.Head = events.HeadUpdate{Open: true, Snapshot: []byte("state at 2")}
		stored := *a
		stored.Envelope, stored.Events = bytes.Clone(a.Envelope), bytes.Clone(a.Events)
		f.do(a)
		page, err := f.Store.Commits(f.Context(), streamS, 0, 1)
		f.must(err)
		at, err := f.Store.CommitAt(f.Context(), streamS, 2)
		f.must(err)
		for _, c := range append(append(page, at), f.tail(0)...) {
			clear(c.Envelope)
			clear(c.Events)
			_ = append(c.Envelope, 1, 2, 3)
		}
		clear(f.head(streamS).Snapshot)
		f.wantStored(&stored)
		if h := f.head(streamS); string(h.Snapshot) != "state at 2" {
			f.Fatalf("the snapshot became %q", h.Snapshot)
		}
	}},
	{"partitions number their events apart", func(f *fixture) {
		f.want(f.do(f.appendTo(1, streamA, 0, "c1", 0, 2)), appended(2, 2))
		f.want(f.do(f.appendTo(3, streamB, 0, "c2", 0, 3)), appended(3, 3))
		f.want(f.do(f.appendTo(1, streamC, 0, "c3", 0, 1)), appended(1, 3))
		if one := f.tail(1); len(one) != 2 || one[0].Stream != streamA || one[1].Stream != streamC {
			f.Fatalf("partition 1 holds %d commits", len(one))
		}
		f.wantEnd(0, 0)
	}},
}

// fourCommits gives streamS commits of 3, 1, 5 and 2 events and returns the positions at which they end.
func (f *fixture) fourCommits() (ends []events.Position) {
	f.Helper()
	for i, k := range []int{3, 1, 5, 2} {
		var v events.Version
		if i > 0 {
			v = events.Version(ends[i-1])
		}
		ends = append(ends, f.do(f.append0(streamS, v, fmt.Sprint("c", i), 0, k))[0].Position)
	}
	return ends
}

// every256 holds every byte there is.
func every256() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func (f *fixture) wantNoCommit(s events.Stream, v events.Version) {
	f.Helper()
	if c, err := f.Store.CommitAt(f.Context(), s, v); !errors.Is(err, events.ErrNoStream) {
		f.Fatalf("%s at version %d: got a commit of %s and %v, want %v", s, v, c.Stream, err, events.ErrNoStream)
	}
}

func (f *fixture) wantNoStream(s events.Stream, v events.Version) {
	f.Helper()
	_, err := f.Store.Head(f.Context(), s)
	f.wantErr(err, events.ErrNoStream)
	f.wantNoCommit(s, v)
	page, err := f.Store.Commits(f.Context(), s, 0, 10)
	f.must(err)
	if len(page) != 0 {
		f.Fatalf("%s has %d commits, want none", s, len(page))
	}
}
