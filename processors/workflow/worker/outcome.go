package worker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// messageMax bounds a failure's text: it stands in an event.
const messageMax = 2_048

// verdict is why a handler was cancelled.
type verdict struct {
	why     reason
	cause   error
	failure *commands.Failure // of a time-out
}

type reason uint8

const (
	late reason = iota
	gone
	drained
)

// errTimedOut is the cause of a context that the watchdog ended.
type errTimedOut struct{ failure *commands.Failure }

func (e errTimedOut) Error() string { return e.failure.Message }

func timedOut(code, format string, args ...any) *verdict {
	f := &commands.Failure{Class: events.TimedOut, Code: code, Message: fmt.Sprintf(format, args...)}
	return &verdict{why: late, cause: errTimedOut{f}, failure: f}
}

func permanent(code, format string, args ...any) *commands.Failure {
	return &commands.Failure{Class: events.Permanent, Code: code, Message: fmt.Sprintf(format, args...)}
}

func isGone(err error) bool     { return errors.Is(err, workflow.ErrGone) }
func isLockLost(err error) bool { return errors.Is(err, workflow.ErrLockLost) }

// returned is how the handler ended. A success counts whatever was said meanwhile: the work is done.
func (j *Job) returned(in Returned, now events.Time) {
	if j.phase != running {
		return
	}
	switch {
	case in.Panicked:
		j.fail(permanent("handler_panic", "the handler of type %s failed in a way it should not", j.d.Type), now)
	case in.Failure == nil:
		j.succeed(in.Output, now)
	case j.verdict != nil:
		j.cancelled(now)
	default:
		j.fail(in.Failure, now)
	}
}

// abandoned ends a job whose handler does not return.
func (j *Job) abandoned(now events.Time) {
	if j.phase == running && j.verdict != nil {
		j.cancelled(now)
	}
}

func (j *Job) cancelled(now events.Time) {
	switch {
	case j.verdict.why == gone:
		j.settle(workflow.Accept)
	case j.verdict.why == late:
		j.fail(j.verdict.failure, now)
	case j.task.Repeatable: // no report: the attempt is not spent, and begins again elsewhere
		j.settle(workflow.Release)
	default: // its effect may have happened, so that nobody else may begin it
		j.fail(&commands.Failure{
			Class: events.Transient, Code: "worker_ended", Message: "the worker ended while the task was under way",
		}, now)
	}
}

// succeed holds the output to what may be kept; a refusal says what and how much, and nothing is ever cut.
func (j *Job) succeed(out []byte, now events.Time) {
	j.endedAt = now
	switch {
	case len(out) > events.BlobBytesMax:
		j.fail(permanent("payload_too_large", "the output has %d bytes, at most %d are kept", len(out),
			events.BlobBytesMax), now)
	case !jsontext.Value(out).IsValid():
		j.fail(permanent("invalid_output", "the handler of type %s gave an output that is not JSON", j.d.Type), now)
	case len(out) <= events.InlineMax:
		j.output = events.InlinePayload(out) // the decider holds it to the task's schema
		j.report(now)
	default:
		if f := checkOutput(j.task, out); f != nil {
			j.fail(f, now)
			return
		}
		j.output = events.InlinePayload(out)
		j.endWork(storing)
		j.out.Store = out
	}
}

func (j *Job) fail(f *commands.Failure, now events.Time) {
	if j.startedAt == 0 {
		j.startedAt = now
	}
	j.endedAt = now
	own := *f
	own.Message = bounded(own.Message)
	switch own.Class {
	case events.Transient, events.Throttled, events.Permanent, events.TimedOut:
	default:
		own.Class = events.Permanent
	}
	if own.Code == "" {
		own.Code = "failed"
	}
	j.failure, j.output = &own, events.Payload{}
	j.report(now)
}

// bounded cuts a message at the last whole character.
func bounded(s string) string {
	if len(s) > messageMax {
		s = s[:messageMax-len("…")]
		s = strings.ToValidUTF8(s, "") + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// endWork stops every watch but that over the lock.
func (j *Job) endWork(next phase) {
	j.phase, j.tries = next, 0
	j.wait = waits{renew: j.wait.renew}
}

func (j *Job) report(events.Time) {
	j.endWork(reporting)
	j.out.Result = j.result()
}

func (j *Job) result() *commands.RecordResult {
	return &commands.RecordResult{
		Task: j.d.Task, Attempt: j.d.Attempt, Worker: j.cfg.Name,
		SentAt: j.d.SentAt, StartedAt: j.startedAt, EndedAt: j.endedAt, SlotWait: j.d.SlotWait,
		Output: j.output, Failure: j.failure,
	}
}

func (j *Job) stored(in Stored, now events.Time) {
	switch {
	case j.phase != storing:
	case in.Err == nil:
		j.output = events.BlobPayload(in.Name, int(j.output.Size))
		j.report(now)
	case j.again(now):
	default:
		j.fail(&commands.Failure{
			Class: events.Transient, Code: "output_not_stored", Message: "the output could not be stored",
		}, now)
	}
}

func (j *Job) reported(err error, now events.Time) {
	switch {
	case j.phase != reporting:
	case err == nil:
		j.settle(workflow.Accept)
	case j.again(now):
	case j.task == nil || j.task.Repeatable:
		j.settle(workflow.Release)
	default: // nobody else may begin it; the owner's deadline ends the attempt
		j.settle(workflow.Accept)
	}
}

// again sets the time of the next try, if there is one.
func (j *Job) again(now events.Time) bool {
	j.tries++
	if j.tries >= triesMax {
		return false
	}
	j.wait.retry = now.Add(min(retryFirst<<min(j.tries-1, 10), retryMost))
	return true
}
