package handle

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

const (
	// redecideFor is how long handle decides again for a caller who named no version, before it answers busy.
	redecideFor = 2 * time.Second
	// redecideWait is the most that is waited before one more decision; the wait is drawn from 0 up to it.
	redecideWait = 20 * time.Millisecond
)

// Outcome is what a command came to.
type Outcome struct {
	Stream    events.Stream
	Partition events.Partition
	Version   events.Version  // of the last event of the command's commit, or the version that it was decided on
	Position  events.Position // of that event; 0 when nothing was appended
	At        events.Time
	Nothing   bool // it was already so: nothing was appended
}

// Job carries one caller's command through load, references, decision and append. It is a state machine: whoever
// drives it does what Next asks and tells it the answer, so that a simulation can interleave jobs as it likes.
type Job struct {
	Stream  events.Stream
	Command commands.Command
	Meta    commands.Meta

	agg    aggregates.Aggregate
	codec  events.Codec
	cache  *Refs
	start  events.Time
	loaded Loaded
	pinned Pinned
	rounds int
	write  Write
	stored bool // the command's commit is in the log; the owner may not have heard of it
	out    Outcome
	err    error
}

// Next is what a job wants done.
type Next struct {
	Load  bool             // read the stream, then Loaded
	Wait  time.Duration    // before that load
	Refs  []aggregates.Ref // load these, then Resolved
	Write *Write           // put the blobs, append, then Answer
	Done  bool             // see Result
}

// NewJob begins. The command has been validated.
func NewJob(s events.Stream, c commands.Command, m commands.Meta, a aggregates.Aggregate, codec events.Codec,
	cache *Refs, now events.Time,
) *Job {
	return &Job{Stream: s, Command: c, Meta: m, agg: a, codec: codec, cache: cache, start: now}
}

// Result returns the outcome of a job that is done, or why it was refused.
func (j *Job) Result() (Outcome, error) { return j.out, j.err }

// Fresh returns the stream at or behind the command's own commit, once, for the owner to take over: also when the
// commit was found to be there already, since whoever made it may have told nobody. ok is false when there is none.
func (j *Job) Fresh() (l Loaded, ok bool) {
	if j.err != nil || !j.stored || j.loaded.State == nil {
		return Loaded{}, false
	}
	l, j.loaded = j.loaded, Loaded{}
	l.read = false
	return l, true
}

// Loaded gives the job its stream and decides. Behind a duplicate, which is either our own append answered late or
// another request under the same derived id, it holds the request to the digest that is stored.
func (j *Job) Loaded(l Loaded, now events.Time, entropy uint64) Next {
	j.loaded, j.pinned, j.rounds = l, nil, 0
	if key, ok := l.Keys[j.Meta.Command]; ok {
		return j.repeated(key)
	}
	if j.stored { // without a key, or as the commit of another request: only one with this id was answered
		return Next{Done: true}
	}
	if !j.Meta.Expect.Holds(l.Version) {
		if l.Version == events.NoStream && !j.Meta.Expect.None() && j.Meta.Expect.Exists {
			return j.fail(commands.Refuse(commands.NotFound, commands.CodeNotFound, "%s does not exist", l.Stream.ID()))
		}
		return j.fail(stale(l.Version))
	}
	if l.Newer {
		return j.fail(commands.Refuse(commands.Unavailable, commands.CodeNewerStream,
			"%s holds events of a newer build; upgrade this one", l.Stream.ID()))
	}
	if j.Meta.Digest != (commands.Digest{}) && len(l.Keys) >= KeysMax {
		return j.fail(commands.Refuse(commands.TooMany, commands.CodeTooManyKeys,
			"%s remembers %d Idempotency-Keys, the most it can; send the command without one", l.Stream.ID(), KeysMax))
	}
	return j.decide(now, entropy)
}

// repeated answers a key that the stream knows: the first answer, or a refusal if it now stands for something else.
func (j *Job) repeated(k Key) Next {
	if k.Digest != j.Meta.Digest {
		return j.fail(commands.Refuse(commands.Invalid, commands.CodeKeyReused,
			"this Idempotency-Key was used for another request; use a new key"))
	}
	if !j.stored {
		j.out = Outcome{Stream: j.Stream, Partition: j.loaded.Partition, Version: k.Last, At: j.loaded.At, Nothing: true}
		j.stored = true
	}
	return Next{Done: true}
}

func stale(actual events.Version) *commands.Error {
	e := commands.Refuse(commands.Stale, commands.CodeVersionMismatch, "the stream is at version %d", actual)
	e.Version = actual
	return e
}

// Resolved gives the job the references that it asked for and decides again.
func (j *Job) Resolved(refs aggregates.Refs, asked []aggregates.Ref, now events.Time, entropy uint64) Next {
	for _, r := range asked {
		if v, ok := refs.Get(r); ok {
			j.pinned = append(j.pinned, PinnedRef{r, v})
		}
	}
	return j.decide(now, entropy)
}

func (j *Job) decide(now events.Time, entropy uint64) Next {
	m := j.Meta
	m.At, m.Entropy, m.Version = max(now, j.loaded.At), entropy, j.loaded.Version
	if j.rounds == 0 {
		if need := j.missing(j.agg.Needs(j.loaded.State, j.Command, m)); len(need) > 0 {
			return j.need(need)
		}
	}
	decided, err := Decide(j.agg, j.loaded.State, j.Command, m, view{j.pinned, j.cache, j.Stream})
	var missing *aggregates.Missing
	switch {
	case errors.As(err, &missing):
		return j.need(missing.Refs)
	case err != nil:
		return j.fail(err)
	case len(decided) == 0:
		j.out = Outcome{Stream: j.Stream, Partition: j.loaded.Partition, Version: j.loaded.Version, At: m.At, Nothing: true}
		return Next{Done: true}
	}
	facts := make([]events.Fact, len(decided))
	for i, e := range decided {
		facts[i].Event = e
	}
	env := &events.Envelope{
		Actor: m.Actor, Reason: m.Reason, Correlation: m.Correlation, Cause: m.Cause, Trace: m.Trace,
		OccurredAt: m.At, KeyDigest: m.Digest,
	}
	if j.write, err = pack(&j.loaded, j.agg, j.codec, facts, env, m.Command, m.Fence); err != nil {
		return j.fail(err)
	}
	return Next{Write: &j.write}
}

func (j *Job) missing(refs []aggregates.Ref) (need []aggregates.Ref) {
	v := view{j.pinned, j.cache, j.Stream}
	for _, r := range refs {
		value, ok := v.Get(r)
		if !ok {
			need = append(need, r)
			continue
		}
		j.pinned = append(j.pinned, PinnedRef{r, value})
	}
	return need
}

func (j *Job) need(refs []aggregates.Ref) Next {
	if j.rounds++; j.rounds > aggregates.RefRoundsMax {
		return j.fail(commands.Refuse(commands.Invalid, commands.CodeTooManyRefs,
			"deciding this takes more than %d rounds of references", aggregates.RefRoundsMax))
	}
	return Next{Refs: refs}
}

// Answer gives the job the store's verdict. Unknown is settled by the very same append.
func (j *Job) Answer(v events.Verdict, now events.Time, entropy uint64) Next {
	switch v.Kind {
	case events.Unknown:
		return Next{Write: &j.write}
	case events.Appended, events.Duplicate:
		j.out = Outcome{
			Stream: j.Stream, Partition: j.write.Append.Partition,
			Version: v.Version, Position: v.Position, At: v.At,
		}
		j.stored = true
		if v.Kind == events.Duplicate {
			return Next{Load: true} // see there
		}
		return Next{Done: true}
	case events.Fenced:
		return j.fail(fmt.Errorf("append to %s: %w", j.Stream, events.ErrNotOwner))
	}
	if !j.Meta.Expect.None() {
		return j.fail(stale(v.Version))
	}
	if now.Sub(j.start) > redecideFor {
		return j.fail(commands.Refuse(commands.Unavailable, commands.CodeBusy,
			"too many writers at %s; send the same command again", j.Stream.ID()))
	}
	return Next{Load: true, Wait: time.Duration(entropy % uint64(redecideWait))}
}

func (j *Job) fail(err error) Next {
	j.err = err
	return Next{Done: true}
}

// Fail ends the job with a fault of its driver's.
func (j *Job) Fail(err error) Next { return j.fail(err) }

// ErrPanic says that deciding a command panicked: a fault of ours, which the same input would repeat.
var ErrPanic = errors.New("deciding the command panicked")

// Decide calls the aggregate, turning a panic into an error that wraps ErrPanic.
func Decide(a aggregates.Aggregate, s aggregates.State, c commands.Command, m commands.Meta, r aggregates.Refs,
) (es []events.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			es, err = nil, fmt.Errorf("%w: %T: %v\n%s", ErrPanic, c, p, debug.Stack())
		}
	}()
	return a.Decide(s, c, m, r)
}
