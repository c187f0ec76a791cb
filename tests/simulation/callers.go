package simulation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
)

// asked is one execution that somebody wants.
type asked struct {
	stream events.Stream
	def    *workflowDef
}

// call is one request of a caller on its way through handle.
type call struct {
	job     *handle.Job
	stream  events.Stream
	id      events.ID
	digest  events.Hash
	command commands.ExecutionCommand
	next    handle.Next
	at      events.Time // not before
	written bool        // its append is under way
	done    bool
	lost    bool // the caller has given up
	twin    bool // somebody else has asked the same under the same key
}

// ask begins a request: a new execution, an act on one, or the same request once more.
func (s *sim) ask() {
	switch {
	case len(s.execs) == 0 || len(s.execs) < s.opt.Executions && s.r.IntN(2) == 0:
		d := s.defs[s.r.IntN(len(s.defs))]
		n := len(s.execs)
		name := events.StreamOf(execution.Category, tenants[s.r.IntN(len(tenants))],
			events.Derive("simulation", fmt.Sprint(s.seed), fmt.Sprint(n)).String())
		s.execs = append(s.execs, &asked{name, d})
		s.stats.Executions++
		s.request(name, commands.SubmitExecution{
			Workflow: d.plan.Workflow, Version: 1, Definition: d.plan.Hash,
			Input: events.InlinePayload(fmt.Appendf(nil, `{"n":%d}`, s.r.IntN(20))),
		}, s.r.IntN(4) > 0)
	case s.r.IntN(6) == 0 && len(s.calls) > 0:
		s.again(s.calls[s.r.IntN(len(s.calls))])
	case s.r.IntN(3) == 0:
		x := s.execs[s.r.IntN(len(s.execs))]
		s.request(x.stream, s.actOn(x), s.r.IntN(3) == 0)
	}
}

func (s *sim) actOn(x *asked) commands.ExecutionCommand {
	switch k := s.r.IntN(20); {
	case k < 1:
		return commands.CancelExecution{}
	case k < 2:
		return commands.TerminateExecution{}
	case k < 7:
		return commands.PauseExecution{}
	case k < 13:
		return commands.ResumeExecution{}
	}
	c := commands.RetryTask{Task: x.def.plan.Tasks[s.r.IntN(len(x.def.plan.Tasks))].Name}
	if h := s.log.streams[x.stream]; h != nil { // one that can be retried, if there is any
		for t := range x.def.plan.Tasks {
			if h.state.TaskStatus(int32(t)) == execution.TaskDeadLettered {
				c.Task = x.def.plan.Tasks[t].Name
			}
		}
	}
	if s.r.IntN(2) == 0 {
		c.With = events.InlinePayload([]byte(`{"succeed":{"output":{"n":1}}}`))
	}
	return c
}

func (s *sim) request(name events.Stream, c commands.ExecutionCommand, keyed bool) *call {
	if err := c.Validate(); err != nil {
		s.bad("%T: %v", c, err)
	}
	q := &call{stream: name, command: c, id: s.dies.NewID()}
	if keyed {
		q.id = commands.KeyedID(name, fmt.Sprint("key ", len(s.calls)))
		q.digest = sha(q.id[:])
	}
	s.enter(q)
	return q
}

// again is a retry of a client that has its key, and at times the key for something else.
func (s *sim) again(first *call) {
	if first.digest == (events.Hash{}) {
		return
	}
	q := &call{stream: first.stream, command: first.command, id: first.id, digest: first.digest, twin: true}
	first.twin = true
	if s.r.IntN(5) == 0 {
		q.digest = sha(q.digest[:])
	}
	s.enter(q)
}

func (s *sim) enter(q *call) {
	m := commands.Meta{
		Command: q.id, Digest: q.digest, Tenant: q.stream.Tenant(), Actor: "caller", Reason: "because",
	}
	q.job = handle.NewJob(q.stream, q.command, m, aggs[0], s.codec, s.refs, s.now)
	q.next = handle.Next{Load: true}
	s.calls = append(s.calls, q)
}

// call lets one request go on.
func (s *sim) call() bool {
	if len(s.calls) == 0 {
		return false
	}
	at := s.r.IntN(len(s.calls))
	for i := range s.calls {
		q := s.calls[(at+i)%len(s.calls)]
		if !q.done && !q.written && q.at <= s.now {
			s.advance(q)
			return true
		}
	}
	return false
}

func (s *sim) advance(q *call) {
	switch n := q.next; {
	case n.Done:
		s.finish(q)
		return
	case n.Load:
		l, err := s.handler.Load(ctx, q.stream)
		s.must(err)
		q.next = q.job.Loaded(l, s.now, s.dies.Uint64())
	case n.Refs != nil:
		refs, err := s.refs.Load(ctx, q.stream, n.Refs)
		s.must(err)
		q.next = q.job.Resolved(refs, n.Refs, s.now, s.dies.Uint64())
	}
	if w := q.next.Write; w != nil {
		q.written = true
		s.writes = append(s.writes, &write{w: *w, call: q})
	}
}

// answered goes on with the store's verdict. The very same append goes out again while the outcome is unknown.
func (s *sim) answered(q *call, v events.Verdict) {
	if q.done {
		return
	}
	if v.Kind == events.Unknown && s.odd(10) {
		q.done, q.lost = true, true
		return
	}
	q.written = false
	q.next = q.job.Answer(v, s.now, s.dies.Uint64())
	q.at = s.now.Add(q.next.Wait)
	if w := q.next.Write; w != nil {
		q.written = true
		s.writes = append(s.writes, &write{w: *w, call: q})
	}
}

// finish holds the answer that a caller gets to the log.
func (s *sim) finish(q *call) {
	q.done = true
	out, err := q.job.Result()
	n := 0
	h := s.log.streams[q.stream]
	if h != nil {
		n = h.commands[q.id]
	}
	if err != nil {
		var refusal *commands.Error
		if !errors.As(err, &refusal) {
			s.bad("%T on %s failed: %v", q.command, q.stream, err)
		} else if n > 0 && !q.twin {
			s.bad("%T on %s was refused (%v), and has its commit", q.command, q.stream, err)
		}
		s.stats.Refused++
		return
	}
	s.stats.Acknowledged++
	switch {
	case !out.Nothing && n != 1:
		s.bad("%T on %s was acknowledged and has %d commits", q.command, q.stream, n)
	case !out.Nothing:
		s.effectOf(q, h, out)
	case n == 0 && h == nil:
		s.bad("%T on %s: it is already so, of nothing", q.command, q.stream)
	}
	if n > 0 && h.digestOf(q.id) != q.digest {
		s.bad("%T on %s was acknowledged for another's commit", q.command, q.stream)
	}
	if l, ok := q.job.Fresh(); ok && !(s.net && s.odd(15)) { // what is lost, the tail brings
		if s.net && s.odd(30) {
			s.cur.in.Touched = append(s.cur.in.Touched, owner.Touched{Stream: l.Stream, Version: l.Version})
		} else {
			s.cur.in.Loaded = append(s.cur.in.Loaded, l)
		}
		s.cur.pending = true
	}
}

// effectOf looks for what the command was for among the facts of its commit.
func (s *sim) effectOf(q *call, h *history, out handle.Outcome) {
	var want []events.Type
	switch q.command.(type) {
	case commands.SubmitExecution:
		want = []events.Type{events.ExecutionSubmitted{}.EventType()}
	case commands.CancelExecution, commands.TerminateExecution:
		want = []events.Type{events.ExecutionCancelled{}.EventType()}
	case commands.PauseExecution:
		want = []events.Type{events.ExecutionPaused{}.EventType()}
	case commands.ResumeExecution:
		want = []events.Type{events.ExecutionResumed{}.EventType()}
	case commands.RetryTask:
		want = []events.Type{events.TaskRetried{}.EventType()}
	}
	last := events.Version(0)
	found := 0
	for i := range h.facts {
		if h.facts[i].Command == q.id {
			last = h.facts[i].Version
			if slices.Contains(want, h.facts[i].Type) {
				found++
			}
		}
	}
	if found != 1 || last != out.Version {
		s.bad("%T on %s has its effect %d times, up to version %d; the answer says version %d",
			q.command, q.stream, found, last, out.Version)
	}
}

// unheard says that whoever has sent a command does not know what became of it, and has told nobody.
func (s *sim) unheard(id events.ID) bool {
	for _, q := range s.calls {
		if q.id == id && q.lost {
			return true
		}
	}
	return false
}

// digestOf is what the commit of a command says that its key stood for.
func (h *history) digestOf(id events.ID) events.Hash {
	for i := range h.facts {
		if h.facts[i].Command == id {
			return h.facts[i].Commit.KeyDigest
		}
	}
	return events.Hash{}
}
