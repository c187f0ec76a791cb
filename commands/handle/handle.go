// Package handle is the only write path: a command goes in, what the aggregate decides is appended.
// It never decides what is right; the aggregate does. It never waits on a wall clock but through its ports.
package handle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Log is what handle needs of a store.
type Log interface {
	events.Appender
	events.Reader
}

// Waiter waits for a while or until ctx ends, whichever is first.
type Waiter interface {
	Wait(ctx context.Context, d time.Duration) error
}

// Config is what a Handler is made of. All fields but Parking and Committed are required.
type Config struct {
	Log        Log
	Codec      events.Codec
	Blobs      events.Blobs
	Refs       *Refs
	Aggregates []aggregates.Aggregate
	Partitions int // of the log, for streams that are not born yet
	Clock      commands.Clock
	Rand       commands.Rand
	Waiter     Waiter
	Parking    Parking                   // nil: a command that panics is only answered
	Committed  func(Loaded, events.Time) // told of each append, with the state behind it; must not block
}

// Parking keeps commands that panicked, with their input, for an operator.
type Parking interface {
	Park(ctx context.Context, p Parked) error
}

// Parked is one command that cannot be decided because of a fault of ours.
type Parked struct {
	Stream  events.Stream
	Command commands.Command
	Meta    commands.Meta
	Fault   string
}

// Handler carries callers' commands out. It is safe for concurrent use.
type Handler struct {
	cfg  Config
	aggs map[string]aggregates.Aggregate
}

// New makes a Handler.
func New(cfg Config) *Handler {
	h := &Handler{cfg: cfg, aggs: map[string]aggregates.Aggregate{}}
	for _, a := range cfg.Aggregates {
		h.aggs[a.Category()] = a
	}
	return h
}

// unknownWait is what is waited before an append of unknown outcome is submitted again.
const unknownWait = 50 * time.Millisecond

// Do carries c out on stream s and returns where it stands. m.Command must be set; m.At, Entropy and Version are
// filled in here. A *commands.Error says why the command is refused. Any other error is a fault: the outcome is then
// unknown, and repeating the command with the same id is safe. A command that is already so is an Outcome with Nothing.
func (h *Handler) Do(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (Outcome, error) {
	return h.do(ctx, s, c, m, Next{Load: true})
}

// Start is Do for a stream whose id was just drawn: nobody can have appended to it, so it is not read first. If
// somebody has, the append says so, and Start goes on as Do does.
func (h *Handler) Start(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (Outcome, error) {
	return h.do(ctx, s, c, m, Next{})
}

func (h *Handler) do(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta, next Next) (Outcome,
	error,
) {
	agg, err := h.aggregate(s)
	if err != nil {
		return Outcome{}, err
	}
	if err := c.Validate(); err != nil {
		return Outcome{}, err
	}
	now, entropy := h.cfg.Clock.Now, h.cfg.Rand.Uint64
	j := NewJob(s, c, m, agg, h.cfg.Codec, h.cfg.Refs, now())
	if !next.Load {
		next = j.Loaded(Loaded{Stream: s, Partition: h.place(s), State: agg.Initial()}, now(), entropy())
	}
	for {
		switch {
		case next.Done:
			return h.finish(ctx, j)
		case next.Load:
			l, err := h.reload(ctx, s, next.Wait)
			if err != nil {
				return Outcome{}, err
			}
			next = j.Loaded(l, now(), entropy())
		case next.Refs != nil:
			refs, err := h.cfg.Refs.Load(ctx, s, next.Refs)
			if err != nil {
				return Outcome{}, err
			}
			next = j.Resolved(refs, next.Refs, now(), entropy())
		default:
			v, err := h.write(ctx, next.Write)
			if err != nil {
				return Outcome{}, err
			}
			next = j.Answer(v, now(), entropy())
		}
	}
}

func (h *Handler) aggregate(s events.Stream) (aggregates.Aggregate, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	a := h.aggs[s.Category()]
	if a == nil {
		return nil, fmt.Errorf("no aggregate has the category of %s", s)
	}
	return a, nil
}

func (h *Handler) reload(ctx context.Context, s events.Stream, wait time.Duration) (Loaded, error) {
	if wait > 0 {
		if err := h.cfg.Waiter.Wait(ctx, wait); err != nil {
			return Loaded{}, err
		}
	}
	return h.Load(ctx, s)
}

// Load reads a stream as it stands; Version 0 for one that does not exist. The state is the caller's own.
func (h *Handler) Load(ctx context.Context, s events.Stream) (Loaded, error) {
	agg, err := h.aggregate(s)
	if err != nil {
		return Loaded{}, err
	}
	return load(ctx, h.cfg.Log, h.cfg.Codec, agg, s, h.place)
}

func (h *Handler) place(s events.Stream) events.Partition {
	return events.PartitionOf(s, h.cfg.Partitions)
}

// write puts the blobs and appends. An outcome that stays unknown until ctx ends is an error.
func (h *Handler) write(ctx context.Context, w *Write) (events.Verdict, error) {
	for _, b := range w.Blobs {
		if _, err := h.cfg.Blobs.Put(ctx, b.Tenant, b.Data); err != nil {
			return events.Verdict{}, fmt.Errorf("keep a payload of %s: %w", w.Append.Stream, err)
		}
	}
	var verdict [1]events.Verdict
	for {
		err := h.cfg.Log.Append(ctx, w.Append.Partition, []*events.Append{w.Append}, verdict[:])
		if err == nil {
			return verdict[0], nil
		}
		if !errors.Is(err, events.ErrUnknown) || ctx.Err() != nil {
			return events.Verdict{}, fmt.Errorf("append to %s at version %d: %w", w.Append.Stream, w.Append.Expected, err)
		}
		if err := h.cfg.Waiter.Wait(ctx, unknownWait); err != nil {
			return events.Verdict{}, fmt.Errorf("append to %s: %w: %w", w.Append.Stream, events.ErrUnknown, err)
		}
	}
}

func (h *Handler) finish(ctx context.Context, j *Job) (Outcome, error) {
	out, err := j.Result()
	if errors.Is(err, ErrPanic) {
		return out, h.park(ctx, j, err)
	}
	if l, ok := j.Fresh(); ok && h.cfg.Committed != nil {
		h.cfg.Committed(l, out.At)
	}
	return out, err
}

func (h *Handler) park(ctx context.Context, j *Job, fault error) error {
	if h.cfg.Parking == nil {
		return fault
	}
	p := Parked{Stream: j.Stream, Command: j.Command, Meta: j.Meta, Fault: fault.Error()}
	if err := h.cfg.Parking.Park(ctx, p); err != nil {
		return fmt.Errorf("%w; and parking it failed: %w", fault, err)
	}
	return commands.Refuse(commands.Unavailable, commands.CodeParked,
		"deciding this failed on our side; the command is kept as %s for an operator", j.Meta.Command)
}
