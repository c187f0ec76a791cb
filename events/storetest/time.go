package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
)

var times = []rule{
	{"recorded_at is the store's clock, the same in the verdict and in the commit", func(f *fixture) {
		f.clock.pass(90 * time.Minute)
		a := f.append0(streamS, 0, "c1", 0, 1)
		v := f.do(a)[0]
		if c := f.wantStored(a); c.At != v.At || !f.Features.OwnClock && v.At != start.Add(90*time.Minute) {
			f.Fatalf("the commit says %s, the verdict %s", c.At, v.At)
		}
		f.clock.pass(time.Hour)
		if again := f.do(a)[0]; again.At != v.At {
			f.Fatalf("the repeat was recorded at %s, the original at %s", again.At, v.At)
		}
	}},
	{"recorded_at never decreases in a partition, although the clock falls", func(f *fixture) {
		last := events.Time(0)
		for i, at := range []time.Duration{time.Hour, time.Minute, -time.Hour, 2 * time.Hour, 2 * time.Hour, 0} {
			f.clock.set(start.Add(at))
			got := f.do(f.append0(streamS, events.Version(i), fmt.Sprint("c", i), 0, 1))[0].At
			if want := max(last, start.Add(at)); got < last || !f.Features.OwnClock && got != want {
				f.Fatalf("append %d was recorded at %s, want %s", i, got, want)
			}
			last = got
		}
	}},
	{"nor when the store was opened anew", func(f *fixture) {
		f.clock.pass(time.Hour)
		last := f.do(f.append0(streamS, 0, "c1", 0, 1))[0].At
		f.reopen()
		f.clock.set(start)
		if got := f.do(f.append0(streamS, f.versionOf(streamS), "c2", 0, 1))[0].At; got < last && !f.Features.Forgets {
			f.Fatalf("recorded at %s after %s", got, last)
		}
	}},
}
