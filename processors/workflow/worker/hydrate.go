package worker

import (
	"context"
	"errors"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Refs loads what a task's mapping reads; handle.Refs is one.
type Refs interface {
	// Load returns the references of a stream. Its error wraps handle.ErrMissingReference when the log names what cannot
	// be found; others may pass. Repeating is free.
	Load(ctx context.Context, s events.Stream, refs []aggregates.Ref) (aggregates.Refs, error)
}

// inputVersion is the event that carries an execution's input: the one that starts its stream.
const inputVersion events.Version = 1

// loaded goes on with the plan, or with the payloads.
func (j *Job) loaded(in Loaded, now events.Time) {
	if j.phase != planning && j.phase != hydrating {
		return
	}
	switch {
	case errors.Is(in.Err, handle.ErrMissingReference):
		j.fail(permanent("missing_reference", "%v", in.Err), now)
	case in.Err != nil:
		j.restThenRelease(now)
	case j.phase == planning:
		j.planned(in.Refs, now)
	default:
		j.hydrate(in.Refs, now)
	}
}

func (j *Job) planned(refs aggregates.Refs, now events.Time) {
	value, _ := refs.Get(aggregates.Ref{Kind: aggregates.RefPlan, Hash: j.d.Definition})
	t, ok := taskOf(value, j.d.Task)
	if !ok || t.Type != j.d.Type || j.d.With == 0 && len(j.d.Outputs) != len(t.WithRefs) {
		j.fail(permanent("plan_mismatch", "the definition has no task %d of type %.40q", j.d.Task, j.d.Type), now)
		return
	}
	j.task = t
	j.work = workflow.Work{
		Item: j.d.Item, Name: t.Name, Key: workflow.TaskExecutionID(j.d.Stream, j.d.Task), Timeout: t.Timeout,
		Correlation: j.d.Correlation,
	}
	if j.work.Correlation == "" {
		j.work.Correlation = j.d.Stream.ID()
	}
	need := j.payloads()
	if len(need) == 0 {
		j.hydrate(nil, now)
		return
	}
	j.phase, j.out.Load = hydrating, need
}

// payloads are what the mapping reads: nothing for a constant, else the input, where it is read, and the outputs.
func (j *Job) payloads() (need []aggregates.Ref) {
	if j.d.With != 0 {
		return []aggregates.Ref{payload(j.d.With)}
	}
	if readsInput(j.task) {
		need = append(need, payload(inputVersion))
	}
	for _, v := range j.d.Outputs {
		if v != 0 {
			need = append(need, payload(v))
		}
	}
	return need
}

func payload(v events.Version) aggregates.Ref {
	return aggregates.Ref{Kind: aggregates.RefPayload, Version: v}
}

// hydrate evaluates the mapping. A mapping that fails fails the same way again.
func (j *Job) hydrate(refs aggregates.Refs, now events.Time) {
	text := func(v events.Version) []byte {
		if v == 0 || refs == nil {
			return nil
		}
		value, _ := refs.Get(payload(v))
		b, _ := value.([]byte)
		return b
	}
	if j.d.With != 0 {
		j.work.With = text(j.d.With)
	} else {
		with, f := evaluate(j.task, text(inputVersion), func(i int) []byte { return text(j.d.Outputs[i]) })
		if f != nil {
			j.fail(f, now)
			return
		}
		j.work.With = with
	}
	j.start(now)
}
