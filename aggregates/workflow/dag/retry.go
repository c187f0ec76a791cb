package dag

import (
	"math/bits"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

// DelayMax is the longest delay between two attempts, and the cap of a Retry that has none.
const DelayMax = definition.DelayMax

// Retry says how often and when a task is tried again.
type Retry definition.Retry

// growthMax bounds how often a delay is multiplied. Any factor that people write has reached its cap long before.
const growthMax = 10_000

// Delay is what is waited after the failed attempt k (1 is the first), before jitter: min(base · factor^(k−1), cap).
// It never falls as k rises and never overflows: it is compared with the cap before it becomes a whole number. It is
// multiplied step by step, not raised to a power: each product is at least the one before on every machine.
func (r Retry) Delay(k int) time.Duration {
	limit := r.Cap
	if limit <= 0 || limit > DelayMax {
		limit = DelayMax
	}
	d := float64(r.Base)
	for i := 1; i < min(k, growthMax) && d < float64(limit) && r.Factor != 1; i++ {
		d *= r.Factor
	}
	if !(d < float64(limit)) { // NaN and Inf too
		return limit
	}
	return max(time.Duration(d), 1)
}

// Jittered is the delay with full jitter: uniform between 0 and Delay, from 64 random bits (AWS Architecture Blog,
// "Exponential Backoff And Jitter", 2015). The bits are scaled by a 128-bit product, without a division's bias.
func (r Retry) Jittered(k int, entropy uint64) time.Duration {
	d := r.Delay(k)
	if !r.Jitter {
		return d
	}
	high, _ := bits.Mul64(entropy, uint64(d)+1)
	return time.Duration(high)
}
