// Package workflow holds the read models of workflows.
// It never looks at a payload, and folds from events only: what a list shows is what the log says.
package workflow

import (
	"encoding/json"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// The columns of an execution's row, in their order.
const (
	Tenant = iota
	ID
	Workflow
	Version
	Status
	Class
	Correlation
	Parent
	Labels // a JSON object of texts, in order of name
	SubmittedAt
	StartedAt // its first tasks are ready in the append that submits it
	EndedAt   // recorded_at of the end; none while it may go on
	ErrorCode
	ErrorMessage
	Tasks // in the plan
	Deadline
	Definition // hash of the definition's content
	ChangedAt  // stream version of the event that last changed this row; not the stream's own version
)

// category is that of executions' streams.
const category = "execution"

// The statuses, spelled as the aggregate does; it is not imported, since with it come expressions and schemas.
const (
	running   = "RUNNING"
	paused    = "PAUSED"
	completed = "COMPLETED"
	failed    = "FAILED"
	cancelled = "CANCELLED"
	timedOut  = "TIMED_OUT"
)

// lifecycle is what changes a row: the life of an execution as a whole. A task's end writes no row, since a write a
// task would cost more than the task's own append; how far an execution has come is in its head.
var lifecycle = []events.Type{
	events.ExecutionSubmitted{}.EventType(), events.ExecutionPaused{}.EventType(),
	events.ExecutionResumed{}.EventType(), events.ExecutionCancelled{}.EventType(),
	events.ExecutionTimedOut{}.EventType(), events.ExecutionCompleted{}.EventType(),
	events.ExecutionFailed{}.EventType(), events.TaskRetried{}.EventType(),
}

// Executions lists executions, newest first. Filter version is meant beside workflow: alone no index serves it.
func Executions() projections.Model {
	text, number, moment := projections.Text, projections.Int, projections.Time
	return projections.Model{
		Name: "executions", Version: 1,
		Categories: []string{category}, Types: lifecycle,
		Tables: []projections.Table{{
			Name: "executions",
			Columns: []projections.Column{
				Tenant: {Name: "tenant", Kind: text}, ID: {Name: "id", Kind: text},
				Workflow: {Name: "workflow", Kind: text}, Version: {Name: "version", Kind: number},
				Status: {Name: "status", Kind: text}, Class: {Name: "class", Kind: text},
				Correlation: {Name: "correlation", Kind: text}, Parent: {Name: "parent", Kind: text},
				Labels:      {Name: "labels", Kind: projections.JSON},
				SubmittedAt: {Name: "submitted_at", Kind: moment}, StartedAt: {Name: "started_at", Kind: moment},
				EndedAt: {Name: "ended_at", Kind: moment}, ErrorCode: {Name: "error_code", Kind: text},
				ErrorMessage: {Name: "error_message", Kind: text}, Tasks: {Name: "tasks", Kind: number},
				Deadline: {Name: "deadline", Kind: moment}, Definition: {Name: "definition", Kind: text},
				ChangedAt: {Name: "changed_at", Kind: number},
			},
			Key: []string{"tenant", "id"}, Order: []string{"submitted_at"}, Desc: true,
			Indexes: [][]string{
				{"correlation"},
				{"error_code"},
				{"workflow", "status"},
				{"workflow", "version"},
				{"workflow"},
				{"status"},
				{},
			},
			Filters: []projections.Filter{
				{Name: "workflow", Column: "workflow", Op: projections.Equal},
				{Name: "version", Column: "version", Op: projections.Equal},
				{Name: "status", Column: "status", Op: projections.Equal},
				{Name: "correlation", Column: "correlation", Op: projections.Equal},
				{Name: "errorCode", Column: "error_code", Op: projections.Equal},
				{Name: "submittedFrom", Column: "submitted_at", Op: projections.From},
				{Name: "submittedBefore", Column: "submitted_at", Op: projections.Before},
			},
		}},
		Apply: applyExecution,
	}
}

func applyExecution(r events.Recorded, get projections.Get) []projections.Change {
	tenant, id := r.Stream.Tenant(), r.Stream.ID()
	if e, ok := r.Event.(events.ExecutionSubmitted); ok {
		return []projections.Change{{Table: "executions", Row: submitted(&r, &e, tenant, id), New: true}}
	}
	old, ok := get("executions", tenant, id)
	if !ok {
		return nil
	}
	to := statusAfter(old[Status].(string), r.Event)
	if to == old[Status] {
		return nil
	}
	return []projections.Change{{Table: "executions", Row: changed(old, to, &r)}}
}

func submitted(r *events.Recorded, e *events.ExecutionSubmitted, tenant, id string) projections.Row {
	row := make(projections.Row, ChangedAt+1)
	row[Tenant], row[ID] = tenant, id
	row[Workflow], row[Version], row[Status] = e.Workflow, e.Version, statusAfter("", *e)
	row[Class], row[Correlation] = e.Class, id
	if c := r.Commit.Correlation; c != "" {
		row[Correlation] = c
	}
	if e.Parent != "" {
		row[Parent] = e.Parent
	}
	if len(e.Labels) > 0 {
		row[Labels] = labels(e.Labels)
	}
	row[SubmittedAt], row[StartedAt] = int64(r.At), int64(r.At)
	row[Tasks], row[Definition] = int64(e.Tasks), e.Definition.String()
	if e.Deadline != 0 {
		row[Deadline] = int64(e.Deadline)
	}
	row[ChangedAt] = int64(r.Version)
	return row
}

func changed(old projections.Row, to string, r *events.Recorded) projections.Row {
	row := append(projections.Row(nil), old...)
	row[Status], row[EndedAt], row[ErrorCode], row[ErrorMessage] = to, nil, nil, nil
	row[ChangedAt] = int64(r.Version)
	if to == failed || final(to) {
		row[EndedAt] = int64(r.At)
	}
	if e, ok := r.Event.(events.ExecutionFailed); ok {
		row[ErrorCode], row[ErrorMessage] = e.Code, e.Message
	}
	return row
}

// final says that nothing follows a status; a failed execution may be opened again.
func final(status string) bool {
	return status == completed || status == cancelled || status == timedOut
}

// statusAfter is what the aggregate makes of the same events. PENDING is never seen here: what is submitted has its
// first tasks ready, done or skipped in the same append.
func statusAfter(now string, e events.Event) string {
	if final(now) {
		return now
	}
	switch e.(type) {
	case events.ExecutionSubmitted, events.ExecutionResumed:
		return running
	case events.ExecutionPaused:
		return paused
	case events.ExecutionCancelled:
		return cancelled
	case events.ExecutionTimedOut:
		return timedOut
	case events.ExecutionCompleted:
		return completed
	case events.ExecutionFailed:
		return failed
	case events.TaskRetried: // of a failed execution it opens it again
		if now == failed {
			return running
		}
	}
	return now
}

// labels writes an object in the order of the list, which is that of the names.
func labels(ls []events.Label) []byte {
	b := []byte{'{'}
	for i, l := range ls {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(l.Name) // a text always has a form in JSON
		value, _ := json.Marshal(l.Value)
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}')
}
