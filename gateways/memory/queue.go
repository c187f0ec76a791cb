package memory

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// QueueDepthMax is how many items of one class wait or are delivered at most, unless NewQueue is told otherwise:
// about 30 MB. Owners keep at most 1,000 tasks of an execution in the queue, so a full one is a sign of no workers.
const QueueDepthMax = 100_000

// RejectedKeptMax is how many rejected items of a class are kept to be looked at; the oldest are forgotten first.
const RejectedKeptMax = 1_000

// Queue carries items within one process. It forgets them all when the process ends, as a queue may.
type Queue struct {
	clock    commands.Clock
	depthMax int
	classes  map[string]*queueClass
	inOrder  []*queueClass
}

// NewQueue makes an empty queue of workflow.Classes. depthMax bounds each class; 0 means QueueDepthMax.
func NewQueue(clock commands.Clock, depthMax int) *Queue {
	if depthMax <= 0 {
		depthMax = QueueDepthMax
	}
	q := &Queue{clock: clock, depthMax: depthMax, classes: map[string]*queueClass{}}
	for _, name := range workflow.Classes {
		c := &queueClass{clock: clock, types: map[string]*typeQueue{}, held: map[uint64]*queued{}}
		q.classes[name] = c
		q.inOrder = append(q.inOrder, c)
	}
	return q
}

func (q *Queue) class(name string) (*queueClass, error) {
	if c := q.classes[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %.40q", workflow.ErrNoClass, name)
}

// Send puts all items into the queues of their classes, or none: ErrQueueFull, ErrNoClass. Nothing waits.
func (q *Queue) Send(_ context.Context, items []workflow.Item) error {
	one := len(items) > 0
	for i := range items {
		if _, err := q.class(items[i].Class); err != nil {
			return err
		}
		one = one && items[i].Class == items[0].Class
	}
	if one { // nearly always: an execution has one class
		c := q.classes[items[0].Class]
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.put(items, items[0].Class, q.depthMax)
	}
	return q.sendMixed(items)
}

// sendMixed locks the classes in their one order, so that the items go in all or none.
func (q *Queue) sendMixed(items []workflow.Item) error {
	more := map[*queueClass]int{}
	for i := range items {
		more[q.classes[items[i].Class]]++
	}
	for _, c := range q.inOrder {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.size()+more[c] > q.depthMax {
			return fullError(c.size(), q.depthMax)
		}
	}
	for i := range items {
		if err := q.classes[items[i].Class].put(items[i:i+1], items[i].Class, q.depthMax); err != nil {
			return err
		}
	}
	return nil
}

func fullError(size, limit int) error {
	return fmt.Errorf("%w: it holds %d items, at most %d", workflow.ErrQueueFull, size, limit)
}

// Receive locks up to max items in the order they were sent. One waiting receiver wakes for what is put; it wakes the
// next when it leaves something behind.
func (q *Queue) Receive(
	ctx context.Context, class string, types []string, limit int, lock time.Duration,
) ([]workflow.Delivery, error) {
	c, err := q.class(class)
	if err != nil {
		return nil, err
	}
	for {
		c.mu.Lock()
		now := q.clock.Now()
		c.expire(now)
		if ds := c.take(types, max(limit, 1), now.Add(lock)); len(ds) > 0 {
			c.arm(now)
			c.wakeForAll()
			c.mu.Unlock()
			return ds, nil
		}
		if ctx.Err() != nil {
			c.mu.Unlock()
			return nil, ctx.Err()
		}
		w := &queueWaiter{types: types, ready: make(chan struct{})}
		c.waiters = append(c.waiters, w)
		c.arm(now)
		c.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			c.leave(w)
		}
	}
}

// Settle ends deliveries. Whatever lock has ended already is passed over.
func (q *Queue) Settle(_ context.Context, ss []workflow.Settlement) error {
	for _, s := range ss {
		c, err := q.class(s.Class)
		if err != nil {
			return err
		}
		c.settle(s, q.clock.Now())
	}
	return nil
}

// Renew sets the lock to end after the given time from now; ErrLockLost when it has ended.
func (q *Queue) Renew(_ context.Context, d workflow.Delivery, lock time.Duration) error {
	c, err := q.class(d.Class)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := q.clock.Now()
	c.expire(now)
	e := c.heldBy(d.Receipt)
	if e == nil {
		return workflow.ErrLockLost
	}
	e.until = now.Add(lock)
	heap.Fix(&c.locks, e.at)
	c.arm(now)
	return nil
}

// Stats describes a class.
func (q *Queue) Stats(_ context.Context, class string) (workflow.QueueStats, error) {
	c, err := q.class(class)
	if err != nil {
		return workflow.QueueStats{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(q.clock.Now())
	s := workflow.QueueStats{Depth: c.waiting, Delivered: len(c.held), Rejected: c.rejected}
	if t := c.oldest(c.inOrder); t != nil {
		s.Oldest = t.first().item.SentAt
	}
	return s, nil
}

// Rejected lists the items of a class that were rejected, oldest first, the last RejectedKeptMax of them.
func (q *Queue) Rejected(class string) []workflow.Item {
	c, err := q.class(class)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kept)
}

// queueClass is one class: what waits, by type, and what is locked.
type queueClass struct {
	clock commands.Clock
	mu    sync.Mutex

	types   map[string]*typeQueue
	inOrder []*typeQueue
	waiting int
	sent    uint64 // items so far: the order of an item

	held     map[uint64]*queued // by the number of the delivery, which is its receipt
	locks    lockHeap
	receipts uint64
	rejected int
	kept     []workflow.Item

	waiters []*queueWaiter
	timer   *time.Timer
	armed   events.Time // when timer fires; 0: not running
	spare   []*queued
}

// queued is one item. It is used again for another once it is settled.
type queued struct {
	item    workflow.Item
	of      *typeQueue
	order   uint64
	receipt uint64
	until   events.Time
	at      int // in locks
}

type queueWaiter struct {
	types []string
	ready chan struct{} // closed when there may be something
}

func (w *queueWaiter) wants(t string) bool { return len(w.types) == 0 || slices.Contains(w.types, t) }

func (c *queueClass) size() int { return c.waiting + len(c.held) }

func (c *queueClass) put(items []workflow.Item, class string, depthMax int) error {
	if c.size()+len(items) > depthMax {
		return fmt.Errorf("class %s: %w", class, fullError(c.size(), depthMax))
	}
	last := ""
	for i := range items {
		e := c.entry()
		e.item = items[i]
		e.of = c.typeOf(items[i].Type)
		c.sent++
		e.order = c.sent
		e.of.fresh.push(e)
		c.waiting++
		if i == 0 || items[i].Type != last {
			last = items[i].Type
			c.wakeFor(last)
		}
	}
	return nil
}

func (c *queueClass) entry() *queued {
	if n := len(c.spare); n > 0 {
		e := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return e
	}
	return &queued{}
}

// spareMax bounds the entries kept for use again.
const spareMax = 4_096

func (c *queueClass) drop(e *queued) {
	*e = queued{}
	if len(c.spare) < spareMax {
		c.spare = append(c.spare, e)
	}
}

func (c *queueClass) typeOf(name string) *typeQueue {
	t := c.types[name]
	if t == nil {
		t = &typeQueue{name: name}
		c.types[name] = t
		c.inOrder = append(c.inOrder, t)
	}
	return t
}

// oldest returns the one of ts whose first item was sent first, nil when all are empty.
func (c *queueClass) oldest(ts []*typeQueue) (best *typeQueue) {
	for _, t := range ts {
		if e := t.first(); e != nil && (best == nil || e.order < best.first().order) {
			best = t
		}
	}
	return best
}

func (c *queueClass) take(types []string, limit int, until events.Time) []workflow.Delivery {
	limit = min(limit, c.waiting)
	if limit <= 0 {
		return nil
	}
	var few [8]*typeQueue
	from := c.inOrder
	if len(types) > 0 {
		from = few[:0]
		for _, name := range types {
			if t := c.types[name]; t != nil {
				from = append(from, t)
			}
		}
	}
	var ds []workflow.Delivery
	for len(ds) < limit {
		t := c.oldest(from)
		if t == nil {
			break
		}
		if ds == nil {
			ds = make([]workflow.Delivery, 0, limit)
		}
		e := t.pop()
		c.waiting--
		c.receipts++
		e.receipt, e.until = c.receipts, until
		c.held[e.receipt] = e
		heap.Push(&c.locks, e)
		ds = append(ds, workflow.Delivery{Item: e.item, Receipt: strconv.FormatUint(e.receipt, 36), Until: until})
	}
	return ds
}

func (c *queueClass) heldBy(receipt string) *queued {
	n, err := strconv.ParseUint(receipt, 36, 64)
	if err != nil {
		return nil
	}
	return c.held[n]
}

func (c *queueClass) settle(s workflow.Settlement, now events.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	e := c.heldBy(s.Receipt)
	if e == nil {
		return
	}
	switch s.Outcome {
	case workflow.Release:
		c.back(e)
		return
	case workflow.Reject:
		c.rejected++
		if len(c.kept) == RejectedKeptMax {
			c.kept = slices.Delete(c.kept, 0, 1)
		}
		c.kept = append(c.kept, e.item)
	case workflow.Accept:
	}
	c.unlock(e)
	c.drop(e)
}

func (c *queueClass) unlock(e *queued) {
	delete(c.held, e.receipt)
	heap.Remove(&c.locks, e.at)
}

// back puts an item to where it stood in line.
func (c *queueClass) back(e *queued) {
	c.unlock(e)
	heap.Push(&e.of.again, e)
	c.waiting++
	c.wakeFor(e.item.Type)
}

// expire gives back what is locked no longer. Every operation begins with it.
func (c *queueClass) expire(now events.Time) {
	for len(c.locks) > 0 && c.locks[0].until <= now {
		c.back(c.locks[0])
	}
}

// wakeFor wakes one waiter that wants the type.
func (c *queueClass) wakeFor(t string) {
	for i, w := range c.waiters {
		if w.wants(t) {
			close(w.ready)
			c.waiters = slices.Delete(c.waiters, i, i+1)
			return
		}
	}
}

// wakeForAll wakes one waiter for every type that has something left: whoever was woken for it may have taken others.
func (c *queueClass) wakeForAll() {
	if len(c.waiters) == 0 || c.waiting == 0 {
		return
	}
	for _, t := range c.inOrder {
		if t.first() != nil {
			c.wakeFor(t.name)
		}
	}
}

// leave takes a waiter out whose context has ended. One that was woken at the same moment is out already, and looks
// once more before it ends, so that its wake-up is not lost.
func (c *queueClass) leave(w *queueWaiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiters, w); i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
	}
}

// arm sees to it that waiters wake when the next lock ends. Nobody waiting, nobody needs it: the next operation looks.
// The timer may fire early, because the lock was settled or renewed meanwhile; then it is armed anew.
func (c *queueClass) arm(now events.Time) {
	if len(c.waiters) == 0 || len(c.locks) == 0 {
		return
	}
	next := c.locks[0].until
	if c.armed != 0 && c.armed <= next {
		return
	}
	c.armed = next
	wait := max(next.Sub(now), time.Millisecond)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.lockEnds)
		return
	}
	c.timer.Reset(wait)
}

func (c *queueClass) lockEnds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.armed = 0
	c.expire(now)
	c.arm(now)
}
