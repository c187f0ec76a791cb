package commands

import (
	"time"

	"github.com/sluice-platform/sluice/events"
)

// ExecutionCommand is every request about one execution.
//
//sumtype:decl
type ExecutionCommand interface {
	Command
	execution()
}

// What callers ask.
type (
	// SubmitExecution starts an execution of one version. Input is a JSON text; above events.InlineMax it is a blob.
	SubmitExecution struct {
		Workflow   string
		Version    int64
		Definition events.Hash
		Input      events.Payload
		Class      string // empty: the definition's
		Labels     []events.Label
		Parent     string
	}
	// CancelExecution ends the execution and every open task. A finished one is refused with CodeFinished.
	CancelExecution struct{}
	// TerminateExecution is a cancel without compensation, which works in whatever state the execution is.
	TerminateExecution struct{}
	// PauseExecution stops dispatch. A paused one yields nothing.
	PauseExecution struct{}
	// ResumeExecution ends a pause. One that is not paused yields nothing.
	ResumeExecution struct{}
	// RetryTask opens one more attempt of a dead-lettered task. With, if not empty, replaces its evaluated mapping.
	RetryTask struct {
		Task string
		With events.Payload
	}
)

// What the owner asks. They carry a generation (task and attempt), so a repeat yields nothing.
type (
	// StartTask says that an attempt runs: sent when it still runs after a second, has a heartbeat, or is not repeatable.
	StartTask struct {
		Task, Attempt     int32
		Worker            string
		SentAt, StartedAt events.Time
		SlotWait          time.Duration
	}
	// RecordResult brings an attempt's end. Failure nil is a success with Output.
	RecordResult struct {
		Task, Attempt              int32
		Worker                     string
		SentAt, StartedAt, EndedAt events.Time
		SlotWait                   time.Duration
		Output                     events.Payload
		Failure                    *Failure
	}
	// TimeOutTask says that an attempt's deadline passed. Why is "timeout", "heartbeat" or "lost".
	TimeOutTask struct {
		Task, Attempt    int32
		Why              string
		SentAt, Deadline events.Time
		SlotWait         time.Duration
	}
	// FireTimer says that a timer task's time has come.
	FireTimer struct{ Task int32 }
	// TimeOutExecution says that the execution's deadline passed.
	TimeOutExecution struct{}
	// HoldTasks records once that ready tasks have waited for over 250 ms.
	HoldTasks struct {
		Tasks  []int32
		Reason string
		Since  events.Time
	}
)

// Failure is how an attempt failed.
type Failure struct {
	Class      events.FailureClass
	Code       string
	Message    string
	RetryAfter time.Duration // throttled: what the downstream asked for; 0: nothing
}

func (SubmitExecution) execution()    {}
func (CancelExecution) execution()    {}
func (TerminateExecution) execution() {}
func (PauseExecution) execution()     {}
func (ResumeExecution) execution()    {}
func (RetryTask) execution()          {}
func (StartTask) execution()          {}
func (RecordResult) execution()       {}
func (TimeOutTask) execution()        {}
func (FireTimer) execution()          {}
func (TimeOutExecution) execution()   {}
func (HoldTasks) execution()          {}

// Validate checks nothing that the state is needed for.
func (SubmitExecution) Validate() error    { return nil }
func (CancelExecution) Validate() error    { return nil }
func (TerminateExecution) Validate() error { return nil }
func (PauseExecution) Validate() error     { return nil }
func (ResumeExecution) Validate() error    { return nil }
func (StartTask) Validate() error          { return nil }
func (RecordResult) Validate() error       { return nil }
func (TimeOutTask) Validate() error        { return nil }
func (FireTimer) Validate() error          { return nil }
func (TimeOutExecution) Validate() error   { return nil }
func (HoldTasks) Validate() error          { return nil }

// Validate wants a task's name.
func (c RetryTask) Validate() error {
	if c.Task == "" {
		return &Error{Kind: Invalid, Code: CodeInvalid, Reason: "the request names no task", Violations: []Violation{
			{Code: "required", Pointer: "/task", Detail: "name the dead-lettered task to retry"},
		}}
	}
	return nil
}

// The codes of an execution's refusals.
const (
	CodeFinished        = "execution_finished" // it has ended; replay it to run it again
	CodeNotDeadLettered = "not_dead_lettered"  // only a dead-lettered task can be retried
	CodeUnknownTask     = "unknown_task"       // the definition has no such task
	CodeInputMismatch   = "input_mismatch"     // the input does not fit the definition's schema
	CodeInputTooLarge   = "input_too_large"    //
)
