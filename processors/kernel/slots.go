// Package kernel holds the ports that the agents of every domain share.
// It never holds an agent: those stand in their own folders and are driven by the platform or the simulation.
package kernel

import (
	"context"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// SlotMember is who holds a slot: one attempt of one task. A slot belongs to the attempt, not to a worker.
type SlotMember struct {
	Stream  events.Stream
	Task    int32
	Attempt int32
}

// SlotRequest asks for, or gives back, one slot of concurrency.
type SlotRequest struct {
	Tenant string
	Type   string // task type
	Member SlotMember
}

// SlotAnswer says whether a slot was granted, or which limit stood against it.
type SlotAnswer struct {
	Granted bool
	Reason  string // "slot_tenant" or "slot_type" when not granted
}

// SlotHolder is one slot in use.
type SlotHolder struct {
	SlotRequest
	Since, Until events.Time
}

// Slots bounds how many attempts of a tenant, and of a task type, are in flight. What it holds is carried, never
// truth: owners refill it from their tasks in flight after a loss.
type Slots interface {
	// Take answers each request in order. A member that already holds its slot is granted again and renewed.
	Take(ctx context.Context, rs []SlotRequest, lasts time.Duration) ([]SlotAnswer, error)
	// Renew prolongs slots in use; one that has ended is taken anew even above the limit, because its attempt runs.
	Renew(ctx context.Context, rs []SlotRequest, lasts time.Duration) error
	// Free gives slots back. Repeating is free.
	Free(ctx context.Context, rs []SlotRequest) error
	// Holders lists the slots in use of a tenant.
	Holders(ctx context.Context, tenant string) ([]SlotHolder, error)
}
