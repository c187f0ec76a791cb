package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/worker"
)

// workerConfig says how much a worker takes on.
type workerConfig struct {
	Name     string        // drawn anew at every start
	Slots    int           // tasks at once; default 32
	Prefetch int           // deliveries of a class that wait here, at most; default Slots, at least 1
	Lock     time.Duration // of a delivery, renewed while it runs and given back while it waits; default 60 s
	Drain    time.Duration // how long a stop waits for what runs before it cancels it; default 20 s
	// Long bounds how many slots the class longrunning may hold, so that others pass; default half of Slots, at least 1.
	Long int
}

const (
	workerSlots = 32
	workerLock  = time.Minute
	workerDrain = 20 * time.Second
	// receiveMax is how many deliveries one call of the queue brings.
	receiveMax = 16
	// receiveRest is how long a class is left alone after its queue failed.
	receiveRest = time.Second
	// stragglersMax is how long the end waits, after everything was cancelled, for handlers that do not return.
	stragglersMax = 8 * time.Second
)

func (c workerConfig) withDefaults() workerConfig {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.Slots, workerSlots)
	def(&c.Prefetch, c.Slots)
	def(&c.Long, max(c.Slots/2, 1))
	if c.Lock <= 0 {
		c.Lock = workerLock
	}
	if c.Drain <= 0 {
		c.Drain = workerDrain
	}
	return c
}

// workerPorts is what a worker needs of the world.
type workerPorts struct {
	Queue    workflow.TaskQueue
	Attempts workflow.Attempts
	Reports  workflow.Reports
	Refs     worker.Refs
	Blobs    events.Blobs
	Clock    commands.Clock
	Handlers map[string]workflow.Handler
	Log      *slog.Logger
}

// workerRunner drives jobs: one receiving goroutine a class, one goroutine a slot, which is the handler's own.
type workerRunner struct {
	cfg   workerConfig
	ports workerPorts
	jobs  worker.Config
	types []string

	inbox    *workerInbox
	drain    chan struct{}   // closed when nothing is waited for any longer
	calls    context.Context // of calls to ports: ends last of all
	endCalls context.CancelCauseFunc
	handling context.Context // of handlers: a job's own cancel ends them, one by one
	slots    sync.WaitGroup
	busy     atomic.Int64 // jobs in hand
	stuck    atomic.Int64 // handlers that were abandoned and have not returned
}

func newWorker(cfg workerConfig, ports workerPorts) *workerRunner {
	cfg = cfg.withDefaults()
	r := &workerRunner{
		cfg: cfg, ports: ports, drain: make(chan struct{}),
		jobs: worker.Config{Name: cfg.Name, Types: map[string]bool{}, Lock: cfg.Lock},
	}
	for name := range ports.Handlers {
		r.types = append(r.types, name)
		r.jobs.Types[name] = true
	}
	slices.Sort(r.types)
	r.inbox = newWorkerInbox(cfg)
	return r
}

// Run works until ctx ends, then gives back what has not started, waits for what runs, and cancels what does not end.
// It returns nil, or says how many handlers did not return. It is called once.
func (r *workerRunner) Run(ctx context.Context) error {
	r.handling = context.WithoutCancel(ctx)
	r.calls, r.endCalls = context.WithCancelCause(r.handling)
	defer r.endCalls(worker.ErrDrained)
	for range r.cfg.Slots {
		r.slots.Go(func() { newWorkerSlot(r).loop() })
	}
	var receiving sync.WaitGroup
	for _, class := range workflow.Classes {
		receiving.Go(func() { r.receive(ctx, class) })
	}
	receiving.Go(func() { r.handBack(ctx) })
	receiving.Wait()
	r.release(r.inbox.close())
	ended := make(chan struct{})
	go func() {
		r.slots.Wait()
		close(ended)
	}()
	if r.within(ended, r.cfg.Drain) {
		return nil
	}
	close(r.drain)
	if r.within(ended, stragglersMax) {
		return nil
	}
	left := r.busy.Load() + r.stuck.Load()
	return fmt.Errorf("%d handlers did not return %s after they were cancelled", left, stragglersMax)
}

func (r *workerRunner) within(ended <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

// receive keeps the inbox of a class filled.
func (r *workerRunner) receive(ctx context.Context, class string) {
	stop := context.AfterFunc(ctx, r.inbox.wakeReceivers)
	defer stop()
	for {
		room := r.inbox.room(ctx, class)
		if ctx.Err() != nil {
			return
		}
		ds, err := r.ports.Queue.Receive(ctx, class, r.types, min(room, receiveMax), r.cfg.Lock)
		r.inbox.put(class, ds)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		r.ports.Log.Warn("receive tasks", "class", class, "error", err)
		if !workerPause(ctx, receiveRest) {
			return
		}
	}
}

// workerPause waits; false when ctx ended first.
func workerPause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// handBack gives deliveries back that have waited here for half of their lock: somebody else may be free, and an item
// that is never started here must not run into the end of its lock (case WF-26).
func (r *workerRunner) handBack(ctx context.Context) {
	every := time.NewTicker(r.cfg.Lock / 4)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			r.release(r.inbox.takeOld(r.ports.Clock.Now().Add(r.cfg.Lock / 2)))
		}
	}
}

func (r *workerRunner) release(ds []workflow.Delivery) {
	if len(ds) == 0 {
		return
	}
	ss := make([]workflow.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = workflow.Settlement{Receipt: d.Receipt, Class: d.Class, Outcome: workflow.Release}
	}
	if err := r.ports.Queue.Settle(r.calls, ss); err != nil && !errors.Is(err, context.Canceled) {
		r.ports.Log.Warn("give tasks back", "count", len(ds), "error", err)
	}
}
