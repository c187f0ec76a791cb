package sluice

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Execution is one run of a workflow. JSON that is a user's stays as it was stored, digit for digit.
type Execution struct {
	ID             string            `json:"id"`
	Workflow       string            `json:"workflow"`
	Version        int64             `json:"version"`
	Status         string            `json:"status"`
	Input          json.RawMessage   `json:"input,omitempty"`
	Output         json.RawMessage   `json:"output,omitempty"`
	Error          *Failure          `json:"error,omitempty"`
	SubmittedAt    *time.Time        `json:"submittedAt,omitempty"`
	StartedAt      *time.Time        `json:"startedAt,omitempty"`
	EndedAt        *time.Time        `json:"endedAt,omitempty"`
	Deadline       *time.Time        `json:"deadline,omitempty"`
	Correlation    string            `json:"correlation,omitempty"`
	Class          string            `json:"class,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Parent         string            `json:"parent,omitempty"`
	TaskCount      int               `json:"taskCount,omitempty"`
	Tasks          []Task            `json:"tasks,omitempty"`
	NextTaskCursor string            `json:"nextTaskCursor,omitempty"` // empty: these are the last tasks
}

// Failure says why an execution or a task failed.
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
	RetryAt   *time.Time      `json:"retryAt,omitempty"` // when the next attempt may begin
	Error     *Failure        `json:"error,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// Finished says that the execution has come to its end, whatever it is.
func (e *Execution) Finished() bool {
	switch e.Status {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT":
		return true
	default:
		return false
	}
}

// Start is what an execution starts from. All is optional.
type Start struct {
	Input       json.RawMessage   `json:"input,omitempty"`
	Version     int64             `json:"version,omitempty"` // 0: the latest
	Class       string            `json:"class,omitempty"`   // high, standard, bulk or longrunning
	Labels      map[string]string `json:"labels,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
	Key         string            `json:"-"` // Idempotency-Key; empty: a new one, so that a dead connection is tried anew
	Wait        time.Duration     `json:"-"` // how long the server holds the answer for the end; 0: not at all
}

// Start starts an execution. With Wait the answer is the finished execution if it ends in that time (see Finished),
// else its id and version. Repeating it with the same Key gives the same execution.
func (c *Client) Start(ctx context.Context, workflow string, s Start) (e Execution, err error) {
	key := s.Key
	if key == "" {
		key = rand.Text()
	}
	query := url.Values{}
	if s.Wait > 0 {
		query.Set("wait", s.Wait.String())
	}
	err = c.postQuery(ctx, path("workflows", workflow, "executions"), query,
		http.Header{"Idempotency-Key": {key}}, s, &e)
	if e.Workflow == "" {
		e.Workflow = workflow
	}
	return e, err
}

// Filter narrows a list of executions. Zero fields do not.
type Filter struct {
	Workflow, Status, Correlation, ErrorCode string
	Version                                  int64
	From, Before                             time.Time // of the submission; Before is not part of it
	Limit                                    int       // of a page, at most 500
	Cursor                                   string    // NextCursor of the page before
}

func (f Filter) query() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	number := func(name string, n int64) {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	set("workflow", f.Workflow)
	set("status", f.Status)
	set("correlation", f.Correlation)
	set("errorCode", f.ErrorCode)
	set("cursor", f.Cursor)
	number("version", f.Version)
	number("limit", int64(f.Limit))
	at("from", f.From)
	at("before", f.Before)
	return q
}

// Page is one page of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor,omitempty"` // empty: it is the last
}

// Executions returns a page of the list.
func (c *Client) Executions(ctx context.Context, f Filter) (p Page[Execution], err error) {
	err = c.get(ctx, path("executions"), f.query(), &p)
	return p, err
}

// Show says which part of an execution is wanted.
type Show struct {
	Outputs    bool   // of the tasks
	TaskCursor string // NextTaskCursor of the page before
}

// Execution returns one execution with a page of its tasks.
func (c *Client) Execution(ctx context.Context, id string, s Show) (e Execution, err error) {
	q := url.Values{}
	if s.Outputs {
		q.Set("include", "outputs")
	}
	if s.TaskCursor != "" {
		q.Set("taskCursor", s.TaskCursor)
	}
	err = c.get(ctx, path("executions", id), q, &e)
	return e, err
}

// Whole returns one execution with all of its tasks.
func (c *Client) Whole(ctx context.Context, id string, outputs bool) (Execution, error) {
	e, err := c.Execution(ctx, id, Show{Outputs: outputs})
	for next := e.NextTaskCursor; err == nil && next != ""; {
		var more Execution
		if more, err = c.Execution(ctx, id, Show{Outputs: outputs, TaskCursor: next}); err == nil {
			e.Tasks = append(e.Tasks, more.Tasks...)
			if next = more.NextTaskCursor; len(more.Tasks) == 0 {
				next = ""
			}
		}
	}
	e.NextTaskCursor = ""
	return e, err
}
