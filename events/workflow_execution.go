package events

// ExecutionEvent is every fact about one workflow execution; its stream is execution/tenant/uuid. Tasks are named by
// ordinal: their place in the definition's plan, which the definition's hash fixes for ever.
//
//sumtype:decl
type ExecutionEvent interface {
	Event
	execution()
}

// Label is one name and value that an execution is found by; labels are sorted by name.
type Label struct {
	Name  string `avro:"name"`
	Value string `avro:"value"`
}

// ExecutionSubmitted starts an execution and binds it to one version of its definition.
type ExecutionSubmitted struct {
	Workflow   string  `avro:"workflow"`
	Version    int64   `avro:"version"`
	Definition Hash    `avro:"definition"`
	Tasks      int32   `avro:"tasks"` // number of tasks in the plan
	Input      Payload `avro:"input"`
	Class      string  `avro:"class"`
	Labels     []Label `avro:"labels"`
	Deadline   Time    `avro:"deadline"` // 0: none
	Parent     string  `avro:"parent"`   // id of the execution this one replays, or empty
}

// TasksReady says that tasks may run: all that they need is done. Either Tasks, or the range From ≤ t < To.
type TasksReady struct {
	Tasks []int32 `avro:"tasks"`
	From  int32   `avro:"from"`
	To    int32   `avro:"to"`
	Class string  `avro:"class"` // the queue they go to
}

// TimerStarted says that a timer task (sleep) is ready and when it will be done. No worker is involved.
type TimerStarted struct {
	Task  int32 `avro:"task"`
	Until Time  `avro:"until"`
}

// TaskStarted is journalled only when an attempt still runs after a second, has a heartbeat, or is not repeatable
// (then before the effect); other starts are folded into the attempt's end.
type TaskStarted struct {
	Task      int32  `avro:"task"`
	Attempt   int32  `avro:"attempt"`
	Worker    string `avro:"worker"`
	SentAt    Time   `avro:"sent_at"`
	SlotWait  int64  `avro:"slot_wait"` // µs between ready and sent that a slot was waited for
	StartedAt Time   `avro:"started_at"`
}

// TaskCompleted says that a task is done; at most one a task. Times but recorded_at are the worker's claims.
type TaskCompleted struct {
	Task      int32   `avro:"task"`
	Attempt   int32   `avro:"attempt"` // of the result; 0 for a pure step or a timer
	Worker    string  `avro:"worker"`  // empty for a pure step or a timer
	SentAt    Time    `avro:"sent_at"`
	SlotWait  int64   `avro:"slot_wait"` // µs
	StartedAt Time    `avro:"started_at"`
	EndedAt   Time    `avro:"ended_at"`
	Output    Payload `avro:"output"`
	Refs      []int64 `avro:"refs"` // versions of this stream that hold the outputs a pure step read
}

// FailureClass says what may help against a failure.
type FailureClass string

// The classes of failure.
const (
	Transient FailureClass = "transient" // trying again may help
	Throttled FailureClass = "throttled" // trying again later will help
	Permanent FailureClass = "permanent" // the same attempt will fail again
	TimedOut  FailureClass = "timed_out" // the attempt, its heartbeat, or its start took too long
)

// NextStep says what follows a failure.
type NextStep string

// What follows a failure.
const (
	NextRetry      NextStep = "retry"
	NextDeadLetter NextStep = "dead_letter"
)

// TaskFailed says how an attempt ended and what follows. Nothing more is written when a retry's delay ends.
type TaskFailed struct {
	Task      int32        `avro:"task"`
	Attempt   int32        `avro:"attempt"`
	Worker    string       `avro:"worker"`
	SentAt    Time         `avro:"sent_at"`
	SlotWait  int64        `avro:"slot_wait"` // µs
	StartedAt Time         `avro:"started_at"`
	EndedAt   Time         `avro:"ended_at"`
	Class     FailureClass `avro:"class"`
	Code      string       `avro:"code"`
	Message   string       `avro:"message"`
	Next      NextStep     `avro:"next"`
	RetryAt   Time         `avro:"retry_at"` // 0 unless Next is retry
}

// TaskSkipped says that a branch is not taken.
type TaskSkipped struct {
	Task int32   `avro:"task"`
	Why  string  `avro:"why"`  // "when": its condition was false; "needs": all that it needs was skipped
	Refs []int64 `avro:"refs"` // versions of this stream whose outputs the condition read
}

// TasksHeld is written once for a wait of ready tasks that lasts over 250 ms.
type TasksHeld struct {
	Tasks  []int32 `avro:"tasks"`
	Reason string  `avro:"reason"` // "slot_tenant", "slot_type"
	Since  Time    `avro:"since"`
}

// TaskResultLate records a result of a superseded attempt that does not count.
type TaskResultLate struct {
	Task    int32        `avro:"task"`
	Attempt int32        `avro:"attempt"`
	Worker  string       `avro:"worker"`
	EndedAt Time         `avro:"ended_at"`
	Class   FailureClass `avro:"class"` // of a failure; empty for a success
	Code    string       `avro:"code"`
	Output  Payload      `avro:"output"`
}

// TaskRetried is an operator's retry of one dead-lettered task. Its siblings are untouched.
type TaskRetried struct {
	Task    int32   `avro:"task"`
	Attempt int32   `avro:"attempt"` // the attempt that it opens
	With    Payload `avro:"with"`    // replaces the task's evaluated mapping from now on; empty: as defined
}

// ExecutionPaused stops dispatch; what runs goes on and counts.
type ExecutionPaused struct{}

// ExecutionResumed ends a pause.
type ExecutionResumed struct{}

// ExecutionCancelled ends an execution and every open task in it.
type ExecutionCancelled struct {
	Forced bool `avro:"forced"` // by terminate: without compensation, whatever state the execution is in
}

// ExecutionTimedOut says that the deadline passed first.
type ExecutionTimedOut struct {
	Deadline Time `avro:"deadline"`
}

// ExecutionCompleted says that every task is done or skipped.
type ExecutionCompleted struct {
	Output Payload `avro:"output"`
	Refs   []int64 `avro:"refs"` // versions of this stream whose outputs the output mapping read
}

// ExecutionFailed says why an execution cannot go on by itself; retrying the task reopens it.
type ExecutionFailed struct {
	Task    int32  `avro:"task"` // -1: no task, the output mapping failed
	Code    string `avro:"code"`
	Message string `avro:"message"`
}

// The wire names.

func (ExecutionSubmitted) EventType() Type { return "workflow.execution_submitted" }
func (TasksReady) EventType() Type         { return "workflow.tasks_ready" }
func (TimerStarted) EventType() Type       { return "workflow.timer_started" }
func (TaskStarted) EventType() Type        { return "workflow.task_started" }
func (TaskCompleted) EventType() Type      { return "workflow.task_completed" }
func (TaskFailed) EventType() Type         { return "workflow.task_failed" }
func (TaskSkipped) EventType() Type        { return "workflow.task_skipped" }
func (TasksHeld) EventType() Type          { return "workflow.tasks_held" }
func (TaskResultLate) EventType() Type     { return "workflow.task_result_late" }
func (TaskRetried) EventType() Type        { return "workflow.task_retried" }
func (ExecutionPaused) EventType() Type    { return "workflow.execution_paused" }
func (ExecutionResumed) EventType() Type   { return "workflow.execution_resumed" }
func (ExecutionCancelled) EventType() Type { return "workflow.execution_cancelled" }
func (ExecutionTimedOut) EventType() Type  { return "workflow.execution_timed_out" }
func (ExecutionCompleted) EventType() Type { return "workflow.execution_completed" }
func (ExecutionFailed) EventType() Type    { return "workflow.execution_failed" }

func (ExecutionSubmitted) execution() {}
func (TasksReady) execution()         {}
func (TimerStarted) execution()       {}
func (TaskStarted) execution()        {}
func (TaskCompleted) execution()      {}
func (TaskFailed) execution()         {}
func (TaskSkipped) execution()        {}
func (TasksHeld) execution()          {}
func (TaskResultLate) execution()     {}
func (TaskRetried) execution()        {}
func (ExecutionPaused) execution()    {}
func (ExecutionResumed) execution()   {}
func (ExecutionCancelled) execution() {}
func (ExecutionTimedOut) execution()  {}
func (ExecutionCompleted) execution() {}
func (ExecutionFailed) execution()    {}

// What carries a payload.

func (e ExecutionSubmitted) Carried() Payload      { return e.Input }
func (e ExecutionSubmitted) Carry(p Payload) Event { e.Input = p; return e }
func (e TaskCompleted) Carried() Payload           { return e.Output }
func (e TaskCompleted) Carry(p Payload) Event      { e.Output = p; return e }
func (e TaskResultLate) Carried() Payload          { return e.Output }
func (e TaskResultLate) Carry(p Payload) Event     { e.Output = p; return e }
func (e TaskRetried) Carried() Payload             { return e.With }
func (e TaskRetried) Carry(p Payload) Event        { e.With = p; return e }
func (e ExecutionCompleted) Carried() Payload      { return e.Output }
func (e ExecutionCompleted) Carry(p Payload) Event { e.Output = p; return e }

func init() {
	register[ExecutionSubmitted](1)
	register[TasksReady](1)
	register[TimerStarted](1)
	register[TaskStarted](1)
	register[TaskCompleted](1)
	register[TaskFailed](1)
	register[TaskSkipped](1)
	register[TasksHeld](1)
	register[TaskResultLate](1)
	register[TaskRetried](1)
	register[ExecutionPaused](1)
	register[ExecutionResumed](1)
	register[ExecutionCancelled](1)
	register[ExecutionTimedOut](1)
	register[ExecutionCompleted](1)
	register[ExecutionFailed](1)
}
