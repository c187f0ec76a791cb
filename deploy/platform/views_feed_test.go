package platform

import (
	"context"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

// countedFeed is a log of single events up to end, which counts how often it is read.
type countedFeed struct {
	end   events.Position
	reads int
}

func (f *countedFeed) Read(_ context.Context, _ events.Partition, after events.Position, most int) (out []events.Commit, _ error) {
	f.reads++
	for p := after + 1; p <= f.end && len(out) < most; p++ {
		out = append(out, events.Commit{N: 1, Position: p})
	}
	return out, nil
}

func (*countedFeed) Wait(context.Context, events.Partition, events.Position) error { return nil }

func TestModelsShareAPageOfTheFeed(t *testing.T) {
	under := &countedFeed{end: 10}
	f := newSharedFeed(under)
	read := func(after events.Position, most int, first, last events.Position, reads int) {
		t.Helper()
		cs, err := f.Read(t.Context(), 0, after, most)
		if err != nil || len(cs) == 0 || cs[0].Position != first || cs[len(cs)-1].Position != last || under.reads != reads {
			t.Errorf("after %d: %v %v, %d reads", after, cs, err, under.reads)
		}
	}
	read(3, 5, 4, 8, 1)
	read(3, 5, 4, 8, 1)
	read(5, 5, 6, 8, 1)    // the rest of the page
	read(7, 5, 8, 10, 2)   // of which there is only the reader's own commit: the log may have more
	read(4, 100, 5, 10, 3) // before the page: what lies between must not be left out
	read(4, 2, 5, 6, 3)
	under.end = 12
	read(9, 100, 10, 12, 4)
	if cs, err := f.Read(t.Context(), 1, 4, 1); err != nil || len(cs) != 1 || under.reads != 5 {
		t.Errorf("another partition: %v %v, %d reads", cs, err, under.reads)
	}
}
