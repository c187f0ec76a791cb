package commands

import "github.com/sluice-platform/sluice/events"

// Command is one thing that can be asked of one stream.
type Command interface {
	// Validate returns a *Error of kind Invalid that names every wrong field, or nil. It knows no state.
	Validate() error
}

// Meta travels with a command from the gateway that accepted it to the commit it causes.
type Meta struct {
	Command ID     // the same id is carried out at most once; derived from the Idempotency-Key when there is one
	Digest  Digest // of what the key stands for; zero without an Idempotency-Key
	Tenant  string
	Actor   string
	Reason  string
	Expect  Expectation
	Fence   events.Fence // machine commands: the owner's token

	Correlation string
	Cause       string
	Trace       string

	// What handle fills in before each decision.
	At      events.Time    // handle's clock, never below the stream's last
	Entropy uint64         // for jitter
	Version events.Version // the state's version: the first event decided has Version + 1
}

// ID is of a command, named here because every gateway needs it.
type ID = events.ID

// Digest is of what an Idempotency-Key stands for.
type Digest = events.Hash

// Expectation is what a caller said with If-Match. The zero value expects nothing: handle decides again for it.
type Expectation struct {
	Versions []events.Version // any of them
	Exists   bool             // "*": any version but none
}

// None says that the caller named no version.
func (e Expectation) None() bool { return len(e.Versions) == 0 && !e.Exists }

// Holds says that a stream at v is as the caller expects it.
func (e Expectation) Holds(v events.Version) bool {
	if e.None() || e.Exists && v != events.NoStream {
		return true
	}
	for _, want := range e.Versions {
		if want == v {
			return true
		}
	}
	return false
}

// KeyedID is the command id that an Idempotency-Key stands for on one stream.
func KeyedID(s events.Stream, key string) ID { return events.Derive("command", string(s), key) }
