package execution

import (
	"cmp"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// waits are the tasks that wait for a time, by time and task. A sorted slice: what is moved when one is put in is a
// few bytes each, and whoever asks what is due looks at the front only.
type waits []wait

type wait struct {
	at   events.Time
	task int32
}

func (w wait) compare(x wait) int {
	if c := cmp.Compare(w.at, x.at); c != 0 {
		return c
	}
	return cmp.Compare(w.task, x.task)
}

func (ws *waits) add(w wait) {
	i, _ := slices.BinarySearchFunc(*ws, w, wait.compare)
	*ws = slices.Insert(*ws, i, w)
}

func (ws *waits) remove(w wait) {
	if i, ok := slices.BinarySearchFunc(*ws, w, wait.compare); ok {
		*ws = slices.Delete(*ws, i, i+1)
	}
}

// NextWait is the earliest time that a timer or a back-off ends; 0 when there is none.
func (s *State) NextWait() events.Time {
	if len(s.waits) == 0 {
		return 0
	}
	return s.waits[0].at
}

// EachWait calls f, by time, for the timers and back-offs that end by then, until f returns false. f must not change
// the state. It costs what it finds.
func (s *State) EachWait(by events.Time, f func(t int32, at events.Time, isTimer bool) bool) {
	for _, w := range s.waits {
		if w.at > by || !f(w.task, w.at, s.flights[w.task].phase == timer) {
			return
		}
	}
}

// EachRetry calls f, by time, for the tasks in back-off.
func (s *State) EachRetry(f func(t int32, at events.Time)) { s.eachWait(backOff, f) }

// EachTimer calls f, by time, for the timers that run.
func (s *State) EachTimer(f func(t int32, until events.Time)) { s.eachWait(timer, f) }

func (s *State) eachWait(p phase, f func(int32, events.Time)) {
	for _, w := range s.waits {
		if s.flights[w.task].phase == p {
			f(w.task, w.at)
		}
	}
}
