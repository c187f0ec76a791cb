package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/dispatcher"
	"github.com/sluice-platform/sluice/processors/workflow/live"
)

// proc is a process that owns the partition, or believes that it does.
type proc struct {
	s        *sim
	life     int
	fence    events.Fence
	owner    *owner.Owner
	agent    *dispatcher.Dispatcher
	refs     *handle.Refs
	attempts *live.Attempts
	in       owner.In
	out      owner.Out
	wake     events.Time
	pending  bool // something has come in
	loads    []events.Stream
	wants    []handle.RefsWanted
	receipts map[uint64]*report
	ended    bool // fenced, or killed
}

// write is an append on its way to the store, of a process or of a call.
type write struct {
	w    handle.Write
	tag  uint64
	proc *proc
	call *call
}

// start has a new process take the partition over, as the platform does.
func (s *sim) start() {
	s.now = s.now.Add(2 * time.Millisecond)
	s.lives++
	tenure, err := s.store.Acquire(ctx, 0, fmt.Sprintf("life-%d", s.lives), time.Millisecond)
	if err != nil {
		s.bad("acquire: %v", err)
		return
	}
	s.log.fence = tenure.Fence
	p := &proc{s: s, life: s.lives, fence: tenure.Fence, receipts: map[uint64]*report{}}
	p.refs = handle.NewRefs(s.store, s.codec, s.blobs, compile)
	own := newDice(s.dies.Uint64(), uint64(p.life))
	cfg := handle.LaneConfig{
		Fence: p.fence, Aggregates: aggs, Codec: s.codec, Cache: p.refs, IDs: own, Rand: own, Actor: "owner",
	}
	if s.opt.Bug == WrongDice {
		cfg.Rand = wrongDice{}
	}
	p.owner = owner.New(handle.NewLane(cfg))
	p.agent = dispatcher.New(dispatcher.Config{
		Cache: p.refs, Gone: func(w string) bool { return s.gone[w] },
	}, p.owner)
	p.attempts = live.New(clock{s}, s.counts)
	heads, err := s.store.OpenHeads(ctx, 0, "", 1000)
	s.must(err)
	for _, h := range heads {
		p.in.Touched = append(p.in.Touched, owner.Touched{Stream: h.Stream, Version: h.Version})
	}
	p.pending = true
	s.cur = p
}

// takeOver ends the owner's tenure: its process dies, or goes on without knowing.
func (s *sim) takeOver() {
	s.stats.Takeovers++
	if s.r.IntN(2) == 0 && len(s.zombies) < 2 {
		s.zombies = append(s.zombies, s.cur)
	} else {
		s.kill(s.cur)
	}
	s.start()
}

// kill ends a process with its workers and all that it held in memory. What it has sent may arrive yet.
func (s *sim) kill(p *proc) {
	p.ended = true
	s.zombies = slices.DeleteFunc(s.zombies, func(z *proc) bool { return z == p })
	s.works = slices.DeleteFunc(s.works, func(w *work) bool {
		if w.proc == p {
			s.gone[w.cfg.Name] = true
		}
		return w.proc == p
	})
	s.reports = slices.DeleteFunc(s.reports, func(r *report) bool { return r.work.proc == p })
	if s.r.IntN(2) == 0 {
		s.queue = nil
	}
	for _, c := range s.calls { // the callers that were connected to it hear no answer
		if !c.done && s.odd(50) {
			c.done, c.lost = true, true
		}
	}
}

// stepOwner steps the owner, or one that was.
func (s *sim) stepOwner() bool {
	p := s.cur
	if len(s.zombies) > 0 && s.r.IntN(4) == 0 {
		p = s.zombies[s.r.IntN(len(s.zombies))]
	}
	if !p.pending && (p.wake == 0 || p.wake > s.now) {
		return false
	}
	p.step()
	return true
}

func (p *proc) step() {
	s, in := p.s, p.in
	p.in, p.pending = owner.In{}, false
	if len(in.Machines) > 1 && s.odd(50) { // some wait for a later step
		k := 1 + s.r.IntN(len(in.Machines))
		p.in.Machines, in.Machines = in.Machines[k:len(in.Machines):len(in.Machines)], in.Machines[:k:k]
		p.pending = len(p.in.Machines) > 0
	}
	p.out.Reset()
	p.owner.Step(s.now, &in, &p.out)
	if p.out.Lane.Fenced {
		s.stats.Fenced++
		if p == s.cur {
			s.bad("the owner with the highest token was fenced")
		}
		s.kill(p)
		return
	}
	p.act()
	if s.opt.Bug == SettleEarly {
		for i := range in.Machines {
			s.settledOf(p, owner.Receipt{Receipt: in.Machines[i].Machine.Receipt, Counts: true})
		}
	}
	p.compare()
}

// act does what a step asks for, in the platform's order.
func (p *proc) act() {
	s, out := p.s, &p.out
	for _, t := range out.Lane.Writes {
		s.writes = append(s.writes, &write{w: t.Write, tag: t.Tag, proc: p})
	}
	p.loads = append(p.loads, out.Lane.Loads...)
	for _, w := range out.Lane.Refs {
		w.Refs = slices.Clone(w.Refs)
		p.wants = append(p.wants, w)
	}
	for i := range out.Lane.Parked {
		s.bad("%T for %s is parked: %s", out.Lane.Parked[i].Command, out.Lane.Parked[i].Stream, out.Lane.Parked[i].Fault)
	}
	for _, r := range out.Receipts {
		s.settledOf(p, r)
	}
	wake := p.dispatch()
	for _, name := range out.Forgotten {
		p.attempts.Forget(name)
	}
	p.wake = out.Wake
	for _, at := range []events.Time{wake, p.owner.Deadline()} {
		if at != 0 && (p.wake == 0 || at < p.wake) {
			p.wake = at
		}
	}
}

func (p *proc) dispatch() (wake events.Time) {
	s, d := p.s, p.agent.Out()
	s.must(s.slots.Free(ctx, d.Frees))
	s.must(s.slots.Renew(ctx, d.Renews, dispatcher.SlotLasts))
	for i := range d.Closed {
		p.attempts.Closed(d.Closed[i].Stream, d.Closed[i].Task, d.Closed[i].Attempt)
	}
	if len(d.Takes) > 0 {
		var answers []kernel.SlotAnswer
		if !s.odd(5) {
			var err error
			answers, err = s.slots.Take(ctx, d.Takes, dispatcher.SlotLasts)
			s.must(err)
		}
		wake = p.agent.Granted(answers, s.now)
	}
	for i := range d.Sends {
		p.attempts.Sent(d.Sends[i])
		s.sent(p, &d.Sends[i])
		if !s.odd(5) {
			s.queue = append(s.queue, d.Sends[i])
		}
	}
	d.Reset()
	return wake
}

// sent holds what leaves to the log: nothing leaves on the word of an event that is not stored.
func (s *sim) sent(p *proc, it *workflow.Item) {
	h := s.log.streams[it.Stream]
	switch {
	case h == nil || !h.ready[it.Task]:
		s.bad("%s task %d was sent, and the log does not say that it is ready", it.Stream, it.Task)
	case h.settled[it.Task] != 0:
		if p == s.cur && p.knows(h) {
			s.bad("%s task %d was sent, and is settled", it.Stream, it.Task)
		}
	case it.Attempt > h.state.Attempt(it.Task):
		s.bad("%s task %d was sent for attempt %d, the log is at %d",
			it.Stream, it.Task, it.Attempt, h.state.Attempt(it.Task))
	case it.Attempt == h.state.Attempt(it.Task) && it.SentAt < h.state.RetryAt(it.Task):
		s.bad("%s task %d was sent at %s, before its retry at %s", it.Stream, it.Task, it.SentAt, h.state.RetryAt(it.Task))
	}
}

// knows says that the process has the execution as the log has it.
func (p *proc) knows(h *history) bool {
	hot := p.owner.Lane().Hot(h.stream)
	return hot != nil && hot.Usable() && !hot.InFlight() && hot.Version == h.version
}

// compare holds the hot states of the executions to the fold of their events.
func (p *proc) compare() {
	for _, name := range p.s.log.order {
		h := p.s.log.streams[name]
		if !p.knows(h) {
			continue
		}
		hot := p.owner.Lane().Hot(name)
		if have := hot.State.(interface{ Encode([]byte) []byte }).Encode(nil); !bytes.Equal(have, h.state.Encode(nil)) {
			p.s.bad("the state of %s at version %d is not the fold of its events", name, h.version)
		}
		if hot.Hash != h.hash {
			p.s.bad("the hash of %s at version %d is not the log's", name, h.version)
		}
	}
}

// load brings a process what it has asked to be read.
func (s *sim) load() bool {
	p := s.cur
	if len(s.zombies) > 0 && s.r.IntN(4) == 0 {
		p = s.zombies[s.r.IntN(len(s.zombies))]
	}
	switch {
	case len(p.loads) > 0:
		i := s.r.IntN(len(p.loads))
		name := p.loads[i]
		p.loads = slices.Delete(p.loads, i, i+1)
		l, err := s.handler.Load(ctx, name)
		s.must(err)
		if s.opt.Bug == StaleCache {
			l = s.stale(l)
		}
		p.in.Loaded = append(p.in.Loaded, l)
	case len(p.wants) > 0:
		w := p.wants[0]
		p.wants = p.wants[1:]
		refs, err := p.refs.Load(ctx, w.Stream, w.Refs)
		if err != nil {
			s.bad("references of %s: %v", w.Stream, err)
			return true
		}
		p.in.Resolved = append(p.in.Resolved, owner.Resolved{Stream: w.Stream, Refs: refs.(handle.Pinned)})
	default:
		return false
	}
	p.pending = true
	return true
}

// stale is the planted bug: the state of some commits ago under the version and hash of now.
func (s *sim) stale(l handle.Loaded) handle.Loaded {
	commits, err := s.store.Commits(ctx, l.Stream, 0, 1000)
	s.must(err)
	if len(commits) < 3 {
		return l
	}
	state := aggs[0].Initial()
	for i := range commits[:len(commits)-1] {
		recorded, err := events.Decode(&commits[i], s.codec)
		s.must(err)
		for j := range recorded {
			state = aggs[0].Evolve(state, recorded[j].Event, recorded[j].Version)
		}
	}
	l.State = state
	return l
}

// deliverWrites brings some of the appends to the store: of each, and of all together, anything may be lost.
func (s *sim) deliverWrites() bool {
	if len(s.writes) == 0 {
		return false
	}
	n := 1 + s.r.IntN(len(s.writes))
	batch := slices.Clone(s.writes[:n])
	s.writes = slices.Delete(s.writes, 0, n)
	torn := s.odd(4) // the group's sync failed
	for _, w := range batch {
		switch {
		case torn && s.r.IntN(2) == 0 || s.odd(4):
			s.answer(w, events.Verdict{}) // the request was lost
		case torn || s.odd(4):
			s.append(w)
			s.answer(w, events.Verdict{}) // the reply was lost
		case s.odd(4):
			s.ghosts = append(s.ghosts, w)
			s.stats.Ghosts++
			s.answer(w, events.Verdict{})
		default:
			s.answer(w, s.append(w))
		}
	}
	return true
}

func (s *sim) landGhost() bool {
	if len(s.ghosts) == 0 || s.faults && s.r.IntN(4) > 0 {
		return false
	}
	i := s.r.IntN(len(s.ghosts))
	w := s.ghosts[i]
	s.ghosts = slices.Delete(s.ghosts, i, i+1)
	s.append(w)
	return true
}

// append puts a write into the store and looks at what came of it.
func (s *sim) append(w *write) events.Verdict {
	for _, b := range w.w.Blobs {
		_, err := s.blobs.Put(ctx, b.Tenant, b.Data)
		s.must(err)
	}
	a := w.w.Append
	if s.opt.Bug == ForgetFence && a.Fence != 0 {
		forgotten := *a
		forgotten.Fence = 0
		a = &forgotten
	}
	var out [1]events.Verdict
	s.must(s.store.Append(ctx, 0, []*events.Append{a}, out[:]))
	switch out[0].Kind {
	case events.Appended:
		if w.proc != nil && w.w.Append.Fence < s.log.fence {
			s.bad("a deposed owner has written %s", a.Stream)
		}
		if a.Head.Snapshot != nil {
			s.stats.Snapshots++
		}
	case events.Conflict:
		s.stats.Conflicts++
	case events.Duplicate:
		s.stats.Duplicates++
	}
	s.observe()
	return out[0]
}

// answer tells whoever waits for a write.
func (s *sim) answer(w *write, v events.Verdict) {
	if v.Kind == events.Unknown {
		s.stats.Unknown++
	}
	if w.call != nil {
		s.answered(w.call, v)
		return
	}
	if !w.proc.ended {
		w.proc.in.Answers = append(w.proc.in.Answers, owner.Answer{Tag: w.tag, Verdict: v})
		w.proc.pending = true
	}
}

// settledOf is a receipt: who reported may forget.
func (s *sim) settledOf(p *proc, rc owner.Receipt) {
	rep := p.receipts[rc.Receipt]
	if rep == nil {
		return
	}
	delete(p.receipts, rc.Receipt)
	s.stats.Settled++
	switch c := rep.command.(type) {
	case commands.StartTask:
		s.reply(rep, rc.Counts)
	case commands.RecordResult:
		if n, err := s.decides(rep.stream, c); n > 0 || err != nil {
			s.bad("the result of %s task %d attempt %d was settled by token %d of %d, and would "+
				"still bring about %d events (%v); the log has %+v", rep.stream, c.Task, c.Attempt, p.fence, s.log.fence, n, err,
				s.log.streams[rep.stream].state.Task(c.Task))
		}
	}
}

// decides is how many events a command would add to what the log holds now.
func (s *sim) decides(name events.Stream, c commands.ExecutionCommand) (int, error) {
	h := s.log.streams[name]
	if h == nil {
		return 0, nil
	}
	m := commands.Meta{At: s.now, Version: h.version, Tenant: name.Tenant()}
	pinned, err := s.refs.Load(ctx, name, []aggregates.Ref{{Kind: aggregates.RefPlan, Hash: h.plan.Hash}})
	if err != nil {
		return 0, err
	}
	es, err := handle.Decide(aggs[0], h.state, c, m, pinned)
	var ahead *aggregates.Ahead
	if errors.As(err, &ahead) {
		return 0, fmt.Errorf("the log is behind: %w", err)
	}
	return len(es), err
}

// look is the net below all hints: the owner reads the tail for what others have appended. Without it, it hears only of
// what nobody else can have told.
func (s *sim) look() bool {
	page, err := s.store.Tail(ctx, 0, s.tailed, 50)
	s.must(err)
	if len(page) == 0 || s.faults && s.r.IntN(8) > 0 {
		return false
	}
	for i := range page {
		s.tailed = page[i].Position
		if page[i].Fence == 0 && (s.net || s.unheard(page[i].Command)) {
			s.cur.in.Touched = append(s.cur.in.Touched, owner.Touched{Stream: page[i].Stream, Version: page[i].Last()})
			s.cur.pending = true
		}
	}
	return true
}
