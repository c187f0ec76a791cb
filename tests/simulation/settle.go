package simulation

import (
	"bytes"
	"slices"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// settleSteps is how long a run may take to come to rest once nothing fails any more.
const settleSteps = 60_000

// settle ends the faults. Whoever was deposed dies, what was late arrives, and everything must come to an end.
func (s *sim) settle() {
	s.faults = false
	for _, p := range slices.Clone(s.zombies) {
		s.kill(p)
	}
	for range settleSteps {
		if s.err != nil {
			return
		}
		s.stats.Steps++
		if s.act() {
			continue
		}
		if done := s.wakeSleepers(); done {
			return
		}
	}
	s.bad("it does not come to rest")
}

// wakeSleepers resumes what is paused. Nothing else may be open when nothing happens any more.
func (s *sim) wakeSleepers() (done bool) {
	done = true
	for _, name := range s.log.order {
		switch h := s.log.streams[name]; {
		case h.state.Status() == execution.Paused:
			s.request(name, commands.ResumeExecution{}, false)
			done = false
		case h.state.Open():
			s.bad("%s is %s and nothing more happens: %d of %d tasks settled, %s", name, h.state.Status(),
				h.state.Settled(), h.state.Tasks(), h.openTasks())
			return true
		}
	}
	return done
}

func (h *history) openTasks() (all []any) {
	h.state.EachReady(func(t int32) { all = append(all, t, h.state.Task(t)) })
	h.state.EachTimer(func(t int32, until events.Time) { all = append(all, t, until) })
	return all
}

// audit holds what is left to what must be left: nothing but the log.
func (s *sim) audit() {
	if s.err != nil {
		return
	}
	p := s.cur
	for _, left := range []struct {
		n    int
		what string
	}{
		{p.agent.InFlight(), "attempts in flight"},
		{p.agent.Waiting(), "tasks that wait"},
		{p.owner.Timers(), "timers"},
		{p.owner.Lane().Len(), "hot streams"},
		{p.owner.Lane().Flights(), "appends in flight"},
		{len(p.receipts), "receipts"},
		{len(s.works), "works"},
		{len(s.writes), "writes"},
	} {
		if left.n != 0 {
			s.bad("%d %s are left", left.n, left.what)
		}
	}
	if x, n := p.attempts.Kept(); x > 0 || n > 0 {
		s.bad("%d attempts of %d executions are believed to count", n, x)
	}
	if s.stats.Takeovers > 0 { // those of the dead end by themselves
		s.now = s.now.Add(31e9)
	}
	for _, t := range tenants {
		holders, err := s.slots.Holders(ctx, t)
		s.must(err)
		if len(holders) > 0 {
			s.bad("%d slots of %s are left: %+v", len(holders), t, holders[0])
		}
	}
	for _, q := range s.calls {
		if !q.done {
			s.bad("%T on %s was never answered", q.command, q.stream)
		}
	}
	for _, name := range s.log.order {
		h := s.log.streams[name]
		l, err := s.handler.Load(ctx, name)
		s.must(err)
		if err == nil && (l.Version != h.version || !bytes.Equal(aggs[0].Encode(l.State, nil), h.state.Encode(nil))) {
			s.bad("%s as loaded is not the fold of its events", name)
		}
		s.count(h)
		if err := h.tiles(); err != nil {
			s.bad("%s: %v", name, err)
		}
	}
	s.verify()
	s.viewsAgree()
}

func (s *sim) count(h *history) {
	switch h.state.Status() {
	case execution.Completed:
		s.stats.Completed++
	case execution.Failed:
		s.stats.Failed++
	case execution.Cancelled:
		s.stats.Cancelled++
	case execution.TimedOut:
		s.stats.TimedOut++
	}
}
