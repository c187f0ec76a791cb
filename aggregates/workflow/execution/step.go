package execution

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/aggregates/kernel/duration"
	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/events"
)

// taken evaluates a condition. False: the branch is not taken, or the condition failed and the task with it; both are
// decided. While references are missing every branch counts as taken: what it will read is asked for too.
func (d *draft) taken(t int32, task *dag.Task) bool {
	text, ok := d.evaluate(t, "condition", task.When, task.WhenRefs)
	switch {
	case !ok:
		return len(d.missing) > 0
	case string(text) == "true":
		return true
	case string(text) == "false":
		d.skip(t, "when", d.refVersions(task.WhenRefs))
	default:
		d.stepFailed(t, codeWhenNotBool, "the condition came to "+string(text)+", which is neither true nor false")
	}
	return false
}

// inPlace says that a pure step is small enough to be decided here.
func (d *draft) inPlace(t int32, task *dag.Task) bool {
	switch {
	case d.bytes > decisionBytesMax, len(d.events) > decisionEventsMax:
		return false
	case t == d.retried && !d.with.Empty(), d.s.WithVersion(t) != 0:
		return true
	default:
		return d.reads(task.With, task.WithRefs) <= pureInputMax
	}
}

// pure decides a transform: the value of its mapping is its output.
func (d *draft) pure(t int32, task *dag.Task) {
	text, refs, ok := d.mapping(t, task)
	if !ok {
		if len(d.missing) > 0 {
			d.settle(t)
		}
		return
	}
	value := member(text, "value")
	output := events.InlinePayload(value)
	d.bytes += len(value)
	switch {
	case value == nil:
		d.stepFailed(t, codeTransformValue, "the mapping has no value; write with: {value: …}")
		return
	case len(value) > events.BlobBytesMax:
		d.stepFailed(t, codeTooLarge, "the value has more bytes than are kept")
		return
	}
	if why := d.mismatch(t, output); why != "" {
		d.stepFailed(t, codeOutputMismatch, why)
		return
	}
	d.complete(events.TaskCompleted{
		Task: t, SentAt: d.m.At, StartedAt: d.m.At, EndedAt: d.m.At, Output: output, Refs: refs,
	})
}

// timer starts a sleep.
func (d *draft) timer(t int32, task *dag.Task) {
	text, _, ok := d.mapping(t, task)
	if !ok {
		return
	}
	var length string
	if v := member(text, "for"); v != nil {
		if unquoted, err := jsontext.AppendUnquote(nil, v); err == nil {
			length = string(unquoted)
		}
	}
	wait, err := duration.Parse(length)
	if err != nil {
		d.stepFailed(t, codeSleepFor, "with.for: "+err.Error())
		return
	}
	if !d.s.isOpen(t) {
		d.opens++
	}
	d.emit(events.TimerStarted{Task: t, Until: d.m.At.Add(wait)})
}

// mapping evaluates with, or takes the operator's replacement; refs are the events that it has read.
func (d *draft) mapping(t int32, task *dag.Task) (text []byte, refs []int64, ok bool) {
	version := d.s.WithVersion(t)
	switch {
	case t == d.retried && !d.with.Empty():
		text, ok = d.text(d.with)
		return text, []int64{int64(version)}, ok && len(d.missing) == 0
	case version != 0:
		text, ok = d.payload(version)
		return text, []int64{int64(version)}, ok && len(d.missing) == 0
	case task.With == nil:
		return []byte("{}"), nil, len(d.missing) == 0
	default:
		text, ok = d.evaluate(t, "mapping", task.With, task.WithRefs)
		return text, d.refVersions(task.WithRefs), ok
	}
}

// evaluate runs a template; ok is false when references are missing, or it failed and the task with it.
func (d *draft) evaluate(t int32, what string, template *expr.Template, refs []int32) (text []byte, ok bool) {
	if d.reads(template, refs) > readsMax {
		d.stepFailed(t, codeTooLarge, "the "+what+" reads more bytes than can be held at once")
		return nil, false
	}
	scope, ok := d.scope(template, refs)
	if !ok {
		return nil, false
	}
	text, wrong := template.Eval(scope)
	if wrong != nil {
		d.stepFailed(t, wrong.Code, "task "+d.plan.Tasks[t].Name+", "+place(what, wrong))
		return nil, false
	}
	return text, true
}

func place(what string, e *expr.Error) string {
	if e.Place != "" {
		what += " " + e.Place
	}
	return what + ": " + e.Detail
}

// stepFailed is the dead letter of a step that is decided here: trying again would come to the same.
func (d *draft) stepFailed(t int32, code, message string) {
	d.deadLetter(events.TaskFailed{
		Task: t, Attempt: d.s.Attempt(t), SentAt: d.m.At, StartedAt: d.m.At, EndedAt: d.m.At,
		Class: events.Permanent, Code: code, Message: message,
	})
}

// end completes the execution, or fails it when its output cannot be made.
func (d *draft) end() {
	if d.plan.Output == nil {
		d.emit(events.ExecutionCompleted{})
		return
	}
	refs := d.plan.OutputRefs()
	if d.reads(d.plan.Output, refs) > readsMax {
		d.emit(outputFailed(codeTooLarge, "it reads more bytes than can be held at once"))
		return
	}
	scope, ok := d.scope(d.plan.Output, refs)
	if !ok {
		return
	}
	text, wrong := d.plan.Output.Eval(scope)
	switch {
	case wrong != nil:
		d.emit(outputFailed(wrong.Code, place("mapping", wrong)))
	case len(text) > events.BlobBytesMax:
		d.emit(outputFailed(codeTooLarge, "it has more bytes than are kept"))
	default:
		d.emit(events.ExecutionCompleted{Output: events.InlinePayload(text), Refs: d.refVersions(refs)})
	}
}

func outputFailed(code, why string) events.ExecutionFailed {
	return events.ExecutionFailed{Task: none, Code: code, Message: cut("the workflow's output: "+why, messageMax)}
}

// member takes one member of a JSON object as its text; nil when there is none.
func member(object []byte, name string) []byte {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		found := key.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		if found {
			return bytes.Clone(value)
		}
	}
	return nil
}
