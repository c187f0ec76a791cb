package projections_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

func TestES02AHoleInTheFeedStopsTheConsumerUntilItIsFilledFromTheStore(t *testing.T) {
	hole := func(t *testing.T) *feeding {
		f := newFeeding(t, sums(nil))
		f.book.ones(10)
		f.settle()
		f.at(10)
		f.book.ones(13)
		f.ports.Feed = &topic{f.book.commits[11:13]} // 12 and 13
		return f
	}
	t.Run("the store has what the feed left out", func(t *testing.T) {
		f := hole(t)
		f.settle()
		f.at(13)
		f.want("all", 13, 13)
		if s := f.r.Stats(); s.Filled != 1 || s.Gap {
			t.Errorf("%+v", s)
		}
	})
	t.Run("the store hides it: nothing above is applied, and it goes on by itself", func(t *testing.T) {
		f := hole(t)
		f.book.hidden = map[events.Position]bool{11: true}
		for range 5 {
			f.settle()
			f.at(10)
			f.want("all", 10, 10)
			if !f.r.Stats().Gap {
				t.Fatal("no feed_gap")
			}
		}
		f.book.hidden = nil
		f.settle()
		f.settle()
		f.at(13)
		f.want("all", 13, 13)
		if s := f.r.Stats(); s.Filled != 1 || s.Gap {
			t.Errorf("%+v", s)
		}
	})
	t.Run("the store is away", func(t *testing.T) {
		f := hole(t)
		f.book.away = errors.New("no route")
		for range 3 {
			f.settle()
			f.want("all", 10, 10)
			if !f.r.Stats().Gap {
				t.Fatal("no feed_gap")
			}
		}
		f.book.away = nil
		f.until(projections.DoApply)
		f.settle()
		f.at(13)
	})
	t.Run("a hole above what can be applied does not hold that back", func(t *testing.T) {
		f := newFeeding(t, sums(nil))
		f.book.ones(3)
		f.settle()
		f.book.ones(9)
		f.book.hidden = map[events.Position]bool{6: true}
		f.ports.Feed = &topic{slices.Concat(f.book.commits[3:5], f.book.commits[6:9])} // 4, 5, 7, 8, 9
		f.settle()
		f.at(5)
		f.want("all", 5, 5)
	})
}

func TestES22TwoRunnersOfOnePartition(t *testing.T) {
	f := newFeeding(t, sums(nil))
	f.book.ones(50)
	f.settle()
	other := *f
	other.restart()
	other.settle()
	f.book.ones(60)
	f.until(projections.DoFeed)
	other.until(projections.DoFeed)
	other.settle()
	f.settle()
	f.want("all", 60, 60)
	f.at(60)
	if !slices.Contains(f.did[len(f.did)-6:], projections.DoOpen) {
		t.Errorf("the loser did not drop its state: %v", f.did)
	}
	f.book.ones(61)
	f.settle()
	other.settle()
	f.want("all", 61, 61)
}

func TestES23ReadingResumesAtTheCheckpointWhateverTheFeedHolds(t *testing.T) {
	for name, records := range map[string]func(all []events.Commit) []events.Commit{
		"the feed starts anew from the beginning": func(all []events.Commit) []events.Commit { return all },
		"the feed holds only the end":             func(all []events.Commit) []events.Commit { return all[899:] },
		"the feed doubles":                        func(all []events.Commit) []events.Commit { return slices.Concat(all[480:510], all[490:]) },
		"the feed is wiped and goes on": func(all []events.Commit) []events.Commit {
			return all[len(all)-1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeding(t, sums(nil))
			f.book.ones(500)
			f.settle()
			f.book.ones(1_001)
			f.ports.Feed = &topic{records(f.book.commits)}
			f.restart()
			for range 5 {
				f.settle()
			}
			f.at(1_001)
			f.want("all", 1_001, 1_001)
		})
	}
	t.Run("a silent feed is not waited for longer than a second", func(t *testing.T) {
		f := newFeeding(t, sums(nil))
		f.book.ones(500)
		f.ports.Feed = &topic{}
		f.settle()
		f.book.ones(501)
		f.settle()
		f.at(500)
		f.in.Now += 1_000_000
		f.settle()
		f.at(501)
	})
}

func TestES25APoisonEventDoesNotMakeItsNeighbourCountTwice(t *testing.T) {
	poison := true
	f := newFeeding(t, sums(func(n int64) {
		if poison && n == 100 {
			panic("X1 is poison")
		}
	}))
	f.book.write("thing/acme/x", known(100)...)
	f.book.write("thing/acme/y", known(5)...)
	f.settle()
	f.want("y", 5, 1)
	f.want("x", 0, 0)
	f.at(2)
	wantParked(t, f, projections.Parked{
		Stream: "thing/acme/x", Version: 1, Position: 1, Reason: projections.ParkPanic, Detail: "X1 is poison", Waiting: 1,
	})
	f.book.write("thing/acme/x", known(10)...)
	f.book.write("thing/acme/y", known(1)...)
	f.settle()
	for range 3 { // however often it is tried again, here and by a process that starts
		f.in.Retry = true
		f.settle()
		f.restart()
		f.settle()
		f.want("y", 6, 2)
		f.want("all", 6, 2)
		f.at(4)
		wantParked(t, f, projections.Parked{
			Stream: "thing/acme/x", Version: 1, Position: 1, Reason: projections.ParkPanic, Detail: "X1 is poison", Waiting: 2,
		})
		if p := f.page(); p.Incomplete != 1 {
			t.Errorf("incomplete: %d", p.Incomplete)
		}
	}
	poison = false
	f.book.write("thing/acme/x", known(1_000)...) // in the log and not seen yet: the retry leaves it to the feed
	f.in.Retry = true
	f.settle()
	f.want("x", 1_110, 3)
	f.want("y", 6, 2)
	f.want("all", 1_116, 5)
	wantParked(t, f)
	if p := f.page(); p.Incomplete != 0 {
		t.Errorf("incomplete: %d", p.Incomplete)
	}
	f.sameAsRebuild()
}

func wantParked(t *testing.T, f *feeding, want ...projections.Parked) {
	t.Helper()
	if got := f.parked(); !slices.Equal(got, want) {
		t.Errorf("parked\n%+v, want\n%+v", got, want)
	}
}

// failing is a view whose batches fail, written or not, as often as it is told.
type failing struct {
	projections.Views
	before, after int
}

func (v *failing) Apply(ctx context.Context, w projections.View, b *projections.Batch) error {
	if v.before > 0 {
		v.before--
		return errors.New("disk is full")
	}
	err := v.Views.Apply(ctx, w, b)
	if v.after > 0 && err == nil {
		v.after--
		return errors.New("connection lost")
	}
	return err
}

func TestES25TheCacheShowsOnlyWhatIsCommitted(t *testing.T) {
	for _, broken := range []failing{{before: 3}, {after: 3}, {before: 1, after: 1}} {
		f := newFeeding(t, sums(nil))
		f.book.ones(5)
		f.settle()
		broken.Views = f.ports.Views
		f.ports.Views = &broken
		for n := events.Position(6); n < 12; n++ {
			f.book.ones(n)
			f.settle()
		}
		f.settle()
		f.want("all", 11, 11)
		f.want("ones", 11, 11)
		f.at(11)
	}
}

func TestES26TheRunnerTheRetryAndTheRebuildUpcast(t *testing.T) {
	const v1 = 7 // hundredths; see numbers
	f := newFeeding(t, sums(nil))
	for range 3 {
		f.book.write("thing/acme/a", frame(borrowed, v1, 150_00))
	}
	f.codec.broken = map[string]bool{"15000": true}
	f.restart()
	f.settle()
	f.want("a", 0, 0)
	f.codec.broken = nil
	f.restart()
	f.settle()
	f.want("a", 450, 3)
	f.sameAsRebuild()
}

func TestES29AStoredFaultDoesNotOutliveTheFix(t *testing.T) {
	m := sums(func(n int64) {
		if n == 7 {
			panic("fault")
		}
	})
	f := newFeeding(t, m)
	for n := range int64(9) {
		f.book.write("thing/acme/a", known(n+1)...)
	}
	f.settle()
	wantParked(t, f, projections.Parked{
		Stream: "thing/acme/a", Version: 7, Position: 7, Reason: projections.ParkPanic, Detail: "fault", Waiting: 3,
	})
	fixed := sums(nil)
	fixed.Version = 2
	live := f.view
	v, err := f.ports.Views.Begin(t.Context(), fixed)
	if err == nil {
		err = f.ports.Views.Loaded(t.Context(), v, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.view = v
	f.restart()
	f.settle()
	f.want("a", 45, 9)
	wantParked(t, f)
	f.view = live
	if len(f.parked()) != 1 {
		t.Error("the old version's fault is gone")
	}
}

func TestES37WhatThisBuildDoesNotKnowParksItsStream(t *testing.T) {
	f := newFeeding(t, sums(nil))
	f.book.write("thing/acme/a", known(1)...)
	f.book.write("thing/acme/a", append(known(2), frame("workflow.of_tomorrow", 1, 3), known(4)[0])...)
	f.book.write("thing/acme/b", frame(borrowed, 8, 5))
	f.book.write("other/acme/c", frame("workflow.of_tomorrow", 1, 3))
	f.book.write("thing/acme/a", known(6)...)
	f.book.write("thing/acme/d", known(7)...)
	f.settle()
	f.at(8)
	f.want("a", 3, 2)
	f.want("all", 10, 3)
	wantParked(t, f,
		projections.Parked{
			Stream: "thing/acme/a", Version: 3, Position: 3, Reason: projections.ParkUnknownSchema,
			Detail: "workflow.of_tomorrow", Waiting: 3,
		},
		projections.Parked{
			Stream: "thing/acme/b", Version: 1, Position: 5, Reason: projections.ParkUnknownSchema, Waiting: 1,
			Detail: fmt.Sprintf("%s of schema 8: event is of a newer build", borrowed),
		})
	f.sameAsRebuild()
	t.Run("a type that the model does not want is not decoded, and one of a newer build still parks", func(t *testing.T) {
		m := sums(nil)
		m.Types = []events.Type{"workflow.other"}
		f := newFeeding(t, m)
		f.book.write("thing/acme/a", frame(borrowed, 8, 1))
		f.book.write("thing/acme/b", frame("workflow.of_tomorrow", 1, 1))
		f.settle()
		f.at(2)
		if ps := f.parked(); len(ps) != 1 || ps[0].Stream != "thing/acme/b" {
			t.Errorf("%+v", ps)
		}
	})
}

func TestWF25BadRecordsDoNotStopGoodOnes(t *testing.T) {
	f := newFeeding(t, sums(nil))
	for n := range int64(10) {
		for s := range 100 {
			body := n + 1
			if n == 3 && s%5 == 0 {
				body = 404
			}
			f.book.write(events.Stream(fmt.Sprintf("thing/acme/s%02d", s)), known(body)...)
		}
	}
	f.codec.broken = map[string]bool{"404": true}
	f.restart()
	f.settle()
	s := f.r.Stats()
	if s.Applied != 860 || s.Parked != 20 || s.Waiting != 140 || !s.Quiet {
		t.Errorf("%+v", s)
	}
	f.at(1_000)
	f.want("all", 80*55+20*6, 860)
	if p := f.page(); p.Incomplete != 20 {
		t.Errorf("incomplete: %d", p.Incomplete)
	}
	f.sameAsRebuild()
	f.codec.broken = nil
	f.restart()
	f.settle()
	f.want("all", 80*55+20*(51+404), 1_000)
	wantParked(t, f)
	if s := f.r.Stats(); s.Applied != 140 {
		t.Errorf("%+v", s)
	}
	f.sameAsRebuild()
}

func TestAStreamThatFailsAgainFurtherOnKeepsTheRightCount(t *testing.T) {
	bad := map[int64]bool{3: true, 1_500: true, 2_400: true}
	f := newFeeding(t, sums(func(n int64) {
		if bad[n] {
			panic(n)
		}
	}))
	for n := range int64(2_500) { // more than a page of one stream
		f.book.write("thing/acme/a", known(n+1)...)
	}
	f.settle()
	left := func(version events.Version, waiting int64) {
		t.Helper()
		ps := f.parked()
		if len(ps) != 1 || ps[0].Version != version || ps[0].Waiting != waiting || ps[0].Reason != projections.ParkPanic {
			t.Errorf("%+v", ps)
		}
	}
	left(3, 2_498)
	delete(bad, 3)
	f.in.Retry = true
	f.settle()
	left(1_500, 1_001)
	f.want("a", 1_499*1_500/2, 1_499)
	clear(bad)
	f.restart()
	f.settle()
	wantParked(t, f)
	f.want("a", 2_500*2_501/2, 2_500)
	f.sameAsRebuild()
}

func TestABatchIsBounded(t *testing.T) {
	f := newFeeding(t, sums(nil))
	f.book.ones(2 * projections.BatchCommitsMax)
	for range 2 {
		if b := f.until(projections.DoApply).Batch; b.To.Position-b.From.Position > projections.BatchCommitsMax+1 {
			t.Errorf("from %d to %d", b.From.Position, b.To.Position)
		}
	}
}

func TestRowsThatAPageNeedsAreAskedForTogether(t *testing.T) {
	f := newFeeding(t, sums(nil))
	for range 2 {
		for s := range 100 {
			f.book.write(events.Stream(fmt.Sprintf("thing/acme/s%02d", s)), known(1)...)
		}
	}
	f.restart()
	f.settle()
	asked := 0
	for _, d := range f.did {
		if d == projections.DoRows {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times: %v", asked, f.did)
	}
	f.want("all", 200, 200)
}

func TestARowThatApplyRemovesWithoutLookingIsRemoved(t *testing.T) {
	m := sums(nil)
	add := m.Apply
	m.Apply = func(e events.Recorded, get projections.Get) []projections.Change {
		if e.Event.(added) > 0 {
			return add(e, get)
		}
		gone := projections.Row{"acme", e.Stream.ID(), nil, nil}
		return []projections.Change{{Table: "each", Row: gone, Delete: true}}
	}
	f := newFeeding(t, m)
	f.book.write("thing/acme/a", known(3)...)
	f.settle()
	f.want("a", 3, 1)
	f.book.write("thing/acme/a", known(-1)...)
	f.restart() // and nothing is known of the row any more
	f.settle()
	f.want("a", 0, 0)
}
