package workflow

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

type actInput struct {
	ID      string `path:"id" maxLength:"128"`
	IfMatch string `header:"If-Match"`
	Key     string `header:"Idempotency-Key"`
	Body    struct {
		Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"Why; it stands in the log."`
	}
}

type retryInput struct {
	ID      string `path:"id" maxLength:"128"`
	Task    string `path:"task" maxLength:"128"`
	IfMatch string `header:"If-Match"`
	Key     string `header:"Idempotency-Key"`
	Body    struct {
		Reason string          `json:"reason" minLength:"1" maxLength:"1000" doc:"Why; it stands in the log."`
		With   json.RawMessage `json:"with,omitempty" doc:"Replaces the task's evaluated mapping."`
	}
}

type acted struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

type actOutput struct {
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Token    string `header:"Sluice-Token"`
	Body     acted
}

// Acts registers the routes by which people step in.
func Acts(api huma.API, e Engine) {
	for name, c := range map[string]commands.ExecutionCommand{
		"cancel": commands.CancelExecution{}, "pause": commands.PauseExecution{},
		"resume": commands.ResumeExecution{}, "terminate": commands.TerminateExecution{},
	} {
		huma.Register(api, huma.Operation{
			OperationID: name + "-execution", Method: http.MethodPost, Path: "/v1/executions/{id}/" + name,
			Summary: name + " an execution", DefaultStatus: http.StatusAccepted, Tags: []string{"acts"},
		}, func(ctx context.Context, in *actInput) (*actOutput, error) {
			s := events.StreamOf(execution.Category, tenant, in.ID)
			return act(ctx, e, s, c, in.Key, in.IfMatch, in.Body.Reason, name)
		})
	}
	huma.Register(api, huma.Operation{
		OperationID: "replay-execution", Method: http.MethodPost, Path: "/v1/executions/{id}/replay",
		Summary: "Run an execution's input again, as a new execution", DefaultStatus: http.StatusAccepted,
		Tags: []string{"acts"},
	}, func(ctx context.Context, in *actInput) (*actOutput, error) { return replay(ctx, e, in) })
	huma.Register(api, huma.Operation{
		OperationID: "retry-task", Method: http.MethodPost, Path: "/v1/executions/{id}/tasks/{task}/retry",
		Summary: "Run a dead-lettered task once more", DefaultStatus: http.StatusAccepted, Tags: []string{"acts"},
	}, func(ctx context.Context, in *retryInput) (*actOutput, error) {
		s := events.StreamOf(execution.Category, tenant, in.ID)
		c := commands.RetryTask{Task: in.Task, With: events.InlinePayload(in.Body.With)}
		return act(ctx, e, s, c, in.Key, in.IfMatch, in.Body.Reason, "retry", in.Task, in.Body.With)
	})
}

// metaOf is a person's act: with a key, the same request is carried out once for as long as the stream lasts.
func metaOf(ctx context.Context, e Engine, s events.Stream, key, ifMatch, reason string,
	parts ...any,
) (m commands.Meta, err error) {
	m = commands.Meta{Command: e.NewID(), Tenant: tenant, Actor: actor, Reason: reason, Trace: edge.Trace(ctx)}
	if m.Expect, err = edge.ParseIfMatch(ifMatch, e.Incarnation()); err != nil || key == "" {
		return m, err
	}
	m.Digest, err = keyed(key, append(parts, reason)...)
	m.Command = commands.KeyedID(s, key)
	return m, err
}

func act(ctx context.Context, e Engine, s events.Stream, c commands.ExecutionCommand, key, ifMatch, reason string,
	parts ...any,
) (*actOutput, error) {
	if s.Check() != nil {
		return nil, edge.Refuse(commands.NotFound, commands.CodeNotFound, "there is no such execution")
	}
	m, err := metaOf(ctx, e, s, key, ifMatch, reason, parts...)
	if err != nil {
		return nil, err
	}
	out, err := e.Do(ctx, s, c, m)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	return answered(e, out), nil
}

func answered(e Engine, out handle.Outcome) *actOutput {
	return &actOutput{
		ETag: edge.ETag(out.Version, e.Incarnation()), Location: "/v1/executions/" + out.Stream.ID(), Token: e.Token(out),
		Body: acted{ID: out.Stream.ID(), Version: int64(out.Version)},
	}
}

// expected holds If-Match to the execution that is replayed; what starts is another stream. A key that has started its
// execution already answers as it did then.
func expected(ctx context.Context, e Engine, s events.Stream, parent handle.Loaded, m *commands.Meta) error {
	want := m.Expect
	m.Expect = commands.Expectation{}
	if want.Holds(parent.Version) {
		return nil
	}
	l, err := e.Load(ctx, s)
	if err != nil {
		return edge.Refusal(ctx, err)
	}
	if _, before := l.Keys[m.Command]; before {
		return nil
	}
	stale := commands.Refuse(commands.Stale, commands.CodeVersionMismatch,
		"the execution is at version %d, not at what If-Match names", parent.Version)
	stale.Version = parent.Version
	return edge.Refusal(ctx, stale)
}

// replay starts a new execution of the same version with the same input; the log links it to its parent.
func replay(ctx context.Context, e Engine, in *actInput) (*actOutput, error) {
	l, err := loaded(ctx, e, in.ID)
	if err != nil {
		return nil, err
	}
	x := l.State.(*execution.State)
	first, err := e.Recorded(ctx, l.Stream, 0, 1)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	var born events.ExecutionSubmitted
	ok := len(first) > 0
	if ok {
		born, ok = first[0].Event.(events.ExecutionSubmitted)
	}
	if !ok {
		return nil, edge.Refuse(commands.Unavailable, commands.CodeNewerStream, "the execution is of a newer build")
	}
	input, err := e.Text(ctx, tenant, born.Input)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	s := events.StreamOf(execution.Category, tenant, e.NewID().String())
	if in.Key != "" {
		s = events.StreamOf(execution.Category, tenant, events.Derive("replay", tenant, in.ID, in.Key).String())
	}
	m, err := metaOf(ctx, e, s, in.Key, in.IfMatch, in.Body.Reason, "replay", in.ID)
	if err != nil {
		return nil, err
	}
	if err := expected(ctx, e, s, l, &m); err != nil {
		return nil, err
	}
	m.Cause, m.Correlation = "execution:"+in.ID, l.Correlation
	out, err := e.Do(ctx, s, commands.SubmitExecution{
		Workflow: x.Workflow(), Version: x.Version(), Definition: x.Definition(), Input: events.InlinePayload(input),
		Class: x.Class(), Labels: born.Labels, Parent: in.ID,
	}, m)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	return answered(e, out), nil
}
