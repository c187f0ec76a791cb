package workflow

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
	"github.com/sluice-platform/sluice/projections"
	views "github.com/sluice-platform/sluice/projections/workflow"
)

type getInput struct {
	ID      string `path:"id" maxLength:"128"`
	Include string `query:"include" enum:"outputs" doc:"outputs: the tasks' outputs too."`
	Tasks   string `query:"taskCursor" doc:"nextTaskCursor of the answer before."`
}

type getOutput struct {
	ETag string `header:"ETag"`
	Body Execution
}

type listInput struct {
	Workflow    string `query:"workflow"`
	Version     int64  `query:"version" minimum:"0"`
	Status      string `query:"status" enum:"PENDING,RUNNING,PAUSED,COMPLETED,FAILED,CANCELLED,TIMED_OUT"`
	Correlation string `query:"correlation"`
	ErrorCode   string `query:"errorCode"`
	From        string `query:"from" doc:"Submitted at or after; RFC 3339."`
	Before      string `query:"before" doc:"Submitted before; RFC 3339."`
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor      string `query:"cursor" doc:"nextCursor of the page before."`
	Token       string `header:"Sluice-Token" doc:"Of an own write: the list waits for it, at most two seconds."`
}

type listOutput struct {
	AsOf       string `header:"Sluice-As-Of" doc:"Position of the view in each partition."`
	Incomplete int    `header:"Sluice-Incomplete" doc:"Streams that are parked."`
	Body       struct {
		Items      []Execution `json:"items"`
		NextCursor string      `json:"nextCursor,omitempty"`
	}
}

type eventsInput struct {
	ID     string `path:"id" maxLength:"128"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Cursor string `query:"cursor"`
}

// Fact is one event as a CloudEvent 1.0.
type Fact struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Time        time.Time       `json:"time"`
	Version     int64           `json:"streamversion"`
	Partition   int32           `json:"partition"`
	Position    int64           `json:"position"`
	Actor       string          `json:"actor,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Cause       string          `json:"cause,omitempty"`
	Command     string          `json:"command,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Data        json.RawMessage `json:"data"`
}

type eventsOutput struct {
	Body struct {
		Items      []Fact `json:"items"`
		NextCursor string `json:"nextCursor,omitempty"`
	}
}

type countsOutput struct {
	AsOf       string `header:"Sluice-As-Of" doc:"Position of the view in each partition."`
	Incomplete int    `header:"Sluice-Incomplete" doc:"Streams that are parked."`
	Body       struct {
		Items []count `json:"items"`
	}
}

type count struct {
	Workflow string `json:"workflow"`
	Status   string `json:"status"`
	Count    int64  `json:"count"`
}

// Reads registers the routes that read executions.
func Reads(api huma.API, e Engine) {
	tags := []string{"executions"}
	huma.Register(api, huma.Operation{
		OperationID: "get-execution", Method: http.MethodGet, Path: "/v1/executions/{id}", Summary: "Read an execution",
		Tags: tags,
	}, func(ctx context.Context, in *getInput) (*getOutput, error) { return get(ctx, e, in) })
	huma.Register(api, huma.Operation{
		OperationID: "list-executions", Method: http.MethodGet, Path: "/v1/executions",
		Summary: "List executions, newest first", Tags: tags,
	}, func(ctx context.Context, in *listInput) (*listOutput, error) { return list(ctx, e, in) })
	huma.Register(api, huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: "/v1/executions/{id}/events",
		Summary: "Read an execution's facts", Tags: tags,
	}, func(ctx context.Context, in *eventsInput) (*eventsOutput, error) { return history(ctx, e, in) })
	huma.Register(api, huma.Operation{
		OperationID: "counts", Method: http.MethodGet, Path: "/v1/counts",
		Summary: "Count executions by workflow and status", Tags: tags,
	}, func(ctx context.Context, _ *struct{}) (*countsOutput, error) { return counts(ctx, e) })
}

// loaded reads an execution that exists.
func loaded(ctx context.Context, e Engine, id string) (handle.Loaded, error) {
	s := events.StreamOf(execution.Category, tenant, id)
	if s.Check() == nil {
		l, err := e.Load(ctx, s)
		if err != nil {
			return l, edge.Refusal(ctx, err)
		}
		if l.Version > 0 {
			return l, nil
		}
	}
	return handle.Loaded{}, edge.Refuse(commands.NotFound, commands.CodeNotFound,
		"there is no execution "+strconv.Quote(id))
}

func get(ctx context.Context, e Engine, in *getInput) (*getOutput, error) {
	first := int32(0)
	if in.Tasks != "" {
		n, err := strconv.ParseInt(in.Tasks, 10, 32)
		if err != nil || n < 0 || n > math.MaxInt32-tasksPage {
			return nil, badCursor()
		}
		first = int32(n)
	}
	l, err := loaded(ctx, e, in.ID)
	if err != nil {
		return nil, err
	}
	version := l.Version
	x, err := whole(ctx, e, l, in.Include == "outputs", first)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	return &getOutput{ETag: edge.ETag(version, e.Incarnation()), Body: *x}, nil
}

func badCursor() error {
	return edge.Refuse(commands.Malformed, "bad_cursor", "this cursor is of no answer; begin without one")
}

func list(ctx context.Context, e Engine, in *listInput) (*listOutput, error) {
	q := projections.Query{Tenant: tenant, Limit: in.Limit, Where: map[string]any{}}
	for name, value := range map[string]string{
		"workflow": in.Workflow, "status": in.Status, "correlation": in.Correlation, "errorCode": in.ErrorCode,
	} {
		if value != "" {
			q.Where[name] = value
		}
	}
	if in.Version > 0 {
		q.Where["version"] = in.Version
	}
	for name, value := range map[string]string{"submittedFrom": in.From, "submittedBefore": in.Before} {
		if value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return nil, edge.Refuse(commands.Malformed, "bad_time", "times are RFC 3339, such as 2026-12-01T12:00:00Z")
		}
		q.Where[name] = int64(events.TimeOf(t))
	}
	if err := readCursor(in.Cursor, e.Incarnation(), &q); err != nil {
		return nil, err
	}
	if err := e.Seen(ctx, in.Token); err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	page, err := e.Executions(ctx, q)
	if err != nil {
		return nil, unread(ctx, err)
	}
	out := &listOutput{AsOf: asOf(page), Incomplete: page.Incomplete}
	out.Body.Items = []Execution{}
	for _, row := range page.Rows {
		out.Body.Items = append(out.Body.Items, listed(row))
	}
	if page.More {
		out.Body.NextCursor = cursor(e.Incarnation(), page.Rows[len(page.Rows)-1])
	}
	return out, nil
}

// unread says why a view did not answer.
func unread(ctx context.Context, err error) error {
	if errors.Is(err, projections.ErrNotLive) {
		err = commands.Refuse(commands.Unavailable, "view_not_ready",
			"the list is being built from the log; ask again in a moment")
	}
	return edge.Refusal(ctx, err)
}

func asOf(p projections.Page) string {
	var parts []string
	for part := range len(p.AsOf) {
		parts = append(parts, strconv.FormatInt(int64(p.AsOf[events.Partition(part)].Position), 10))
	}
	return strings.Join(parts, ",")
}

func listed(r projections.Row) Execution {
	text := func(i int) string { s, _ := r[i].(string); return s }
	number := func(i int) int64 { n, _ := r[i].(int64); return n }
	at := func(i int) *time.Time { return moment(events.Time(number(i))) }
	x := Execution{
		ID: text(views.ID), Workflow: text(views.Workflow), Version: number(views.Version), Status: text(views.Status),
		Class: text(views.Class), Correlation: text(views.Correlation), Parent: text(views.Parent),
		SubmittedAt: at(views.SubmittedAt), StartedAt: at(views.StartedAt), EndedAt: at(views.EndedAt),
		Deadline: at(views.Deadline), TaskCount: int(number(views.Tasks)),
	}
	if code := text(views.ErrorCode); code != "" {
		x.Error = &Failure{Code: code, Message: text(views.ErrorMessage)}
	}
	if labels, ok := r[views.Labels].([]byte); ok {
		_ = json.Unmarshal(labels, &x.Labels) // the view wrote it
	}
	return x
}

// cursor is opaque to callers: incarnation, the order's column and the key of the last row.
func cursor(i events.Incarnation, r projections.Row) string {
	text, _ := json.Marshal([]any{i, r[views.SubmittedAt], r[views.ID]}) // numbers and a text
	return base64.RawURLEncoding.EncodeToString(text)
}

func readCursor(s string, now events.Incarnation, q *projections.Query) error {
	if s == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	var parts []json.RawMessage
	if err != nil || json.Unmarshal(raw, &parts) != nil || len(parts) != 3 {
		return badCursor()
	}
	var i events.Incarnation
	var at int64
	var id string
	if json.Unmarshal(parts[0], &i) != nil || json.Unmarshal(parts[1], &at) != nil || json.Unmarshal(parts[2],
		&id) != nil {
		return badCursor()
	}
	if i != now {
		return edge.Refuse(commands.Unavailable, commands.CodeIncarnation, "the log was restored since; begin the list anew")
	}
	row := make(projections.Row, len(views.Executions().Tables[0].Columns))
	row[views.Tenant], row[views.SubmittedAt], row[views.ID] = tenant, at, id
	q.After = row
	return nil
}

func history(ctx context.Context, e Engine, in *eventsInput) (*eventsOutput, error) {
	after := int64(0)
	if in.Cursor != "" {
		n, err := strconv.ParseInt(in.Cursor, 10, 64)
		if err != nil || n < 0 {
			return nil, badCursor()
		}
		after = n
	}
	l, err := loaded(ctx, e, in.ID)
	if err != nil {
		return nil, err
	}
	rs, err := e.Recorded(ctx, l.Stream, events.Version(after), in.Limit)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	out := &eventsOutput{}
	out.Body.Items = []Fact{}
	for i := range rs[:min(len(rs), in.Limit)] {
		out.Body.Items = append(out.Body.Items, fact(&rs[i], l.Correlation))
	}
	if n := len(out.Body.Items); n > 0 && out.Body.Items[n-1].Version < int64(l.Version) {
		out.Body.NextCursor = strconv.FormatInt(out.Body.Items[n-1].Version, 10)
	}
	return out, nil
}

// fact shows a recorded event. One that this build does not know has no data.
func fact(r *events.Recorded, correlation string) Fact {
	f := Fact{
		SpecVersion: "1.0", ID: string(r.Stream) + "@" + strconv.FormatInt(int64(r.Version), 10),
		Source: "/" + string(r.Stream),
		Type:   string(r.Type), Time: r.At.Std(), Version: int64(r.Version), Partition: int32(r.Partition),
		Position: int64(r.Position),
		Actor:    r.Actor, Reason: r.Commit.Reason, Cause: r.Cause, Command: r.Command.String(), Correlation: correlation,
		Data: json.RawMessage("null"),
	}
	if r.Event != nil {
		f.Data = dataOf(r.Event)
	}
	return f
}

func counts(ctx context.Context, e Engine) (*countsOutput, error) {
	out := &countsOutput{}
	out.Body.Items = []count{}
	for after := projections.Row(nil); ; {
		page, err := e.Counts(ctx, projections.Query{Tenant: tenant, Limit: projections.PageMax, After: after})
		if err != nil {
			return nil, unread(ctx, err)
		}
		for _, r := range page.Rows { // by workflow and status; each partition has a row
			workflow, status, n := r[1].(string), r[2].(string), r[4].(int64)
			last := len(out.Body.Items) - 1
			if last < 0 || out.Body.Items[last].Workflow != workflow || out.Body.Items[last].Status != status {
				out.Body.Items, last = append(out.Body.Items, count{Workflow: workflow, Status: status}), last+1
			}
			out.Body.Items[last].Count += n
		}
		if !page.More {
			out.AsOf, out.Incomplete = asOf(page), page.Incomplete
			return out, nil
		}
		after = page.Rows[len(page.Rows)-1]
	}
}
