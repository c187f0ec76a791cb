package workflow

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

// tasksPage is how many tasks one answer shows.
const tasksPage = 100

// Execution is one run of a workflow.
type Execution struct {
	ID          string            `json:"id"`
	Workflow    string            `json:"workflow"`
	Version     int64             `json:"version"`
	Status      string            `json:"status"`
	Input       json.RawMessage   `json:"input,omitempty"`
	Output      json.RawMessage   `json:"output,omitempty"`
	Error       *Failure          `json:"error,omitempty"`
	SubmittedAt *time.Time        `json:"submittedAt,omitempty"`
	StartedAt   *time.Time        `json:"startedAt,omitempty"`
	EndedAt     *time.Time        `json:"endedAt,omitempty"`
	Deadline    *time.Time        `json:"deadline,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
	Class       string            `json:"class,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Parent      string            `json:"parent,omitempty"`
	TaskCount   int               `json:"taskCount,omitempty"`
	Tasks       []Task            `json:"tasks,omitempty"`
	NextTasks   string            `json:"nextTaskCursor,omitempty"`
}

// Failure says why something failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Task    string `json:"task,omitempty"`
}

// Task is one task of an execution.
type Task struct {
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Attempt   int             `json:"attempt"`
	StartedAt *time.Time      `json:"startedAt,omitempty"`
	EndedAt   *time.Time      `json:"endedAt,omitempty"`
	RetryAt   *time.Time      `json:"retryAt,omitempty"`
	Error     *Failure        `json:"error,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// story is what an execution's own stream tells beyond its state.
type story struct {
	submitted events.ExecutionSubmitted
	born      events.Time
	begun     events.Time
	ended     events.Time
	output    events.Payload
	tasks     map[int32]*taskStory
}

type taskStory struct {
	started, ended events.Time
	failed         *events.TaskFailed
	output         events.Payload
}

// historyPage is how many commits one read of a stream asks for.
const historyPage = 500

// tell reads a stream from its start up to a version. Only the tasks from first on, at most a page of them, are kept.
func tell(ctx context.Context, e Engine, s events.Stream, to events.Version, first int32) (*story, error) {
	st := &story{tasks: map[int32]*taskStory{}}
	for after := events.Version(0); ; {
		page, err := e.Recorded(ctx, s, after, historyPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].Version > to {
				return st, nil
			}
			st.take(&page[i], first)
			after = page[i].Version
		}
		if len(page) == 0 || after == to {
			return st, nil
		}
	}
}

func (st *story) take(r *events.Recorded, first int32) {
	task := func(t int32) *taskStory {
		if t < first || t >= first+tasksPage {
			return &taskStory{}
		}
		if st.tasks[t] == nil {
			st.tasks[t] = &taskStory{}
		}
		return st.tasks[t]
	}
	begin := func() {
		if st.begun == 0 {
			st.begun = r.Commit.OccurredAt
		}
	}
	switch e := r.Event.(type) {
	case events.ExecutionSubmitted:
		st.submitted, st.born = e, r.Commit.OccurredAt
	case events.TasksReady:
		begin()
	case events.TimerStarted:
		begin()
		task(e.Task).started = r.Commit.OccurredAt
	case events.TaskStarted:
		task(e.Task).started = e.StartedAt
	case events.TaskCompleted:
		begin()
		t := task(e.Task)
		if t.started == 0 || e.Attempt > 0 {
			t.started = e.StartedAt
		}
		t.ended, t.output, t.failed = e.EndedAt, e.Output, nil
	case events.TaskFailed:
		begin()
		t := task(e.Task)
		t.started, t.ended, t.failed = e.StartedAt, e.EndedAt, &e
	case events.TaskRetried:
		t := task(e.Task)
		t.ended = 0
		st.ended = 0
	case events.ExecutionCompleted:
		st.ended, st.output = r.Commit.OccurredAt, e.Output
	case events.ExecutionFailed, events.ExecutionCancelled, events.ExecutionTimedOut:
		st.ended = r.Commit.OccurredAt
	}
}

// whole is an execution as its head and its stream say, with a page of its tasks.
func whole(ctx context.Context, e Engine, l handle.Loaded, outputs bool, first int32) (*Execution, error) {
	s := l.State.(*execution.State)
	plan, err := e.Plan(ctx, l.Stream.Tenant(), s.Definition())
	if err != nil {
		return nil, err
	}
	st, err := tell(ctx, e, l.Stream, l.Version, first)
	if err != nil {
		return nil, err
	}
	x := &Execution{
		ID: l.Stream.ID(), Workflow: s.Workflow(), Version: s.Version(), Status: s.Status().String(),
		SubmittedAt: moment(st.born), StartedAt: moment(st.begun), EndedAt: moment(st.ended), Deadline: moment(s.Deadline()),
		Correlation: l.Correlation, Class: s.Class(), Parent: s.Parent(), TaskCount: len(plan.Tasks),
	}
	for _, label := range st.submitted.Labels {
		if x.Labels == nil {
			x.Labels = map[string]string{}
		}
		x.Labels[label.Name] = label.Value
	}
	if s.Status() == execution.Failed {
		f := s.Failure()
		x.Error = &Failure{Code: f.Code, Message: f.Message, Task: taskName(plan, f.Task)}
	}
	if x.Input, err = e.Text(ctx, l.Stream.Tenant(), st.submitted.Input); err != nil {
		return nil, err
	}
	if x.Output, err = e.Text(ctx, l.Stream.Tenant(), st.output); err != nil {
		return nil, err
	}
	for t := first; t < min(first+tasksPage, int32(len(plan.Tasks))); t++ {
		task, err := shown(ctx, e, l, plan, s, t, st.tasks[t], outputs)
		if err != nil {
			return nil, err
		}
		x.Tasks = append(x.Tasks, task)
	}
	if next := first + tasksPage; int(next) < len(plan.Tasks) {
		x.NextTasks = strconv.Itoa(int(next))
	}
	return x, nil
}

func taskName(p *dag.Plan, t int32) string {
	if t < 0 || int(t) >= len(p.Tasks) {
		return ""
	}
	return p.Tasks[t].Name
}

func shown(ctx context.Context, e Engine, l handle.Loaded, p *dag.Plan, s *execution.State, t int32, st *taskStory,
	outputs bool,
) (Task, error) {
	v := s.Task(t)
	out := Task{
		Name: p.Tasks[t].Name, Type: p.Tasks[t].Type, Status: string(v.Status), Attempt: int(v.Attempt),
		RetryAt: moment(v.RetryAt),
	}
	if st == nil {
		return out, nil
	}
	out.StartedAt, out.EndedAt = moment(st.started), moment(st.ended)
	if st.failed != nil {
		out.Error = &Failure{Code: st.failed.Code, Message: st.failed.Message}
	}
	if !outputs {
		return out, nil
	}
	text, err := e.Text(ctx, l.Stream.Tenant(), st.output)
	out.Output = text
	return out, err
}

func moment(t events.Time) *time.Time {
	if t == 0 {
		return nil
	}
	std := t.Std()
	return &std
}
