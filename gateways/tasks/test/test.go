// Package test runs tasks of type test: they do to the platform what real tasks do, on demand.
// It never touches the world and keeps no state: what an attempt does follows from the mapping and its number.
package test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/aggregates/kernel/duration"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Handler does what the mapping says. It is safe for concurrent use.
type Handler struct{}

var _ workflow.Handler = Handler{}

// with is a task's evaluated mapping; with.schema.json says the same.
type with struct {
	Hang    span    `json:"hang"`  // how long it works before it ends
	Beat    span    `json:"beat"`  // gives a sign of life this often meanwhile
	Panic   bool    `json:"panic"` // in place of an end
	Fail    failure `json:"fail"`
	Succeed success `json:"succeed"` // where it does not fail
}

// success says what an attempt gives.
type success struct {
	Output jsontext.Value `json:"output"` // default null
	Bytes  int            `json:"bytes"`  // in place of output: a text that takes this many bytes as JSON
}

// failure says how the first attempts end.
type failure struct {
	Times      int                 `json:"times"` // the first so many attempts; default none
	Class      events.FailureClass `json:"class"` // default transient
	Code       string              `json:"code"`  // default test_failure
	Message    string              `json:"message"`
	RetryAfter span                `json:"retryAfter"` // for class throttled
}

// bytesMax lets a task give more than may be kept, which is what one wants to see refused, and no more.
const bytesMax = 2 * events.BlobBytesMax

// Run does what the mapping says for this attempt.
func (Handler) Run(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	var do with
	if err := json.Unmarshal(w.With, &do, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalid("%v", err) // a test's mapping holds no secret
	}
	if f := do.check(); f != nil {
		return nil, f
	}
	if f := do.hang(ctx, w); f != nil {
		return nil, f
	}
	if do.Panic {
		panic("as the task asked")
	}
	if f := do.Fail; int(w.Attempt) <= f.Times {
		return nil, &commands.Failure{
			Class: f.Class, Code: f.Code, Message: f.Message, RetryAfter: time.Duration(f.RetryAfter),
		}
	}
	return do.Succeed.text(), nil
}

func invalid(format string, args ...any) *commands.Failure {
	return &commands.Failure{Class: events.Permanent, Code: "invalid_with", Message: fmt.Sprintf(format, args...)}
}

// check fills in the defaults and refuses what cannot be done.
func (do *with) check() *commands.Failure {
	if n := do.Succeed.Bytes; n != 0 && (n < 2 || n > bytesMax || do.Succeed.Output != nil) {
		return invalid("with.succeed.bytes is 2 to %d and stands in place of output", bytesMax)
	}
	f := &do.Fail
	if f.Class == "" {
		f.Class = events.Transient
	}
	if f.Code == "" {
		f.Code = "test_failure"
	}
	if f.Message == "" {
		f.Message = "as the task asked"
	}
	switch f.Class {
	case events.Transient, events.Throttled, events.Permanent, events.TimedOut:
	default:
		return invalid("with.fail.class %.40q is none of transient, throttled, permanent, timed_out", f.Class)
	}
	if f.Times < 0 {
		return invalid("with.fail.times is negative")
	}
	return nil
}

func (do *with) hang(ctx context.Context, w workflow.Work) *commands.Failure {
	if do.Hang == 0 {
		return nil
	}
	end := time.NewTimer(time.Duration(do.Hang))
	defer end.Stop()
	var beats <-chan time.Time
	if do.Beat > 0 {
		every := time.NewTicker(time.Duration(do.Beat))
		defer every.Stop()
		beats = every.C
	}
	for {
		select {
		case <-end.C:
			return nil
		case <-beats:
			w.Heartbeat()
		case <-ctx.Done():
			return &commands.Failure{Class: events.Transient, Code: "cancelled", Message: context.Cause(ctx).Error()}
		}
	}
}

func (s *success) text() []byte {
	switch {
	case s.Bytes > 0:
		b := bytes.Repeat([]byte("x"), s.Bytes)
		b[0], b[len(b)-1] = '"', '"'
		return b
	case s.Output == nil:
		return []byte("null")
	}
	return s.Output
}

// span is a duration as a text.
type span time.Duration

// UnmarshalText reads 90s, 1m30s or PT1M30S.
func (s *span) UnmarshalText(b []byte) error {
	d, err := duration.Parse(string(b))
	*s = span(d)
	return err
}
