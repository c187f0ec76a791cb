// Package dispatcher sends the tasks of executions to the queue when they may run, and watches over what it has sent.
// It decides nothing about an execution and never blocks: it is an agent of the owner's state machine.
package dispatcher

import (
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
	"github.com/sluice-platform/sluice/processors/workflow"
)

const (
	// windowMax is how many tasks of a partition may be in the queue and not known to have started.
	windowMax = 1000
	// resendAfter is the dispatch deadline: an attempt of which nothing was heard is sent again. A queue may lose it.
	resendAfter = 30 * time.Second
	// timeoutGrace is what the owner gives a worker beyond the task's timeout to report it itself.
	timeoutGrace = time.Second
	// heldAfter is from when on a wait for a slot is a fact.
	heldAfter = 250 * time.Millisecond
	// slotLasts is how long a slot lives unless it is renewed; slotRenew is how often it is.
	slotLasts = 30 * time.Second
	slotRenew = 10 * time.Second
	// slotRetry is how long tasks wait for a refused slot before they ask again, if no slot is freed here meanwhile.
	slotRetry = 50 * time.Millisecond
	// coarse is what dispatch deadlines are rounded up to, so that a thousand of them are a few timers.
	coarse = events.Time(250_000)
)

// Config is what a Dispatcher is made of.
type Config struct {
	Partition events.Partition
	Cache     *handle.Refs
	// Gone says that a worker surely no longer runs, because the process that it lived in has ended.
	Gone func(worker string) bool
}

// Out collects what the dispatcher wants done, in this order.
type Out struct {
	Frees  []kernel.SlotRequest
	Renews []kernel.SlotRequest
	Closed []workflow.Item // attempts that no longer count
	Takes  []kernel.SlotRequest
	Sends  []workflow.Item
}

// Reset empties out and keeps its memory.
func (o *Out) Reset() {
	*o = Out{Frees: o.Frees[:0], Renews: o.Renews[:0], Closed: o.Closed[:0], Takes: o.Takes[:0], Sends: o.Sends[:0]}
}

// SlotLasts is how long the slots are to be taken and renewed for.
const SlotLasts = slotLasts

// Dispatcher is the agent of one partition's executions.
type Dispatcher struct {
	cfg    Config
	owner  *owner.Owner
	lines  lines
	taking []*flight // in the order of the Takes that have not been answered
	sent   flights   // that hold a slot
	queued int       // of the window
	renew  events.Time
	out    Out
}

// New makes the agent of an owner and gives it the executions.
func New(cfg Config, o *owner.Owner) *Dispatcher {
	d := &Dispatcher{cfg: cfg, owner: o, lines: newLines()}
	o.Serve(execution.Category, d)
	return d
}

// Out returns what has gathered since the last Reset of it. The driver empties it after each step.
func (d *Dispatcher) Out() *Out { return &d.out }

// InFlight is how many attempts hold a slot here.
func (d *Dispatcher) InFlight() int { return len(d.sent) }

// Waiting is how many tasks wait for the window or a slot here.
func (d *Dispatcher) Waiting() int { return d.lines.waiting }

// exec is what the dispatcher knows of one execution; it hangs on the hot stream.
type exec struct {
	plan    *dag.Plan
	flights map[int32]*flight
}

func (d *Dispatcher) exec(h *handle.Hot) *exec {
	x, ok := h.Data.(*exec)
	if !ok {
		x = &exec{flights: make(map[int32]*flight, 2)}
		h.Data = x
	}
	return x
}

func state(h *handle.Hot) *execution.State { return h.State.(*execution.State) }

// plan returns the execution's plan, from the cache or kept from before; nil while it is being loaded.
func (d *Dispatcher) plan(h *handle.Hot, x *exec) *dag.Plan {
	if x.plan == nil {
		r := aggregates.Ref{Kind: aggregates.RefPlan, Hash: state(h).Definition()}
		if v, ok := d.cfg.Cache.Get(h.Stream, r); ok {
			x.plan = v.(*dag.Plan)
		} else {
			d.owner.Want(h, r)
		}
	}
	return x.plan
}

// Read compares what was believed of an execution with its state: flights that no longer count are closed, tasks that
// may run are lined up, deadlines are set. It is all that take-over needs.
func (d *Dispatcher) Read(h *handle.Hot, now events.Time) {
	x, s := d.exec(h), state(h)
	for _, f := range x.inOrder() {
		if !s.Sendable(f.task, f.attempt) || f.phase == pending && !s.Dispatching() {
			d.close(x, f)
			continue
		}
		if st, ok := s.Started(f.task); ok && x.plan != nil && !d.gone(st.Worker) {
			d.started(h, x, f, st, 0) // stored by an append whose answer told nothing of it
		}
	}
	if !s.Dispatching() || d.plan(h, x) == nil {
		d.deadline(h, s)
		return
	}
	s.EachReady(func(t int32) { d.ready(h, x, t, now) })
	d.deadline(h, s)
	d.timers(h, s, now)
}

// ready lines a task up, unless it is under way or its retry is not due.
func (d *Dispatcher) ready(h *handle.Hot, x *exec, t int32, now events.Time) {
	if x.flights[t] != nil {
		return
	}
	s := state(h)
	if at := s.RetryAt(t); at > now {
		d.owner.Arm(h, at)
		return
	}
	f := &flight{hot: h, task: t, attempt: s.Attempt(t), readyAt: now}
	if started, ok := s.Started(t); ok && !d.adopt(h, x, f, started, now) {
		return
	}
	x.flights[t] = f
	if f.phase == pending {
		d.lines.push(f, lineKey{h.Stream.Tenant(), x.plan.Tasks[t].Type})
	}
}

// adopt deals with an attempt that is known to have started under an earlier owner: its worker may live, and is waited
// for; or it is surely gone. It returns false when the attempt is over.
func (d *Dispatcher) adopt(h *handle.Hot, x *exec, f *flight, st execution.Started, now events.Time) bool {
	task := &x.plan.Tasks[f.task]
	gone := d.gone(st.Worker)
	switch {
	case gone && task.Repeatable:
		return true // the same attempt goes to another worker
	case gone:
		d.offer(h, commands.TimeOutTask{Task: f.task, Attempt: f.attempt, Why: "lost", SentAt: st.SentAt, Deadline: now})
		return false
	}
	f.phase, f.sentAt, f.startedAt = running, st.SentAt, st.StartedAt
	f.due = st.StartedAt.Add(task.Timeout + timeoutGrace)
	f.request = slotRequest(h, task, f)
	d.sent.add(f)
	d.out.Renews = append(d.out.Renews, f.request)
	d.owner.Arm(h, f.due)
	return true
}

func (d *Dispatcher) gone(worker string) bool { return d.cfg.Gone != nil && d.cfg.Gone(worker) }

func (d *Dispatcher) deadline(h *handle.Hot, s *execution.State) {
	if at := s.Deadline(); at != 0 && s.Open() {
		d.owner.Arm(h, at)
	}
}

func (d *Dispatcher) timers(h *handle.Hot, s *execution.State, now events.Time) {
	s.EachTimer(func(t int32, until events.Time) {
		if until > now {
			d.owner.Arm(h, until)
			return
		}
		d.offer(h, commands.FireTimer{Task: t})
	})
}

func (d *Dispatcher) offer(h *handle.Hot, c commands.ExecutionCommand) {
	d.owner.Offer(h, handle.Machine{Command: c, Origin: events.Origin{Actor: "owner"}})
}

// Stored follows the facts that were decided here.
func (d *Dispatcher) Stored(h *handle.Hot, facts []events.Fact, now events.Time) {
	x, s := d.exec(h), state(h)
	if d.plan(h, x) == nil {
		return // Read comes when it is there
	}
	for i := range facts {
		switch e := facts[i].Event.(type) {
		case events.TasksReady:
			d.lineUp(h, x, e, now)
		case events.TaskCompleted:
			d.closeTask(x, e.Task)
		case events.TaskFailed:
			d.closeTask(x, e.Task)
			if e.Next == events.NextRetry && s.Dispatching() {
				d.owner.Arm(h, e.RetryAt)
			}
		case events.TimerStarted:
			d.owner.Arm(h, e.Until)
		case events.TaskStarted:
			if f := x.flights[e.Task]; f != nil && f.attempt == e.Attempt {
				st := execution.Started{Worker: e.Worker, SentAt: e.SentAt, StartedAt: e.StartedAt}
				d.started(h, x, f, st, time.Duration(e.SlotWait)*time.Microsecond)
			}
		case events.ExecutionTimedOut, events.ExecutionCancelled, events.ExecutionCompleted:
			for _, f := range x.inOrder() {
				d.close(x, f)
			}
		case events.ExecutionFailed:
			for _, f := range x.inOrder() {
				if f.phase == pending {
					d.close(x, f)
				}
			}
		}
	}
	d.deadline(h, s)
}

func (d *Dispatcher) lineUp(h *handle.Hot, x *exec, e events.TasksReady, now events.Time) {
	if !state(h).Dispatching() {
		return
	}
	for t := e.From; t < e.To; t++ {
		d.ready(h, x, t, now)
	}
	for _, t := range e.Tasks {
		d.ready(h, x, t, now)
	}
}

// started watches over an attempt that runs, for as long as its timeout: sent from here, or by an earlier owner
// while it
// waits for its slot here, or taken over by another worker.
func (d *Dispatcher) started(h *handle.Hot, x *exec, f *flight, st execution.Started, slot time.Duration) {
	task := &x.plan.Tasks[f.task]
	switch f.phase {
	case pending:
		d.lines.waiting--
		f.request = slotRequest(h, task, f)
		d.sent.add(f)
		d.out.Renews = append(d.out.Renews, f.request)
	case queued:
		d.queued--
	case running:
		if f.startedAt == st.StartedAt {
			return
		}
	default:
		return
	}
	f.phase, f.startedAt = running, st.StartedAt
	f.sentAt, f.slotWait = st.SentAt, slot // of the send that has arrived
	f.due = st.StartedAt.Add(task.Timeout + timeoutGrace)
	d.owner.Arm(h, f.due)
}

// Settled says whether what a worker reported still counts: it brought something about, or its attempt is the one
// that runs.
func (d *Dispatcher) Settled(h *handle.Hot, m handle.Machine, facts int) bool {
	if facts > 0 {
		return true
	}
	c, ok := m.Command.(commands.StartTask)
	if !ok || h.State == nil || !state(h).Sendable(c.Task, c.Attempt) {
		return false
	}
	started, ok := state(h).Started(c.Task)
	if !ok || started.Worker != c.Worker { // another worker's start of the same attempt does not count
		return false
	}
	// Told again, or begun again: what must not run twice may have had its effect, and its result was lost.
	plan := d.exec(h).plan
	return started.StartedAt == c.StartedAt || plan != nil && plan.Tasks[c.Task].Repeatable
}

// Fire acts on every deadline of an execution that has passed, and sets the next.
func (d *Dispatcher) Fire(h *handle.Hot, now events.Time) {
	x, s := d.exec(h), state(h)
	if at := s.Deadline(); at != 0 && at <= now && s.Open() {
		d.offer(h, commands.TimeOutExecution{})
		return
	}
	if d.plan(h, x) == nil {
		return
	}
	var held []int32
	for _, f := range x.inOrder() {
		switch f.phase {
		case pending:
			held = d.waits(h, f, now, held)
		case queued, running:
			d.overdue(h, x, f, now)
		}
	}
	if len(held) > 0 {
		f := x.flights[held[0]]
		d.offer(h, commands.HoldTasks{Tasks: held, Reason: f.reason, Since: f.readyAt})
	}
	if s.Dispatching() {
		s.EachRetry(func(t int32, _ events.Time) { d.ready(h, x, t, now) })
		d.timers(h, s, now)
	}
	d.deadline(h, s)
}

// overdue acts on a deadline of something that was sent.
func (d *Dispatcher) overdue(h *handle.Hot, x *exec, f *flight, now events.Time) {
	if f.due > now {
		d.owner.Arm(h, f.due)
		return
	}
	if f.phase == running {
		d.offer(h, commands.TimeOutTask{
			Task: f.task, Attempt: f.attempt, Why: "timeout", SentAt: f.sentAt, Deadline: f.due, SlotWait: f.slotWait,
		})
		f.due = now.Add(resendAfter) // if that decides nothing, ask again
		d.owner.Arm(h, f.due)
		return
	}
	if !state(h).Dispatching() {
		d.close(x, f)
		return
	}
	f.due = roundUp(now.Add(resendAfter))
	d.owner.Arm(h, f.due)
	d.out.Sends = append(d.out.Sends, d.item(h, x, f))
}

// waits adds a task to those held once it has waited for its slot for long enough. One command holds the tasks of one
// reason; others follow at the next deadline.
func (d *Dispatcher) waits(h *handle.Hot, f *flight, now events.Time, held []int32) []int32 {
	switch at := f.readyAt.Add(heldAfter); {
	case f.held || f.reason == "":
	case at > now:
		d.owner.Arm(h, at)
	case len(held) > 0 && d.exec(h).flights[held[0]].reason != f.reason:
		d.owner.Arm(h, now.Add(heldAfter))
	default:
		f.held = true
		return append(held, f.task)
	}
	return held
}

func roundUp(t events.Time) events.Time { return (t + coarse - 1) / coarse * coarse }

// Busy keeps an execution in memory while something of it is under way.
func (d *Dispatcher) Busy(h *handle.Hot) bool {
	x, ok := h.Data.(*exec)
	return ok && len(x.flights) > 0
}
