// Package worker takes deliveries of the queue from receipt to settlement: it runs their handlers and reports how they
// ended. It never writes execution state and never decides what a failure means.
package worker

import (
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Config is what the jobs of one worker share.
type Config struct {
	Name  string          // of the worker: drawn anew at every start, so that a name stands for one life
	Types map[string]bool // of tasks that have a handler here
	Lock  time.Duration   // how long a delivery is locked for; it is renewed when half of that is left
}

const (
	// startAfter is from when on the start of an attempt is a fact of its own (DESIGN §4).
	startAfter = time.Second
	// answerMax bounds the wait for the owner's word that an attempt may start. A report may be lost.
	answerMax = 10 * time.Second
	// grace is what a handler has to return once it was cancelled; then the job goes on without it.
	grace = 5 * time.Second
	// rest is how long a job that could not be prepared keeps its delivery, so that a store that is down is not asked
	// by every worker in a tight circle.
	rest = time.Second
	// triesMax bounds how often an output is stored, and a result reported: about a minute and a half.
	triesMax = 20
	// retryFirst and retryMost are the waits between those tries, doubling from one to the other.
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

type phase uint8

const (
	received phase = iota
	beginning
	planning
	hydrating
	awaiting // the owner's word that the start counts
	running
	storing
	reporting
	resting
	done
)

// Job is one delivery on its way to its settlement: a state machine without goroutines, channels or a clock. Its driver
// carries out the effects of each step in the order of their fields, and steps again with what they brought.
type Job struct {
	cfg   *Config
	d     workflow.Delivery
	phase phase
	began bool // Attempts.Begin said yes

	task *Task
	work workflow.Work

	startedAt, endedAt events.Time
	output             events.Payload
	failure            *commands.Failure
	verdict            *verdict // why the handler was cancelled, if it was
	wait               waits
	tries              int

	out Effects
}

// waits are the moments at which a job wants a Tick; 0: none.
type waits struct {
	renew, start, timeout, beat, abandon, answer, retry events.Time
}

// NewJob makes the job of a delivery. The first input is Received.
func NewJob(cfg *Config, d workflow.Delivery) *Job {
	j := &Job{cfg: cfg, d: d}
	j.wait.renew = d.Until.Add(-cfg.Lock / 2)
	return j
}

// Delivery is what the job is about.
func (j *Job) Delivery() *workflow.Delivery { return &j.d }

// Done says that the job has ended. No step follows.
func (j *Job) Done() bool { return j.phase == done }

// Running says that a handler was started for the job and has not been heard of.
func (j *Job) Running() bool { return j.phase == running }

// Name is the task's name once the plan is known.
func (j *Job) Name() string { return j.work.Name }

// Step takes one input at a time. What it returns is valid until the next step. An input that the phase does not wait
// for changes nothing.
func (j *Job) Step(in Input, now events.Time) *Effects {
	j.out = Effects{}
	switch in := in.(type) {
	case Received:
		j.receive(now)
	case Began:
		j.begin(in.Err, now)
	case Loaded:
		j.loaded(in, now)
	case Answered:
		j.answered(in.Counts, now)
	case Returned:
		j.returned(in, now)
	case Abandoned:
		j.abandoned(now)
	case Stored:
		j.stored(in, now)
	case Reported:
		j.reported(in.Err, now)
	case Renewed:
		j.renewed(in.Err, now)
	case Beat:
		if j.wait.beat != 0 && j.verdict == nil {
			j.wait.beat = in.At.Add(j.task.Heartbeat)
		}
	case Tick:
		j.tick(now)
	case Gone:
		j.gone(now)
	case Drained:
		j.drained(now)
	}
	j.out.Wake = j.wake()
	return &j.out
}

// receive checks the envelope. What nobody can read is kept out of the way.
func (j *Job) receive(now events.Time) {
	if j.phase != received {
		return
	}
	it := &j.d.Item
	switch {
	case it.Stream.Check() != nil, it.Task < 0, it.Attempt < 1, it.Type == "", it.Definition == (events.Hash{}):
		j.settle(workflow.Reject)
	case j.d.Until <= now: // somebody else may have it; whatever is said of it is without effect
		j.phase = done
	default:
		j.phase, j.out.Begin = beginning, true
	}
}

func (j *Job) begin(err error, now events.Time) {
	switch {
	case j.phase != beginning:
	case isGone(err):
		j.settle(workflow.Accept)
	case err != nil:
		j.restThenRelease(now)
	default:
		j.began = true
		if !j.cfg.Types[j.d.Type] {
			j.fail(permanent("unknown_type", "this build has no handler for tasks of type %.40q", j.d.Type), now)
			return
		}
		j.phase, j.out.Load = planning, []aggregates.Ref{{Kind: aggregates.RefPlan, Hash: j.d.Definition}}
	}
}

// answered is the owner's word about the start.
func (j *Job) answered(counts bool, now events.Time) {
	switch {
	case j.phase != awaiting:
	case counts:
		j.run(now)
	default:
		j.settle(workflow.Accept)
	}
}

// start begins the work. What must not run twice, or is watched by heartbeat, waits for the owner's word first.
func (j *Job) start(now events.Time) {
	if j.task.Repeatable && j.task.Heartbeat == 0 {
		j.wait.start = now.Add(startAfter)
		j.run(now)
		return
	}
	j.phase, j.startedAt = awaiting, now
	j.out.Start, j.out.Await = j.startTask(), true
	j.wait.answer = now.Add(answerMax)
}

func (j *Job) run(now events.Time) {
	j.phase, j.startedAt = running, now
	j.wait.answer = 0
	j.wait.timeout = now.Add(j.task.Timeout)
	if j.task.Heartbeat > 0 {
		j.wait.beat = now.Add(j.task.Heartbeat)
	}
	j.out.Run = &j.work
}

func (j *Job) startTask() *commands.StartTask {
	return &commands.StartTask{
		Task: j.d.Task, Attempt: j.d.Attempt, Worker: j.cfg.Name,
		SentAt: j.d.SentAt, StartedAt: j.startedAt, SlotWait: j.d.SlotWait,
	}
}

// tick looks at what is due.
func (j *Job) tick(now events.Time) {
	w := &j.wait
	due := func(at events.Time) bool { return at != 0 && at <= now }
	switch {
	case j.phase == done:
	case due(w.renew): // the rest is looked at when the renewal is answered
		w.renew, j.out.Renew = 0, true
	case due(w.answer), j.phase == resting && due(w.retry):
		j.settle(workflow.Release)
	case j.phase == storing && due(w.retry):
		w.retry = 0
		j.out.Store = j.output.Inline
	case j.phase == reporting && due(w.retry):
		w.retry = 0
		j.out.Result = j.result()
	case due(w.abandon):
		j.out.Abandon = true
	case due(w.timeout):
		j.cancel(timedOut("task_timeout", "the task ran longer than its timeout of %s", j.task.Timeout), now)
	case due(w.beat):
		j.cancel(timedOut("heartbeat_timeout", "no heartbeat for %s", j.task.Heartbeat), now)
	case due(w.start):
		w.start, j.out.Start = 0, j.startTask()
	}
}

func (j *Job) renewed(err error, now events.Time) {
	switch {
	case err == nil:
		j.d.Until = now.Add(j.cfg.Lock)
		j.wait.renew = now.Add(j.cfg.Lock / 2)
	case isLockLost(err): // the attempt counts all the same; only the settlement will be without effect
		j.wait.renew = 0
	default:
		j.wait.renew = now.Add(max(j.cfg.Lock/8, time.Millisecond))
	}
	j.tick(now)
}

func (j *Job) wake() (at events.Time) {
	if j.phase == done {
		return 0
	}
	w := &j.wait
	for _, t := range [...]events.Time{w.renew, w.start, w.timeout, w.beat, w.abandon, w.answer, w.retry} {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

// gone says that the attempt stopped counting.
func (j *Job) gone(now events.Time) {
	switch j.phase {
	case running:
		j.cancel(&verdict{why: gone, cause: workflow.ErrGone}, now)
	case planning, hydrating, awaiting, resting:
		j.settle(workflow.Accept)
	case received, beginning, storing, reporting, done: // not begun, or a result is there: it is recorded as late
	}
}

// drained says that this worker ends now. What did not start is given back; a result that is there is still reported.
func (j *Job) drained(now events.Time) {
	switch j.phase {
	case running:
		j.cancel(&verdict{why: drained, cause: ErrDrained}, now)
	case received, beginning, planning, hydrating, awaiting, resting:
		j.settle(workflow.Release)
	case storing, reporting:
		j.tries = triesMax
		if j.wait.retry != 0 {
			j.wait.retry = now
			j.tick(now)
		}
	case done:
	}
}

// cancel tells the handler to return. The first reason stands.
func (j *Job) cancel(v *verdict, now events.Time) {
	if j.verdict != nil {
		return
	}
	j.verdict, j.out.Cancel = v, v.cause
	j.wait.timeout, j.wait.beat, j.wait.start = 0, 0, 0
	j.wait.abandon = now.Add(grace)
}

func (j *Job) restThenRelease(now events.Time) {
	j.phase = resting
	j.wait.retry = now.Add(rest)
}

// settle ends the job.
func (j *Job) settle(o workflow.Outcome) {
	j.phase = done
	j.out.End = j.began
	j.out.Settle = &workflow.Settlement{Receipt: j.d.Receipt, Class: j.d.Class, Outcome: o}
}
