package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/queuetest"
)

// bubbleClock reads the bubble's time inside synctest, and the machine's outside.
type bubbleClock struct{}

func (bubbleClock) Now() events.Time { return events.TimeOf(time.Now()) }

// pass lets the bubble's time go by.
func pass(d time.Duration) { <-time.After(d) }

func TestQueue(t *testing.T) {
	const depthMax = 2_000
	queuetest.Run(t, queuetest.Harness{
		In: func(t *testing.T, test func(*testing.T, workflow.TaskQueue)) {
			synctest.Test(t, func(t *testing.T) { test(t, NewQueue(bubbleClock{}, depthMax)) })
		},
		Pass:     pass,
		Quiet:    synctest.Wait,
		DepthMax: depthMax,
	})
}

func TestRejectedItemsCanBeLookedAt(t *testing.T) {
	q := NewQueue(bubbleClock{}, 0)
	it := workflow.Item{Stream: "execution/acme/1", Type: "http", Class: "bulk", Task: 7, Attempt: 1}
	if err := q.Send(t.Context(), []workflow.Item{it}); err != nil {
		t.Fatal(err)
	}
	ds, err := q.Receive(t.Context(), "bulk", nil, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	reject := workflow.Settlement{Receipt: ds[0].Receipt, Class: "bulk", Outcome: workflow.Reject}
	if err := q.Settle(t.Context(), []workflow.Settlement{reject}); err != nil {
		t.Fatal(err)
	}
	if got := q.Rejected("bulk"); len(got) != 1 || got[0].Task != 7 {
		t.Fatalf("rejected items: %+v", got)
	}
}

// BenchmarkQueue sends, receives and settles one item, in batches of 16.
func BenchmarkQueue(b *testing.B) {
	q := NewQueue(bubbleClock{}, 0)
	ctx := context.Background()
	items := make([]workflow.Item, 16)
	for i := range items {
		items[i] = workflow.Item{Stream: "execution/acme/1", Type: "http", Class: "standard", Task: int32(i), Attempt: 1}
	}
	ss := make([]workflow.Settlement, 16)
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(items) {
		if err := q.Send(ctx, items); err != nil {
			b.Fatal(err)
		}
		ds, err := q.Receive(ctx, "standard", nil, len(items), time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		for j, d := range ds {
			ss[j] = workflow.Settlement{Receipt: d.Receipt, Class: d.Class}
		}
		if err := q.Settle(ctx, ss[:len(ds)]); err != nil {
			b.Fatal(err)
		}
	}
}
