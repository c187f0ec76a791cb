package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	tasktest "github.com/sluice-platform/sluice/gateways/tasks/test"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/worker"
)

// work is one delivery in a worker's hands.
type work struct {
	proc    *proc
	cfg     *worker.Config
	job     *worker.Job
	gone    <-chan struct{}
	run     *workflow.Work // while its handler runs
	returns events.Time    // when the handler does; 0: it hangs
	cause   error          // why the handler was told to end
	tick    events.Time
}

// report is what a worker says, on its way to the owner.
type report struct {
	work    *work
	stream  events.Stream
	command commands.ExecutionCommand
}

// effect is what must not happen twice, of a task that is not repeatable.
type effect struct {
	stream        events.Stream
	task, attempt int32
}

const lockLasts = 30 * time.Second

var handled = map[string]bool{"test": true, "transform": true}

// counts is what live.Attempts asks of the log.
func (s *sim) counts(ctx context.Context, it workflow.Item) (bool, error) {
	head, err := s.store.Head(ctx, it.Stream)
	return head.Open, err
}

// deliverItem gives an item of the queue to a worker: any item, to any process that lives, at times twice or never.
func (s *sim) deliverItem() bool {
	if len(s.queue) == 0 || s.faults && len(s.works) > 40 {
		return false
	}
	i := s.r.IntN(len(s.queue))
	it := s.queue[i]
	if !s.odd(6) {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	if s.odd(4) {
		return true
	}
	p := s.cur
	if len(s.zombies) > 0 && s.r.IntN(3) == 0 {
		p = s.zombies[s.r.IntN(len(s.zombies))]
	}
	w := &work{proc: p, cfg: &worker.Config{Name: fmt.Sprintf("worker-%d", p.life), Types: handled, Lock: lockLasts}}
	w.job = worker.NewJob(w.cfg, workflow.Delivery{Item: it, Receipt: "r", Until: s.now.Add(lockLasts)})
	s.works = append(s.works, w)
	s.drive(w, worker.Received{})
	return true
}

// drive steps a job until it waits for something.
func (s *sim) drive(w *work, in worker.Input) {
	for in != nil {
		out := w.job.Step(in, s.now)
		in = s.perform(w, out)
		w.tick = out.Wake
		if w.job.Done() {
			s.works = slices.DeleteFunc(s.works, func(x *work) bool { return x == w })
			return
		}
	}
}

func (s *sim) perform(w *work, out *worker.Effects) (in worker.Input) {
	d := w.job.Delivery()
	if out.Cancel != nil {
		w.cause, w.returns = out.Cancel, s.now
	}
	if out.Start != nil {
		s.reports = append(s.reports, &report{w, d.Stream, *out.Start})
	}
	switch {
	case out.Abandon:
		w.run, in = nil, worker.Abandoned{}
	case out.Begin:
		gone, err := w.proc.attempts.Begin(ctx, d.Item, w.cfg.Name)
		w.gone, in = gone, worker.Began{Err: err}
	case out.Load != nil:
		refs, err := w.proc.refs.Load(ctx, d.Stream, out.Load)
		if s.odd(3) {
			err = events.ErrClosed
		}
		in = worker.Loaded{Refs: refs, Err: err}
	case out.Run != nil:
		s.begins(w, out.Run)
	case out.Store != nil:
		name, err := s.blobs.Put(ctx, d.Stream.Tenant(), out.Store)
		in = worker.Stored{Name: name, Err: err}
	case out.Result != nil:
		if s.odd(3) {
			in = worker.Reported{Err: events.ErrClosed}
			break
		}
		s.reports = append(s.reports, &report{w, d.Stream, *out.Result})
		in = worker.Reported{}
	case out.Renew:
		in = worker.Renewed{}
		if s.odd(10) {
			in = worker.Renewed{Err: workflow.ErrLockLost}
		}
	}
	if out.End {
		w.proc.attempts.End(d.Item)
	}
	if st := out.Settle; st != nil && st.Outcome == workflow.Release {
		s.queue = append(s.queue, d.Item)
	} else if st != nil && st.Outcome == workflow.Reject {
		s.bad("an item was rejected: %+v", d.Item)
	}
	return in
}

// begins runs a handler for a while, at times for ever.
func (s *sim) begins(w *work, run *workflow.Work) {
	w.run = run
	w.returns = s.now.Add(time.Duration(s.r.IntN(30_000)) * time.Microsecond)
	if s.r.IntN(4) == 0 {
		w.returns = s.now.Add(time.Duration(s.r.IntN(8_000)) * time.Millisecond)
	}
	if s.odd(4) {
		w.returns = 0
	}
	h := s.log.streams[run.Stream]
	if h.plan.Tasks[run.Task].Repeatable {
		return
	}
	e := effect{run.Stream, run.Task, run.Attempt}
	switch s.effects[e] {
	case "":
		s.effects[e] = w.cfg.Name
	case w.cfg.Name:
		s.bad("%s task %d is not repeatable, and %s runs attempt %d twice", e.stream, e.task, w.cfg.Name, e.attempt)
	default:
		s.bad("%s task %d is not repeatable, and attempt %d runs at %s and %s", e.stream, e.task, e.attempt, s.effects[e],
			w.cfg.Name)
	}
}

func (w *work) isGone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

func (w *work) wake() events.Time {
	if w.run != nil && w.returns != 0 && (w.tick == 0 || w.returns < w.tick) {
		return w.returns
	}
	return w.tick
}

// work lets one worker go on.
func (s *sim) work() bool {
	if len(s.works) == 0 {
		return false
	}
	at := s.r.IntN(len(s.works))
	for i := range s.works {
		w := s.works[(at+i)%len(s.works)]
		switch {
		case w.gone != nil && w.isGone():
			w.gone = nil
			s.drive(w, worker.Gone{})
		case w.run != nil && w.returns != 0 && w.returns <= s.now:
			s.returned(w)
		case w.tick != 0 && w.tick <= s.now:
			if w.run != nil && !s.odd(10) {
				s.drive(w, worker.Beat{At: s.now})
			}
			s.drive(w, worker.Tick{})
		default:
			continue
		}
		return true
	}
	return false
}

func (s *sim) returned(w *work) {
	run := *w.run
	w.run = nil
	if w.cause != nil {
		s.drive(w, worker.Returned{Failure: &commands.Failure{Class: events.Transient, Code: "cancelled"}})
		return
	}
	output, failure := tasktest.Handler{}.Run(ctx, run)
	s.drive(w, worker.Returned{Output: output, Failure: failure})
}

// deliverReport brings what a worker says to an owner, at times twice or never.
func (s *sim) deliverReport() bool {
	if len(s.reports) == 0 {
		return false
	}
	i := s.r.IntN(len(s.reports))
	rep := s.reports[i]
	if !s.odd(8) {
		s.reports = slices.Delete(s.reports, i, i+1)
	}
	if s.odd(5) {
		return true
	}
	p := s.cur
	if rep.work.proc != p && !rep.work.proc.ended && s.r.IntN(2) == 0 {
		p = rep.work.proc
	}
	s.receipt++
	p.receipts[s.receipt] = rep
	p.in.Machines = append(p.in.Machines, owner.Offer{Stream: rep.stream, Machine: handle.Machine{
		Command: rep.command, Origin: events.Origin{Actor: rep.work.cfg.Name}, Receipt: s.receipt,
	}})
	p.pending = true
	return true
}

// reply answers a start that a worker waits with.
func (s *sim) reply(rep *report, counts bool) {
	if slices.Contains(s.works, rep.work) && !rep.work.job.Done() {
		s.drive(rep.work, worker.Answered{Counts: counts})
	}
}
