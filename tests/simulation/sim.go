package simulation

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/schemas"
)

// aggs are all that live in the log of a run.
var aggs = []aggregates.Aggregate{execution.Decider.Untyped()}

// tenants share the log, and nothing else.
var tenants = []string{"acme", "bolt"}

// sim is one run. Everything that happens is an act of its loop; what is under way stands in its lists.
type sim struct {
	opt    Options
	seed   uint64
	r      dice // decides what happens
	now    events.Time
	faults bool
	err    error
	stats  Stats

	store   *memory.Store
	blobs   *memory.Blobs
	codec   events.Codec
	slots   *memory.Slots
	handler *handle.Handler // loads
	refs    *handle.Refs    // of callers
	defs    []*workflowDef
	log     *ledger

	cur     *proc
	zombies []*proc
	gone    map[string]bool // workers that have surely ended
	lives   int             // processes so far
	names   int             // workers so far
	dies    dice            // seeds of the processes' own sources

	writes  []*write // on their way to the store
	ghosts  []*write // lost on their way, and may land yet
	queue   []workflow.Item
	works   []*work
	reports []*report
	calls   []*call
	execs   []*asked
	views   []*view
	mviews  *memory.Views
	tailed  events.Position // the live owner's net: how far it has looked for what hints have lost
	receipt uint64
	pace    int  // µs that a step takes at most
	net     bool // hints may be lost: the owner tails the log
	effects map[effect]string
}

// clock is the port over the run's time.
type clock struct{ s *sim }

func (c clock) Now() events.Time { return c.s.now }

var ctx = context.Background()

var codec = func() events.Codec {
	c, err := avro.New(events.Registered(), schemas.Avro())
	if err != nil {
		panic(err)
	}
	return c
}()

// Run makes the run of a seed. The error says what did not hold, and at which step.
func Run(seed uint64, opt Options) (st Stats, err error) {
	if opt.Steps == 0 {
		opt.Steps = 300 + int(newDice(seed, 79).Uint64()%2000)
	}
	s := &sim{opt: opt, seed: seed}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("seed %d, step %d: panic: %v\n%s", seed, s.stats.Steps, p, debug.Stack())
		}
		st = s.stats
	}()
	s.begin()
	s.play()
	s.settle()
	s.audit()
	s.stats.Trace = s.log.trace.Sum64()
	return s.stats, s.err
}

// bad keeps the first thing that did not hold.
func (s *sim) bad(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("seed %d, step %d: "+format, append([]any{s.seed, s.stats.Steps}, args...)...)
	}
}

func (s *sim) must(err error) {
	if err != nil {
		s.bad("%v", err)
	}
}

func (s *sim) begin() {
	s.r, s.dies = newDice(s.seed, 77), newDice(s.seed, 78)
	s.now, s.faults = events.TimeOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), true
	s.codec, s.blobs = codec, memory.NewBlobs()
	s.store = memory.NewStore(memory.StoreOptions{Clock: clock{s}.Now, Partitions: 1, ID: s.dies.NewID()})
	s.pace = []int{500, 20_000, 200_000}[s.r.IntN(3)]
	s.net = s.r.IntN(2) == 0
	limit := 1 + s.r.IntN(12)
	if s.r.IntN(3) == 0 {
		limit = 1000
	}
	perType := s.r.IntN(4)
	s.slots = memory.NewSlots(clock{s}, func(_, _ string) (int, int) { return limit, perType })
	s.refs = handle.NewRefs(s.store, s.codec, s.blobs, compile)
	s.handler = handle.New(handle.Config{
		Log: s.store, Codec: s.codec, Blobs: s.blobs, Refs: s.refs, Aggregates: aggs, Partitions: 1, Clock: clock{s},
		Rand: s.dies,
	})
	s.log = newLedger(s.codec, &s.stats)
	s.gone, s.effects = map[string]bool{}, map[effect]string{}
	for range 1 + s.r.IntN(4) {
		d, err := definitionOf(s.r.IntN(poolSize))
		if err != nil {
			s.bad("%v", err)
			return
		}
		s.defs = append(s.defs, d)
		s.log.refs[d.plan.Hash] = d.plan
		for _, t := range tenants {
			_, err := s.blobs.Put(ctx, t, d.content)
			s.must(err)
		}
	}
	if s.opt.Executions == 0 {
		s.opt.Executions = 1 + s.r.IntN(10)
	}
	s.beginViews()
	s.start()
}

// odd says yes in pct of a hundred cases, while faults last.
func (s *sim) odd(pct int) bool { return s.faults && s.r.IntN(100) < pct }

// play lets things happen while everything may fail.
func (s *sim) play() {
	for s.stats.Steps < s.opt.Steps && s.err == nil {
		s.stats.Steps++
		s.now = s.now.Add(time.Duration(s.r.IntN(s.pace)) * time.Microsecond)
		switch k := s.r.IntN(1000); {
		case k < 6:
			s.takeOver()
		case k < 8:
			s.now = s.now.Add(time.Duration(s.r.IntN(120)) * time.Second) // a clock jumps, or nothing happens for long
		case k < 10:
			s.queue = nil
		case k < 12:
			s.slots = memory.NewSlots(clock{s}, func(_, _ string) (int, int) { return 4, 2 })
		case k < 110:
			s.ask()
		default:
			s.act()
		}
	}
}

// act does one of the things that may happen now, and says whether there was one.
func (s *sim) act() bool {
	acts := [...]func() bool{
		s.stepOwner, s.stepOwner, s.deliverWrites, s.deliverWrites, s.landGhost, s.load, s.deliverItem, s.deliverItem,
		s.work, s.work, s.deliverReport, s.deliverReport, s.call, s.call, s.feed, s.look,
	}
	at := s.r.IntN(len(acts))
	for i := range acts {
		if acts[(at+i)%len(acts)]() {
			return true
		}
	}
	return s.wait()
}

// wait lets time pass until something is due.
func (s *sim) wait() bool {
	next := events.Time(0)
	at := func(t events.Time) {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	at(s.cur.wake)
	for _, p := range s.zombies {
		at(p.wake)
	}
	for _, w := range s.works {
		at(w.wake())
	}
	for _, c := range s.calls {
		if !c.done && !c.written {
			at(c.at)
		}
	}
	if next == 0 {
		return false
	}
	s.now = max(s.now, next)
	return true
}

// observe has the ledger look at what was just appended.
func (s *sim) observe() {
	for {
		page, err := s.store.Tail(ctx, 0, s.log.seen, 1000)
		s.must(err)
		for i := range page {
			if err := s.log.commit(&page[i]); err != nil {
				s.bad("%v", err)
				return
			}
		}
		if len(page) == 0 || s.err != nil {
			return
		}
	}
}

// verify runs the product's own audit.
func (s *sim) verify() {
	report, err := handle.Verify(ctx, handle.Audit{
		Log: s.store, Codec: s.codec, Aggregates: aggs, Blobs: s.blobs,
		Public: func(events.Hash) (ed25519.PublicKey, bool) { return nil, false },
	})
	s.must(err)
	if !report.OK() {
		s.bad("the audit finds %+v", report.Findings[0])
	}
}

var _ commands.Clock = clock{}
