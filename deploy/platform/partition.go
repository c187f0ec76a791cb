package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/dispatcher"
	"github.com/sluice-platform/sluice/processors/workflow/live"
)

// partitionPorts is what the owner of a partition needs of the world.
type partitionPorts struct {
	Handler    *handle.Handler
	Refs       *handle.Refs
	Log        handle.Log
	Blobs      events.Blobs
	Queue      workflow.TaskQueue
	Slots      kernel.Slots
	Attempts   *live.Attempts
	Parking    handle.Parking
	Changed    func(p events.Partition, s events.Stream, open bool) // told of each own append
	Unblock    func(from events.Partition, tenants []string)        // told of slots that were freed
	Logger     *slog.Logger
	Aggregates []aggregates.Aggregate
	Codec      events.Codec
	Gone       func(worker string) bool
}

// partition drives one partition's owner: it does what the steps ask for and brings in what comes of it.
type partition struct {
	id      events.Partition
	ports   partitionPorts
	owner   *owner.Owner
	agent   *dispatcher.Dispatcher
	in      *box[incoming]
	writer  *writer
	loads   chan func(context.Context)
	extra   sync.WaitGroup // of loads beyond the queue
	dones   map[uint64]func(bool)
	waiting atomic.Int64 // tasks that wait for the window or a slot
	hot     atomic.Int64 // streams in memory
	flying  atomic.Int64 // attempts that hold a slot
	meter   laneMeter
}

// incoming is what gathers for a step.
type incoming struct {
	owner.In
	unblock []string
	dones   []done
}

type done struct {
	receipt uint64
	call    func(bool)
}

func (in *incoming) reset() {
	in.Reset()
	clear(in.dones)
	in.unblock, in.dones = in.unblock[:0], in.dones[:0]
}

func newPartition(id events.Partition, fence events.Fence, ports partitionPorts) *partition {
	lane := handle.NewLane(handle.LaneConfig{
		Partition: id, Fence: fence, Aggregates: ports.Aggregates, Codec: ports.Codec, Cache: ports.Refs,
		IDs: randomIDs{}, Rand: entropy{}, Actor: "owner",
	})
	p := &partition{
		id: id, ports: ports, owner: owner.New(lane), in: newBox(incoming{}),
		loads: make(chan func(context.Context), 1024), dones: map[uint64]func(bool){},
	}
	p.agent = dispatcher.New(dispatcher.Config{Partition: id, Cache: ports.Refs, Gone: ports.Gone}, p.owner)
	p.writer = &writer{
		partition: id, log: ports.Log, blobs: ports.Blobs, in: newBox([]handle.Tagged(nil)), meter: &p.meter,
		answer: func(as []owner.Answer) { p.in.put(func(in *incoming) { in.Answers = append(in.Answers, as...) }) },
		stored: func(a *events.Append) { ports.Changed(id, a.Stream, a.Head.Open) },
	}
	return p
}

// receipts are unique in the process.
var receipts atomic.Uint64

// Report brings what a worker says to the owner.
func (p *partition) report(r workflow.Report, worker string) {
	o := owner.Offer{Stream: r.Stream, Machine: handle.Machine{
		Command: r.Command, Origin: events.Origin{Actor: worker},
	}}
	p.in.put(func(in *incoming) {
		if r.Done != nil {
			o.Machine.Receipt = receipts.Add(1)
			in.dones = append(in.dones, done{o.Machine.Receipt, r.Done})
		}
		in.Machines = append(in.Machines, o)
	})
}

// handOver gives the owner a stream behind somebody's append.
func (p *partition) handOver(l handle.Loaded) {
	p.in.put(func(in *incoming) { in.Loaded = append(in.Loaded, l) })
}

// errFenced says that a later owner has the partition.
var errFenced = errors.New("a later owner has the partition")

// run drives until ctx ends, or the partition is another's.
func (p *partition) run(ctx context.Context) error {
	defer p.extra.Wait()
	return together(ctx,
		func(ctx context.Context) error { return p.steps(ctx) },
		func(ctx context.Context) error { return p.writer.run(ctx) },
		func(ctx context.Context) error { return p.load(ctx) },
		func(ctx context.Context) error { return p.load(ctx) },
		func(ctx context.Context) error { return p.load(ctx) },
		func(ctx context.Context) error { return p.load(ctx) },
		func(ctx context.Context) error { return p.takeOver(ctx) },
	)
}

// scanEvery is how often open heads are looked at again. It is the net for what nobody told the owner: a caller may be
// gone before the append whose outcome it did not learn has landed. Streams whose state was let go are read each time.
const scanEvery = 5 * time.Minute

// takeOver has every open head looked at, and again from time to time.
func (p *partition) takeOver(ctx context.Context) error {
	for {
		if err := p.scan(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if (sleeper{}).Wait(ctx, scanEvery) != nil {
			return nil
		}
	}
}

// scan touches the open heads, a page at a time.
func (p *partition) scan(ctx context.Context) error {
	const page = 1000
	after := events.Stream("")
	for {
		heads, err := p.ports.Log.OpenHeads(ctx, p.id, after, page)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read open heads of partition %d: %w", p.id, err)
		}
		p.in.put(func(in *incoming) {
			for _, h := range heads {
				in.Touched = append(in.Touched, owner.Touched{Stream: h.Stream, Version: h.Version})
			}
		})
		if len(heads) < page {
			return nil
		}
		after = heads[len(heads)-1].Stream
	}
}

func (p *partition) load(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-p.loads:
			f(ctx)
		}
	}
}

func (p *partition) steps(ctx context.Context) error {
	var spare incoming
	var out owner.Out
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.in.full:
		case <-timer.C:
		}
		spare.reset()
		in := p.in.take(spare)
		for _, d := range in.dones {
			p.dones[d.receipt] = d.call
		}
		for _, tenant := range in.unblock {
			p.agent.Unblock(tenant)
		}
		now := systemClock{}.Now()
		out.Reset()
		p.owner.Step(now, &in.In, &out)
		spare = in
		wake, err := p.act(ctx, &out, now)
		if err != nil {
			return err
		}
		if wake != 0 {
			timer.Reset(max(wake.Sub(systemClock{}.Now()), 0))
		}
	}
}

// act does what a step asks for.
func (p *partition) act(ctx context.Context, out *owner.Out, now events.Time) (wake events.Time, err error) {
	if out.Lane.Fenced {
		return 0, fmt.Errorf("partition %d: %w", p.id, errFenced)
	}
	if ws := out.Lane.Writes; len(ws) > 0 {
		p.writer.in.put(func(in *[]handle.Tagged) { *in = append(*in, ws...) })
	}
	for _, s := range out.Lane.Loads {
		p.later(ctx, func(ctx context.Context) { p.read(ctx, s) })
	}
	for _, w := range out.Lane.Refs {
		w.Refs = append([]aggregates.Ref(nil), w.Refs...)
		p.later(ctx, func(ctx context.Context) { p.resolve(ctx, w) })
	}
	for i := range out.Lane.Parked {
		parked := out.Lane.Parked[i]
		p.later(ctx, func(ctx context.Context) { p.park(ctx, parked) })
	}
	for _, r := range out.Receipts {
		if call := p.dones[r.Receipt]; call != nil {
			delete(p.dones, r.Receipt)
			call(r.Counts)
		}
	}
	granted := p.dispatch(ctx, now)
	for _, s := range out.Forgotten {
		p.ports.Attempts.Forget(s)
	}
	p.waiting.Store(int64(p.agent.Waiting()))
	p.hot.Store(int64(p.owner.Lane().Len()))
	p.flying.Store(int64(p.agent.InFlight()))
	wake = out.Wake
	for _, at := range [...]events.Time{granted, p.owner.Deadline()} {
		if at != 0 && (wake == 0 || at < wake) {
			wake = at
		}
	}
	return wake, nil
}

// dispatch does what the dispatcher has gathered: slots back, slots asked for, tasks sent. It returns when tasks that
// got no slot want the next step.
func (p *partition) dispatch(ctx context.Context, now events.Time) (wake events.Time) {
	d := p.agent.Out()
	if len(d.Frees) > 0 {
		p.warn("free slots", p.ports.Slots.Free(ctx, d.Frees))
		p.ports.Unblock(p.id, tenantsOf(d.Frees))
	}
	if len(d.Renews) > 0 {
		p.warn("renew slots", p.ports.Slots.Renew(ctx, d.Renews, dispatcher.SlotLasts))
	}
	for i := range d.Closed {
		p.ports.Attempts.Closed(d.Closed[i].Stream, d.Closed[i].Task, d.Closed[i].Attempt)
	}
	if len(d.Takes) > 0 {
		answers, err := p.ports.Slots.Take(ctx, d.Takes, dispatcher.SlotLasts)
		p.warn("take slots", err)
		wake = p.agent.Granted(answers, now)
	}
	if len(d.Sends) > 0 {
		for i := range d.Sends {
			p.ports.Attempts.Sent(d.Sends[i])
		}
		p.warn("send tasks", p.ports.Queue.Send(ctx, d.Sends)) // what is lost is sent again at its dispatch deadline
	}
	d.Reset()
	return wake
}

func tenantsOf(rs []kernel.SlotRequest) (ts []string) {
	for i := range rs {
		if len(ts) == 0 || ts[len(ts)-1] != rs[i].Tenant {
			ts = append(ts, rs[i].Tenant)
		}
	}
	return ts
}

func (p *partition) warn(act string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		p.ports.Logger.Warn(act, "partition", p.id, "error", err)
	}
}

// later runs f on a loader; when all are busy and the queue is full, on a goroutine of its own, so that a step never
// waits for a read.
func (p *partition) later(ctx context.Context, f func(context.Context)) {
	select {
	case p.loads <- f:
	default:
		p.extra.Go(func() { f(ctx) })
	}
}

// readRest is what is waited after a read that failed.
const readRest = 200 * time.Millisecond

// again runs f later, without holding a loader meanwhile: what cannot be read must not stand before what can.
func (p *partition) again(ctx context.Context, f func(context.Context)) {
	p.extra.Go(func() {
		if (sleeper{}).Wait(ctx, readRest) == nil {
			p.later(ctx, f)
		}
	})
}

// read loads a stream for the owner, however often it takes.
func (p *partition) read(ctx context.Context, s events.Stream) {
	l, err := p.ports.Handler.Load(ctx, s)
	if err == nil {
		p.handOver(l)
		return
	}
	p.warn("load "+string(s), err)
	p.again(ctx, func(ctx context.Context) { p.read(ctx, s) })
}

// resolve loads references for the owner, however often it takes.
func (p *partition) resolve(ctx context.Context, w handle.RefsWanted) {
	refs, err := p.ports.Refs.Load(ctx, w.Stream, w.Refs)
	if err == nil {
		p.in.put(func(in *incoming) {
			in.Resolved = append(in.Resolved, owner.Resolved{Stream: w.Stream, Refs: refs.(handle.Pinned)})
		})
		return
	}
	p.warn("load references of "+string(w.Stream), err)
	p.again(ctx, func(ctx context.Context) { p.resolve(ctx, w) })
}

func (p *partition) park(ctx context.Context, c handle.Parked) {
	p.ports.Logger.Error("a command is parked", "stream", c.Stream, "fault", c.Fault)
	if p.ports.Parking != nil {
		p.warn("park a command", p.ports.Parking.Park(ctx, c))
	}
}
