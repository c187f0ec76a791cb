package memory

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/slotstest"
)

// handClock is moved by hand.
type handClock struct{ now events.Time }

func (c *handClock) Now() events.Time { return c.now }

func TestSlots(t *testing.T) {
	clock := &handClock{now: 1_000_000}
	var limits SlotLimits
	slotstest.Run(t, slotstest.Harness{
		New: func(_ *testing.T, l slotstest.Limits) kernel.Slots {
			limits = l
			return NewSlots(clock, limits)
		},
		Pass: func(d time.Duration) { clock.now = clock.now.Add(d) },
		Lose: func(kernel.Slots) kernel.Slots { return NewSlots(clock, limits) },
	})
}

// BenchmarkSlots takes and frees one slot, in batches of 16, beside 1,000 that are held.
func BenchmarkSlots(b *testing.B) {
	s := NewSlots(&handClock{now: 1}, func(string, string) (int, int) { return 2_000, 0 })
	ctx := context.Background()
	request := func(task int) kernel.SlotRequest {
		return kernel.SlotRequest{
			Tenant: "acme", Type: "http", Member: kernel.SlotMember{Stream: "execution/acme/1", Task: int32(task), Attempt: 1},
		}
	}
	for i := range 1_000 {
		if _, err := s.Take(ctx, []kernel.SlotRequest{request(-i)}, time.Hour); err != nil {
			b.Fatal(err)
		}
	}
	rs := make([]kernel.SlotRequest, 16)
	for i := range rs {
		rs[i] = request(i + 1)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(rs) {
		if _, err := s.Take(ctx, rs, time.Minute); err != nil {
			b.Fatal(err)
		}
		if err := s.Free(ctx, rs); err != nil {
			b.Fatal(err)
		}
	}
}
