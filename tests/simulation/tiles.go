package simulation

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// line is what the log alone says of where the time of one task went, from when its last predecessor was settled until
// it was itself.
type line struct {
	begun  *events.Envelope // the commit that has settled its last predecessor, or the submission
	heard  bool             // the log has spoken of it
	opened map[int32]events.Time
	now    int32 // attempt
	at     events.Time
	parts  map[string]time.Duration
	ended  bool
}

// to adds a part that ends at t. Parts follow each other: none may end before it begins.
func (l *line) to(part string, t events.Time) error {
	if t < l.at {
		return fmt.Errorf("%s ends at %s, before it begins at %s", part, t, l.at)
	}
	l.parts[part] += t.Sub(l.at)
	l.at = t
	return nil
}

// tiles derives where an execution's time went and holds the parts to the whole, without gap and overlap.
func (h *history) tiles() error {
	lines := make([]*line, len(h.plan.Tasks))
	settled := map[int32]bool{}
	var submitted, end *events.Envelope
	begin := func(t int32, c *events.Envelope) {
		lines[t] = &line{
			begun: c, at: c.OccurredAt, now: 1, opened: map[int32]events.Time{1: c.OccurredAt},
			parts: map[string]time.Duration{},
		}
	}
	settle := func(t int32, c *events.Envelope) {
		lines[t].ended, settled[t] = true, true
		for _, s := range h.plan.Tasks[t].Successors {
			met := true
			for _, n := range h.plan.Tasks[s].Needs {
				met = met && settled[n]
			}
			if met {
				begin(s, c)
			}
		}
	}
	for i := range h.facts {
		c := h.facts[i].Commit
		switch h.facts[i].Event.(type) {
		case events.ExecutionSubmitted:
			submitted = c
			for t := range h.plan.Tasks {
				if len(h.plan.Tasks[t].Needs) == 0 {
					begin(int32(t), c)
				}
			}
		case events.ExecutionCompleted:
			end = c
		}
		for _, t := range tasksOf(h.facts[i].Event) {
			l := lines[t]
			if !l.heard && l.begun != c {
				return fmt.Errorf("task %d may run since %s, and version %d is the first to say so",
					t, l.begun.OccurredAt, h.facts[i].Version)
			}
			l.heard = true
			done, err := l.fact(h.facts[i].Event, c.OccurredAt)
			if err != nil {
				return fmt.Errorf("task %d at version %d: %w", t, h.facts[i].Version, err)
			}
			if done {
				settle(t, c)
			}
		}
	}
	if end == nil {
		return nil
	}
	return h.path(lines, submitted.OccurredAt, end.OccurredAt)
}

func tasksOf(e events.Event) (ts []int32) {
	switch e := e.(type) {
	case events.TasksReady:
		for t := e.From; t < e.To; t++ {
			ts = append(ts, t)
		}
		return append(ts, e.Tasks...)
	case events.TimerStarted:
		return []int32{e.Task}
	case events.TaskCompleted:
		return []int32{e.Task}
	case events.TaskSkipped:
		return []int32{e.Task}
	case events.TaskFailed:
		return []int32{e.Task}
	case events.TaskRetried:
		return []int32{e.Task}
	}
	return nil
}

// fact moves the line on. done says that the task is settled.
func (l *line) fact(e events.Event, decided events.Time) (done bool, err error) {
	switch e := e.(type) {
	case events.TasksReady: // of a retried step also: its time goes on
	case events.TimerStarted:
		err = l.to("decided", decided)
	case events.TaskSkipped:
		return true, l.to("decided", decided)
	case events.TaskCompleted:
		if e.Attempt == 0 { // a pure step, or a timer: its time was up at SentAt
			return true, l.to("timer", decided)
		}
		return true, l.attempt(e.Attempt, e.SentAt, e.SlotWait, e.StartedAt, e.EndedAt, decided)
	case events.TaskFailed:
		if err := l.attempt(e.Attempt, e.SentAt, e.SlotWait, e.StartedAt, e.EndedAt, decided); err != nil {
			return false, err
		}
		if l.now = e.Attempt + 1; e.Next == events.NextRetry {
			l.opened[l.now] = e.RetryAt
		}
	case events.TaskRetried:
		err = l.to("dead-lettered", decided)
		l.now, l.opened[e.Attempt] = e.Attempt, decided
	}
	return false, err
}

// attempt tiles one attempt: back-off, dispatch, slot, queue, work, and the way into the log.
func (l *line) attempt(n int32, sent events.Time, slot int64, started, ended, decided events.Time) error {
	if n != l.now { // superseded: what has happened meanwhile is the line's, its own times are not
		return l.to("superseded", decided)
	}
	if sent == 0 { // it was never sent
		return l.to("unsent", decided)
	}
	if started == 0 {
		started = sent
	}
	for _, p := range []struct {
		name string
		to   events.Time
	}{
		{"back-off", max(l.opened[n], l.at)},
		{"dispatch", sent - events.Time(slot)},
		{"slot", sent},
		{"queue", started},
		{"work", ended},
		{"recording", decided},
	} {
		if err := l.to(p.name, p.to); err != nil {
			return err
		}
	}
	return nil
}

// path walks back from the end by whatever was waited for last: the lines on it add up to the whole.
func (h *history) path(lines []*line, submitted, end events.Time) error {
	last := int32(-1)
	for t := range h.plan.Tasks {
		if len(h.plan.Tasks[t].Successors) == 0 && (last < 0 || lines[t].at > lines[last].at) {
			last = int32(t)
		}
	}
	var total time.Duration
	for at := end; ; {
		l := lines[last]
		if l.at != at {
			return fmt.Errorf("task %d was settled at %s, and what waited for it went on at %s", last, l.at, at)
		}
		for _, d := range l.parts {
			total += d
		}
		at = l.begun.OccurredAt
		needs := h.plan.Tasks[last].Needs
		if len(needs) == 0 {
			break
		}
		last = needs[0]
		for _, n := range needs {
			if lines[n].at > lines[last].at {
				last = n
			}
		}
	}
	if total != end.Sub(submitted) {
		return fmt.Errorf("its parts sum to %s of %s", total, end.Sub(submitted))
	}
	return nil
}
