package dispatcher

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// phase is how far an attempt has come on its way to a worker.
type phase uint8

const (
	pending phase = iota // waits for the window or a slot
	taking               // its slot is asked for
	queued               // in the queue, or started within the last second
	running              // known to have started
	closed               // no longer counts; its slot's answer is still to come
)

// flight is one attempt under way.
type flight struct {
	hot       *handle.Hot
	task      int32
	attempt   int32
	phase     phase
	held      bool   // TasksHeld was asked for
	reason    string // why it has no slot
	readyAt   events.Time
	sentAt    events.Time
	startedAt events.Time
	slotWait  time.Duration
	due       events.Time // resend, or timeout
	request   kernel.SlotRequest
	index     int // in flights
}

// inOrder returns the flights by task: map order decides nothing.
func (x *exec) inOrder() []*flight {
	if len(x.flights) == 0 {
		return nil
	}
	fs := make([]*flight, 0, len(x.flights))
	for _, f := range x.flights {
		fs = append(fs, f)
	}
	slices.SortFunc(fs, func(a, b *flight) int { return cmp.Compare(a.task, b.task) })
	return fs
}

// flights is a set that is walked in a fixed order.
type flights []*flight

func (fs *flights) add(f *flight) {
	f.index = len(*fs)
	*fs = append(*fs, f)
}

func (fs *flights) remove(f *flight) {
	last := len(*fs) - 1
	(*fs)[f.index] = (*fs)[last]
	(*fs)[f.index].index = f.index
	(*fs)[last] = nil
	*fs = (*fs)[:last]
}

func slotRequest(h *handle.Hot, t *dag.Task, f *flight) kernel.SlotRequest {
	return kernel.SlotRequest{
		Tenant: h.Stream.Tenant(), Type: t.Type,
		Member: kernel.SlotMember{Stream: h.Stream, Task: f.task, Attempt: f.attempt},
	}
}

func (d *Dispatcher) closeTask(x *exec, t int32) {
	if f := x.flights[t]; f != nil {
		d.close(x, f)
	}
}

// close takes an attempt out of flight: its slot is freed, and whoever works on it may stop.
func (d *Dispatcher) close(x *exec, f *flight) {
	delete(x.flights, f.task)
	switch f.phase {
	case pending:
		d.lines.waiting--
	case taking:
		d.queued--
	case queued, running:
		if f.phase == queued {
			d.queued--
		}
		d.sent.remove(f)
		d.out.Frees = append(d.out.Frees, f.request)
		d.out.Closed = append(d.out.Closed, workflow.Item{
			Stream: f.hot.Stream, Partition: d.cfg.Partition, Task: f.task, Attempt: f.attempt,
		})
		d.lines.unblock(f.request.Tenant)
	}
	f.phase = closed
}

// Flush moves what may go from the lines to the slots, and renews the slots that are held.
func (d *Dispatcher) Flush(now events.Time) (wake events.Time) {
	var unread []*flight
	for d.queued < windowMax {
		f := d.lines.pop(now)
		if f == nil {
			break
		}
		if !f.hot.Usable() { // nothing can be said of its task until it is read again; that brings the next step
			unread = append(unread, f)
			continue
		}
		f.phase = taking
		f.request = slotRequest(f.hot, &f.hot.Data.(*exec).plan.Tasks[f.task], f)
		d.queued++
		d.taking = append(d.taking, f)
		d.out.Takes = append(d.out.Takes, f.request)
	}
	for _, f := range slices.Backward(unread) {
		d.lines.back(f, lineOf(f))
	}
	if len(d.sent) == 0 {
		return d.lines.blockedUntil(now)
	}
	if d.renew == 0 {
		d.renew = now.Add(slotRenew)
	}
	if d.renew <= now {
		d.renew = now.Add(slotRenew)
		for _, f := range d.sent {
			d.out.Renews = append(d.out.Renews, f.request)
		}
	}
	if at := d.lines.blockedUntil(now); at != 0 && at < d.renew {
		return at
	}
	return d.renew
}

// Granted gives the dispatcher the answers to its Takes, in their order; fewer than were asked for, none at all
// included, means that the rest could not be asked and waits. It is called between two steps, and returns when those
// that were refused want the next one; 0 for no matter when.
func (d *Dispatcher) Granted(answers []kernel.SlotAnswer, now events.Time) (wake events.Time) {
	answer := func(i int) kernel.SlotAnswer {
		if i < len(answers) {
			return answers[i]
		}
		return kernel.SlotAnswer{Reason: "slot_store"}
	}
	for i, f := range d.taking {
		switch granted := answer(i).Granted; {
		case f.phase == closed && granted:
			d.out.Frees = append(d.out.Frees, f.request)
		case f.phase != closed && granted:
			d.send(f, now)
		}
	}
	for i, f := range slices.Backward(d.taking) { // each goes back to the front: the first of them last
		if a := answer(i); f.phase != closed && !a.Granted {
			d.refused(f, a.Reason, now)
		}
	}
	clear(d.taking)
	d.taking = d.taking[:0]
	return d.lines.blockedUntil(now)
}

func (d *Dispatcher) send(f *flight, now events.Time) {
	f.phase, f.sentAt = queued, now
	if f.reason != "" {
		f.slotWait = now.Sub(f.readyAt)
	}
	f.due = roundUp(now.Add(resendAfter))
	d.sent.add(f)
	d.owner.Arm(f.hot, f.due)
	d.out.Sends = append(d.out.Sends, d.item(f.hot, f.hot.Data.(*exec), f))
}

func (d *Dispatcher) refused(f *flight, reason string, now events.Time) {
	d.queued--
	f.phase = pending
	if f.reason == "" {
		d.owner.Arm(f.hot, f.readyAt.Add(heldAfter))
	}
	f.reason = reason
	d.lines.refuse(f, lineOf(f), now.Add(slotRetry))
}

func lineOf(f *flight) lineKey {
	return lineKey{f.hot.Stream.Tenant(), f.hot.Data.(*exec).plan.Tasks[f.task].Type}
}

// Unblock says that a slot of a tenant was freed elsewhere in this process.
func (d *Dispatcher) Unblock(tenant string) { d.lines.unblock(tenant) }

// item is what the queue carries: ids only.
func (d *Dispatcher) item(h *handle.Hot, x *exec, f *flight) workflow.Item {
	t, s := &x.plan.Tasks[f.task], state(h)
	it := workflow.Item{
		Stream: h.Stream, Partition: d.cfg.Partition, Task: f.task, Attempt: f.attempt, Type: t.Type,
		Class:      s.TaskClass(x.plan, f.task),
		Definition: x.plan.Hash, With: s.WithVersion(f.task), SentAt: f.sentAt, SlotWait: f.slotWait,
		Correlation: h.Correlation,
	}
	if n := len(t.WithRefs); n > 0 && it.With == 0 {
		it.Outputs = make([]events.Version, n)
		for i, r := range t.WithRefs {
			it.Outputs[i] = s.OutputVersion(r)
		}
	}
	return it
}
