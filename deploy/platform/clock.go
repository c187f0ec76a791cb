package platform

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// systemClock is the machine's clock.
type systemClock struct{}

// Now is the wall clock's time.
func (systemClock) Now() events.Time { return events.TimeOf(time.Now()) }

// randomIDs draws version-4 UUIDs (RFC 9562 §5.4).
type randomIDs struct{}

// NewID draws from the system's source; it cannot fail (crypto/rand).
func (randomIDs) NewID() (id events.ID) {
	rand.Read(id[:]) // it never returns an error
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// entropy is the runtime's generator, seeded by it.
type entropy struct{}

// Uint64 draws 64 bits.
func (entropy) Uint64() uint64 { return mathrand.Uint64() }

// sleeper waits on a timer.
type sleeper struct{}

// Wait waits for d or for the end of ctx, and then returns its cause.
func (sleeper) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
