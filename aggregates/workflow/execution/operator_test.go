package execution_test

import (
	"testing"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// TestWF15CancelReachesATaskThatWaitsForItsNextAttempt is the case; the variant is another execution's affair.
func TestWF15CancelReachesATaskThatWaitsForItsNextAttempt(t *testing.T) {
	p := planOf(t, "tasks: {t: {type: http, retry: {base: 600s, cap: 600s, jitter: false}}, u: {type: http, needs: [t]}}")
	s := running(t, p, submitted(p, ""), ready(0)).When(failure(0, 1, events.Transient)).
		Then(retrying(0, 1, events.Transient, 600*second))
	s = s.When(commands.CancelExecution{}, meta{At: 5 * second}).Then(events.ExecutionCancelled{})
	x := s.State()
	if x.TaskStatus(0) != execution.TaskCancelled || x.TaskStatus(1) != execution.TaskCancelled ||
		x.Status() != execution.Cancelled || x.Due() != 0 {
		t.Errorf("%v, %v, %v, due %d", x.TaskStatus(0), x.TaskStatus(1), x.Status(), x.Due())
	}
	at := meta{At: 600 * second}
	for _, c := range []commands.ExecutionCommand{
		commands.StartTask{Task: 0, Attempt: 2, Worker: "w1"},
		commands.TimeOutTask{Task: 0, Attempt: 2},
		success(0, 2, "1"), success(0, 1, "1"), failure(0, 1, events.Transient),
		commands.HoldTasks{Tasks: []int32{0}},
	} {
		s.When(c, at).ThenNothing()
	}
}

// TestWF17RetryOfOneBranchLeavesItsSiblingsAlone is the case and its variant.
func TestWF17RetryOfOneBranchLeavesItsSiblingsAlone(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http}, b: {type: http}, c: {type: http}, d: {type: http, needs: [a, b, c]}}")
	retry := commands.RetryTask{Task: "b"}
	retried := events.TaskRetried{Task: 1, Attempt: 2}
	began := []event{submitted(p, ""), ready(0, 1, 2), completed(0, 1, "1")}
	t.Run("the case", func(t *testing.T) {
		s := running(t, p, append(began, completed(2, 1, "3"), dead(1, 1, events.Permanent), failed(1))...)
		s = s.When(retry).Then(retried)
		x := s.State()
		if x.Status() != execution.Running || x.Failure().Code != "" || x.Attempt(1) != 2 || x.Task(0).Attempt != 1 ||
			x.Task(2).Attempt != 1 || x.OutputVersion(0) != 3 {
			t.Errorf("%v, %+v", x.Status(), x.Task(1))
		}
		var again []int32
		x.EachReady(func(t int32) { again = append(again, t) })
		if len(again) != 1 || again[0] != 1 {
			t.Errorf("%v run again", again)
		}
		s = s.When(success(1, 2, "2")).Then(completed(1, 2, "2"), ready(3))
		s = s.When(success(3, 1, "4")).Then(completed(3, 1, "4"), events.ExecutionCompleted{})
		if got := s.State().Task(1).Attempt; got != 2 {
			t.Errorf("attempt %d", got)
		}
	})
	t.Run("a sibling that still runs counts when it completes later, before the retry or after", func(t *testing.T) {
		s := running(t, p, append(began, dead(1, 1, events.Permanent), failed(1))...).
			When(success(2, 1, "3")).Then(completed(2, 1, "3"))
		if s.State().Status() != execution.Failed {
			t.Errorf("%v", s.State().Status())
		}
		s.When(retry).Then(retried).When(success(1, 2, "2")).Then(completed(1, 2, "2"), ready(3))
	})
	t.Run("its successors become ready in a failed execution, and are sent when it runs again", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: http}, c: {type: http, needs: [a]}}")
		s := running(t, p, submitted(p, ""), ready(0, 1), dead(1, 1, events.Permanent), failed(1)).
			When(success(0, 1, "1")).Then(completed(0, 1, "1"), ready(2))
		if s.State().Dispatching() {
			t.Error("a failed execution dispatches")
		}
		s = s.When(retry).Then(retried)
		if !s.State().Dispatching() || !s.State().Sendable(2, 1) || !s.State().Sendable(1, 2) {
			t.Error("what is ready is not sent")
		}
	})
	t.Run("only a dead letter can be retried", func(t *testing.T) {
		for _, past := range [][]event{nil, {completed(1, 1, "2")}, {retrying(1, 1, events.Transient, 5)}} {
			e := running(t, p, append(began, past...)...).When(retry).ThenRefused(commands.CodeNotDeadLettered)
			if e.Kind != commands.Refused {
				t.Errorf("%+v", e)
			}
		}
		e := running(t, p, began...).When(commands.RetryTask{Task: "nobody"}).ThenRefused(commands.CodeUnknownTask)
		if e.Kind != commands.Invalid {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the same retry twice is one attempt; when that has failed it may be retried again", func(t *testing.T) {
		s := running(t, p, append(began, dead(1, 1, events.Permanent), failed(1), retried)...)
		s.When(retry).ThenNothing()
		running(t, p, append(began, dead(1, 1, events.Permanent), failed(1), retried,
			retrying(1, 2, events.Transient, 5))...).
			When(retry).ThenRefused(commands.CodeNotDeadLettered) // that one has ended, and another is under way by itself
		s.When(failure(1, 2, events.Permanent)).Then(dead(1, 2, events.Permanent), failed(1)).
			When(retry).Then(events.TaskRetried{Task: 1, Attempt: 3})
	})
}

func TestRetry(t *testing.T) {
	t.Run("an operator's retry counts its attempts anew", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http, retry: {maxAttempts: 2, base: 1s, jitter: false}}}")
		s := running(t, p, submitted(p, ""), ready(0), retrying(0, 1, events.Transient, 5),
			dead(0, 2, events.Transient), failed(0)).
			When(commands.RetryTask{Task: "a"}).Then(events.TaskRetried{Task: 0, Attempt: 3})
		s = s.When(failure(0, 3, events.Transient)).Then(retrying(0, 3, events.Transient, second))
		s.When(failure(0, 4, events.Transient)).Then(dead(0, 4, events.Transient), failed(0))
	})
	t.Run("an edited input replaces the mapping from now on", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}}")
		s := running(t, p, submitted(p, ""), ready(0), dead(0, 1, events.Permanent), failed(0)).
			When(commands.RetryTask{Task: "a", With: text(`{"x":1}`)}).
			Then(events.TaskRetried{Task: 0, Attempt: 2, With: text(`{"x":1}`)})
		if s.State().WithVersion(0) != 5 {
			t.Errorf("with is at %d", s.State().WithVersion(0))
		}
		s = s.When(failure(0, 2, events.Permanent)).Then(dead(0, 2, events.Permanent), failed(0)).
			When(commands.RetryTask{Task: "a"}).Then(events.TaskRetried{Task: 0, Attempt: 3})
		if s.State().WithVersion(0) != 5 {
			t.Errorf("after one more retry with is at %d", s.State().WithVersion(0))
		}
	})
	t.Run("a replacement above the maximum is refused", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}}")
		running(t, p, submitted(p, ""), ready(0), dead(0, 1, events.Permanent), failed(0)).
			When(commands.RetryTask{Task: "a", With: events.Payload{Blob: make([]byte, 32), Size: events.BlobBytesMax + 1}}).
			ThenRefused(commands.CodeInputTooLarge)
	})
	t.Run("a step that is decided in place is decided again at once", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: transform, with: {value: \"${{ input.x }}\"}}, b: {type: http, needs: [a]}}")
		past := append([]event{submitted(p, "{}")}, stepDead(0, "mapping_path_missing", "m")...)
		running(t, p, past...).When(commands.RetryTask{Task: "a", With: text(`{"value":7}`)}, meta{At: 4}).ThenByKey(
			events.TaskRetried{Task: 0, Attempt: 2, With: text(`{"value":7}`)}, pure(0, 4, "7", 4), ready(1))
		again, err := running(t, p, past...).When(commands.RetryTask{Task: "a"}).Events()
		if err != nil || len(again) != 3 || again[1].(events.TaskFailed).Attempt != 2 ||
			again[2].(events.ExecutionFailed).Task != 0 {
			t.Errorf("%+v, %v", again, err)
		}
	})
	t.Run("with an input that is a blob as well", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: transform, with: {value: \"${{ input.x }}\"}}}")
		s, blob := running(t, p, append([]event{submitted(p, "{}")}, stepDead(0, "mapping_path_missing", "m")...)...).
			Blob([]byte(`{"value":7, "rest": [` + string(make5000()) + `1]}`))
		s.When(commands.RetryTask{Task: "a", With: blob}, meta{At: 4}).ThenByKey(
			events.TaskRetried{Task: 0, Attempt: 2, With: blob}, pure(0, 4, "7", 4), events.ExecutionCompleted{})
	})
	t.Run("or goes to a worker again, if it is too large for that", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: transform, needs: [a], with: {value: \"${{ tasks.a.output }}\"}}}")
		a := completed(0, 1, "")
		a.Output = events.Payload{Blob: make([]byte, 32), Size: 300 << 10}
		running(t, p, submitted(p, ""), ready(0), a, ready(1), dead(1, 1, events.Permanent), failed(1)).
			When(commands.RetryTask{Task: "b"}).Then(events.TaskRetried{Task: 1, Attempt: 2})
	})
	t.Run("a timer starts again; the same retry twice starts one", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: sleep, with: {for: \"${{ input.x }}\"}}}")
		past := append([]event{submitted(p, "{}")}, stepDead(0, "mapping_path_missing", "m")...)
		running(t, p, past...).When(commands.RetryTask{Task: "a", With: text(`{"for":"3s"}`)}).Then(
			events.TaskRetried{Task: 0, Attempt: 2, With: text(`{"for":"3s"}`)}, events.TimerStarted{Task: 0, Until: 3 * second})
	})
	t.Run("what failed in its condition runs all the same: the operator wants it", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: transform, when: \"${{ input.x }}\", with: {value: 1}}}")
		past := append([]event{submitted(p, "{}")}, stepDead(0, "mapping_path_missing", "m")...)
		running(t, p, past...).When(commands.RetryTask{Task: "a"}).ThenByKey(
			events.TaskRetried{Task: 0, Attempt: 2}, pure(0, 0, "1"), events.ExecutionCompleted{})
	})
	t.Run("when one of two dead letters is retried and ends well, the execution fails for the other", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http}, b: {type: http}, c: {type: http, needs: [a]}}")
		past := []event{submitted(p, ""), ready(0, 1), dead(0, 1, events.Permanent), failed(0), dead(1, 1, events.Permanent)}
		s := running(t, p, past...).When(commands.RetryTask{Task: "a"}).Then(events.TaskRetried{Task: 0, Attempt: 2})
		s = s.When(success(0, 2, "1")).Then(completed(0, 2, "1"), ready(2)) // c goes on meanwhile
		left := events.ExecutionFailed{Task: 1, Code: "broken", Message: "the task is still dead-lettered"}
		s = s.When(success(2, 1, "1")).Then(completed(2, 1, "1"), left)
		s = s.When(commands.RetryTask{Task: "b"}).Then(events.TaskRetried{Task: 1, Attempt: 2})
		s.When(success(1, 2, "1")).Then(completed(1, 2, "1"), events.ExecutionCompleted{})
	})
}

func make5000() []byte {
	b := make([]byte, 0, 10_000)
	for range 5000 {
		b = append(b, "1,"...)
	}
	return b
}

func TestPause(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http}, b: {type: http, needs: [a]}}")
	began := []event{submitted(p, ""), ready(0)}
	t.Run("what runs goes on and counts; nothing is dispatched", func(t *testing.T) {
		s := running(t, p, began...).When(commands.PauseExecution{}).Then(events.ExecutionPaused{}).
			When(success(0, 1, "1")).Then(completed(0, 1, "1"), ready(1))
		if s.State().Status() != execution.Paused || s.State().Dispatching() || !s.State().Open() {
			t.Errorf("%v", s.State().Status())
		}
		s = s.When(commands.ResumeExecution{}).Then(events.ExecutionResumed{})
		if !s.State().Dispatching() || !s.State().Sendable(1, 1) {
			t.Error("what is ready is not sent")
		}
	})
	t.Run("a paused execution fails and completes like any other", func(t *testing.T) {
		s := running(t, p, append(began, events.ExecutionPaused{})...)
		s.When(failure(0, 1, events.Permanent)).Then(dead(0, 1, events.Permanent), failed(0))
		s.When(success(0, 1, "1")).Then(completed(0, 1, "1"), ready(1)).
			When(success(1, 1, "1")).Then(completed(1, 1, "1"), events.ExecutionCompleted{})
	})
}
