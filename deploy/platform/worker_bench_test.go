package platform

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/live"
)

// countingReports closes attempts as an owner would, and keeps nothing.
type countingReports struct {
	attempts *live.Attempts
	left     atomic.Int64
	done     chan struct{}
	each     chan struct{} // if not nil, every result is handed over
}

func (c *countingReports) Report(_ context.Context, r workflow.Report) error {
	res := r.Command.(commands.RecordResult)
	c.attempts.Closed(r.Stream, res.Task, res.Attempt)
	if c.each != nil {
		c.each <- struct{}{}
	}
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
	return nil
}

var noop = handlerFunc(func(context.Context, workflow.Work) ([]byte, *commands.Failure) { return []byte("true"), nil })

// BenchmarkWorkerIdle sends one no-op task to an idle worker and waits for its result: what one task waits for the
// worker when nothing else is going on.
func BenchmarkWorkerIdle(b *testing.B) {
	clock := wallClock{}
	attempts := live.New(clock, nil)
	queue := memory.NewQueue(clock, 0)
	reports := &countingReports{attempts: attempts, each: make(chan struct{})}
	w := newWorker(workerConfig{Name: "w1"}, workerPorts{
		Queue: queue, Attempts: attempts, Reports: reports, Refs: plans{taskPlan(1, nil)}, Clock: clock,
		Handlers: map[string]workflow.Handler{"test": noop}, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	it := workflow.Item{Stream: testStream, Type: "test", Class: "standard", Definition: events.Hash{1}}
	b.ResetTimer()
	for range b.N {
		it.Attempt++
		attempts.Sent(it)
		if err := queue.Send(ctx, []workflow.Item{it}); err != nil {
			b.Fatal(err)
		}
		<-reports.each
	}
	b.StopTimer()
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWorker runs no-op tasks from the memory queue on 32 slots.
func BenchmarkWorker(b *testing.B) {
	clock := wallClock{}
	attempts := live.New(clock, nil)
	queue := memory.NewQueue(clock, 1<<20)
	reports := &countingReports{attempts: attempts, done: make(chan struct{})}
	reports.left.Store(int64(b.N))
	w := newWorker(workerConfig{Name: "w1"}, workerPorts{
		Queue: queue, Attempts: attempts, Reports: reports, Refs: plans{taskPlan(b.N/512+1, nil)}, Clock: clock,
		Handlers: map[string]workflow.Handler{"test": noop}, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	streams := make([]events.Stream, 512)
	for i := range streams {
		streams[i] = events.StreamOf("execution", "acme", events.Derive("bench", string(rune(i))).String())
	}
	b.ReportAllocs()
	b.ResetTimer()
	items := make([]workflow.Item, 0, 64)
	for i := range b.N {
		it := workflow.Item{
			Stream: streams[i%len(streams)], Task: int32(i / len(streams)), Attempt: 1, Type: "test", Class: "standard",
			Definition: events.Hash{1},
		}
		attempts.Sent(it)
		if items = append(items, it); len(items) == cap(items) || i == b.N-1 {
			if err := queue.Send(ctx, items); err != nil {
				b.Fatal(err)
			}
			items = items[:0]
		}
	}
	<-reports.done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.StopTimer()
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
