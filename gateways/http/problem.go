// Package http is the edge: the chain that every request passes, and how refusals look.
// It never decides anything; resources stand in its folders, one domain each.
package http

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
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

// Refusal makes a problem of what handle or a query answered. Faults of ours show no detail: they are logged.
func Refusal(err error) error {
	if err == nil {
		return nil
	}
	var refusal *commands.Error
	if errors.As(err, &refusal) {
		p := problem(status[refusal.Kind], refusal.Code, refusal.Reason)
		p.Errors, p.Version = refusal.Violations, int64(refusal.Version)
		if refusal.Kind == commands.Stale {
			return huma.ErrorWithHeaders(p, http.Header{"ETag": {ETag(refusal.Version, 1)}})
		}
		return p
	}
	p := problem(http.StatusServiceUnavailable, "unavailable",
		"this failed on our side and its outcome is unknown; send it again with the same Idempotency-Key")
	slog.Error("request failed", "traceId", p.TraceID, "error", err)
	return p
}

func problem(code int, name, detail string) *Problem {
	return &Problem{
		Type: "about:blank", Title: http.StatusText(code), Status: code, Code: name, Detail: detail, TraceID: traceID(),
	}
}

// Refuse makes a problem of a kind.
func Refuse(k commands.Kind, code, detail string, violations ...commands.Violation) error {
	p := problem(status[k], code, detail)
	p.Errors = violations
	return p
}

func traceID() string {
	var b [16]byte
	rand.Read(b[:]) // it never returns an error
	return hex.EncodeToString(b[:])
}

// codes are of the statuses that huma gives by itself.
var codes = map[int]string{
	http.StatusBadRequest: "malformed", http.StatusUnprocessableEntity: "invalid", http.StatusNotFound: "not_found",
	http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusRequestEntityTooLarge: "body_too_large",
	http.StatusNotAcceptable: "not_acceptable", http.StatusRequestTimeout: "timeout",
}

// newError is huma's errors in our form.
func newError(code int, message string, errs ...error) huma.StatusError {
	name := codes[code]
	if name == "" {
		name = "status_" + strconv.Itoa(code)
	}
	p := problem(code, name, message)
	for _, err := range errs {
		v := commands.Violation{Code: "invalid", Detail: err.Error()}
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			v.Pointer, v.Detail = pointer(detail.Location), detail.Message
		}
		p.Errors = append(p.Errors, v)
	}
	return p
}

func write(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever does not read it is gone
}
