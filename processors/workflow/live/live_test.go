package live_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/live"
)

type fixedClock events.Time

func (c fixedClock) Now() events.Time { return events.Time(c) }

func item(task, attempt int32) workflow.Item {
	return workflow.Item{Stream: "execution/acme/1", Task: task, Attempt: attempt}
}

// attempts makes an Attempts that fails the test when it asks the log.
func attempts(t *testing.T) *live.Attempts {
	return live.New(fixedClock(7), func(_ context.Context, it workflow.Item) (bool, error) {
		t.Errorf("the log was asked for %+v", it)
		return false, nil
	})
}

// asking makes one that gets the given answer from the log, and counts how often it asks.
func asking(counts bool, err error) (*live.Attempts, *int) {
	asked := new(int)
	return live.New(fixedClock(7), func(context.Context, workflow.Item) (bool, error) {
		*asked++
		return counts, err
	}), asked
}

func begin(t *testing.T, a *live.Attempts, it workflow.Item) <-chan struct{} {
	t.Helper()
	gone, err := a.Begin(t.Context(), it, "w1")
	if err != nil {
		t.Fatalf("begin %+v: %v", it, err)
	}
	return gone
}

func refused(t *testing.T, a *live.Attempts, it workflow.Item) {
	t.Helper()
	if _, err := a.Begin(t.Context(), it, "w2"); !errors.Is(err, workflow.ErrGone) {
		t.Fatalf("begin %+v: %v, want ErrGone", it, err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestWhatWasSentBeginsWithoutTheLog(t *testing.T) {
	a := attempts(t)
	a.Sent(item(1, 1))
	gone := begin(t, a, item(1, 1))
	if isClosed(gone) {
		t.Fatal("the attempt counts")
	}
	if got := fmt.Sprint(a.Working("execution/acme/1")); got != "[{1 1 w1 1970-01-01T00:00:00.000007Z}]" {
		t.Fatalf("presence: %s", got)
	}
	t.Run("another worker does not get it", func(t *testing.T) { refused(t, a, item(1, 1)) })
	t.Run("sent again while it runs, it is still one worker's", func(t *testing.T) {
		a.Sent(item(1, 1))
		refused(t, a, item(1, 1))
	})
	t.Run("ended without a result, it may begin again", func(t *testing.T) {
		a.End(item(1, 1))
		a.End(item(1, 1))
		if ps := a.Working("execution/acme/1"); len(ps) != 0 {
			t.Fatalf("presence after the end: %v", ps)
		}
		begin(t, a, item(1, 1))
	})
}

func TestASupersededAttemptIsGone(t *testing.T) {
	a := attempts(t)
	a.Sent(item(1, 1))
	gone := begin(t, a, item(1, 1))
	a.Sent(item(1, 2))
	if !isClosed(gone) {
		t.Fatal("attempt 1 runs on and was not told")
	}
	refused(t, a, item(1, 1))
	second := begin(t, a, item(1, 2))
	a.End(item(1, 1)) // the first worker notices late
	refused(t, a, item(1, 2))
	a.Sent(item(1, 1)) // a late word about the old one changes nothing
	if isClosed(second) {
		t.Fatal("attempt 2 is the current one")
	}
}

func TestAClosedAttemptIsGone(t *testing.T) {
	a := attempts(t)
	a.Sent(item(1, 1))
	a.Sent(item(2, 1))
	gone := begin(t, a, item(1, 1))
	a.Closed("execution/acme/1", 1, 1)
	a.Closed("execution/acme/1", 1, 1)
	if !isClosed(gone) {
		t.Fatal("the worker was not told")
	}
	a.End(item(1, 1))
	refused(t, a, item(1, 1))
	begin(t, a, item(2, 1))
	t.Run("closing an old attempt leaves the new one", func(t *testing.T) {
		a.Sent(item(3, 2))
		a.Closed("execution/acme/1", 3, 1)
		begin(t, a, item(3, 2))
	})
}

func TestTheEndOfAnExecutionEndsItsAttemptsAndItsMemory(t *testing.T) {
	a, asked := asking(false, nil)
	a.Sent(item(1, 1))
	a.Sent(item(2, 1))
	gone := begin(t, a, item(1, 1))
	a.ClosedAll("execution/acme/1")
	if !isClosed(gone) {
		t.Fatal("the worker was not told")
	}
	a.End(item(1, 1))
	if x, at := a.Kept(); x != 0 || at != 0 {
		t.Fatalf("kept %d executions, %d attempts", x, at)
	}
	refused(t, a, item(2, 1))
	if *asked != 1 {
		t.Fatalf("the log was asked %d times, want once: nothing is remembered", *asked)
	}
}

func TestWhatAnotherProcessSentIsAskedOfTheLog(t *testing.T) {
	t.Run("it counts", func(t *testing.T) {
		a, asked := asking(true, nil)
		begin(t, a, item(1, 3))
		refused(t, a, item(1, 3))
		refused(t, a, item(1, 2))
		if *asked != 1 {
			t.Fatalf("asked %d times, want 1", *asked)
		}
		a.End(item(1, 3))
		if x, at := a.Kept(); x != 0 || at != 0 {
			t.Fatalf("kept %d executions, %d attempts", x, at)
		}
	})
	t.Run("it does not count", func(t *testing.T) {
		a, _ := asking(false, nil)
		refused(t, a, item(1, 1))
	})
	t.Run("the log cannot be read", func(t *testing.T) {
		fault := errors.New("disk")
		a, _ := asking(false, fault)
		if _, err := a.Begin(t.Context(), item(1, 1), "w"); !errors.Is(err, fault) || errors.Is(err, workflow.ErrGone) {
			t.Fatalf("begin: %v", err)
		}
	})
	t.Run("a later attempt than this process knows", func(t *testing.T) {
		a, asked := asking(true, nil)
		a.Sent(item(1, 1))
		gone := begin(t, a, item(1, 1))
		begin(t, a, item(1, 2))
		if *asked != 1 || !isClosed(gone) {
			t.Fatalf("asked %d times, first told: %v", *asked, isClosed(gone))
		}
	})
}

func TestAForgottenExecutionRunsOnAndAsksTheLog(t *testing.T) {
	a, asked := asking(true, nil)
	a.Sent(item(1, 1))
	a.Sent(item(2, 1))
	gone := begin(t, a, item(1, 1))
	a.Forget("execution/acme/1")
	if isClosed(gone) {
		t.Fatal("what runs goes on: another owner has the partition")
	}
	begin(t, a, item(2, 1))
	if *asked != 1 {
		t.Fatalf("asked %d times, want 1", *asked)
	}
	a.End(item(1, 1))
	a.End(item(2, 1))
	if x, at := a.Kept(); x != 0 || at != 0 {
		t.Fatalf("kept %d executions, %d attempts", x, at)
	}
}

func TestOneOfManyWorkersBegins(t *testing.T) {
	a := attempts(t)
	for task := range int32(50) {
		a.Sent(item(task, 1))
		var began atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := a.Begin(t.Context(), item(task, 1), "w"); err == nil {
					began.Add(1)
				}
			})
		}
		wg.Wait()
		if began.Load() != 1 {
			t.Fatalf("%d workers began task %d", began.Load(), task)
		}
	}
}

func BenchmarkAttempts(b *testing.B) {
	a := live.New(fixedClock(7), nil)
	b.ReportAllocs()
	for i := range b.N {
		it := item(int32(i), 1)
		a.Sent(it)
		if _, err := a.Begin(b.Context(), it, "w"); err != nil {
			b.Fatal(err)
		}
		a.End(it)
		a.Closed(it.Stream, it.Task, 1)
	}
}
