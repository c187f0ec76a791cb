package events

import (
	"context"
	"errors"
	"time"
)

// EventsBytesMax is what one event's body may take; above it the append is refused with ErrTooLarge.
// It stands below every broker's record limit, so that a relay never meets an event it cannot send.
const EventsBytesMax = 512 << 10

// CommitEventsMax is how many events one append may carry: what a batch of results has come to, and the beginning of
// the
// largest definition on top, where each of its tasks is an event of its own (a timer, a branch not taken).
const CommitEventsMax = 16 << 10

// CommitBytesMax is what the envelope and the events of one append may take together; above it the append is refused
// with ErrTooLarge. A reader's page of commits is bounded by it, and so is what a lane holds in memory for one append.
const CommitBytesMax = 4 << 20

// Append is one commit that wants to be: 1..n events of one stream, and one envelope.
// It is immutable once given to a store, because *unknown* is settled by giving the very same one again.
type Append struct {
	Stream    Stream
	Partition Partition
	Expected  Version // NoStream, or exactly this many events
	Command   ID
	Fence     Fence // 0: a person's command, or an owner's write into a partition that is not its own
	N         int   // events in Events, at least 1
	Envelope  []byte
	Events    []byte // framed; see AppendFrame
	Hash      Hash   // Chain of the head before it and of everything above
	Head      HeadUpdate
}

// HeadUpdate is what an append says of its stream's head beside version and hash.
type HeadUpdate struct {
	Open     bool   // an owner has work with it: take-over loads the open heads and no others
	Due      Time   // next deadline over 30 s away, 0 for none; clears the last one
	Snapshot []byte // nil keeps the last one and its version
}

// Verdict is the store's answer to one append, tried in this order.
type Verdict struct {
	Kind     VerdictKind
	Version  Version  // appended, duplicate: of the last event of that commit; conflict: the stream's own
	Position Position // appended, duplicate: of the last event of that commit
	At       Time     // appended, duplicate: recorded_at
	Fence    Fence    // fenced: the highest token
}

// VerdictKind is the kind of a Verdict.
type VerdictKind uint8

// The verdicts. Unknown is never a store's word for one append but what an error means for a whole call.
const (
	Unknown   VerdictKind = iota
	Duplicate             // the commit at expected version + 1 has this command id: the original result
	Fenced                // the token is below the partition's highest
	Conflict              // the stream is at another version
	Appended
)

func (k VerdictKind) String() string {
	return [...]string{"unknown", "duplicate", "fenced", "conflict", "appended"}[k]
}

// Sentinels of the store's ports.
var (
	// ErrUnknown says that a call's appends may or may not be stored. Submit the same appends again.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoStream says that nothing was ever appended to a stream.
	ErrNoStream = errors.New("no such stream")
	// ErrTooLarge says that an append exceeds a named maximum; nothing of the call was stored.
	ErrTooLarge = errors.New("append is too large")
	// ErrInvalidAppend says that an append is not well formed (no events, wrong partition); nothing of the call was
	// stored.
	ErrInvalidAppend = errors.New("invalid append")
	// ErrClosed says that the adapter was closed; nothing of the call was stored.
	ErrClosed = errors.New("store is closed")
	// ErrNotOwner says that ownership has ended or was never held: acquire anew.
	ErrNotOwner = errors.New("not the owner")
	// ErrHeld says that somebody else owns the partition until the tenure's end.
	ErrHeld = errors.New("owned by another")
	// ErrIncarnation says that a position or version belongs to another incarnation of the log.
	ErrIncarnation = errors.New("another incarnation of the log")
)

// Appender is the only way into the log. Only commands/handle calls it.
type Appender interface {
	// Append tries the appends of batch in order, all of partition p, each seeing those before it, and puts one
	// verdict per append into out (len(out) >= len(batch)). A loser aborts nobody else and burns no position.
	// With an error none of out is valid: ErrUnknown means that any part may be stored; every other error
	// means that nothing is. Repeating the call with the same appends is always safe.
	Append(ctx context.Context, p Partition, batch []*Append, out []Verdict) error
}

// Commit is one stored append.
type Commit struct {
	Stream    Stream
	Partition Partition
	First     Version  // of its first event
	N         int      // events
	Position  Position // of its last event
	Command   ID
	Fence     Fence
	At        Time // recorded_at: taken under the partition's lock, never decreasing in a partition
	Envelope  []byte
	Events    []byte
	Hash      Hash
}

// Last is the version of the commit's last event.
func (c *Commit) Last() Version { return c.First + Version(c.N) - 1 }

// Before is the position just before the commit's first event.
func (c *Commit) Before() Position { return c.Position - Position(c.N) }

// Head is where a stream stands.
type Head struct {
	Stream     Stream
	Partition  Partition
	Version    Version
	Hash       Hash
	Open       bool
	Due        Time
	Snapshot   []byte // empty: none
	SnapshotAt Version
}

// Reader reads the log. Slices that it returns are the caller's.
type Reader interface {
	// Head returns ErrNoStream for a stream without events.
	Head(ctx context.Context, s Stream) (Head, error)
	// Commits returns the stream's commits with First > after in order, at most max; none for an unknown stream.
	Commits(ctx context.Context, s Stream, after Version, max int) ([]Commit, error)
	// CommitAt returns the commit that holds the stream's event v; ErrNoStream when there is none.
	CommitAt(ctx context.Context, s Stream, v Version) (Commit, error)
	// Tail returns the partition's commits with Position > after in order, at most max. A reader that has seen n
	// never later finds a new event at or below n.
	Tail(ctx context.Context, p Partition, after Position, max int) ([]Commit, error)
	// OpenHeads returns the partition's open heads, without snapshots, by stream name after the given one, at most max.
	OpenHeads(ctx context.Context, p Partition, after Stream, max int) ([]Head, error)
	// End returns the partition's last position and the highest fence, both 0 at first.
	End(ctx context.Context, p Partition) (Position, Fence, error)
	// Log says what this log is.
	Log(ctx context.Context) (LogInfo, error)
}

// LogInfo says what a log is.
type LogInfo struct {
	ID          ID // drawn once; a backup keeps it
	Incarnation Incarnation
	Partitions  int
	Features    Features
}

// Features is what an adapter cannot do, for the contract suite and the start-up checks.
type Features struct {
	PositionAtAppend bool // positions are known when the append answers
	FenceScope       string
}

// Tenure is one ownership of one partition.
type Tenure struct {
	Partition Partition
	Fence     Fence
	Owner     string
	Until     Time // by the store's clock
	// Left is how much of the tenure is left by the store's clock at the answer; an owner counts it from the moment
	// it *sent* the request, on its own monotonic clock, less a margin for skew.
	Left time.Duration
}

// Ownership is a row a partition beside the log, judged by the store's clock. The token rises on every acquisition.
type Ownership interface {
	// Acquire returns ErrHeld with the current tenure while another owner's has not ended.
	Acquire(ctx context.Context, p Partition, owner string, lasts time.Duration) (Tenure, error)
	// Renew prolongs a tenure that has not ended; else ErrNotOwner, and only Acquire helps.
	Renew(ctx context.Context, t Tenure, lasts time.Duration) (Tenure, error)
	// Release ends a tenure at once, so that the next owner need not wait. Repeating it is safe.
	Release(ctx context.Context, t Tenure) error
	// Owners lists the current tenures, ended ones included, by partition.
	Owners(ctx context.Context) ([]Tenure, error)
}

// Seal is a signed running digest over a partition's commits, position and time included.
type Seal struct {
	Partition   Partition
	Incarnation Incarnation
	From        Position // first position covered since the last seal, 1 for the first seal
	To          Position // last position covered
	Commits     int64    // commits from the partition's start up to To
	At          Time     // recorded_at of the last commit covered
	Digest      Hash     // running: SealDigest over every commit from the partition's start
	Key         Hash     // sha256 of the public key
	Signature   []byte   // Ed25519 over SealBytes
}

// Seals keeps seals; they are never changed.
type Seals interface {
	// PutSeal stores s unless one at the same partition and To exists, which then must be equal.
	PutSeal(ctx context.Context, s Seal) error
	// SealsOf returns the partition's seals with To > after in order, at most max.
	SealsOf(ctx context.Context, p Partition, after Position, max int) ([]Seal, error)
}

// Store is everything the log's adapter offers.
type Store interface {
	Appender
	Reader
	Ownership
	Seals
	Close() error
}
