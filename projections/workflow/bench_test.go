package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/workflow"
)

// chains writes n executions, each a chain of five tasks: six commits of two events.
func (c *chronicle) chains(from, n int) {
	for i := from; i < from+n; i++ {
		s := stream("acme", events.Derive("bench", fmt.Sprint(i)).String())
		task := func(t int32) events.Event {
			return events.TaskCompleted{
				Task: t, Attempt: 1, Worker: "w1", SentAt: 1, StartedAt: 2, EndedAt: 3,
				Output: events.Payload{Inline: []byte(`{"status":200}`), Size: 14},
			}
		}
		c.add(s, "", submission(fmt.Sprintf("workflow-%d", i%2), 1), events.TasksReady{Tasks: []int32{0}, Class: "standard"})
		for t := range int32(4) {
			c.add(s, "", task(t), events.TasksReady{Tasks: []int32{t + 1}, Class: "standard"})
		}
		c.add(s, "", task(4), events.ExecutionCompleted{})
	}
	c.flushAll()
}

const benchParts = 4

func benchLog(b *testing.B) (*chronicle, *sqlite.Views) {
	dir := b.TempDir()
	store, err := sqlite.Open(dir, sqlite.Options{Partitions: benchParts})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	v, err := sqlite.OpenViews(driver.Default, filepath.Join(dir, "views.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { v.Close() })
	return newChronicle(b, store, benchParts), v
}

// BenchmarkRebuild folds and loads a log of chains, two partitions at once: events/s is the figure that is promised.
func BenchmarkRebuild(b *testing.B) {
	c, views := benchLog(b)
	const executions = 40_000
	c.chains(0, executions)
	ctx := context.Background()
	ports := projections.Ports{Log: c.store, Views: views}
	for _, m := range []projections.Model{workflow.Executions(), workflow.Counts()} {
		b.Run(m.Name, func(b *testing.B) {
			for b.Loop() {
				v, err := views.Begin(ctx, m)
				if err != nil {
					b.Fatal(err)
				}
				at := map[events.Partition]events.Checkpoint{}
				var mu sync.Mutex
				var wg sync.WaitGroup
				slots := make(chan struct{}, 2)
				for p := range events.Partition(benchParts) {
					wg.Go(func() {
						slots <- struct{}{}
						defer func() { <-slots }()
						end, _, _ := c.store.End(ctx, p)
						f, err := ports.Fold(ctx, v, p, c.codec, end, func(int64) {})
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						at[p] = f.At
					})
				}
				wg.Wait()
				if err := views.Loaded(ctx, v, at, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(executions*12*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkFeed feeds both live views from chains, in batches as they come under load: ns/execution is what they cost
// the machine beside the log.
func BenchmarkFeed(b *testing.B) {
	c, views := benchLog(b)
	ports := projections.Ports{Log: c.store, Views: views}
	models := []projections.Model{workflow.Executions(), workflow.Counts()}
	var vs []projections.View
	for _, m := range models {
		vs = append(vs, live(b, ports, c.codec, m, benchParts))
	}
	type fed struct {
		v  projections.View
		p  events.Partition
		r  *projections.Runner
		in projections.In
	}
	var all []*fed
	for _, v := range vs {
		for p := range events.Partition(benchParts) {
			all = append(all, &fed{v: v, p: p, r: projections.NewRunner(&v.Model, p, c.codec)})
		}
	}
	const round = 200 // what comes in during a pause at 10,000 executions/s
	for i := range b.N {
		b.StopTimer()
		c.chains(i*round, round)
		b.StartTimer()
		var wg sync.WaitGroup
		for _, f := range all {
			wg.Go(func() {
				for do := projections.Do(0); do != projections.DoWait; {
					o := f.r.Step(&f.in)
					do = o.Do
					if f.in = ports.Perform(context.Background(), f.v, f.p, o); f.in.Err != nil {
						b.Error(f.in.Err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(round*b.N), "µs/execution")
}
