package queuetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

func whole(r *run) {
	sent := workflow.Item{
		Stream: "execution/acme/7c0f", Partition: 3, Task: 4, Attempt: 2, Type: "http", Class: "high",
		Definition: events.Hash{1, 2}, Outputs: []events.Version{3, 0, 9}, With: 12, SentAt: 77,
		SlotWait: 3 * time.Second, Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	r.send(sent)
	ds := r.try("high", 1)
	r.want(ds, 4)
	if !reflect.DeepEqual(ds[0].Item, sent) {
		r.Fatalf("sent %+v, got %+v", sent, ds[0].Item)
	}
	if ds[0].Receipt == "" {
		r.Fatal("a delivery needs a receipt")
	}
}

func order(r *run) {
	r.sendTasks("standard", 5)
	r.want(r.try("standard", 2), 0, 1)
	r.want(r.try("standard", 9), 2, 3, 4)
}

func classes(r *run) {
	for i, class := range workflow.Classes {
		r.send(item(i, class))
	}
	for i, class := range workflow.Classes {
		r.want(r.try(class, 9), int32(i))
		r.want(r.try(class, 9))
	}
}

func noClass(r *run) {
	err := r.q.Send(r.Context(), []workflow.Item{item(0, "standard"), item(1, "urgent")})
	if !errors.Is(err, workflow.ErrNoClass) {
		r.Fatalf("send to class urgent: %v", err)
	}
	if _, err := r.q.Receive(r.Context(), "urgent", nil, 1, lock); !errors.Is(err, workflow.ErrNoClass) {
		r.Fatalf("receive from class urgent: %v", err)
	}
	r.want(r.try("standard", 9))
}

func types(r *run) {
	r.send(typed(0, "http"), typed(1, "transform"), typed(2, "http"), typed(3, "test"))
	r.want(r.try("standard", 9, "transform", "none"), 1)
	r.want(r.try("standard", 9, "none"))
	r.want(r.try("standard", 9, "test", "http"), 0, 2, 3)
}

func limit(r *run) {
	r.sendTasks("standard", 5)
	r.want(r.try("standard", 1), 0)
	r.want(r.try("standard", 3), 1, 2, 3)
}

func locked(r *run) {
	r.sendTasks("standard", 1)
	r.want(r.try("standard", 9), 0)
	r.h.Pass(lock - time.Second)
	r.want(r.try("standard", 9))
}

func accepted(r *run) {
	r.sendTasks("standard", 1)
	r.settle(workflow.Accept, r.try("standard", 1)...)
	r.h.Pass(2 * lock)
	r.want(r.try("standard", 9))
	if s := r.stats("standard"); s.Depth+s.Delivered != 0 {
		r.Fatalf("stats after everything was accepted: %+v", s)
	}
}

func released(r *run) {
	r.sendTasks("standard", 4)
	ds := r.try("standard", 3)
	r.settle(workflow.Release, ds[2], ds[0])
	r.want(r.try("standard", 9), 0, 2, 3)
}

func rejected(r *run) {
	r.sendTasks("standard", 2)
	r.settle(workflow.Reject, r.try("standard", 1)...)
	r.h.Pass(2 * lock)
	r.want(r.try("standard", 9), 1)
	if s := r.stats("standard"); s.Rejected != 1 || s.Depth != 0 || s.Delivered != 1 {
		r.Fatalf("one rejected, one delivered; stats say %+v", s)
	}
}

func lockEnds(r *run) {
	r.sendTasks("standard", 2)
	first := r.try("standard", 2)
	r.settle(workflow.Accept, first[1])
	r.h.Pass(lock + time.Second)
	again := r.try("standard", 9)
	r.want(again, 0)
	if again[0].Receipt == first[0].Receipt {
		r.Fatal("another delivery needs another receipt")
	}
}

func lockEndsWakes(r *run) {
	r.sendTasks("standard", 1)
	r.want(r.try("standard", 1), 0)
	got := r.receiving(r.Context(), 1)
	r.quiet()
	r.h.Pass(lock + 2*time.Second)
	in := <-got
	r.want(in.ds, 0)
}

func renewed(r *run) {
	r.sendTasks("standard", 1)
	ds := r.try("standard", 1)
	for range 4 {
		r.h.Pass(lock * 2 / 3)
		if err := r.q.Renew(r.Context(), ds[0], lock); err != nil {
			r.Fatalf("renew a lock that lasts: %v", err)
		}
		r.want(r.try("standard", 1))
	}
	r.h.Pass(lock + time.Second)
	r.want(r.try("standard", 1), 0)
}

func renewLate(r *run) {
	r.sendTasks("standard", 1)
	ds := r.try("standard", 1)
	r.h.Pass(lock + time.Second)
	if err := r.q.Renew(r.Context(), ds[0], lock); !errors.Is(err, workflow.ErrLockLost) {
		r.Fatalf("renew a lock that has ended: %v", err)
	}
	r.want(r.try("standard", 1), 0)
}

func settleLate(r *run) {
	for _, o := range []workflow.Outcome{workflow.Accept, workflow.Release, workflow.Reject} {
		r.sendTasks("standard", 1)
		first := r.try("standard", 1)
		r.h.Pass(lock + time.Second)
		second := r.try("standard", 1)
		r.want(second, 0)
		r.settle(o, first...)
		r.want(r.try("standard", 1)) // the second receiver's lock is untouched
		if s := r.stats("standard"); s.Delivered != 1 || s.Rejected != 0 {
			r.Fatalf("outcome %d of a lock that has ended: stats %+v", o, s)
		}
		r.settle(workflow.Accept, second...)
	}
}

func settleTwice(r *run) {
	r.sendTasks("standard", 1)
	ds := r.try("standard", 1)
	r.settle(workflow.Accept, ds...)
	r.settle(workflow.Release, ds...)
	r.want(r.try("standard", 1))
}

func wakes(r *run) {
	got := r.receiving(r.Context(), 4)
	r.quiet()
	r.sendTasks("standard", 1)
	r.want((<-got).ds, 0)
}

func wakesAll(r *run) {
	const n = 8
	var got []<-chan received
	for range n {
		got = append(got, r.receiving(r.Context(), 1))
	}
	r.quiet()
	r.sendTasks("standard", n)
	seen := map[int32]bool{}
	for _, c := range got {
		for _, d := range (<-c).ds {
			seen[d.Task] = true
		}
	}
	if len(seen) != n {
		r.Fatalf("%d receivers took %d different items", n, len(seen))
	}
}

func wakesTyped(r *run) {
	web := r.receiving(r.Context(), 1, "http")
	r.quiet()
	pure := r.receiving(r.Context(), 1, "transform")
	r.quiet()
	r.send(typed(0, "transform"))
	r.want((<-pure).ds, 0)
	r.send(typed(1, "http"))
	r.want((<-web).ds, 1)
}

func contextEnds(r *run) {
	ctx, end := context.WithCancel(r.Context())
	got := r.receiving(ctx, 1)
	r.quiet()
	end()
	if in := <-got; len(in.ds) != 0 || !errors.Is(in.err, context.Canceled) {
		r.Fatalf("the context ended: got %d items and %v", len(in.ds), in.err)
	}
	r.sendTasks("standard", 1)
	r.want(r.try("standard", 1), 0)
}

func tryReceive(r *run) {
	r.sendTasks("standard", 3)
	r.want(r.try("standard", 2), 0, 1)
	r.want(r.try("standard", 2), 2)
	r.want(r.try("standard", 2))
}

func full(r *run) {
	r.sendTasks("standard", r.h.DepthMax-1)
	r.sendTasks("bulk", 1) // the bound is each class's own
	err := r.q.Send(r.Context(), []workflow.Item{item(0, "bulk"), item(1, "standard"), item(2, "standard")})
	if !errors.Is(err, workflow.ErrQueueFull) {
		r.Fatalf("send two items where one has room: %v", err)
	}
	if s := r.stats("bulk"); s.Depth != 1 {
		r.Fatalf("a refused send put something: bulk has %d items, want 1", s.Depth)
	}
	ds := r.try("standard", 2)
	if err := r.q.Send(r.Context(), []workflow.Item{item(1, "standard"), item(2, "standard")}); err == nil {
		r.Fatal("delivered items count: they may come back")
	}
	r.settle(workflow.Accept, ds...)
	r.send(item(1, "standard"), item(2, "standard"))
}

func stats(r *run) {
	if s := r.stats("standard"); s != (workflow.QueueStats{}) {
		r.Fatalf("stats of an empty class: %+v", s)
	}
	r.sendTasks("standard", 3)
	ds := r.try("standard", 1)
	if s := r.stats("standard"); s != (workflow.QueueStats{Depth: 2, Delivered: 1, Oldest: 1_001}) {
		r.Fatalf("two wait since 1001, one is delivered: %+v", s)
	}
	r.settle(workflow.Release, ds...)
	if s := r.stats("standard"); s != (workflow.QueueStats{Depth: 3, Oldest: 1_000}) {
		r.Fatalf("three wait since 1000: %+v", s)
	}
	r.try("standard", 3)
	r.h.Pass(lock + time.Second)
	if s := r.stats("standard"); s.Depth != 3 || s.Delivered != 0 {
		r.Fatalf("after the locks ended three wait: %+v", s)
	}
}

func concurrent(r *run) {
	const senders, each = 8, 200
	var sent sync.WaitGroup
	for s := range senders {
		sent.Go(func() {
			for i := 0; i < each; i += 4 {
				n := s*each + i
				r.waitForRoom(item(n, "standard"), item(n+1, "standard"), item(n+2, "standard"), item(n+3, "standard"))
			}
		})
	}
	seen := r.collect(16, senders*each, func(d workflow.Delivery) { r.settle(workflow.Accept, d) })
	sent.Wait()
	if len(seen) != senders*each {
		r.Fatalf("%d items came out of %d", len(seen), senders*each)
	}
	for task, n := range seen {
		if n != 1 {
			r.Fatalf("item %d came %d times", task, n)
		}
	}
}

// waitForRoom sends until the queue takes it.
func (r *run) waitForRoom(items ...workflow.Item) {
	for {
		err := r.q.Send(r.Context(), items)
		if err == nil {
			return
		}
		if !errors.Is(err, workflow.ErrQueueFull) {
			r.Errorf("send: %v", err)
			return
		}
		r.h.Pass(time.Millisecond)
	}
}

func buffer(r *run) {
	const n, each = 32, 10 * time.Second
	r.sendTasks("standard", n)
	ds := r.try("standard", n)
	for i := range ds {
		for range 2 { // half of the work, then all of it
			r.h.Pass(each / 2)
			for _, d := range ds[i:] {
				if err := r.q.Renew(r.Context(), d, lock); err != nil {
					r.Fatalf("renew item %d while item %d runs: %v", d.Task, i, err)
				}
			}
			r.want(r.try("standard", n))
		}
		r.settle(workflow.Accept, ds[i])
	}
	r.h.Pass(2 * lock)
	r.want(r.try("standard", n))
}

func handedBack(r *run) {
	const n, each = 32, 10 * time.Second
	r.sendTasks("standard", n)
	run := 0
	for run < n {
		ds := r.try("standard", n)
		if len(ds) != n-run || ds[0].Attempt != 1 {
			r.Fatalf("after %d ran, %d came; first attempt %d", run, len(ds), ds[0].Attempt)
		}
		can := min(5, len(ds)) // what one worker starts before the locks end
		for range can {
			r.h.Pass(each)
		}
		r.settle(workflow.Accept, ds[:can]...)
		r.settle(workflow.Release, ds[can:]...)
		run += can
	}
	r.want(r.try("standard", n))
}
