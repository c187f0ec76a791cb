package platform

import (
	"context"
	"slices"
	"sync"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// classWeights is how many tasks of each class start before the next class has its turn, while all have some: the
// urgent come first and nobody starves.
var classWeights = map[string]int{"high": 8, "standard": 4, "bulk": 2, "longrunning": 1}

// workerInbox holds deliveries between the receivers and the slots.
type workerInbox struct {
	mu       sync.Mutex
	some     sync.Cond // a slot may find a delivery
	space    sync.Cond // a receiver may find room
	classes  []*inboxClass
	prefetch int
	idle     int // slots that wait
	closed   bool
}

type inboxClass struct {
	name     string
	ds       []workflow.Delivery // from head on
	head     int
	weight   int
	credit   int
	limit    int // of slots
	inFlight int
}

func newWorkerInbox(cfg workerConfig) *workerInbox {
	b := &workerInbox{prefetch: cfg.Prefetch}
	b.some.L, b.space.L = &b.mu, &b.mu
	for _, name := range workflow.Classes {
		c := &inboxClass{name: name, weight: classWeights[name], limit: cfg.Slots}
		if name == "longrunning" {
			c.limit = cfg.Long
		}
		b.classes = append(b.classes, c)
	}
	return b
}

func (b *workerInbox) class(name string) *inboxClass {
	i := slices.IndexFunc(b.classes, func(c *inboxClass) bool { return c.name == name })
	return b.classes[i]
}

func (c *inboxClass) waiting() int { return len(c.ds) - c.head }

func (c *inboxClass) ready() bool { return c.waiting() > 0 && c.inFlight < c.limit }

// room waits until a class has room and returns how much; with a ctx that ends it returns soon after.
func (b *workerInbox) room(ctx context.Context, class string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.class(class)
	for c.waiting() >= b.prefetch && ctx.Err() == nil {
		b.space.Wait()
	}
	return b.prefetch - c.waiting()
}

func (b *workerInbox) wakeReceivers() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.space.Broadcast()
}

// put adds deliveries and wakes one slot, which wakes the next when it leaves something.
func (b *workerInbox) put(class string, ds []workflow.Delivery) {
	if len(ds) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.class(class)
	if c.head > 0 && len(c.ds)+len(ds) > cap(c.ds) {
		n := copy(c.ds, c.ds[c.head:])
		clear(c.ds[n:])
		c.ds, c.head = c.ds[:n], 0
	}
	c.ds = append(c.ds, ds...)
	if b.idle > 0 {
		b.some.Signal()
	}
}

// take waits for a delivery; ok is false when the inbox is closed and empty. Whoever takes gives the class's place back
// with leave.
func (b *workerInbox) take() (d workflow.Delivery, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if c := b.next(); c != nil {
			d = c.ds[c.head]
			c.ds[c.head] = workflow.Delivery{}
			if c.head++; c.head == len(c.ds) {
				c.ds, c.head = c.ds[:0], 0
			}
			c.inFlight++
			if c.waiting() <= b.prefetch/2 {
				b.space.Broadcast()
			}
			if b.idle > 0 && b.any() {
				b.some.Signal()
			}
			return d, true
		}
		if b.closed {
			return d, false
		}
		b.idle++
		b.some.Wait()
		b.idle--
	}
}

// leave says that a task of the class has ended. Whoever says so takes next, and wakes others for what it leaves.
func (b *workerInbox) leave(class string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.class(class).inFlight--
}

func (b *workerInbox) any() bool { return slices.ContainsFunc(b.classes, (*inboxClass).ready) }

// next is the class whose turn it is.
func (b *workerInbox) next() *inboxClass {
	for range 2 {
		for _, c := range b.classes {
			if c.credit > 0 && c.ready() {
				c.credit--
				return c
			}
		}
		for _, c := range b.classes { // none has both: a new round
			c.credit = c.weight
		}
	}
	return nil
}

// takeOld takes out what is locked no longer than until.
func (b *workerInbox) takeOld(until events.Time) (old []workflow.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.classes {
		left := c.ds[c.head:]
		c.ds, c.head = slices.DeleteFunc(left, func(d workflow.Delivery) bool {
			if d.Until > until {
				return false
			}
			old = append(old, d)
			return true
		}), 0
	}
	b.space.Broadcast()
	return old
}

// close takes everything out and lets the slots end.
func (b *workerInbox) close() (left []workflow.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.classes {
		left = append(left, c.ds[c.head:]...)
		c.ds, c.head = nil, 0
	}
	b.closed = true
	b.some.Broadcast()
	return left
}
