// Package queuetest holds every adapter of workflow.TaskQueue to one contract.
// It never knows an adapter: what one cannot promise stands in its Harness.
package queuetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Harness is what the suite needs of an adapter under test.
type Harness struct {
	// In runs one test with a fresh, empty queue; an adapter on a fake clock makes its bubble here.
	In func(t *testing.T, test func(t *testing.T, q workflow.TaskQueue))
	// Pass lets time go by, by the adapter's clock.
	Pass func(d time.Duration)
	// Quiet returns when every goroutine of the test waits; nil where that cannot be known.
	Quiet func()
	// DepthMax is the bound of each class of the queue that In makes; at least 100.
	DepthMax int
}

const lock = time.Minute

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range cases {
		t.Run(c.policy, func(t *testing.T) {
			h.In(t, func(t *testing.T, q workflow.TaskQueue) { c.test(&run{T: t, q: q, h: h}) })
		})
	}
}

var cases = []struct {
	policy string
	test   func(*run)
}{
	{"an item comes out as it went in", whole},
	{"items of one type come in the order they were sent", order},
	{"classes are apart", classes},
	{"a class that is none is refused and nothing is put", noClass},
	{"a receiver gets only the types it asks for", types},
	{"a receiver gets at most what it asks for", limit},
	{"a locked item is delivered to nobody else", locked},
	{"an accepted item never comes again", accepted},
	{"a released item comes again at once, in its old place", released},
	{"a rejected item is kept out of the way and counted", rejected},
	{"an item whose lock ends is delivered again", lockEnds},
	{"an item whose lock ends wakes a receiver that waits", lockEndsWakes},
	{"a renewed lock lasts from the renewal", renewed},
	{"a lock that has ended cannot be renewed", renewLate},
	{"a late settlement is without effect", settleLate},
	{"settling twice is without effect", settleTwice},
	{"a receiver waits, and wakes for an item", wakes},
	{"every waiting receiver is woken when there is enough for all", wakesAll},
	{"an item for one of two waiting receivers reaches the one that wants its type", wakesTyped},
	{"a receiver ends with its context and leaves no item behind", contextEnds},
	{"a context that has ended takes what is there", tryReceive},
	{"a full class refuses a send and puts nothing of it", full},
	{"stats count what waits and what is delivered", stats},
	{"many receivers, many senders: each item once while its lock lasts", concurrent},
	{"WF-26 renewed from receipt, a buffer of 32 is worked off one by one and nothing comes twice", buffer},
	{"WF-26 handed back before the locks end, a buffer of 32 burns nothing", handedBack},
}

// run is one test.
type run struct {
	*testing.T
	q workflow.TaskQueue
	h Harness
}

func (r *run) quiet() {
	if r.h.Quiet != nil {
		r.h.Quiet()
	}
}

func item(task int, class string) workflow.Item {
	return workflow.Item{
		Stream: "execution/acme/7c0f", Partition: 3, Task: int32(task), Attempt: 1, Type: "http", Class: class,
		SentAt: events.Time(1_000 + task),
	}
}

func typed(task int, kind string) workflow.Item {
	it := item(task, "standard")
	it.Type = kind
	return it
}

func (r *run) send(items ...workflow.Item) {
	r.Helper()
	if err := r.q.Send(r.Context(), items); err != nil {
		r.Fatalf("send %d items: %v", len(items), err)
	}
}

func (r *run) sendTasks(class string, n int) {
	r.Helper()
	items := make([]workflow.Item, n)
	for i := range items {
		items[i] = item(i, class)
	}
	r.send(items...)
}

// try takes what is there without waiting.
func (r *run) try(class string, limit int, kinds ...string) []workflow.Delivery {
	r.Helper()
	ctx, end := context.WithCancel(r.Context())
	end()
	ds, err := r.q.Receive(ctx, class, kinds, limit, lock)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Fatalf("receive from %s: %v", class, err)
	}
	if (err != nil) != (len(ds) == 0) {
		r.Fatalf("receive gave %d items and %v; it gives either", len(ds), err)
	}
	return ds
}

func (r *run) want(ds []workflow.Delivery, tasks ...int32) {
	r.Helper()
	got := make([]int32, len(ds))
	for i, d := range ds {
		got[i] = d.Task
	}
	if len(got) != len(tasks) {
		r.Fatalf("got tasks %v, want %v", got, tasks)
	}
	for i := range got {
		if got[i] != tasks[i] {
			r.Fatalf("got tasks %v, want %v", got, tasks)
		}
	}
}

func (r *run) settle(o workflow.Outcome, ds ...workflow.Delivery) {
	r.Helper()
	ss := make([]workflow.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = workflow.Settlement{Receipt: d.Receipt, Class: d.Class, Outcome: o}
	}
	if err := r.q.Settle(r.Context(), ss); err != nil {
		r.Fatalf("settle: %v", err)
	}
}

func (r *run) stats(class string) workflow.QueueStats {
	r.Helper()
	s, err := r.q.Stats(r.Context(), class)
	if err != nil {
		r.Fatalf("stats of %s: %v", class, err)
	}
	return s
}

// receiving receives in a goroutine of its own.
func (r *run) receiving(ctx context.Context, limit int, kinds ...string) <-chan received {
	out := make(chan received, 1)
	go func() {
		ds, err := r.q.Receive(ctx, "standard", kinds, limit, lock)
		out <- received{ds, err}
	}()
	return out
}

type received struct {
	ds  []workflow.Delivery
	err error
}

// collect runs n receivers until they have taken total items, and counts how often each task came.
func (r *run) collect(n, total int, use func(workflow.Delivery)) map[int32]int {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	var mu sync.Mutex
	seen := map[int32]int{}
	taken := 0
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for {
				ds, err := r.q.Receive(ctx, "standard", nil, 1+i%5, lock)
				if err != nil {
					return
				}
				mu.Lock()
				for _, d := range ds {
					seen[d.Task]++
					taken++
				}
				if taken >= total {
					end()
				}
				mu.Unlock()
				for _, d := range ds {
					use(d)
				}
			}
		})
	}
	wg.Wait()
	return seen
}
