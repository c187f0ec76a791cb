package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// BenchConfig says what is measured.
type BenchConfig struct {
	Kind     string // chain, fanout, submit or rebuild
	Length   int    // tasks: of the chain, or of the fan-out with its join
	InFlight int    // executions at once
	Duration time.Duration
	Dir      string // on the disk to be measured; a folder is made in it and removed
	// Partitions of the log; 0: the default.
	Partitions int
}

// BenchResult is what was seen. All rates are per second of the measured stretch.
type BenchResult struct {
	Kind                  string  `json:"kind"`
	TasksPerSecond        float64 `json:"tasksPerSecond"`
	ExecutionsPerSecond   float64 `json:"executionsPerSecond"`
	StepP50Ms             float64 `json:"stepP50Ms"`
	StepP99Ms             float64 `json:"stepP99Ms"`
	SubmitP95Ms           float64 `json:"submitP95Ms"`
	SubmitP99Ms           float64 `json:"submitP99Ms"`
	CommitMs              float64 `json:"commitMs"` // mean of the owners' calls to the store
	AppendsPerTask        float64 `json:"appendsPerTask"`
	BytesPerTask          float64 `json:"bytesPerTask"`
	FsyncsPerTask         float64 `json:"fsyncsPerTask"`
	CPUMicrosPerTask      float64 `json:"cpuMicrosPerTask"`
	RawSyncP50Ms          float64 `json:"rawSyncP50Ms"`
	StoreAppendsPerSecond float64 `json:"storeAppendsPerSecond"`
	Ratio                 float64 `json:"ratio"` // tasks per second to the store's own appends per second
	EventsPerSecond       float64 `json:"eventsPerSecond,omitempty"`
	Seconds               float64 `json:"seconds"`
}

// Bench measures one kind of load on a fresh log in this process, beside the raw disk and the bare store at the same
// number in flight, so that the figures can be read as ratios.
func Bench(ctx context.Context, c BenchConfig) (r BenchResult, err error) {
	dir, err := os.MkdirTemp(c.Dir, "sluice-bench-")
	if err != nil {
		return r, err
	}
	defer func() {
		if gone := os.RemoveAll(dir); err == nil {
			err = gone
		}
	}()
	r.Kind = c.Kind
	if r.RawSyncP50Ms, err = rawSync(dir, 500*time.Millisecond); err != nil {
		return r, err
	}
	if c.Kind == "chain" {
		before, err := storeRate(ctx, filepath.Join(dir, "store1"), c.InFlight, c.Duration/4)
		if err != nil {
			return r, err
		}
		defer func() {
			if err == nil {
				var after float64
				after, err = storeRate(ctx, filepath.Join(dir, "store2"), c.InFlight, c.Duration/4)
				r.StoreAppendsPerSecond = (before + after) / 2
				r.Ratio = r.TasksPerSecond / r.StoreAppendsPerSecond
			}
		}()
	}
	b, err := startBench(ctx, filepath.Join(dir, "data"), c)
	if err != nil {
		return r, err
	}
	defer func() {
		if stopped := b.stop(); err == nil {
			err = stopped
		}
	}()
	switch c.Kind {
	case "chain":
		err = b.chain(ctx, &r)
	case "fanout":
		err = b.fanout(ctx, &r)
	case "submit":
		err = b.submits(ctx, &r)
	case "rebuild":
		err = b.rebuild(ctx, &r)
	default:
		err = fmt.Errorf("there is no bench %q; there are chain, fanout, submit and rebuild", c.Kind)
	}
	return r, err
}

// bench is one system under load.
type bench struct {
	cfg     BenchConfig
	s       *System
	end     context.CancelFunc
	ended   chan error
	name    string
	version int64
	hash    events.Hash
	steps   latencies
	submit  latencies
}

func startBench(ctx context.Context, dir string, c BenchConfig) (*bench, error) {
	cfg := Default()
	cfg.Data = dir
	cfg.TenantSlots = 100_000
	if c.Partitions > 0 {
		cfg.Partitions = c.Partitions
	}
	s, err := Open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	b := &bench{cfg: c, s: s, end: end, ended: make(chan error, 1)}
	s.Types.handlers["test"] = timed{s.Types.handlers["test"], &b.steps}
	go func() { b.ended <- s.Run(run) }()
	return b, b.publish(ctx)
}

// timed measures from the send, which follows the answer to the append, to the start of the handler.
type timed struct {
	workflow.Handler
	steps *latencies
}

// Run notes the time and goes on.
func (t timed) Run(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	t.steps.add(systemClock{}.Now().Sub(w.SentAt))
	return t.Handler.Run(ctx, w)
}

func (b *bench) stop() error {
	b.end()
	err := <-b.ended
	if closed := b.s.Close(); err == nil {
		err = closed
	}
	return err
}

// publish makes the definition: a chain of no-op tasks, or a fan-out with a join.
func (b *bench) publish(ctx context.Context) error {
	var y strings.Builder
	fmt.Fprintf(&y, "workflow: bench\ntasks:\n")
	fan, n := b.cfg.Kind == "fanout", b.cfg.Length
	if fan {
		n-- // and the join
	}
	for i := range n {
		fmt.Fprintf(&y, "  t%05d: {type: test", i)
		if i > 0 && !fan {
			fmt.Fprintf(&y, ", needs: [t%05d]", i-1)
		}
		y.WriteString("}\n")
	}
	if fan {
		y.WriteString("  z: {type: test, needs: [")
		for i := range n {
			fmt.Fprintf(&y, "t%05d, ", i)
		}
		y.WriteString("]}\n")
	}
	d, problems := definition.Parse([]byte(y.String()))
	if len(problems) > 0 {
		return fmt.Errorf("the bench's definition: %v", problems)
	}
	m := commands.Meta{Command: randomIDs{}.NewID(), Tenant: "default", Actor: "bench"}
	version, out, err := b.s.Publish(ctx, d, m)
	if err != nil {
		return err
	}
	l, err := b.s.Handler.Load(ctx, out.Stream)
	if err != nil {
		return err
	}
	b.name, b.version = d.Workflow, version
	b.hash = l.State.(*definition.State).Versions[version-1].Hash
	return nil
}

// one starts an execution; with wait it returns when that has ended.
func (b *bench) one(ctx context.Context, wait bool) error {
	stream := events.StreamOf(execution.Category, "default", randomIDs{}.NewID().String())
	var grown <-chan struct{}
	if wait {
		c, end, ok := b.s.watches.watch(stream, true)
		if !ok {
			return fmt.Errorf("too many in flight")
		}
		defer end()
		grown = c
	}
	began := time.Now()
	_, err := b.s.Handler.Start(ctx, stream, commands.SubmitExecution{
		Workflow: b.name, Version: b.version, Definition: b.hash,
		Input: events.InlinePayload([]byte(`{"email":"a@b.example"}`)),
	}, commands.Meta{Command: randomIDs{}.NewID(), Tenant: "default", Actor: "bench"})
	if err != nil {
		return err
	}
	b.submit.add(time.Since(began))
	if !wait {
		return nil
	}
	select {
	case <-grown:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flood keeps the wanted number in flight for the duration and returns how many ended.
func (b *bench) flood(ctx context.Context, wait bool) (n int64, took time.Duration, err error) {
	var ended atomic.Int64
	began := time.Now()
	var stop atomic.Bool
	timer := time.AfterFunc(b.cfg.Duration, func() { stop.Store(true) })
	defer timer.Stop()
	fs := make([]func(context.Context) error, b.cfg.InFlight)
	for i := range fs {
		fs[i] = func(ctx context.Context) error {
			for !stop.Load() {
				if err := b.one(ctx, wait); err != nil {
					return err
				}
				ended.Add(1)
			}
			return nil
		}
	}
	err = together(ctx, fs...)
	return ended.Load(), time.Since(began), err
}

// usage is what the process has used so far.
type usage struct {
	cpu     time.Duration
	appends int64
	calls   int64
	nanos   int64
	bytes   int64
}

func (b *bench) usage() (u usage) {
	u.cpu = cpuTime()
	for i := range b.s.parts {
		if p := b.s.parts[i].Load(); p != nil {
			u.appends += p.meter.appends.Load()
			u.calls += p.meter.calls.Load()
			u.nanos += p.meter.nanos.Load()
		}
	}
	u.bytes = fileBytes(b.s.cfg.Data)
	return u
}

func (b *bench) chain(ctx context.Context, r *BenchResult) error {
	before := b.usage()
	n, took, err := b.flood(ctx, true)
	if err != nil {
		return err
	}
	b.report(r, before, n, n*int64(b.cfg.Length), took)
	return nil
}

func (b *bench) report(r *BenchResult, before usage, executions, tasks int64, took time.Duration) {
	after := b.usage()
	per := func(v int64) float64 { return float64(v) / float64(max(tasks, 1)) }
	r.Seconds = took.Seconds()
	r.ExecutionsPerSecond = float64(executions) / took.Seconds()
	r.TasksPerSecond = float64(tasks) / took.Seconds()
	r.AppendsPerTask = per(after.appends - before.appends + executions) // submissions are the callers' own appends
	r.CommitMs = float64(after.nanos-before.nanos) / 1e6 / float64(max(after.calls-before.calls, 1))
	r.FsyncsPerTask = per(after.calls - before.calls)
	r.BytesPerTask = per(after.bytes - before.bytes)
	r.CPUMicrosPerTask = per((after.cpu - before.cpu).Microseconds())
	r.StepP50Ms, r.StepP99Ms = b.steps.ms(50), b.steps.ms(99)
	r.SubmitP95Ms, r.SubmitP99Ms = b.submit.ms(95), b.submit.ms(99)
}

func (b *bench) fanout(ctx context.Context, r *BenchResult) error {
	before := b.usage()
	began := time.Now()
	if err := b.one(ctx, true); err != nil {
		return err
	}
	b.report(r, before, 1, int64(b.cfg.Length), time.Since(began))
	return nil
}

func (b *bench) submits(ctx context.Context, r *BenchResult) error {
	before := b.usage()
	n, took, err := b.flood(ctx, false)
	if err != nil {
		return err
	}
	b.report(r, before, n, n, took)
	return nil
}

// rebuild fills the log with chains and builds the executions view beside the live one.
func (b *bench) rebuild(ctx context.Context, r *BenchResult) error {
	if _, _, err := b.flood(ctx, true); err != nil {
		return err
	}
	var total events.Position
	for p := range b.s.parts {
		end, _, err := b.s.Store.End(ctx, events.Partition(p))
		if err != nil {
			return err
		}
		total += end
	}
	began := time.Now()
	if err := b.s.views.Replay(ctx, "executions", func(int64, int64) {}); err != nil {
		return err
	}
	took := time.Since(began)
	r.Seconds, r.EventsPerSecond = took.Seconds(), float64(total)/took.Seconds()
	return nil
}

// storeRate is what the bare store takes from n callers, in the shapes of a chain of five: nothing is decided.
func storeRate(ctx context.Context, dir string, n int, d time.Duration) (float64, error) {
	cfg := Default()
	cfg.Data = dir
	s, err := Open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, err
	}
	defer s.Close() // what matters was measured
	var total atomic.Int64
	var stop atomic.Bool
	time.AfterFunc(d, func() { stop.Store(true) })
	began := time.Now()
	fs := make([]func(context.Context) error, n)
	for i := range fs {
		fs[i] = func(ctx context.Context) error { return appendChains(ctx, s, &stop, &total) }
	}
	err = together(ctx, fs...)
	return float64(total.Load()) / time.Since(began).Seconds(), err
}

func appendChains(ctx context.Context, s *System, stop *atomic.Bool, total *atomic.Int64) error {
	first, err := encoded(s.Codec, events.ExecutionSubmitted{
		Workflow: "bench", Version: 1, Tasks: 5, Input: events.InlinePayload([]byte(`{"email":"a@b.example"}`)),
		Class: "standard",
	}, events.TasksReady{To: 1, Class: "standard"})
	if err != nil {
		return err
	}
	now := systemClock{}.Now()
	next, err := encoded(s.Codec, events.TaskCompleted{
		Task: 1, Attempt: 1, Worker: s.workerName(), SentAt: now, StartedAt: now, EndedAt: now,
		Output: events.InlinePayload([]byte(`null`)),
	}, events.TasksReady{From: 1, To: 2, Class: "standard"})
	if err != nil {
		return err
	}
	env := (&events.Envelope{Actor: s.workerName(), OccurredAt: now}).Append(nil)
	var verdict [1]events.Verdict
	for !stop.Load() {
		stream := events.StreamOf(execution.Category, "default", randomIDs{}.NewID().String())
		p := events.PartitionOf(stream, s.Info.Partitions)
		var hash events.Hash
		for k := range 6 {
			a := &events.Append{
				Stream: stream, Partition: p, Expected: events.Version(2 * k), Command: randomIDs{}.NewID(), N: 2,
				Envelope: env, Events: next, Head: events.HeadUpdate{Open: k < 5},
			}
			if k == 0 {
				a.Events = first
			}
			a.Hash = events.Chain(hash, stream, a.Expected+1, 2, env, a.Events)
			hash = a.Hash
			if err := s.Store.Append(ctx, p, []*events.Append{a}, verdict[:]); err != nil {
				return err
			}
			if verdict[0].Kind != events.Appended {
				return fmt.Errorf("the bare store answers %s", verdict[0].Kind)
			}
			total.Add(1)
		}
	}
	return nil
}

func encoded(c events.Codec, es ...events.Event) (b []byte, err error) {
	for _, e := range es {
		if b, err = events.AppendFrame(b, events.Fact{Event: e}, c); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// rawSync is the median of writing a page to the end of a file and syncing it.
func rawSync(dir string, d time.Duration) (p50 float64, err error) {
	f, err := os.CreateTemp(dir, "raw")
	if err != nil {
		return 0, err
	}
	defer f.Close() // it is thrown away
	var l latencies
	page := make([]byte, 4096)
	for began := time.Now(); time.Since(began) < d; {
		t := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := syncData(f); err != nil {
			return 0, err
		}
		l.add(time.Since(t))
	}
	return l.ms(50), nil
}

func fileBytes(dir string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(dir, "log.db*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}

// latencies gathers durations from many goroutines.
type latencies struct {
	mu sync.Mutex
	ds []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ds) < 2_000_000 {
		l.ds = append(l.ds, d)
	}
}

func (l *latencies) ms(percent int) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ds) == 0 {
		return 0
	}
	slices.Sort(l.ds)
	return float64(l.ds[min(len(l.ds)-1, len(l.ds)*percent/100)].Microseconds()) / 1000
}

// String is the result as JSON.
func (r BenchResult) String() string {
	b, _ := json.MarshalIndent(r, "", "  ") // numbers and texts only
	return string(b)
}
