package commands

import "github.com/sluice-platform/sluice/events"

// Clock tells the time. It is the only source of Meta.At.
type Clock interface{ Now() events.Time }

// IDs draws ids that nobody has drawn before.
type IDs interface{ NewID() events.ID }

// Rand draws Meta.Entropy and jitter.
type Rand interface{ Uint64() uint64 }
