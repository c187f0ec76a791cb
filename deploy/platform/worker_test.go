package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/live"
)

type wallClock struct{}

func (wallClock) Now() events.Time { return events.TimeOf(time.Now()) }

// handlerFunc is a handler made of a function.
type handlerFunc func(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure)

func (f handlerFunc) Run(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	return f(ctx, w)
}

// ownerOfAll answers reports as an owner would: the first result of an attempt closes it.
type ownerOfAll struct {
	attempts *live.Attempts
	mu       sync.Mutex
	starts   []commands.StartTask
	results  []commands.RecordResult
	onResult func(commands.RecordResult)
	refuse   bool // starts do not count
}

func (o *ownerOfAll) Report(_ context.Context, r workflow.Report) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch c := r.Command.(type) {
	case commands.StartTask:
		o.starts = append(o.starts, c)
		if r.Done != nil {
			r.Done(!o.refuse)
		}
	case commands.RecordResult:
		o.results = append(o.results, c)
		o.attempts.Closed(r.Stream, c.Task, c.Attempt)
		if o.onResult != nil {
			o.onResult(c)
		}
	default:
		return fmt.Errorf("a worker reports %T", c)
	}
	return nil
}

// plans answers every reference with one plan.
type plans struct{ plan any }

func (p plans) Load(context.Context, events.Stream, []aggregates.Ref) (aggregates.Refs, error) {
	return p, nil
}
func (p plans) Get(aggregates.Ref) (any, bool) { return p.plan, true }

// rig is a worker on a memory queue, in a bubble.
type rig struct {
	*testing.T
	queue    *memory.Queue
	attempts *live.Attempts
	owner    *ownerOfAll
	worker   *workerRunner
	stop     context.CancelFunc
	ended    chan error
}

const testStream = events.Stream("execution/acme/7c0f")

func newRig(t *testing.T, cfg workerConfig, plan any, h handlerFunc) *rig {
	clock := wallClock{}
	r := &rig{T: t, queue: memory.NewQueue(clock, 0), ended: make(chan error, 1)}
	r.attempts = live.New(clock, func(context.Context, workflow.Item) (bool, error) { return true, nil })
	r.owner = &ownerOfAll{attempts: r.attempts}
	cfg.Name = "w1"
	r.worker = newWorker(cfg, workerPorts{
		Queue: r.queue, Attempts: r.attempts, Reports: r.owner, Refs: plans{plan}, Clock: clock,
		Handlers: map[string]workflow.Handler{"test": h}, Log: slog.New(slog.DiscardHandler),
	})
	return r
}

func (r *rig) start() {
	ctx, stop := context.WithCancel(r.Context())
	r.stop = stop
	go func() { r.ended <- r.worker.Run(ctx) }()
}

func (r *rig) send(n int, class string) {
	r.Helper()
	for i := range n {
		it := workflow.Item{
			Stream: testStream, Task: int32(i), Attempt: 1, Type: "test", Class: class, Definition: events.Hash{1},
			SentAt: wallClock{}.Now(),
		}
		r.attempts.Sent(it)
		if err := r.queue.Send(r.Context(), []workflow.Item{it}); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) end() {
	r.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stats() workflow.QueueStats {
	r.Helper()
	s, err := r.queue.Stats(r.Context(), "standard")
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// busyFor is a handler that works for d unless it is cancelled.
func busyFor(d time.Duration) handlerFunc {
	return func(ctx context.Context, _ workflow.Work) ([]byte, *commands.Failure) {
		select {
		case <-time.After(d):
			return []byte("true"), nil
		case <-ctx.Done():
			return nil, &commands.Failure{Class: events.Transient, Code: "cancelled", Message: context.Cause(ctx).Error()}
		}
	}
}

// fiveBeats gives a sign of life every 1.5 s, five times, and then none.
func fiveBeats(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	for range 5 {
		pass(1500 * time.Millisecond)
		w.Heartbeat()
	}
	return busyFor(time.Hour)(ctx, w)
}

func pass(d time.Duration) { <-time.After(d) }

func TestWF26ABufferOf32IsWorkedOffOneByOneAndBurnsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		work := busyFor(10 * time.Second)
		r := newRig(t, workerConfig{Slots: 1, Prefetch: 32, Lock: time.Minute}, taskPlan(32, nil),
			func(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
				calls.Add(1)
				return work(ctx, w)
			})
		began := time.Now()
		all := make(chan struct{})
		r.owner.onResult = func(commands.RecordResult) {
			if len(r.owner.results) == 32 {
				close(all)
			}
		}
		r.send(32, "standard")
		r.start()
		<-all
		if took := time.Since(began); took != 320*time.Second {
			t.Errorf("done after %s, want 320 s", took)
		}
		pass(10 * time.Minute)
		r.end()
		if calls.Load() != 32 {
			t.Errorf("%d handler calls, want 32", calls.Load())
		}
		for _, res := range r.owner.results {
			if res.Failure != nil || res.Attempt != 1 {
				t.Errorf("result %+v", res)
			}
		}
		if s := r.stats(); s != (workflow.QueueStats{}) {
			t.Errorf("the queue holds %+v", s)
		}
	})
}

func TestALongTaskKeepsItsLockAndReportsItsStartOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, workerConfig{Slots: 2}, taskPlan(1, nil), busyFor(10*time.Minute))
		r.send(1, "standard")
		r.start()
		pass(9 * time.Minute)
		if s := r.stats(); s.Delivered != 1 || s.Depth != 0 {
			t.Errorf("the queue holds %+v", s)
		}
		if ps := r.attempts.Working(testStream); len(ps) != 1 || ps[0].Worker != "w1" {
			t.Errorf("presence %+v", ps)
		}
		pass(2 * time.Minute)
		r.end()
		if len(r.owner.starts) != 1 || len(r.owner.results) != 1 || r.owner.results[0].Failure != nil {
			t.Errorf("starts %+v, results %+v", r.owner.starts, r.owner.results)
		}
		if ps := r.attempts.Working(testStream); len(ps) != 0 {
			t.Errorf("presence %+v", ps)
		}
	})
}

func TestTheWatchdogEndsATask(t *testing.T) {
	timeout := func(timeout, heartbeat time.Duration) any { return taskPlan(1, &taskTimes{timeout, heartbeat}) }
	for _, c := range []struct {
		name string
		plan any
		h    handlerFunc
		code string
		at   time.Duration
	}{
		{"at its timeout", timeout(3*time.Second, 0), busyFor(time.Hour), "task_timeout", 3 * time.Second},
		{
			"at a timeout below the watchdog's own start", timeout(5*time.Millisecond, 0), busyFor(time.Hour),
			"task_timeout", 5 * time.Millisecond,
		},
		{
			"when its heartbeat stops", timeout(time.Hour, 2*time.Second), fiveBeats,
			"heartbeat_timeout", 9500 * time.Millisecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, workerConfig{Slots: 1}, c.plan, c.h)
				r.send(1, "standard")
				r.start()
				pass(time.Minute)
				r.end()
				if len(r.owner.results) != 1 {
					t.Fatalf("results %+v", r.owner.results)
				}
				res := r.owner.results[0]
				if res.Failure == nil || res.Failure.Class != events.TimedOut || res.Failure.Code != c.code {
					t.Fatalf("failure %+v", res.Failure)
				}
				if d := res.EndedAt.Sub(res.StartedAt); d != c.at {
					t.Fatalf("ended after %s, want %s", d, c.at)
				}
			})
		})
	}
}

func TestAHandlerThatHangsIsAbandonedAndItsSlotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int64
		r := newRig(t, workerConfig{Slots: 1}, taskPlan(2, &taskTimes{timeout: time.Second}),
			func(context.Context, workflow.Work) ([]byte, *commands.Failure) {
				if calls.Add(1) == 1 {
					<-release
				}
				return []byte("true"), nil
			})
		r.send(2, "standard")
		r.start()
		pass(10 * time.Second)
		r.owner.mu.Lock()
		if rs := r.owner.results; len(rs) != 2 || rs[0].Failure.Code != "task_timeout" || rs[1].Failure != nil {
			t.Errorf("results %+v", rs)
		}
		r.owner.mu.Unlock()
		close(release)
		synctest.Wait()
		r.end()
		if len(r.owner.results) != 2 {
			t.Errorf("the hanging handler's return changed something: %+v", r.owner.results)
		}
	})
}

func TestACancelReachesAHandlerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		r := newRig(t, workerConfig{Slots: 1}, taskPlan(1, nil),
			func(ctx context.Context, _ workflow.Work) ([]byte, *commands.Failure) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return nil, &commands.Failure{Class: events.Transient, Code: "cancelled"}
			})
		r.send(1, "standard")
		r.start()
		pass(5 * time.Second)
		began := time.Now()
		r.attempts.ClosedAll(testStream)
		synctest.Wait()
		if took := time.Since(began); took != 0 || !errors.Is(cause, workflow.ErrGone) {
			t.Errorf("after %s: %v", took, cause)
		}
		r.end()
		if len(r.owner.results) != 0 || r.stats() != (workflow.QueueStats{}) {
			t.Errorf("results %+v, queue %+v", r.owner.results, r.stats())
		}
	})
}

func TestAPanicIsAFailureOfTheTaskAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, workerConfig{Slots: 1}, taskPlan(2, nil),
			func(_ context.Context, w workflow.Work) ([]byte, *commands.Failure) {
				if w.Task == 0 {
					panic("secret")
				}
				return []byte("1"), nil
			})
		r.send(2, "standard")
		r.start()
		pass(time.Second)
		r.end()
		if len(r.owner.results) != 2 {
			t.Fatalf("results %+v", r.owner.results)
		}
		f := r.owner.results[0].Failure
		if f == nil || f.Code != "handler_panic" || f.Class != events.Permanent || r.owner.results[1].Failure != nil {
			t.Fatalf("failure %+v", f)
		}
	})
}

func TestAStopGivesBackWhatHasNotStartedAndWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, workerConfig{Slots: 2, Drain: 20 * time.Second}, taskPlan(10, nil), busyFor(15*time.Second))
		r.send(10, "standard")
		r.start()
		pass(time.Second)
		began := time.Now()
		r.end()
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("stopped after %s, want 14 s", took)
		}
		if s := r.stats(); len(r.owner.results) != 2 || s.Depth != 8 || s.Delivered != 0 {
			t.Errorf("%d results, queue %+v", len(r.owner.results), s)
		}
	})
}

func TestAStopCancelsWhatDoesNotEndAndBurnsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, workerConfig{Slots: 2, Drain: 20 * time.Second}, taskPlan(3, &taskTimes{timeout: time.Hour}),
			busyFor(30*time.Minute))
		r.send(3, "standard")
		r.start()
		pass(time.Second)
		began := time.Now()
		r.end()
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("stopped after %s, want 20 s", took)
		}
		if s := r.stats(); len(r.owner.results) != 0 || s.Depth != 3 || s.Delivered != 0 {
			t.Errorf("results %+v, queue %+v", r.owner.results, s)
		}
		if ps := r.attempts.Working(testStream); len(ps) != 0 {
			t.Errorf("presence %+v", ps)
		}
	})
}

func TestUrgentTasksGoFirstAndNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		r := newRig(t, workerConfig{Slots: 1, Prefetch: 30}, taskPlan(30, nil),
			func(_ context.Context, w workflow.Work) ([]byte, *commands.Failure) {
				order = append(order, w.Class)
				pass(time.Second)
				return []byte("1"), nil
			})
		for _, class := range []string{"longrunning", "bulk", "standard", "high"} {
			for i := range 30 {
				it := workflow.Item{
					Stream: testStream + events.Stream(class), Task: int32(i), Attempt: 1, Type: "test", Class: class,
					Definition: events.Hash{1},
				}
				r.attempts.Sent(it)
				if err := r.queue.Send(t.Context(), []workflow.Item{it}); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.start()
		pass(31 * time.Second)
		r.end()
		count := map[string]int{}
		for _, class := range order[1:31] { // the first was taken before all had come
			count[class]++
		}
		if count["high"] < 15 || count["standard"] < 7 || count["bulk"] < 3 || count["longrunning"] < 1 {
			t.Errorf("of 30: %v", count)
		}
	})
}

func TestLongRunningTasksDoNotHoldEverySlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, workerConfig{Slots: 4, Long: 2}, taskPlan(10, nil), busyFor(5*time.Minute))
		r.send(10, "longrunning")
		r.start()
		pass(2 * time.Second)
		if n := len(r.attempts.Working(testStream)); n != 2 {
			t.Errorf("%d long-running tasks run, want 2", n)
		}
		r.end()
	})
}
