package execution

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// The codes of failures that are decided here.
const (
	codeOutputMismatch = "output_mismatch"
	codeTooLarge       = "payload_too_large"
	codeWhenNotBool    = "when_not_bool"
	codeTransformValue = "transform_value_missing"
	codeSleepFor       = "sleep_for_invalid"
	codeTaskTimeout    = "task_timeout"
	codeHeartbeat      = "heartbeat_timeout"
	codeAttemptLost    = "attempt_lost"
)

// start records who works on the open attempt: once, and again for another worker that has taken it over.
func (d *draft) start(c commands.StartTask) error {
	if !d.s.counting() {
		return nil
	}
	if err := d.ahead(c.Task, c.Attempt); err != nil {
		return err
	}
	started, ok := d.s.Started(c.Task)
	if !d.s.Sendable(c.Task, c.Attempt) || ok && started.Worker == c.Worker {
		return nil
	}
	if ok { // another worker's: a second start of what must not run twice does not count
		if err := d.load(d.s.definition); err != nil {
			return err
		}
		if !d.plan.Tasks[c.Task].Repeatable {
			return nil
		}
	}
	d.emit(events.TaskStarted{
		Task: c.Task, Attempt: c.Attempt, Worker: c.Worker,
		SentAt: c.SentAt, SlotWait: c.SlotWait.Microseconds(), StartedAt: c.StartedAt,
	})
	return nil
}

// ahead says whether an attempt is one that the state has not heard of yet.
func (d *draft) ahead(t, attempt int32) error {
	switch {
	case !d.s.known(t):
		return &aggregates.Ahead{Detail: fmt.Sprintf("task %d of %d", t, d.s.tasks)}
	case d.s.isSettled(t):
		return nil
	case !d.s.ready.has(t):
		return &aggregates.Ahead{Detail: fmt.Sprintf("task %d is not ready", t)}
	case attempt > d.s.Attempt(t):
		return &aggregates.Ahead{Detail: fmt.Sprintf("task %d is at attempt %d, not %d", t, d.s.Attempt(t), attempt)}
	default:
		return nil
	}
}

// result decides what an attempt's end means. A repeat, and everything after the end of the execution, is nothing.
func (d *draft) result(c commands.RecordResult) error {
	if !d.s.counting() {
		return nil
	}
	if err := d.ahead(c.Task, c.Attempt); err != nil {
		return err
	}
	if d.s.isSettled(c.Task) || c.Attempt < 1 {
		return nil
	}
	if err := d.load(d.s.definition); err != nil {
		return err
	}
	f := d.s.flights[c.Task]
	open := f.phase == sendable || f.phase == backOff // nothing is written when a back-off ends
	current := open && c.Attempt == f.number()
	switch {
	case c.Failure == nil && (current || open && d.plan.Tasks[c.Task].Repeatable):
		d.success(c, current)
	case current:
		e := endOf(c)
		e.Class, e.Code, e.Message = c.Failure.Class, c.Failure.Code, c.Failure.Message
		d.failure(e, c.Failure.RetryAfter)
	default:
		d.late(c, f)
	}
	return nil
}

// endOf is the failure that a result tells, but for what went wrong.
func endOf(c commands.RecordResult) events.TaskFailed {
	return events.TaskFailed{
		Task: c.Task, Attempt: c.Attempt, Worker: c.Worker, SentAt: c.SentAt, SlotWait: c.SlotWait.Microseconds(),
		StartedAt: c.StartedAt, EndedAt: c.EndedAt,
	}
}

// success completes the task, unless its output cannot be kept or does not fit its schema: then the attempt has failed
// for good, or is only recorded if it was superseded.
func (d *draft) success(c commands.RecordResult, current bool) {
	var code, why string
	if c.Output.Size > events.BlobBytesMax {
		code, why = codeTooLarge, fmt.Sprintf("the output has %d bytes; at most %d are kept", c.Output.Size,
			events.BlobBytesMax)
		c.Output = events.Payload{}
	} else if why = d.mismatch(c.Task, c.Output); why != "" {
		code = codeOutputMismatch
	}
	switch {
	case code == "":
		d.begin()
		d.complete(events.TaskCompleted{
			Task: c.Task, Attempt: c.Attempt, Worker: c.Worker, SentAt: c.SentAt, SlotWait: c.SlotWait.Microseconds(),
			StartedAt: c.StartedAt, EndedAt: c.EndedAt, Output: c.Output,
		})
		d.follow()
	case current:
		e := endOf(c)
		e.Class, e.Code, e.Message = events.Permanent, code, why
		d.failure(e, 0)
	default:
		c.Failure = &commands.Failure{Class: events.Permanent, Code: code}
		d.late(c, d.s.flights[c.Task])
	}
}

// mismatch says why an output in place does not fit its schema; workers check those that are blobs.
func (d *draft) mismatch(t int32, p events.Payload) string {
	schema := d.plan.Tasks[t].Output
	if schema == nil || len(p.Blob) > 0 {
		return ""
	}
	text := p.Inline
	if p.Empty() {
		text = []byte("null")
	}
	wrong := schema.Validate(text)
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("the output does not fit its schema at %q: %s", wrong[0].Pointer, wrong[0].Detail)
}

// late records once what a superseded attempt, or one of a dead letter, has come to. A result that the attempt's end
// in the log already tells is a repeat, and that its time was up is no news: the log has superseded it.
func (d *draft) late(c commands.RecordResult, f flight) {
	if f.told&toldBit(c.Attempt) != 0 || f.phase == timer || c.Failure != nil && c.Failure.Class == events.TimedOut {
		return
	}
	e := events.TaskResultLate{Task: c.Task, Attempt: c.Attempt, Worker: c.Worker, EndedAt: c.EndedAt, Output: c.Output}
	if c.Failure != nil {
		e.Class, e.Code = c.Failure.Class, c.Failure.Code
	}
	d.emit(e)
}

// timeOut ends the current attempt because its time is up. One that still waits for its time has not begun.
func (d *draft) timeOut(c commands.TimeOutTask) error {
	if !d.s.Sendable(c.Task, c.Attempt) || d.s.RetryAt(c.Task) > d.m.At {
		return nil
	}
	if err := d.load(d.s.definition); err != nil {
		return err
	}
	code, message := codeTaskTimeout, "the attempt took longer than its timeout"
	switch c.Why {
	case "heartbeat":
		code, message = codeHeartbeat, "nothing was heard of the attempt for longer than its heartbeat"
	case "lost":
		code, message = codeAttemptLost, "the worker ended while the attempt ran; whether it had its effect is unknown"
	}
	started, _ := d.s.Started(c.Task)
	d.failure(events.TaskFailed{
		Task: c.Task, Attempt: c.Attempt, Worker: started.Worker, SentAt: c.SentAt, SlotWait: c.SlotWait.Microseconds(),
		StartedAt: started.StartedAt, EndedAt: d.m.At, Class: events.TimedOut, Code: code, Message: message,
	}, 0)
	return nil
}

// failure decides what follows a failed attempt: another one after its delay, at the earliest after what a throttling
// downstream asked for; or the dead letter, which fails the execution. A handler that is not repeatable is a dead
// letter at once: a second effect is worse than none (seed view 17).
func (d *draft) failure(e events.TaskFailed, after time.Duration) {
	task, f := &d.plan.Tasks[e.Task], d.s.flights[e.Task]
	tried := int(e.Attempt - f.spent)
	if e.Class == events.Permanent || !task.Repeatable || tried >= task.Retry.MaxAttempts {
		d.deadLetter(e)
		d.conclude()
		return
	}
	delay := task.Retry.Jittered(tried, d.m.Entropy)
	if e.Class == events.Throttled {
		delay = max(delay, min(after, retryAfterMax))
	}
	e.Message = cut(e.Message, messageMax)
	e.Next, e.RetryAt = events.NextRetry, d.m.At.Add(delay)
	d.emit(e)
}

// deadLetter ends a task without success; conclude fails the execution for the first of them.
func (d *draft) deadLetter(e events.TaskFailed) {
	limit := messageMax
	if d.bytes > decisionBytesMax {
		limit = messageShort
	}
	e.Message = cut(e.Message, limit)
	d.bytes += len(e.Message)
	e.Next = events.NextDeadLetter
	d.emit(e)
	if d.failed == nil {
		d.failed = &events.ExecutionFailed{Task: e.Task, Code: e.Code, Message: e.Message}
	}
}

const (
	messageMax   = 2000 // bytes of a failure's message in the log
	messageShort = 100  // of one more failure in an append that holds very many
)

// cut bounds a message at a rune's edge.
func cut(s string, limit int) string {
	const more = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(more)
	for end > 0 && s[end]&0xc0 == 0x80 {
		end--
	}
	return s[:end] + more
}
