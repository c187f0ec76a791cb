package handle

import (
	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/events"
)

// FoldForTest is a stream's fold as load and verify make it, for suites outside the package.
type FoldForTest struct{ Loaded }

// NewFoldForTest starts at nothing.
func NewFoldForTest(a aggregates.Aggregate) *FoldForTest {
	return &FoldForTest{Loaded{State: a.Initial()}}
}

// Fold takes one commit in and returns the head columns that the write path would have left behind it.
func (f *FoldForTest) Fold(c *events.Commit, codec events.Codec, a aggregates.Aggregate) (events.Head, error) {
	err := f.fold(c, codec, a)
	return events.Head{Open: a.Open(f.State), Due: headDue(a, f.State, f.At)}, err
}

// Snapshot is what the write path would store.
func (f *FoldForTest) Snapshot(a aggregates.Aggregate) []byte { return f.snapshot(a) }
