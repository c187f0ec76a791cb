package commands

import (
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// Kind classes a refusal by what the caller can do about it. Gateways map kinds to their statuses.
type Kind string

// The kinds.
const (
	Malformed   Kind = "malformed"   // cannot be read at all: fix the request
	Invalid     Kind = "invalid"     // read and refused: fix the fields named
	NotFound    Kind = "not_found"   // nothing has that id
	Refused     Kind = "refused"     // not in this state; reading again may explain
	Stale       Kind = "stale"       // the stream is at another version than the caller named
	TooMany     Kind = "too_many"    // a limit; wait, or ask for less
	Unavailable Kind = "unavailable" // not now; the same request may work later
)

// Kinds lists them all, for tables that must be complete.
var Kinds = []Kind{Malformed, Invalid, NotFound, Refused, Stale, TooMany, Unavailable}

// Violation is one fault of a request.
type Violation struct {
	Code    string `json:"code"`
	Pointer string `json:"pointer"` // RFC 6901, into the request's body
	Detail  string `json:"detail"`  // what is wrong and what to do
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Error is a refusal: caused by the request or the state, safe to show to whoever asked.
// Everything else is a fault of ours and stays in the logs.
type Error struct {
	Kind       Kind
	Code       string // stable, for programs; listed in codes.go
	Reason     string // for people
	Violations []Violation
	Version    events.Version // of the stream, where it helps (Stale)
}

func (e *Error) Error() string { return e.Code + ": " + e.Reason }

// Refuse makes a refusal with one reason.
func Refuse(k Kind, code, format string, args ...any) *Error {
	return &Error{Kind: k, Code: code, Reason: fmt.Sprintf(format, args...)}
}
