package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sluice "github.com/sluice-platform/sluice/gateways/sdk/go"
)

// Exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1 // the execution failed, or the server refused what was asked
	ExitUsage       = 2 // the command line, or a file that it names, is wrong
	ExitUnreachable = 3 // no server answered; nothing is known of what was asked
)

// UsageError says that the command line is wrong.
type UsageError struct{ Text string }

func (u *UsageError) Error() string { return u.Text }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// ErrFailed says that what was asked was done and its outcome, already printed, is a failure: exit code 1, and no
// further text.
var ErrFailed = errors.New("the outcome is a failure")

// fail prints an error for people, with a next step where there is one, and returns the exit code.
func (a *App) fail(err error) int {
	var usage *UsageError
	var problem *sluice.Problem
	switch {
	case errors.Is(err, ErrFailed):
		return ExitFailed
	case errors.As(err, &usage):
		a.say("usage: %s\nnext: `sluice --help` lists the verbs, `sluice VERB --help` what each takes", usage.Text)
		return ExitUsage
	case errors.As(err, &problem):
		return a.problem(problem)
	case errors.Is(err, sluice.ErrUnreachable):
		a.say("unreachable: %s\nnext: is the server running? start it with `sluice up`, or name it with --server "+
			"(asked: %s)", err, a.Server)
		return ExitUnreachable
	case errors.Is(err, context.Canceled):
		a.say("interrupted; what was started goes on")
		return ExitFailed
	default:
		a.say("error: %s", err)
		return ExitFailed
	}
}

func (a *App) say(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }

// problem prints a refusal with each of its violations.
func (a *App) problem(p *sluice.Problem) int {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	a.say("%s (%d): %s", p.Code, p.Status, text)
	for _, v := range p.Errors {
		var at []string
		if v.Line > 0 {
			at = append(at, fmt.Sprintf("line %d", v.Line))
		}
		if v.Pointer != "" {
			at = append(at, v.Pointer)
		}
		a.say("  %s", strings.TrimPrefix(fmt.Sprintf("%s: %s: %s", strings.Join(at, " "), v.Code, v.Detail), ": "))
	}
	a.say("next: %s", nextStep(p))
	if p.TraceID != "" {
		a.say("trace: %s", p.TraceID)
	}
	switch p.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ExitUnreachable
	default:
		return ExitFailed
	}
}

// nextStep says what a person can do about a refusal, by its status: codes are many, and their detail says the rest.
func nextStep(p *sluice.Problem) string {
	switch s := p.Status; {
	case p.RetryAfter > 0:
		return fmt.Sprintf("the server asks to wait %s and ask again", p.RetryAfter)
	case s == http.StatusNotFound:
		return "check the name; `sluice executions list` shows the executions, `sluice apply -f FILE` publishes a workflow"
	case s == http.StatusConflict || s == http.StatusPreconditionFailed:
		return "look at it as it is now (`sluice executions show ID`), then decide again"
	case s == http.StatusForbidden || s == http.StatusUnauthorized:
		return "ask from this machine, by a loopback address, or with an identity that may"
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		return "wait a moment and ask again"
	case s >= 500:
		return "look at the server's log for this trace; asking again is safe with --key"
	case len(p.Errors) > 0:
		return "correct what is listed and send it again"
	default:
		return "correct the request; `sluice VERB --help` says what it takes"
	}
}
