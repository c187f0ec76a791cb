package platform

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/worker"
)

// watchAfter is from when on a handler has a watchdog goroutine of its own: quicker ones cost one reset of a timer.
const watchAfter = 20 * time.Millisecond

// workerSlot runs one job at a time on its goroutine, the handler included. While a handler runs for longer than
// watchAfter, the watchdog steps the job; the two never do so at the same time.
type workerSlot struct {
	r       *workerRunner
	job     *worker.Job
	gone    <-chan struct{}
	answers chan bool // the owner's word about a start; made when first needed
	cancel  context.CancelCauseFunc

	watchdog *time.Timer
	stop     chan struct{} // the handler returned: the watchdog ends,
	stopped  chan struct{} // and says so
	holder   atomic.Int32  // who goes on with the job after Run: handlerHas, slotHas or watchdogHas
	beat     atomic.Int64  // events.Time of the last sign of life that the job was not told
}

const (
	handlerHas = iota
	slotHas
	watchdogHas
)

func newWorkerSlot(r *workerRunner) *workerSlot {
	s := &workerSlot{r: r, stop: make(chan struct{}, 1), stopped: make(chan struct{}, 1)}
	s.watchdog = time.AfterFunc(time.Hour, s.watch)
	s.watchdog.Stop()
	return s
}

func (s *workerSlot) loop() {
	for {
		d, ok := s.r.inbox.take()
		if !ok {
			return
		}
		s.r.busy.Add(1)
		s.job, s.gone = worker.NewJob(&s.r.jobs, d), nil
		if s.drive(worker.Received{}) {
			s.r.stuck.Add(-1)
			return // the watchdog has the job, and a slot of its own
		}
		s.leave()
	}
}

func (s *workerSlot) leave() {
	s.r.busy.Add(-1)
	s.r.inbox.leave(s.job.Delivery().Class)
}

// drive steps the job to its end; lost is true when the watchdog took it over meanwhile.
func (s *workerSlot) drive(in worker.Input) (lost bool) {
	for {
		out := s.job.Step(in, s.now())
		if out.Run != nil {
			if in, lost = s.run(out); lost {
				return true
			}
			continue
		}
		in = s.perform(out)
		switch {
		case s.job.Done():
			return false
		case in == nil:
			in = s.wait(out.Wake)
		}
	}
}

func (s *workerSlot) now() events.Time { return s.r.ports.Clock.Now() }

// perform carries out the effects of a step but Run, and returns the answer to the one that has an answer.
func (s *workerSlot) perform(out *worker.Effects) (in worker.Input) {
	p, d := &s.r.ports, s.job.Delivery()
	if out.Cancel != nil {
		s.cancel(out.Cancel)
	}
	if out.Start != nil {
		s.reportStart(out, d)
	}
	switch {
	case out.Begin:
		gone, err := p.Attempts.Begin(s.r.calls, d.Item, s.r.cfg.Name)
		s.gone = gone
		in = worker.Began{Err: err}
	case out.Load != nil:
		refs, err := p.Refs.Load(s.r.calls, d.Stream, out.Load)
		in = worker.Loaded{Refs: refs, Err: err}
	case out.Store != nil:
		if len(out.Store) > events.BlobBytesMax/2 {
			p.Log.Warn("output is above half of the maximum", s.about("bytes", len(out.Store), "max", events.BlobBytesMax)...)
		}
		name, err := p.Blobs.Put(s.r.calls, d.Stream.Tenant(), out.Store)
		in = worker.Stored{Name: name, Err: err}
	case out.Result != nil:
		in = worker.Reported{Err: p.Reports.Report(s.r.calls, s.report(*out.Result))}
	case out.Renew:
		in = worker.Renewed{Err: p.Queue.Renew(s.r.calls, *d, s.r.cfg.Lock)}
	}
	if out.End {
		p.Attempts.End(d.Item)
	}
	if out.Settle != nil {
		s.settle(out.Settle)
	}
	return in
}

func (s *workerSlot) settle(one *workflow.Settlement) {
	if one.Outcome == workflow.Reject {
		s.r.ports.Log.Error("task item cannot be read and is put aside", s.about()...)
	}
	if err := s.r.ports.Queue.Settle(s.r.calls, []workflow.Settlement{*one}); err != nil {
		s.r.ports.Log.Warn("settle", s.about("error", err)...) // its lock will end, and the attempt no longer counts
	}
}

func (s *workerSlot) report(c commands.ExecutionCommand) workflow.Report {
	d := s.job.Delivery()
	return workflow.Report{Stream: d.Stream, Partition: d.Partition, Command: c}
}

// reportStart loses a report that fails: one that is not waited for only shortens what explain knows, and one that is
// ends with the wait for its answer.
func (s *workerSlot) reportStart(out *worker.Effects, d *workflow.Delivery) {
	report := s.report(*out.Start)
	if out.Await {
		answers := make(chan bool, 1) // its own for each start: a late answer is for another job
		s.answers = answers
		report.Done = func(counts bool) { answers <- counts }
	}
	if err := s.r.ports.Reports.Report(s.r.calls, report); err != nil {
		s.r.ports.Log.Warn("report a start", s.about("error", err)...)
	}
}

// wait is for a job whose handler does not run.
func (s *workerSlot) wait(wake events.Time) worker.Input {
	t := time.NewTimer(s.until(wake))
	defer t.Stop()
	drain := s.r.drain
	for {
		select {
		case counts := <-s.answers:
			return worker.Answered{Counts: counts}
		case <-s.gone:
			s.gone = nil
			return worker.Gone{}
		case <-drain:
			return worker.Drained{}
		case <-t.C:
			return worker.Tick{}
		}
	}
}

func (s *workerSlot) until(wake events.Time) time.Duration {
	if wake == 0 {
		return time.Hour
	}
	return max(wake.Sub(s.now()), 0)
}

// run runs the handler on this goroutine, under the watchdog.
func (s *workerSlot) run(out *worker.Effects) (in worker.Input, lost bool) {
	w := out.Run
	ctx, cancel := context.WithCancelCause(s.r.handling)
	defer cancel(nil)
	s.cancel = cancel
	s.beat.Store(0)
	w.Heartbeat = s.heartbeat
	s.holder.Store(handlerHas)
	deadline := s.now().Std().Add(w.Timeout)
	s.watchdog.Reset(min(watchAfter, s.until(out.Wake)))
	returned := s.call(taskContext{ctx, deadline}, w)
	if !s.holder.CompareAndSwap(handlerHas, slotHas) {
		return nil, true
	}
	if !s.watchdog.Stop() {
		s.stop <- struct{}{}
		<-s.stopped
	}
	return returned, false
}

// taskContext shows a handler when its time is up; the watchdog is what ends it.
type taskContext struct {
	context.Context
	deadline time.Time
}

func (c taskContext) Deadline() (time.Time, bool) { return c.deadline, true }

// call runs the handler and turns a panic into what the job is told. The stack is for our logs alone.
func (s *workerSlot) call(ctx context.Context, w *workflow.Work) (out worker.Returned) {
	defer func() {
		if p := recover(); p != nil {
			s.r.ports.Log.Error("handler panicked", s.about("panic", p, "stack", string(debug.Stack()))...)
			out = worker.Returned{Panicked: true}
		}
	}()
	output, failure := s.r.ports.Handlers[w.Type].Run(ctx, *w)
	return worker.Returned{Output: output, Failure: failure}
}

func (s *workerSlot) heartbeat() { s.beat.Store(int64(s.now())) }

// watch is the watchdog of a handler that takes its time. It ends when the handler returns, or takes the job over when
// the handler does not return after it was cancelled; then the slot that hangs is replaced by a new one.
func (s *workerSlot) watch() {
	in := worker.Input(worker.Tick{})
	drain, gone := s.r.drain, s.gone
	for {
		if at := s.beat.Swap(0); at != 0 {
			s.job.Step(worker.Beat{At: events.Time(at)}, s.now())
		}
		out := s.job.Step(in, s.now())
		if out.Abandon && s.holder.CompareAndSwap(handlerHas, watchdogHas) {
			s.takeOver()
			return
		}
		if in = s.perform(out); in != nil {
			continue
		}
		t := time.NewTimer(s.until(out.Wake))
		select {
		case <-s.stop:
			t.Stop()
			s.stopped <- struct{}{}
			return
		case <-gone:
			gone, in = nil, worker.Gone{}
		case <-drain:
			drain, in = nil, worker.Drained{}
		case <-t.C:
			in = worker.Tick{}
		}
		t.Stop()
	}
}

// takeOver ends the job without its handler and goes on as a slot.
func (s *workerSlot) takeOver() {
	s.r.ports.Log.Error("handler does not return after it was cancelled", s.about()...)
	s.r.stuck.Add(1)
	fresh := newWorkerSlot(s.r)
	fresh.job = s.job
	s.r.slots.Go(func() {
		fresh.drive(worker.Abandoned{})
		fresh.leave()
		fresh.loop()
	})
}

// about names a task in logs: ids only.
func (s *workerSlot) about(more ...any) []any {
	d := s.job.Delivery()
	return append([]any{
		"stream", d.Stream, "task", d.Task, "attempt", d.Attempt, "type", d.Type, "worker", s.r.cfg.Name,
		"correlationId", d.Correlation, "tenantId", d.Stream.Tenant(),
	}, more...)
}
