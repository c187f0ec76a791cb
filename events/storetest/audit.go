package storetest

import (
	"bytes"

	"github.com/sluice-platform/sluice/events"
)

// tail reads a whole partition.
func (f *fixture) tail(p events.Partition) (all []events.Commit) {
	f.Helper()
	return f.tailOf(f.Store, p)
}

func (f *fixture) tailOf(r events.Reader, p events.Partition) (all []events.Commit) {
	f.Helper()
	for {
		after := events.Position(0)
		if n := len(all); n > 0 {
			after = all[n-1].Position
		}
		page, err := r.Tail(f.Context(), p, after, 100)
		f.must(err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// wantStored compares every field of the commit that a made with a itself.
func (f *fixture) wantStored(a *events.Append) events.Commit {
	f.Helper()
	c, err := f.Store.CommitAt(f.Context(), a.Stream, a.Expected+1)
	f.must(err)
	same := c.Stream == a.Stream && c.Partition == a.Partition && c.First == a.Expected+1 && c.N == a.N &&
		c.Command == a.Command && c.Fence == a.Fence && c.Hash == a.Hash &&
		bytes.Equal(c.Envelope, a.Envelope) && bytes.Equal(c.Events, a.Events)
	if !same || c.At == 0 || c.Position < events.Position(a.N) {
		f.Fatalf("the commit of %s at version %d came back as another one: %+.200v", a.Stream, a.Expected, c)
	}
	return c
}

// audit holds the whole log to what is true at any time: it ends every test.
func (f *fixture) audit() {
	f.Helper()
	f.faults.heal()
	known := map[events.Stream]*events.Commit{}
	for p := range events.Partition(partitions) {
		var seen events.Position
		var token events.Fence
		var at events.Time
		for _, c := range f.tail(p) {
			if c.Partition != p || c.Before() != seen {
				f.Fatalf("%s at version %d stands at positions %d to %d of partition %d; %d was the last one of %d",
					c.Stream, c.First, c.Before()+1, c.Position, c.Partition, seen, p)
			}
			if c.At < at || c.Fence != 0 && c.Fence < token {
				f.Fatalf("position %d of partition %d: time %s after %s, token %d after %d",
					c.Position, p, c.At, at, c.Fence, token)
			}
			f.auditCommit(known[c.Stream], &c)
			seen, at, token = c.Position, c.At, max(token, c.Fence)
			known[c.Stream] = &c
		}
		end, highest, err := f.Store.End(f.Context(), p)
		f.must(err)
		if end != seen || highest < token {
			f.Fatalf("partition %d ends at %d with token %d; its commits end at %d with %d", p, end, highest, seen, token)
		}
	}
	for s, c := range known {
		if h := f.head(s); h.Version != c.Last() || h.Hash != c.Hash || h.Partition != c.Partition || h.Stream != s {
			f.Fatalf("the head of %s says version %d of partition %d; its last commit ends at %d in %d, or the hash differs",
				s, h.Version, h.Partition, c.Last(), c.Partition)
		}
		f.auditStream(s, c)
	}
}

// auditCommit holds one commit against the one before it in its stream.
func (f *fixture) auditCommit(last, c *events.Commit) {
	f.Helper()
	var prev events.Hash
	var v events.Version
	if last != nil {
		prev, v = last.Hash, last.Last()
	}
	if c.First != v+1 {
		f.Fatalf("%s goes on from version %d at %d", c.Stream, v, c.First)
	}
	if got := events.Chain(prev, c.Stream, c.First, c.N, c.Envelope, c.Events); got != c.Hash {
		f.Fatalf("the hash of %s at version %d is not that of its stored bytes", c.Stream, c.First)
	}
	if _, err := events.Decode(c, codec{}); err != nil {
		f.Fatal(err)
	}
}

// auditStream reads a stream by its name and finds the commits that the partition holds.
func (f *fixture) auditStream(s events.Stream, last *events.Commit) {
	f.Helper()
	var end events.Version
	for {
		page, err := f.Store.Commits(f.Context(), s, end, 100)
		f.must(err)
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			if c.First != end+1 || c.Stream != s {
				f.Fatalf("%s read by its name goes on from version %d with %s at %d", s, end, c.Stream, c.First)
			}
			end = c.Last()
		}
	}
	if end != last.Last() {
		f.Fatalf("%s read by its name ends at version %d, in its partition at %d", s, end, last.Last())
	}
}
