// Package projections turns facts into read models, and keeps them fed, rebuilt and swapped.
// It never decides, and nothing that it writes is needed to write the log.
package projections

import (
	"context"
	"errors"

	"github.com/sluice-platform/sluice/events"
)

// The errors of the port.
var (
	// ErrMoved says that a checkpoint is not where the caller thought: somebody else feeds the view. Nothing was
	// written; drop all cached state of the partition and read the checkpoint again.
	ErrMoved = errors.New("checkpoint has moved")
	// ErrBehind says that a build has not caught up with the live one on every partition; nothing was swapped.
	ErrBehind = errors.New("rebuilt view is behind the live one")
	// ErrNoView says that the build does not exist (any more), or is not in the phase that the call needs: look at
	// Builds again. An adapter that found its store damaged has thrown it away and says so with this.
	ErrNoView = errors.New("no such view")
	// ErrNotLive says that no build of this version answers: it is being built.
	ErrNotLive = errors.New("view is not live")
	// ErrUnknownFilter says that a list names a filter that its table does not declare.
	ErrUnknownFilter = errors.New("unknown filter")
)

// Views keeps read models. A *view* is one build of a model's version, with rows and checkpoints of its own: a version
// may be built again beside the build that answers. One build of each model is live, or none.
// A read model can always be built again, so an adapter may lose its last batches, but never half a batch.
type Views interface {
	// Builds lists what there is of a model, oldest first.
	Builds(ctx context.Context, model string) ([]Build, error)
	// Begin makes an empty build, to be filled by Load. ErrModel for a wrong declaration.
	Begin(ctx context.Context, m Model) (View, error)
	// Load puts rows into a build that is not loaded yet, in bulk. Several may load side by side.
	Load(ctx context.Context, v View, rows []Change) error
	// Loaded ends the loading: makes the indexes, sets checkpoints and parked streams.
	Loaded(ctx context.Context, v View, at map[events.Partition]events.Checkpoint, parked []Parked) error
	// Checkpoints returns where a build stands, by partition; none of a build that is not loaded.
	Checkpoints(ctx context.Context, v View) (map[events.Partition]events.Checkpoint, error)
	// ParkedStreams lists a build's parked streams by name.
	ParkedStreams(ctx context.Context, v View) ([]Parked, error)
	// Rows reads rows by key, nil for each that is not there.
	Rows(ctx context.Context, v View, keys []Key) ([]Row, error)
	// Apply writes a batch with its checkpoint in one transaction, if the checkpoint is still at From (the zero
	// Checkpoint for a partition that has none); else ErrMoved.
	Apply(ctx context.Context, v View, b *Batch) error
	// Swap makes v the build that answers, if its checkpoints are at or past the live build's on every partition, in
	// one transaction; else ErrBehind. The first needs no predecessor. A roll-back is another Swap. Repeating is free.
	Swap(ctx context.Context, v View) error
	// List returns a page of the live build, where it stands, and how many streams are parked. ErrNotLive unless a
	// build of m's version answers.
	List(ctx context.Context, m Model, table string, q Query) (Page, error)
	// Drop removes a build with everything of it. Of the live one only when its history is not the log's: nothing
	// answers until the next Swap. Repeating is free.
	Drop(ctx context.Context, b Build) error
	Close() error
}

// Build is one build of a model. Builds are numbered from 1 in each model, and a number is never used again.
type Build struct {
	Model   string
	Version int
	Number  int
	Loaded  bool
	Live    bool
}

// View is a build that this process can feed, because it has the model.
type View struct {
	Model Model
	Build int
}

// Key names a row.
type Key struct {
	Table string
	Key   Row
}

// Parked is a stream of which one event could not be applied; its later events wait behind it, in order.
type Parked struct {
	Stream   events.Stream
	Version  events.Version  // of the event that failed
	Position events.Position // of the event that failed
	Part     events.Partition
	Reason   ParkReason
	Detail   string // for people
	Waiting  int64  // events parked, the failed one included
}

// ParkReason says why a stream is parked.
type ParkReason string

// The reasons.
const (
	ParkUnknownSchema ParkReason = "unknown_schema" // an event type or schema that this build does not know
	ParkDamaged       ParkReason = "damaged"        // the stored bytes cannot be read
	ParkPanic         ParkReason = "panic"          // Apply panicked
	ParkWrongRow      ParkReason = "wrong_row"      // Apply's answer does not fit its table
)

// Batch is what one step of a runner writes, in one transaction.
type Batch struct {
	Partition events.Partition
	From, To  events.Checkpoint
	Changes   []Change        // at most one a row
	Park      []Parked        // added, or in place of what is known of the stream
	Unpark    []events.Stream // retried with success
}

// Query asks for one page of a list.
type Query struct {
	Tenant  string         // never empty: a missing tenant is an error, never "all"
	Where   map[string]any // by filter name
	After   Row            // the last row of the page before, nil for the first
	Limit   int            // 1 to PageMax
	Reverse bool           // walk the list from its end, or from After towards its start
}

// Page is one page of a list.
type Page struct {
	Rows       []Row
	More       bool
	Version    int
	Build      int
	AsOf       map[events.Partition]events.Checkpoint
	Incomplete int // parked streams
}

// Past says whether a reader at checkpoint a has seen everything that one at b has. A newer incarnation has, since what
// the older one saw beyond it is no longer true.
func Past(a, b events.Checkpoint) bool {
	return a.Incarnation > b.Incarnation || a.Incarnation == b.Incarnation && a.Position >= b.Position
}
