package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

const (
	stream = events.Stream("execution/acme/7c0f")
	t0     = events.Time(1_000_000_000)
)

var definition = events.Hash{1, 2, 3}

// loadedRefs is what a Load brings.
type loadedRefs map[aggregates.Ref]any

func (r loadedRefs) Get(ref aggregates.Ref) (any, bool) { v, ok := r[ref]; return v, ok }

// bench holds one job and what it was told.
type bench struct {
	*testing.T
	job  *Job
	now  events.Time
	out  *Effects
	task *Task
}

func delivery() workflow.Delivery {
	return workflow.Delivery{
		Item: workflow.Item{
			Stream: stream, Partition: 2, Task: 1, Attempt: 3, Type: "http", Class: "high", Definition: definition,
			SentAt: t0 - 5, SlotWait: time.Second, Trace: "trace", Correlation: "order-7",
		},
		Receipt: "r1", Until: t0.Add(time.Minute),
	}
}

// at makes a job of a task that is repeatable, without heartbeat, has a constant mapping and a timeout of 30 s.
func at(t *testing.T, change func(*workflow.Delivery, *Task)) *bench {
	task := newTask()
	d := delivery()
	if change != nil {
		change(&d, task)
	}
	cfg := &Config{Name: "w1", Types: map[string]bool{"http": true}, Lock: time.Minute}
	return &bench{T: t, job: NewJob(cfg, d), now: t0, task: task}
}

func (b *bench) step(in Input) *Effects {
	b.Helper()
	b.out = b.job.Step(in, b.now)
	asked := 0
	for _, yes := range []bool{
		b.out.Begin, b.out.Load != nil, b.out.Run != nil, b.out.Store != nil, b.out.Result != nil, b.out.Renew,
		b.out.Abandon,
	} {
		if yes {
			asked++
		}
	}
	if asked > 1 {
		b.Fatalf("%T asks for %d answers at once: %+v", in, asked, b.out)
	}
	if b.job.Done() != (b.out.Settle != nil) && b.now < b.job.d.Until {
		b.Fatalf("%T: done is %v, settlement %+v", in, b.job.Done(), b.out.Settle)
	}
	return b.out
}

func (b *bench) after(d time.Duration, in Input) *Effects {
	b.Helper()
	b.now = b.now.Add(d)
	return b.step(in)
}

// begin takes the job to its plan.
func (b *bench) begin() *Effects {
	b.Helper()
	if !b.step(Received{}).Begin {
		b.Fatalf("received: %+v", b.out)
	}
	return b.step(Began{})
}

func (b *bench) planned() *Effects {
	b.Helper()
	out := b.begin()
	ref := aggregates.Ref{Kind: aggregates.RefPlan, Hash: definition}
	if len(out.Load) != 1 || out.Load[0] != ref {
		b.Fatalf("begun: %+v", out)
	}
	return b.step(Loaded{Refs: loadedRefs{ref: planWith(b.task)}})
}

// running takes the job to its handler.
func (b *bench) running() *workflow.Work {
	b.Helper()
	out := b.planned()
	if out.Await {
		out = b.step(Answered{Counts: true})
	}
	if out.Run == nil || !b.job.Running() {
		b.Fatalf("planned: %+v", out)
	}
	return out.Run
}

// reported wants the result to be reported, and settles the job.
func (b *bench) reported() *commands.RecordResult {
	b.Helper()
	r := b.out.Result
	if r == nil {
		b.Fatalf("no result: %+v", b.out)
	}
	b.step(Reported{})
	b.settled(workflow.Accept, true)
	return r
}

func (b *bench) failed(class events.FailureClass, code string) *commands.Failure {
	b.Helper()
	f := b.reported().Failure
	if f == nil || f.Class != class || f.Code != code {
		b.Fatalf("failure %+v, want %s %s", f, class, code)
	}
	return f
}

func (b *bench) settled(o workflow.Outcome, begun bool) {
	b.Helper()
	s := b.out.Settle
	if s == nil || *s != (workflow.Settlement{Receipt: "r1", Class: "high", Outcome: o}) {
		b.Fatalf("settlement %+v, want outcome %d", s, o)
	}
	if b.out.End != begun {
		b.Fatalf("end is %v, want %v", b.out.End, begun)
	}
	if b.out.Result != nil || !b.job.Done() || b.out.Wake != 0 {
		b.Fatalf("the job goes on: %+v", b.out)
	}
}

func TestATaskRunsAndItsResultIsReported(t *testing.T) {
	b := at(t, nil)
	w := b.running()
	if w.Name != "notify" || string(w.With) != `{"a":1}` || w.Timeout != 30*time.Second || w.Correlation != "order-7" ||
		w.Key != workflow.TaskExecutionID(stream, 1) || w.Trace != "trace" {
		t.Fatalf("the handler gets %+v", w)
	}
	b.after(time.Millisecond, Returned{Output: []byte(`{"ok":true}`)})
	want := commands.RecordResult{
		Task: 1, Attempt: 3, Worker: "w1", SentAt: t0 - 5, StartedAt: t0, EndedAt: t0 + 1000, SlotWait: time.Second,
		Output: events.InlinePayload([]byte(`{"ok":true}`)),
	}
	if got := b.reported(); fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
		t.Fatalf("result %+v, want %+v", *got, want)
	}
}

func TestWithoutACorrelationTheExecutionsIDIsOne(t *testing.T) {
	b := at(t, func(d *workflow.Delivery, _ *Task) { d.Correlation = "" })
	if w := b.running(); w.Correlation != "7c0f" {
		t.Fatalf("correlation %q", w.Correlation)
	}
}

func TestAnEnvelopeThatNobodyCanReadIsRejected(t *testing.T) {
	for name, spoil := range map[string]func(*workflow.Delivery){
		"stream":     func(d *workflow.Delivery) { d.Stream = "execution/acme" },
		"task":       func(d *workflow.Delivery) { d.Task = -1 },
		"attempt":    func(d *workflow.Delivery) { d.Attempt = 0 },
		"type":       func(d *workflow.Delivery) { d.Type = "" },
		"definition": func(d *workflow.Delivery) { d.Definition = events.Hash{} },
	} {
		t.Run(name, func(t *testing.T) {
			b := at(t, func(d *workflow.Delivery, _ *Task) { spoil(d) })
			b.step(Received{})
			b.settled(workflow.Reject, false)
		})
	}
}

func TestADeliveryWhoseLockHasEndedIsLeftAlone(t *testing.T) {
	b := at(t, func(d *workflow.Delivery, _ *Task) { d.Until = t0 })
	if out := b.step(Received{}); !b.job.Done() || out.Begin || out.Settle != nil {
		t.Fatalf("%+v", out)
	}
}

func TestAnAttemptThatNoLongerCountsIsAcceptedWithoutRunning(t *testing.T) {
	b := at(t, nil)
	b.step(Received{})
	b.step(Began{Err: fmt.Errorf("cancelled: %w", workflow.ErrGone)})
	b.settled(workflow.Accept, false)
}

func TestWhatCannotBePreparedNowIsGivenBackAfterARest(t *testing.T) {
	fault := errors.New("disk")
	for name, to := range map[string]func(*bench){
		"whether it counts": func(b *bench) { b.step(Received{}); b.step(Began{Err: fault}) },
		"the plan":          func(b *bench) { b.begin(); b.step(Loaded{Err: fault}) },
		"the payloads":      func(b *bench) { reading(b.task, 0); b.planned(); b.step(Loaded{Err: fault}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := at(t, nil)
			to(b)
			if b.out.Settle != nil || b.out.Wake != t0.Add(rest) {
				t.Fatalf("it rests first: %+v", b.out)
			}
			b.after(rest, Tick{})
			b.settled(workflow.Release, name != "whether it counts")
		})
	}
}

func TestWhatCanNeverBePreparedIsAPermanentFailure(t *testing.T) {
	missing := fmt.Errorf("%w: content 0102", handle.ErrMissingReference)
	for _, c := range []struct {
		name, code string
		to         func(*bench)
	}{
		{"no handler for the type", "unknown_type", func(b *bench) { b.job.cfg.Types = nil; b.begin() }},
		{"no such plan", "missing_reference", func(b *bench) { b.begin(); b.step(Loaded{Err: missing}) }},
		{"a plan without the task", "plan_mismatch", func(b *bench) { b.job.d.Task = 9; b.planned() }},
		{"a task of another type", "plan_mismatch", func(b *bench) { b.task.Type = "test"; b.planned() }},
		{"other outputs than the mapping reads", "plan_mismatch", func(b *bench) {
			b.job.d.Outputs = []events.Version{3}
			b.planned()
		}},
		{"no such payload", "missing_reference", func(b *bench) {
			reading(b.task, 0)
			b.planned()
			b.step(Loaded{Err: missing})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := at(t, nil)
			c.to(b)
			b.failed(events.Permanent, c.code)
		})
	}
}

func TestAMappingReadsTheInputAndTheOutputsItNames(t *testing.T) {
	b := at(t, func(d *workflow.Delivery, task *Task) {
		d.Outputs = []events.Version{7, 0}
		reading(task, 2)
	})
	out := b.planned()
	want := []aggregates.Ref{payload(1), payload(7)}
	if fmt.Sprint(out.Load) != fmt.Sprint(want) {
		t.Fatalf("load %v, want %v", out.Load, want)
	}
	out = b.step(Loaded{Refs: loadedRefs{payload(1): []byte(`"in"`), payload(7): []byte(`"seven"`)}})
	if out.Run == nil || string(out.Run.With) != `["in","seven",null]` {
		t.Fatalf("%+v", out)
	}
}

func TestAnOperatorsMappingReplacesTheDefinitions(t *testing.T) {
	b := at(t, func(d *workflow.Delivery, task *Task) {
		d.With = 12
		reading(task, 2)
	})
	if out := b.planned(); fmt.Sprint(out.Load) != fmt.Sprint([]aggregates.Ref{payload(12)}) {
		t.Fatalf("load %v", out.Load)
	}
	out := b.step(Loaded{Refs: loadedRefs{payload(12): []byte(`{"fixed":true}`)}})
	if out.Run == nil || string(out.Run.With) != `{"fixed":true}` {
		t.Fatalf("%+v", out)
	}
}

func TestWF20AMappingThatFailsIsAPermanentFailureAndStartsNothing(t *testing.T) {
	b := at(t, func(_ *workflow.Delivery, task *Task) { task.Repeatable = false; failing(task, "mapping_path_missing") })
	out := b.planned()
	if out.Start != nil || out.Run != nil {
		t.Fatalf("%+v", out)
	}
	b.failed(events.Permanent, "mapping_path_missing")
}

func TestWhatMustNotRunTwiceWaitsForTheOwnersWord(t *testing.T) {
	for name, change := range map[string]func(*workflow.Delivery, *Task){
		"not repeatable": func(_ *workflow.Delivery, task *Task) { task.Repeatable = false },
		"heartbeat":      func(_ *workflow.Delivery, task *Task) { task.Heartbeat = 5 * time.Second },
	} {
		t.Run(name+": it counts", func(t *testing.T) {
			b := at(t, change)
			out := b.planned()
			want := commands.StartTask{Task: 1, Attempt: 3, Worker: "w1", SentAt: t0 - 5, StartedAt: t0, SlotWait: time.Second}
			if !out.Await || out.Start == nil || *out.Start != want || out.Run != nil {
				t.Fatalf("%+v", out)
			}
			b.after(time.Second, Answered{Counts: true})
			if b.out.Run == nil || b.job.startedAt != b.now {
				t.Fatalf("%+v", b.out)
			}
			b.after(2*time.Second, Tick{})
			if b.out.Start != nil {
				t.Fatal("the start was reported already")
			}
		})
		t.Run(name+": it does not count", func(t *testing.T) {
			b := at(t, change)
			b.planned()
			b.step(Answered{Counts: false})
			b.settled(workflow.Accept, true)
		})
		t.Run(name+": no answer", func(t *testing.T) {
			b := at(t, change)
			b.planned()
			b.after(answerMax, Tick{})
			b.settled(workflow.Release, true)
		})
	}
}

func TestAStartIsReportedOnceWhenItStillRunsAfterASecond(t *testing.T) {
	b := at(t, nil)
	b.running()
	if b.out.Wake != t0.Add(startAfter) {
		t.Fatalf("wake at %s", b.out.Wake)
	}
	if b.after(startAfter-1000, Tick{}); b.out.Start != nil {
		t.Fatal("too early")
	}
	if b.after(1000, Tick{}); b.out.Start == nil || b.out.Await || b.out.Start.StartedAt != t0 {
		t.Fatalf("%+v", b.out)
	}
	if b.after(time.Second, Tick{}); b.out.Start != nil {
		t.Fatal("twice")
	}
}

func TestTheWatchdog(t *testing.T) {
	beats := func(_ *workflow.Delivery, task *Task) { task.Heartbeat = 5 * time.Second }
	t.Run("a task that runs longer than its timeout", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.after(startAfter, Tick{})
		b.after(29*time.Second, Tick{})
		if b.out.Renew { // both are due after 30 s
			b.step(Renewed{})
		}
		if b.out.Cancel == nil || b.out.Result != nil {
			t.Fatalf("%+v", b.out)
		}
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "connection_lost"}})
		b.failed(events.TimedOut, "task_timeout")
	})
	t.Run("a success that comes just after counts", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.job.wait.renew, b.job.wait.start = 0, 0
		b.after(30*time.Second, Tick{})
		b.step(Returned{Output: []byte("1")})
		if r := b.reported(); r.Failure != nil {
			t.Fatalf("%+v", r.Failure)
		}
	})
	t.Run("a heartbeat that stops", func(t *testing.T) {
		b := at(t, beats)
		b.running()
		for range 3 {
			b.after(4*time.Second, Beat{At: b.now.Add(4 * time.Second)})
			if b.step(Tick{}); b.out.Cancel != nil {
				t.Fatal("it goes on")
			}
		}
		b.after(5*time.Second, Tick{})
		if b.out.Cancel == nil {
			t.Fatalf("%+v", b.out)
		}
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "x"}})
		b.failed(events.TimedOut, "heartbeat_timeout")
	})
	t.Run("a handler that does not return is abandoned", func(t *testing.T) {
		b := at(t, beats)
		b.running()
		b.after(5*time.Second, Tick{})
		if b.after(grace-1000, Tick{}); b.out.Abandon {
			t.Fatal("too early")
		}
		if b.after(1000, Tick{}); !b.out.Abandon || b.out.Result != nil {
			t.Fatalf("%+v", b.out)
		}
		b.step(Abandoned{})
		b.failed(events.TimedOut, "heartbeat_timeout")
	})
}

func TestAnAttemptThatStopsCountingWhileItRuns(t *testing.T) {
	t.Run("is cancelled, and its failure is no news", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		if b.step(Gone{}); !errors.Is(b.out.Cancel, workflow.ErrGone) {
			t.Fatalf("%+v", b.out)
		}
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "call_cancelled"}})
		b.settled(workflow.Accept, true)
	})
	t.Run("WF-28 its success is reported: it may satisfy the next attempt", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Gone{})
		b.step(Returned{Output: []byte(`"late"`)})
		if r := b.reported(); r.Attempt != 3 || string(r.Output.Inline) != `"late"` {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("before its handler, it never starts", func(t *testing.T) {
		b := at(t, func(_ *workflow.Delivery, task *Task) { task.Repeatable = false })
		b.planned()
		b.step(Gone{})
		b.settled(workflow.Accept, true)
	})
	t.Run("after its handler, the result is reported", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Returned{Output: []byte("1")})
		r := b.out.Result
		b.step(Gone{})
		b.out.Result = r
		b.reported()
	})
}

func TestALockIsRenewedWhileTheJobLasts(t *testing.T) {
	b := at(t, func(d *workflow.Delivery, task *Task) { task.Timeout = time.Hour })
	b.running()
	b.after(startAfter, Tick{})
	for range 4 {
		if b.out.Wake.Sub(b.now) > 30*time.Second {
			t.Fatalf("wake in %s, half of the lock is 30 s", b.out.Wake.Sub(b.now))
		}
		b.now = b.out.Wake
		if b.step(Tick{}); !b.out.Renew {
			t.Fatalf("%+v", b.out)
		}
		b.step(Renewed{})
	}
	t.Run("a renewal that failed is tried again soon", func(t *testing.T) {
		b.now = b.out.Wake
		b.step(Tick{})
		b.step(Renewed{Err: errors.New("broker")})
		if b.out.Wake.Sub(b.now) > 10*time.Second {
			t.Fatalf("wake in %s", b.out.Wake.Sub(b.now))
		}
		b.now = b.out.Wake
		if b.step(Tick{}); !b.out.Renew {
			t.Fatalf("%+v", b.out)
		}
	})
	t.Run("a lock that was lost does not stop the work", func(t *testing.T) {
		b.step(Renewed{Err: workflow.ErrLockLost})
		if b.out.Cancel != nil || b.job.Done() {
			t.Fatalf("%+v", b.out)
		}
		b.step(Returned{Output: []byte("1")})
		b.reported()
	})
}
