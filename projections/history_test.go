package projections_test

import (
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

func TestAnOlderCopyOfTheStoreUnderALiveConsumerIsNoticed(t *testing.T) {
	live := func(t *testing.T) *feeding {
		f := newFeeding(t, sums(nil))
		f.book.ones(1_099)
		f.settle()
		f.at(1_099)
		return f
	}
	older := func(f *feeding, upTo events.Position) {
		f.book.commits = f.book.commits[:999:999]
		f.book.salt = 1
		f.book.ones(upTo)
	}
	for _, c := range []struct {
		name string
		do   func(f *feeding)
	}{
		{"it ends below the checkpoint", func(f *feeding) { older(f, 1_010) }},
		{"it has grown to the checkpoint", func(f *feeding) { older(f, 1_099) }},
		{"it has grown past the checkpoint", func(f *feeding) { older(f, 1_500) }},
		{"its commits have other bounds", func(f *feeding) {
			older(f, 1_098)
			f.book.write("thing/acme/ones", known(1, 1, 1)...)
		}},
		{"it is in another incarnation, though every hash fits", func(f *feeding) {
			f.book.incarnation = 2
			f.in.Now = events.Time(5_000_000) // the silence of a feed makes the runner ask the log
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := live(t)
			c.do(f)
			f.in.Now += 2_000_000
			o := f.until(projections.DoRebuild, projections.DoApply)
			if o.Do != projections.DoRebuild || o.Why == "" {
				t.Fatalf("it went on: %+v", o)
			}
			if f.step().Do != projections.DoRebuild {
				t.Error("it came back to life")
			}
			f.want("all", 1_099, 1_099)
		})
		t.Run(c.name+", while nobody consumed", func(t *testing.T) {
			f := live(t)
			c.do(f)
			f.restart()
			if o := f.until(projections.DoRebuild, projections.DoApply); o.Do != projections.DoRebuild {
				t.Fatalf("it went on: %+v", o)
			}
		})
	}
	t.Run("a feed that speaks of another history is not believed against the store", func(t *testing.T) {
		f := live(t)
		ghosts := newBook()
		ghosts.salt = 1
		ghosts.ones(1_105)
		f.ports.Feed = &topic{ghosts.commits}
		f.settle()
		f.at(1_099)
		f.book.ones(1_101)
		f.settle()
		f.settle()
		f.at(1_101)
		f.want("all", 1_101, 1_101)
	})
}
