package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Waits between two attempts to read a stream on: doubled from the first to the last.
const (
	againFirst = 100 * time.Millisecond
	againMax   = 5 * time.Second
)

// Event is one event of an execution: a CloudEvent 1.0, or what the server showed of it.
type Event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Time *time.Time      `json:"time,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	Raw  json.RawMessage `json:"-"` // all of it
}

// UnmarshalJSON keeps the whole text beside the fields.
func (e *Event) UnmarshalJSON(b []byte) error {
	type fields Event
	if err := json.Unmarshal(b, (*fields)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON is the whole text again.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Raw != nil {
		return e.Raw, nil
	}
	type fields Event
	return json.Marshal(fields(e))
}

// Events returns a page of an execution's history, oldest first. cursor is NextCursor of the page before.
func (c *Client) Events(ctx context.Context, id, cursor string, limit int) (p Page[Event], err error) {
	q := url.Values{}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	if limit > 0 {
		q.Set("limit", fmt.Sprint(limit))
	}
	err = c.get(ctx, path("executions", id, "events"), q, &p)
	return p, err
}

// Follow reads an execution's stream and hands each message to do, in order and each once, until the message "end", do
// returns an error, or ctx ends. It reads on after a broken connection from the last id
// it saw; after says where to begin (a Message's ID; empty: the start). A server that stays unreachable for the time
// that patience gives ends it with ErrUnreachable, a refusal with its *Problem. A message "resync" has the
// execution as it is, in place of facts since an id that is too old.
func (c *Client) Follow(
	ctx context.Context, id, after string, patience time.Duration, do func(Message) error,
) error {
	wait, silent := againFirst, time.Duration(0)
	for {
		seen, asked, err := c.followOnce(ctx, id, after, do)
		if seen != after {
			after, wait, silent = seen, againFirst, 0
		}
		var broken *brokenError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &broken) && !errors.Is(err, ErrUnreachable) && !busy(err):
			return err
		case silent >= patience:
			return fmt.Errorf("stream of execution %s: %w", id, err)
		}
		pause := max(wait, asked)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		silent, wait = silent+pause, min(2*wait, againMax)
	}
}

// brokenError is a connection that ended in the middle.
type brokenError struct{ err error }

func (b *brokenError) Error() string { return "the stream broke off: " + b.err.Error() }
func (b *brokenError) Unwrap() []error {
	return []error{ErrUnreachable, b.err}
}

// busy says that the server asks to come again.
func busy(err error) bool {
	var p *Problem
	return errors.As(err, &p) && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable)
}

// problemIn reads a refusal that comes within a stream: by then its status was sent, and it is that too many watch.
func problemIn(m Message) error {
	p := &Problem{}
	if err := json.Unmarshal(m.Data, p); err != nil || p.Code == "" {
		p = &Problem{Code: "stream_refused", Detail: string(m.Data)}
	}
	if p.Status == 0 {
		p.Status = http.StatusTooManyRequests
	}
	return p
}

// followOnce reads one connection to its end; nil: it was the end of the execution.
func (c *Client) followOnce(
	ctx context.Context, id, after string, do func(Message) error,
) (seen string, asked time.Duration, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	resp, err := c.send(ctx, request{
		method: http.MethodGet, path: path("executions", id, "stream"), header: header,
	})
	if err != nil {
		var p *Problem
		if errors.As(err, &p) {
			asked = p.RetryAfter
		}
		return after, asked, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return after, 0, nil
	}
	s := newSSEReader(resp.Body)
	s.id, s.named = after, after
	for {
		m, err := s.next()
		switch {
		case errors.Is(err, io.EOF): // a server that stops ends its streams without the message "end"
			return s.id, s.retry, &brokenError{io.ErrUnexpectedEOF}
		case err != nil:
			return s.id, s.retry, &brokenError{err}
		case m.Event == "problem":
			return s.id, s.retry, problemIn(m)
		}
		if err := do(m); err != nil || m.Event == "end" {
			return s.id, s.retry, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await returns the execution when it has finished, with all of its tasks. It follows the stream and asks again where
// that ends early. patience is as in Follow.
func (c *Client) Await(ctx context.Context, id string, patience time.Duration, outputs bool) (Execution, error) {
	for {
		if err := c.Follow(ctx, id, "", patience, func(Message) error { return nil }); err != nil {
			return Execution{}, err
		}
		e, err := c.Whole(ctx, id, outputs)
		if err != nil || e.Finished() {
			return e, err
		}
		if err := sleep(ctx, againFirst); err != nil {
			return Execution{}, err
		}
	}
}
