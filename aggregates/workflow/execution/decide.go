package execution

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// retryAfterMax bounds what a throttling downstream may ask us to wait.
const retryAfterMax = time.Hour

// Needs names the plan for the commands that cannot do without it.
func Needs(s *State, c commands.ExecutionCommand, _ commands.Meta) []aggregates.Ref {
	switch c := c.(type) {
	case commands.SubmitExecution:
		if s.status == None {
			return []aggregates.Ref{planRef(c.Definition)}
		}
	case commands.RecordResult, commands.TimeOutTask, commands.FireTimer, commands.RetryTask:
		if s.counting() {
			return []aggregates.Ref{planRef(s.definition)}
		}
	case commands.StartTask:
		if started, ok := s.Started(c.Task); ok && started.Worker != c.Worker && s.counting() {
			return []aggregates.Ref{planRef(s.definition)}
		}
	default: // they are decided without it
	}
	return nil
}

func planRef(h events.Hash) aggregates.Ref { return aggregates.Ref{Kind: aggregates.RefPlan, Hash: h} }

// Decide answers what command c adds to the history that s sums up. It leaves s as it is.
func Decide(s *State, c commands.ExecutionCommand, m commands.Meta, refs aggregates.Refs) ([]events.ExecutionEvent,
	error,
) {
	d := &draft{s: s, m: m, refs: refs, retried: none}
	if _, starts := c.(commands.SubmitExecution); s.status == None && !starts {
		return nil, d.unborn(c)
	}
	var err error
	switch c := c.(type) {
	case commands.SubmitExecution:
		err = d.submit(c)
	case commands.CancelExecution:
		err = d.cancel(false)
	case commands.TerminateExecution:
		err = d.cancel(true)
	case commands.PauseExecution:
		err = d.pause()
	case commands.ResumeExecution:
		err = d.resume()
	case commands.RetryTask:
		err = d.retry(c)
	case commands.StartTask:
		err = d.start(c)
	case commands.RecordResult:
		err = d.result(c)
	case commands.TimeOutTask:
		err = d.timeOut(c)
	case commands.FireTimer:
		err = d.fireTimer(c)
	case commands.TimeOutExecution:
		d.timeOutExecution()
	case commands.HoldTasks:
		d.hold(c)
	default:
		return nil, fmt.Errorf("an execution has no rule for %T", c)
	}
	if err == nil && len(d.missing) > 0 {
		err = &aggregates.Missing{Refs: d.missing}
	}
	if err != nil {
		return nil, err
	}
	return d.events, nil
}

// none is no task.
const none = -1

// unborn answers for a stream without events: machines know more than we do, people have mistaken the id.
func (d *draft) unborn(c commands.ExecutionCommand) error {
	switch c.(type) {
	case commands.StartTask, commands.RecordResult, commands.TimeOutTask, commands.FireTimer,
		commands.TimeOutExecution, commands.HoldTasks:
		return &aggregates.Ahead{Detail: "the execution has no events"}
	default:
		return commands.Refuse(commands.NotFound, commands.CodeNotFound, "there is no such execution")
	}
}

// load takes the plan from the references; Needs has asked for it.
func (d *draft) load(h events.Hash) error {
	v, ok := d.refs.Get(planRef(h))
	if !ok {
		return &aggregates.Missing{Refs: []aggregates.Ref{planRef(h)}}
	}
	plan, ok := v.(*dag.Plan)
	if !ok || d.s.status != None && int32(len(plan.Tasks)) != d.s.tasks {
		return fmt.Errorf("definition %s is not the plan of %d tasks that the execution began with", h, d.s.tasks)
	}
	d.plan = plan
	return nil
}

func (d *draft) submit(c commands.SubmitExecution) error {
	if d.s.status != None {
		return nil // the id is derived from the request: it is the same start
	}
	if err := d.load(c.Definition); err != nil {
		return err
	}
	d.input = c.Input
	if err := d.checkInput(); err != nil || len(d.missing) > 0 {
		return err
	}
	e := events.ExecutionSubmitted{
		Workflow: c.Workflow, Version: c.Version, Definition: c.Definition, Tasks: int32(len(d.plan.Tasks)),
		Input: c.Input, Class: c.Class, Labels: mergeLabels(d.plan.Labels, c.Labels), Parent: c.Parent,
	}
	if e.Class == "" {
		e.Class = d.plan.Class
	}
	if d.plan.Deadline > 0 {
		e.Deadline = d.m.At.Add(d.plan.Deadline)
	}
	d.emit(e)
	// What follows is decided on the state that the submission makes, and in the same append.
	d.s = Evolve(&State{}, e, d.m.Version+1)
	d.begin()
	for t := range d.plan.Tasks {
		if len(d.plan.Tasks[t].Needs) > 0 {
			break // ordinals rise with the level: the roots come first
		}
		d.reach(int32(t))
	}
	d.follow()
	return nil
}

func (d *draft) checkInput() error {
	if d.input.Size > events.BlobBytesMax {
		return commands.Refuse(commands.Invalid, commands.CodeInputTooLarge,
			"the input has %d bytes; at most %d are kept", d.input.Size, events.BlobBytesMax)
	}
	if d.plan.Input == nil {
		return nil
	}
	text := []byte("null")
	if !d.input.Empty() {
		var ok bool
		if text, ok = d.text(d.input); !ok {
			return nil
		}
	}
	wrong := d.plan.Input.Validate(text)
	if len(wrong) == 0 {
		return nil
	}
	refusal := commands.Refuse(commands.Invalid, commands.CodeInputMismatch,
		"the input does not fit the workflow's schema")
	for _, v := range wrong {
		refusal.Violations = append(refusal.Violations, commands.Violation{
			Code: v.Code, Pointer: "/input" + v.Pointer, Detail: v.Detail,
		})
	}
	return refusal
}

// mergeLabels lets the submitter's labels stand before the definition's. The result is sorted by name, one each.
func mergeLabels(defined, own []events.Label) []events.Label {
	if len(own) == 0 {
		return defined
	}
	all := slices.Concat(own, defined)
	slices.SortStableFunc(all, func(a, b events.Label) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b events.Label) bool { return a.Name == b.Name })
}

func (d *draft) finished() error {
	return commands.Refuse(commands.Refused, commands.CodeFinished,
		"the execution is %s; replay it to run it again", d.s.status)
}

// cancel ends an execution. A failed one has ended already, but terminate still closes it for good.
func (d *draft) cancel(forced bool) error {
	switch {
	case d.s.status == Cancelled:
		return nil
	case d.s.Open(), forced && d.s.status == Failed:
		d.emit(events.ExecutionCancelled{Forced: forced})
		return nil
	default:
		return d.finished()
	}
}

func (d *draft) pause() error {
	switch {
	case d.s.status == Paused:
		return nil
	case d.s.Open():
		d.emit(events.ExecutionPaused{})
		return nil
	default:
		return d.finished()
	}
}

func (d *draft) resume() error {
	switch {
	case d.s.status == Paused:
		d.emit(events.ExecutionResumed{})
		return nil
	case d.s.Open():
		return nil
	default:
		return d.finished()
	}
}

// retry opens one more attempt of a dead-lettered task, with a fresh count of attempts: the retried one is the first of
// maxAttempts. While it has not ended, the same retry again is already so. A step that is decided here is decided
// again at once, its condition not asked: the operator wants it run.
func (d *draft) retry(c commands.RetryTask) error {
	if !d.s.counting() {
		return d.finished()
	}
	if err := d.load(d.s.definition); err != nil {
		return err
	}
	t, ok := d.plan.Ordinal(c.Task)
	if !ok {
		return commands.Refuse(commands.Invalid, commands.CodeUnknownTask, "the workflow has no task %q", c.Task)
	}
	f := d.s.flights[t]
	switch {
	case f.phase == deadLetter:
	case f.spent > 0 && f.attempt == f.spent+1 && d.s.isOpen(t):
		return nil
	default:
		return commands.Refuse(commands.Refused, commands.CodeNotDeadLettered,
			"task %q is %s; only a dead-lettered one can be retried", c.Task, d.s.TaskStatus(t))
	}
	if c.With.Size > events.BlobBytesMax {
		return commands.Refuse(commands.Invalid, commands.CodeInputTooLarge,
			"the replacement has %d bytes; at most %d are kept", c.With.Size, events.BlobBytesMax)
	}
	e := events.TaskRetried{Task: t, Attempt: next(f.number()), With: c.With}
	d.emit(e)
	if task := &d.plan.Tasks[t]; task.Pure || task.Timer {
		d.s = Evolve(d.s.clone(), e, d.m.Version+1)
		d.retried, d.with = t, c.With
		d.begin()
		d.reach(t)
		d.follow()
	}
	return nil
}

func (d *draft) fireTimer(c commands.FireTimer) error {
	f := d.s.flights[c.Task]
	if !d.s.counting() || f.phase != timer || f.at > d.m.At {
		return nil
	}
	if err := d.load(d.s.definition); err != nil {
		return err
	}
	d.begin()
	d.complete(events.TaskCompleted{Task: c.Task, SentAt: f.at, StartedAt: f.at, EndedAt: f.at})
	d.follow()
	return nil
}

func (d *draft) timeOutExecution() {
	if d.s.Open() && d.s.deadline != 0 && d.s.deadline <= d.m.At {
		d.emit(events.ExecutionTimedOut{Deadline: d.s.deadline})
	}
}

// hold records a wait once; a task that is no longer waiting, or whose back-off lasts, is left out.
func (d *draft) hold(c commands.HoldTasks) {
	if !d.s.Dispatching() {
		return
	}
	var waiting []int32
	for _, t := range c.Tasks {
		f := d.s.flights[t]
		if d.s.Sendable(t, f.number()) && !f.held && !f.begun && (f.phase == sendable || f.at <= d.m.At) {
			waiting = append(waiting, t)
		}
	}
	if len(waiting) > 0 {
		d.emit(events.TasksHeld{Tasks: waiting, Reason: c.Reason, Since: c.Since})
	}
}
