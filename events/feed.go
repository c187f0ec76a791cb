package events

import "context"

// Checkpoint is how far a reader of a partition has come. The hash is that of the commit at Position, so that an
// older copy of the store under a live reader is noticed: another hash is another incarnation.
type Checkpoint struct {
	Incarnation Incarnation
	Position    Position // of the last event of a commit; 0: nothing seen
	Hash        Hash
}

// Feed delivers a partition in order, as far as it knows. It may be late, repeat, or leave holes: a reader takes a
// commit only when its first event is at seen + 1, and turns to the store otherwise.
type Feed interface {
	// Read returns commits after the position, in order, at most max; none when there is nothing yet.
	Read(ctx context.Context, p Partition, after Position, max int) ([]Commit, error)
	// Wait returns when there may be something after the position, and after a second at the latest: a hint.
	Wait(ctx context.Context, p Partition, after Position) error
}
