package execution_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

const steady = "retry: {maxAttempts: 3, base: 2s, factor: 1, jitter: false}"

func TestResults(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http, "+steady+"}, b: {type: http, needs: [a]}}")
	began := []event{submitted(p, ""), ready(0)}
	once := append(began, retrying(0, 1, events.Transient, 5))
	t.Run("a success completes the task and makes the next ready", func(t *testing.T) {
		s := running(t, p, began...).When(success(0, 1, "1")).Then(completed(0, 1, "1"), ready(1))
		if v := s.State().Task(0); v.Attempt != 1 || v.Done != 3 || v.Output != 1 {
			t.Errorf("%+v", v)
		}
		s.When(success(1, 1, "2")).Then(completed(1, 1, "2"), events.ExecutionCompleted{})
	})
	t.Run("the first of two outputs counts", func(t *testing.T) {
		running(t, p, append(began, completed(0, 1, "1"), ready(1))...).When(success(0, 1, "2")).ThenNothing()
	})
	t.Run("a result is ahead of a state that has not heard of its attempt or task", func(t *testing.T) {
		s := running(t, p, began...)
		s.When(success(0, 2, "1")).ThenAhead()
		s.When(success(1, 1, "1")).ThenAhead()
		s.When(success(9, 1, "1")).ThenAhead()
		s.When(success(-1, 1, "1")).ThenAhead()
		s.When(commands.StartTask{Task: 1, Attempt: 1}).ThenAhead()
		running(t, p).When(success(0, 1, "1")).ThenAhead()
	})
	t.Run("no attempt has the number 0", func(t *testing.T) {
		running(t, p, began...).When(success(0, 0, "1")).ThenNothing()
		running(t, p, began...).When(failure(0, -4, events.Transient)).ThenNothing()
	})
	t.Run("a failure that may pass is tried again after its delay", func(t *testing.T) {
		for _, c := range []events.FailureClass{events.Transient, events.Throttled, events.TimedOut} {
			s := running(t, p, began...).When(failure(0, 1, c), meta{At: 7}).Then(retrying(0, 1, c, 7+2*second))
			v := s.State().Task(0)
			if v.Status != execution.TaskRetryScheduled || v.Attempt != 2 || v.RetryAt != 7+2*second || v.Failed != 3 {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("a permanent one is not", func(t *testing.T) {
		s := running(t, p, began...).When(failure(0, 1, events.Permanent)).Then(dead(0, 1, events.Permanent), failed(0))
		if s.State().Status() != execution.Failed || s.State().Failure() != failed(0) || s.State().Open() {
			t.Errorf("%v %+v", s.State().Status(), s.State().Failure())
		}
	})
	t.Run("nothing is waited after the last attempt", func(t *testing.T) {
		running(t, p, append(once, retrying(0, 2, events.Transient, 9))...).When(failure(0, 3, events.Transient)).
			Then(dead(0, 3, events.Transient), failed(0))
	})
	t.Run("a failure of a superseded attempt is recorded once and spends none", func(t *testing.T) {
		timedOut := append(began, retrying(0, 1, events.TimedOut, 5), retrying(0, 2, events.Transient, 9))
		late := events.TaskResultLate{Task: 0, Attempt: 1, Worker: "w1", EndedAt: 3, Class: events.Transient, Code: "broken"}
		s := running(t, p, timedOut...).When(failure(0, 1, events.Transient)).Then(late)
		s.When(failure(0, 2, events.Transient)).ThenNothing() // the log has it
		s.When(success(0, 3, "1")).Then(completed(0, 3, "1"), ready(1))
		s.When(failure(0, 1, events.TimedOut)).ThenNothing()
	})
	t.Run("an output above the maximum is permanent, with both sizes; one at it passes", func(t *testing.T) {
		large := func(size int64) (commands.RecordResult, events.Payload) {
			c := success(0, 1, "")
			c.Output = events.Payload{Blob: make([]byte, 32), Size: size}
			return c, c.Output
		}
		c, blob := large(events.BlobBytesMax)
		e := completed(0, 1, "")
		e.Output = blob
		running(t, p, began...).When(c).Then(e, ready(1))
		c, _ = large(events.BlobBytesMax + 1)
		es, err := running(t, p, began...).When(c).Events()
		if err != nil || len(es) != 2 {
			t.Fatal(es, err)
		}
		f := es[0].(events.TaskFailed)
		if f.Code != "payload_too_large" || f.Next != events.NextDeadLetter || f.Class != events.Permanent ||
			!strings.Contains(f.Message, "33554432") || !strings.Contains(f.Message, "33554433") {
			t.Errorf("%+v", f)
		}
	})
	t.Run("a message is cut between characters", func(t *testing.T) {
		c := failure(0, 1, events.Transient)
		c.Failure.Message = strings.Repeat("ä", 2000)
		es, err := running(t, p, began...).When(c).Events()
		if m := es[0].(events.TaskFailed).Message; err != nil || len(m) > 2000 || !strings.HasSuffix(m, "ä…") {
			t.Errorf("%d bytes, ends in %q, %v", len(m), m[len(m)-6:], err)
		}
	})
}

func TestOutputSchemas(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http, output: {type: object, required: [id]}}}")
	began := []event{submitted(p, ""), ready(0)}
	t.Run("an output in place is held to its schema, at once for good", func(t *testing.T) {
		es, err := running(t, p, began...).When(success(0, 1, `{"no":1}`)).Events()
		if err != nil || len(es) != 2 || es[0].(events.TaskFailed).Code != "output_mismatch" ||
			es[0].(events.TaskFailed).Next != events.NextDeadLetter {
			t.Errorf("%+v, %v", es, err)
		}
		running(t, p, began...).When(success(0, 1, `{"id":1}`)).Then(completed(0, 1, `{"id":1}`), events.ExecutionCompleted{})
	})
	t.Run("that of a superseded attempt satisfies nothing", func(t *testing.T) {
		late := events.TaskResultLate{
			Task: 0, Attempt: 1, Worker: "w1", EndedAt: 3, Class: events.Permanent, Code: "output_mismatch", Output: text("1"),
		}
		running(t, p, append(began, retrying(0, 1, events.TimedOut, 5))...).When(success(0, 1, "1")).Then(late)
	})
	t.Run("a blob was held to it by its worker", func(t *testing.T) {
		c, e := success(0, 1, ""), completed(0, 1, "")
		c.Output = events.Payload{Blob: make([]byte, 32), Size: 5000}
		e.Output = c.Output
		running(t, p, began...).When(c).Then(e, events.ExecutionCompleted{})
	})
}

// TestWF10BackOffOfADecision: the arithmetic is the plan's; here it meets the clock, the entropy and what a downstream
// asks for.
func TestWF10BackOffOfADecision(t *testing.T) {
	const task = "type: http, retry: {maxAttempts: 20, base: 2s, factor: 2, cap: 5m, jitter: %v}"
	p := planOf(t, "tasks: {a: {"+fmt.Sprintf(task, false)+"}}")
	t.Run("each attempt waits twice as long, up to the cap", func(t *testing.T) {
		s := running(t, p, submitted(p, ""), ready(0))
		for k, want := range []events.Time{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			attempt := int32(k + 1)
			s = s.When(failure(0, attempt, events.Transient), meta{At: 9}).
				Then(retrying(0, attempt, events.Transient, 9+want*second))
		}
	})
	t.Run("full jitter is drawn from the entropy of the decision and stands in the event", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {"+fmt.Sprintf(task, true)+"}}")
		s := running(t, p, submitted(p, ""), ready(0))
		for entropy, want := range map[uint64]events.Time{0: 0, 1 << 63: second, ^uint64(0): 2 * second} {
			s.When(failure(0, 1, events.Transient), meta{At: 9, Entropy: entropy}).
				Then(retrying(0, 1, events.Transient, 9+want))
		}
	})
	t.Run("a downstream that throttles is waited for longer, if it says so, and an hour at most", func(t *testing.T) {
		for after, want := range map[time.Duration]events.Time{
			0: 2, time.Second: 2, time.Minute: 60, 48 * time.Hour: 3600, -time.Hour: 2,
		} {
			c := failure(0, 1, events.Throttled)
			c.Failure.RetryAfter = after
			running(t, p, submitted(p, ""), ready(0)).When(c).Then(retrying(0, 1, events.Throttled, want*second))
		}
	})
	t.Run("others cannot ask for anything", func(t *testing.T) {
		c := failure(0, 1, events.Transient)
		c.Failure.RetryAfter = time.Minute
		running(t, p, submitted(p, ""), ready(0)).When(c).Then(retrying(0, 1, events.Transient, 2*second))
	})
}

// TestWF28ALateResultForASupersededAttempt is the case's (a) to (d).
func TestWF28ALateResultForASupersededAttempt(t *testing.T) {
	p := planOf(t, "tasks: {t: {type: http, timeout: 10s, "+steady+"}, u: {type: http, needs: [t]}}")
	timeout := commands.TimeOutTask{Task: 0, Attempt: 1, Why: "timeout", SentAt: 1}
	lost := events.TaskFailed{
		Task: 0, Attempt: 1, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 10 * second, Class: events.TimedOut,
		Code: "task_timeout", Message: "the attempt took longer than its timeout",
		Next: events.NextRetry, RetryAt: 12 * second,
	}
	started := events.TaskStarted{Task: 0, Attempt: 1, Worker: "w1", SentAt: 1, StartedAt: 2}
	s := running(t, p, submitted(p, ""), ready(0), started).When(timeout, meta{At: 10 * second}).Then(lost)
	second2 := events.TaskStarted{Task: 0, Attempt: 2, Worker: "w2", SentAt: 12 * second, StartedAt: 12 * second}
	sent := running(t, p, submitted(p, ""), ready(0), started, lost, second2)
	t.Run("(a) its success satisfies the attempt that runs, and that one's own changes nothing", func(t *testing.T) {
		done := sent.When(success(0, 1, "1"), meta{At: 14 * second}).Then(completed(0, 1, "1"), ready(1))
		done.When(success(0, 2, "2"), meta{At: 20 * second}).ThenNothing()
		if v := done.State().Task(0); v.Attempt != 1 || v.Status != execution.TaskCompleted {
			t.Errorf("%+v", v)
		}
	})
	t.Run("(a) it satisfies a back-off as well", func(t *testing.T) {
		s.When(success(0, 1, "1"), meta{At: 11 * second}).Then(completed(0, 1, "1"), ready(1))
	})
	t.Run("(b) its failure is recorded; attempt 2 decides", func(t *testing.T) {
		late := events.TaskResultLate{Task: 0, Attempt: 1, Worker: "w1", EndedAt: 3, Class: events.Transient, Code: "broken"}
		after := sent.When(failure(0, 1, events.Transient), meta{At: 14 * second}).Then(late)
		if v := after.State().Task(0); v.Attempt != 2 || v.Status != execution.TaskRunning {
			t.Errorf("%+v", v)
		}
		after.When(success(0, 2, "2")).Then(completed(0, 2, "2"), ready(1))
	})
	t.Run("(c) twice is once", func(t *testing.T) { // Then sends everything twice
		sent.When(success(0, 1, "1")).Then(completed(0, 1, "1"), ready(1)).When(success(0, 1, "1")).ThenNothing()
	})
	t.Run("(d) what may not be repeated stays a dead letter until an operator retries", func(t *testing.T) {
		p := planOf(t, "tasks: {t: {type: charge, timeout: 10s, "+steady+"}}")
		gone := lost
		gone.Next, gone.RetryAt = events.NextDeadLetter, 0
		s := running(t, p, submitted(p, ""), ready(0), started).When(timeout, meta{At: 10 * second}).
			Then(gone, events.ExecutionFailed{Task: 0, Code: gone.Code, Message: gone.Message})
		s = s.When(success(0, 1, "1"), meta{At: 14 * second}).
			Then(events.TaskResultLate{Task: 0, Attempt: 1, Worker: "w1", EndedAt: 3, Output: text("1")})
		if v := s.State().Task(0); v.Status != execution.TaskDeadLettered || v.Late != 6 || v.Code != "task_timeout" {
			t.Errorf("%+v", v)
		}
		s = s.When(commands.RetryTask{Task: "t"}).Then(events.TaskRetried{Task: 0, Attempt: 2})
		s.When(success(0, 2, "1")).Then(completed(0, 2, "1"), events.ExecutionCompleted{})
	})
}

func TestNotRepeatable(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: charge}, b: {type: http, needs: [a]}}")
	for _, c := range []events.FailureClass{events.Transient, events.Throttled, events.TimedOut, events.Permanent} {
		t.Run("a second effect is worse than none: the first failure is the last, "+string(c), func(t *testing.T) {
			running(t, p, submitted(p, ""), ready(0)).When(failure(0, 1, c)).Then(dead(0, 1, c), failed(0))
		})
	}
	t.Run("a success of an attempt before the operator's does not satisfy it", func(t *testing.T) {
		past := []event{
			submitted(p, ""), ready(0), dead(0, 1, events.TimedOut), failed(0),
			events.TaskRetried{Task: 0, Attempt: 2},
		}
		running(t, p, past...).When(success(0, 1, "1")).
			Then(events.TaskResultLate{Task: 0, Attempt: 1, Worker: "w1", EndedAt: 3, Output: text("1")})
	})
}

func TestTimeOuts(t *testing.T) {
	p := planOf(t, "deadline: 1h\ntasks: {a: {type: http, "+steady+"}}")
	began := []event{submitted(p, ""), ready(0)}
	for why, code := range map[string]string{
		"timeout": "task_timeout", "heartbeat": "heartbeat_timeout", "lost": "attempt_lost",
	} {
		t.Run("an attempt ends by "+why, func(t *testing.T) {
			es, err := running(t, p, began...).When(commands.TimeOutTask{Attempt: 1, Why: why}, meta{At: 9}).Events()
			if err != nil || len(es) != 1 {
				t.Fatal(es, err)
			}
			if f := es[0].(events.TaskFailed); f.Code != code || f.Class != events.TimedOut ||
				f.Next != events.NextRetry || f.EndedAt != 9 {
				t.Errorf("%+v", f)
			}
		})
	}
	t.Run("only the current one, and not before it has begun", func(t *testing.T) {
		s := running(t, p, append(began, retrying(0, 1, events.Transient, 5*second))...)
		s.When(commands.TimeOutTask{Attempt: 1}, meta{At: 9 * second}).ThenNothing()
		s.When(commands.TimeOutTask{Attempt: 3}, meta{At: 9 * second}).ThenNothing()
		s.When(commands.TimeOutTask{Attempt: 2}, meta{At: 4 * second}).ThenNothing()
		if es, err := s.When(commands.TimeOutTask{Attempt: 2}, meta{At: 5 * second}).Events(); err != nil || len(es) != 1 {
			t.Errorf("%v, %v", es, err)
		}
	})
	t.Run("the execution ends at its deadline", func(t *testing.T) {
		e := submitted(p, "")
		e.Deadline = 3600 * second
		s := running(t, p, e, ready(0))
		s.When(commands.TimeOutExecution{}, meta{At: e.Deadline - 1}).ThenNothing()
		s = s.When(commands.TimeOutExecution{}, meta{At: e.Deadline + 5}).Then(events.ExecutionTimedOut{Deadline: e.Deadline})
		if s.State().Open() || s.State().TaskStatus(0) != execution.TaskTimedOut {
			t.Errorf("%v, %v", s.State().Status(), s.State().TaskStatus(0))
		}
		s.When(success(0, 1, "1")).ThenNothing()
	})
	t.Run("one without a deadline never does", func(t *testing.T) {
		running(t, p, began...).When(commands.TimeOutExecution{}, meta{At: 1 << 50}).ThenNothing()
	})
}

func TestStartsAndHolds(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http}, b: {type: http}, c: {type: http, needs: [a]}}")
	began := []event{submitted(p, ""), ready(0, 1)}
	start := commands.StartTask{Task: 0, Attempt: 1, Worker: "w1", SentAt: 1, SlotWait: 3 * time.Millisecond, StartedAt: 2}
	started := events.TaskStarted{Task: 0, Attempt: 1, Worker: "w1", SentAt: 1, SlotWait: 3000, StartedAt: 2}
	t.Run("a start is a fact once a worker", func(t *testing.T) {
		s := running(t, p, began...).When(start).Then(started)
		if v := s.State().Task(0); v.Status != execution.TaskRunning ||
			v.Started != (execution.Started{Worker: "w1", SentAt: 1, StartedAt: 2}) {
			t.Errorf("%+v", v)
		}
		other, e := start, started
		other.Worker, e.Worker = "w2", "w2"
		s.When(other).Then(e) // it was delivered again, since w1 is gone
	})
	t.Run("what must not run twice is started by one worker only", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http, repeatable: false}, b: {type: http}}")
		other := start
		other.Worker = "w2"
		running(t, p, submitted(p, ""), ready(0, 1), started).When(other).ThenNothing()
	})
	t.Run("that of an attempt which has ended is nothing", func(t *testing.T) {
		running(t, p, append(began, completed(0, 1, "1"))...).When(start).ThenNothing()
		running(t, p, append(began, retrying(0, 1, events.Transient, 5))...).When(start).ThenNothing()
	})
	held := events.TasksHeld{Tasks: []int32{0, 1}, Reason: "slot_tenant", Since: 4}
	hold := commands.HoldTasks{Tasks: []int32{0, 1, 2, 9, -1}, Reason: "slot_tenant", Since: 4}
	t.Run("a wait is a fact once, of the tasks that still wait", func(t *testing.T) {
		running(t, p, began...).When(hold).Then(held)
		running(t, p, append(began, started)...).When(hold).
			Then(events.TasksHeld{Tasks: []int32{1}, Reason: "slot_tenant", Since: 4})
		running(t, p, append(began, completed(0, 1, "1"), completed(1, 1, "1"))...).When(hold).ThenNothing()
	})
	t.Run("a later wait is another one", func(t *testing.T) {
		s := running(t, p, append(began, held, started, retrying(0, 1, events.Transient, 5*second))...)
		s.When(hold, meta{At: 4 * second}).ThenNothing() // its back-off lasts
		s = s.When(hold, meta{At: 6 * second}).Then(events.TasksHeld{Tasks: []int32{0}, Reason: "slot_tenant", Since: 4})
		if v := s.State().TaskStatus(0); v != execution.TaskWaitingSlot {
			t.Error(v)
		}
	})
	t.Run("while nothing is dispatched nothing waits", func(t *testing.T) {
		running(t, p, append(began, events.ExecutionPaused{})...).When(hold).ThenNothing()
	})
}

// TestWF27DuplicatesInsideOneBatch decides ten results one after another, as the owner does.
func TestWF27DuplicatesInsideOneBatch(t *testing.T) {
	p := planOf(t, `
tasks:
  t1: {type: http, `+steady+`}
  t2: {type: http, `+steady+`}
  t3: {type: http, `+steady+`}
  t4: {type: http, `+steady+`}
  t5: {type: http, `+steady+`}
  t6: {type: http, `+steady+`}
  j: {type: http, needs: [t1, t2, t3, t4, t5, t6]}
`)
	batch := []commands.RecordResult{
		success(0, 1, "1"), success(1, 1, "2"), success(0, 1, "1"), success(2, 1, "3"), success(1, 1, "other"),
		failure(3, 1, events.Transient), failure(3, 1, events.Transient),
		success(4, 1, "5"), success(5, 1, "6"), success(5, 1, "6"),
	}
	decide := func(past ...event) (yields []int, es []event) {
		s := running(t, p, append([]event{submitted(p, ""), events.TasksReady{To: 6, Class: class}}, past...)...)
		for _, c := range batch {
			got, err := s.When(c, meta{At: 8 * second}).Events()
			if err != nil {
				t.Fatal(err)
			}
			yields, es = append(yields, len(got)), append(es, got...)
			s = s.When(c, meta{At: 8 * second}).Then(got...)
		}
		if v := s.State().TaskStatus(6); len(past) == 0 && v != execution.TaskPending {
			t.Errorf("the join is %v", v)
		}
		return yields, es
	}
	t.Run("(a) six count, four are repeats", func(t *testing.T) {
		yields, es := decide()
		if got := fmt.Sprint(yields); got != "[1 1 0 1 0 1 0 1 1 0]" {
			t.Errorf("yields %s", got)
		}
		if string(es[1].(events.TaskCompleted).Output.Inline) != "2" || es[3].(events.TaskFailed).RetryAt != 10*second {
			t.Errorf("%+v", es)
		}
	})
	t.Run("(b) after a cancel none counts", func(t *testing.T) {
		if _, es := decide(events.ExecutionCancelled{}); len(es) != 0 {
			t.Errorf("%+v", es)
		}
	})
}
