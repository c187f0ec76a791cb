package execution

import (
	"slices"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

const (
	// decisionBytesMax and decisionEventsMax bound what one decision computes in place; steps beyond it run as ordinary
	// tasks. With both, an append stays well below events.CommitBytesMax and CommitEventsMax.
	decisionBytesMax  = 1 << 20
	decisionEventsMax = 4_000
)

// draft is a decision in the making, and what it has settled on top of the state: later steps of the same decision
// see that.
type draft struct {
	s      *State
	m      commands.Meta
	refs   aggregates.Refs
	plan   *dag.Plan
	events []events.ExecutionEvent

	// missing are the references to load first. From the first one on the decision is void: it is made again. It goes on
	// only to find what else it will read, with every branch taken and every step done.
	missing []aggregates.Ref
	asked   map[aggregates.Ref]bool // of missing, once they are many

	settled bitset  // done or skipped, the state's own included; nil until begin
	skipped bitset  // of settled
	reached bitset  // decided upon here
	fresh   []int32 // settled here, in their order; follow looks at their successors
	opens   int32   // open tasks, more than in the state
	failed  *events.ExecutionFailed

	outputs outputs
	lines   []line // of ready tasks, one a class
	bytes   int    // of what was computed here

	input   events.Payload // of an execution that this decision submits
	retried int32          // the step that an operator has retried, or none
	with    events.Payload // its mapping, if not empty

	// Room for what most decisions need, so that it takes no allocations of its own.
	words  [3]uint64
	few    [4]int32
	oneFew [1]line
	ready  [4]int32
}

// line are the tasks that go to one class.
type line struct {
	class string
	tasks []int32
}

func (d *draft) emit(e events.ExecutionEvent) {
	if d.events == nil {
		d.events = make([]events.ExecutionEvent, 0, 3)
	}
	d.events = append(d.events, e)
}

// version is that of the last event.
func (d *draft) version() events.Version { return d.m.Version + events.Version(len(d.events)) }

// begin makes the sets that follow works with.
func (d *draft) begin() {
	n := len(d.s.done)
	all := bitset(d.words[:])
	if 3*n > len(all) {
		all = make(bitset, 3*n)
	}
	d.settled, d.skipped, d.reached = all[:n:n], all[n:2*n:2*n], all[2*n:3*n]
	for i := range d.settled {
		d.settled[i] = d.s.done[i] | d.s.skipped[i]
	}
	copy(d.skipped, d.s.skipped)
	d.fresh = d.few[:0]
}

// complete settles a task with its output.
func (d *draft) complete(e events.TaskCompleted) {
	d.emit(e)
	if !e.Output.Empty() {
		d.outputs.add(own{e.Task, d.version(), e.Output})
	}
	d.settle(e.Task)
}

func (d *draft) skip(t int32, why string, refs []int64) {
	d.emit(events.TaskSkipped{Task: t, Why: why, Refs: refs})
	d.skipped.set(t)
	d.settle(t)
}

func (d *draft) settle(t int32) {
	if d.s.isOpen(t) {
		d.opens--
	}
	d.settled.set(t)
	d.fresh = append(d.fresh, t)
}

// follow decides all that follows from what this decision has settled: branches not taken, pure steps, timers, and
// which tasks are ready; or the end of the execution. Each successor is decided upon when its last need is settled, so
// the work is that of the edges, without recursion.
func (d *draft) follow() {
	for i := 0; i < len(d.fresh); i++ {
		for _, next := range d.plan.Tasks[d.fresh[i]].Successors {
			if d.plan.Tasks[next].Met(d.settled) {
				d.reach(next)
			}
		}
	}
	d.emitReady()
	d.conclude()
}

// conclude ends the execution if this decision has brought it about.
func (d *draft) conclude() {
	switch {
	case d.s.status == Failed:
	case d.failed != nil:
		d.emit(*d.failed)
	case d.s.settled+int32(len(d.fresh)) == d.s.tasks:
		d.end()
	case d.s.dead > 0 && d.s.open()+d.opens == 0 && len(d.missing) == 0:
		// A retried task has ended well, another dead letter is left, and nothing more will come by itself.
		d.emit(d.leftOver())
	}
}

// leftOver fails the execution for the first dead letter of the state.
func (d *draft) leftOver() (e events.ExecutionFailed) {
	e.Task = none
	d.s.ready.each(func(t int32) {
		if f := d.s.flights[t]; e.Task == none && f.phase == deadLetter {
			e = events.ExecutionFailed{Task: t, Code: f.code, Message: "the task is still dead-lettered"}
		}
	})
	return e
}

// reach decides what becomes of a task that has all it needs.
func (d *draft) reach(t int32) {
	if d.reached.has(t) {
		return
	}
	d.reached.set(t)
	task := &d.plan.Tasks[t]
	switch {
	case d.allSkipped(task):
		d.skip(t, "needs", nil)
		return
	case task.When != nil && t != d.retried:
		if !d.taken(t, task) {
			return
		}
	}
	switch {
	case task.Pure && d.inPlace(t, task):
		d.pure(t, task)
	case task.Timer:
		d.timer(t, task)
	default:
		d.lineUp(t)
	}
}

func (d *draft) allSkipped(task *dag.Task) bool {
	if len(task.Needs) == 0 {
		return false
	}
	for _, n := range task.Needs {
		if !d.skipped.has(n) {
			return false
		}
	}
	return true
}

// lineUp makes a task ready for a worker.
func (d *draft) lineUp(t int32) {
	if d.s.isOpen(t) {
		return // it is: a step that was retried, and is too large for here
	}
	d.opens++
	class := d.s.TaskClass(d.plan, t)
	if d.lines == nil {
		d.lines = append(d.oneFew[:0], line{class, append(d.ready[:0], t)})
		return
	}
	for i := range d.lines {
		if d.lines[i].class == class {
			d.lines[i].tasks = append(d.lines[i].tasks, t)
			return
		}
	}
	d.lines = append(d.lines, line{class, []int32{t}})
}

// emitReady names the tasks that may run, one event a class, as a range where it is one.
func (d *draft) emitReady() {
	for _, l := range d.lines {
		slices.Sort(l.tasks)
		first, last := l.tasks[0], l.tasks[len(l.tasks)-1]
		if int(last-first) == len(l.tasks)-1 {
			d.emit(events.TasksReady{From: first, To: last + 1, Class: l.class})
		} else {
			d.emit(events.TasksReady{Tasks: slices.Clone(l.tasks), Class: l.class})
		}
	}
}
