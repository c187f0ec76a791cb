// Package http is the edge: the chain that every request passes, and how refusals look.
// It never decides anything; resources stand in its folders, one domain each.
package http

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/commands"
)

// Problem is a refusal as RFC 9457 has it, with a code for programs and every violation at once.
type Problem struct {
	Type    string               `json:"type"`
	Title   string               `json:"title"`
	Status  int                  `json:"status"`
	Detail  string               `json:"detail,omitempty"`
	Code    string               `json:"code"`
	Errors  []commands.Violation `json:"errors,omitempty"`
	Version int64                `json:"version,omitempty" doc:"The version that the resource is at, where that helps."`
	TraceID string               `json:"traceId"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus is huma's.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is huma's: problems are always problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// status is the one place where a kind of refusal becomes a status; a kind without an entry fails a test.
var status = map[commands.Kind]int{
	commands.Malformed:   http.StatusBadRequest,
	commands.Invalid:     http.StatusUnprocessableEntity,
	commands.NotFound:    http.StatusNotFound,
	commands.Refused:     http.StatusConflict,
	commands.Stale:       http.StatusPreconditionFailed,
	commands.TooMany:     http.StatusTooManyRequests,
	commands.Unavailable: http.StatusServiceUnavailable,
}

// soon are the refusals that may be gone in a second; the others stay until something is changed.
var soon = map[string]bool{
	"unavailable": true, "view_not_ready": true, "too_many_watchers": true, commands.CodeBusy: true,
}

// Refusal makes a problem of what handle or a query answered. Faults of ours show no detail: they are logged.
func Refusal(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	known := requestOf(ctx)
	var refusal *commands.Error
	if !errors.As(err, &refusal) {
		known.logger.ErrorContext(ctx, "request failed", "traceId", known.trace, "spanId", known.span, "error", err)
		refusal = commands.Refuse(commands.Unavailable, "unavailable",
			"this failed on our side and its outcome is unknown; send it again with the same Idempotency-Key")
	}
	p := problem(status[refusal.Kind], refusal.Code, refusal.Reason)
	p.Errors, p.Version, p.TraceID = refusal.Violations, int64(refusal.Version), known.trace
	switch {
	case refusal.Kind == commands.Stale:
		return huma.ErrorWithHeaders(p, http.Header{"ETag": {ETag(refusal.Version, known.incarnation)}})
	case soon[refusal.Code]:
		return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {"1"}})
	}
	return p
}

// problem has no trace yet: traceProblem or write adds it.
func problem(code int, name, detail string) *Problem {
	return &Problem{
		Type: "about:blank", Title: http.StatusText(code), Status: code, Code: name, Detail: detail,
	}
}

// Refuse makes a problem of a kind.
func Refuse(k commands.Kind, code, detail string, violations ...commands.Violation) error {
	p := problem(status[k], code, detail)
	p.Errors = violations
	return p
}

// traceProblem gives a problem the trace of the request that it answers.
func traceProblem(ctx huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*Problem); ok && p.TraceID == "" {
		p.TraceID = requestOf(ctx.Context()).trace
	}
	return v, nil
}

// codes are of the statuses that huma gives by itself.
var codes = map[int]string{
	http.StatusBadRequest: "malformed", http.StatusUnprocessableEntity: "invalid", http.StatusNotFound: "not_found",
	http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusRequestEntityTooLarge: "body_too_large",
	http.StatusInternalServerError: "internal", http.StatusNotAcceptable: "not_acceptable",
	http.StatusRequestTimeout: "timeout",
}

// newError is huma's errors in our form.
func newError(pointer func(location string) string, code int, message string, errs ...error) huma.StatusError {
	name := codes[code]
	if name == "" {
		name = "status_" + strconv.Itoa(code)
	}
	p := problem(code, name, message)
	for _, err := range errs {
		v := commands.Violation{Code: "invalid", Detail: err.Error()}
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			if v.Pointer, v.Detail = detail.Location, detail.Message; pointer != nil {
				v.Pointer = pointer(detail.Location)
			}
		}
		p.Errors = append(p.Errors, v)
	}
	return p
}

func write(ctx context.Context, w http.ResponseWriter, p *Problem) {
	p.TraceID = requestOf(ctx).trace
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever does not read it is gone
}

// WriteRefusal answers with what Refusal makes of err, where nothing was written yet.
func WriteRefusal(ctx context.Context, w http.ResponseWriter, err error) {
	refusal := Refusal(ctx, err)
	var headers huma.HeadersError
	if errors.As(refusal, &headers) {
		maps.Copy(w.Header(), headers.GetHeaders())
	}
	var p *Problem
	if errors.As(refusal, &p) {
		write(ctx, w, p)
	}
}
