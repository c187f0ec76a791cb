package projections

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// BatchCommitsMax is how many commits a runner applies in one transaction. A larger batch is hardly cheaper per commit
// and holds a view's writer longer.
const BatchCommitsMax = 1_000

// keysAskMax is how many rows a runner asks for at once.
const keysAskMax = 1_000

// quiet is how long a feed may bring nothing before the log itself is asked: a feed may be late, but not wrong for
// longer than this.
const quiet = time.Second

// Do says what a runner wants done; it waits for the answer and has nothing else under way.
type Do uint8

// What a runner wants done.
const (
	DoOpen    Do = iota + 1 // read the view's checkpoint and parked streams, and the log's incarnation
	DoFeed                  // read the feed after After
	DoStore                 // read the log after After, and its incarnation
	DoRows                  // read Keys from the view
	DoApply                 // write Batch to the view
	DoStream                // read Stream's commits from the one that holds Version on
	DoWait                  // wait until the feed may have something after After
	DoRebuild               // the view's history is not the log's (Why): the runner has ended
)

// Out is the one thing that a runner wants done.
type Out struct {
	Do      Do
	After   events.Position
	Max     int // commits
	Keys    []Key
	Batch   *Batch
	Stream  events.Stream
	Version events.Version
	Why     string
	More    bool // there is more of the log to be had at once: no pause is due
}

// In is the answer to the last Out. Only what that asked for is read.
type In struct {
	Now         events.Time
	Err         error // it failed; of DoApply: ErrMoved, or unknown
	Checkpoint  events.Checkpoint
	Parked      []Parked
	Incarnation events.Incarnation
	Commits     []events.Commit
	Rows        []Row
	Retry       bool // try every parked stream again; may be said at any step
}

// Stats is what a runner has done since it was made, and how it stands.
type Stats struct {
	Seen    events.Checkpoint
	Applied int64 // events
	Commits int64
	Dropped int64 // commits that were seen before
	Filled  int64 // holes of the feed that the log has filled
	Gap     bool  // feed_gap: the log itself lacks what comes next; nothing above is applied
	Parked  int
	Waiting int64 // parked events
	Quiet   bool  // it has nothing to do: all that the feed has is in the view
}

// Runner feeds one view from one partition, as a state machine: Step takes the answer to what it last wanted and says
// what it wants next. It applies a commit only at seen + 1, and writes its checkpoint with the rows. Not for
// concurrent use.
type Runner struct {
	part  events.Partition
	fold  *fold
	doing Do
	out   Out

	stored events.Checkpoint // as the view has it
	seen   events.Checkpoint
	heard  events.Time // last sign of life of the feed, or word of the log
	turn   bool        // the log is to be read next, not the feed
	hole   bool        // because the feed left one
	more   bool        // the last page was full

	page     []events.Commit // being applied
	next     int             // commit of page
	from     events.Version  // of that commit; 0: from its first
	retry    []events.Stream
	retrying *Parked // page is of its stream

	stats Stats
}

// NewRunner makes a runner of m's view for partition p. m must pass Check.
func NewRunner(m *Model, p events.Partition, codec events.Codec) *Runner {
	return &Runner{part: p, fold: newFold(m, codec)}
}

// Stats may be asked between steps.
func (r *Runner) Stats() Stats {
	s := r.stats
	s.Seen, s.Applied, s.Parked, s.Quiet = r.seen, r.fold.applied, len(r.fold.parked), r.doing == DoWait
	for _, p := range r.fold.parked {
		s.Waiting += p.Waiting
	}
	return s
}

// Step takes in the answer to the last Out, nothing at first. The same answers give the same outs.
func (r *Runner) Step(in *In) *Out {
	if in.Retry {
		r.retryAll()
	}
	switch r.doing {
	case DoOpen:
		r.opened(in)
	case DoFeed, DoStore:
		r.take(in)
	case DoRows:
		if in.Err != nil || len(in.Rows) != len(r.out.Keys) {
			r.reopen()
		} else {
			r.fold.rows.fill(r.out.Keys, in.Rows)
			r.run()
		}
	case DoApply:
		r.applied(in)
	case DoStream:
		r.takeStream(in)
	case DoWait:
		r.goOn()
	case DoRebuild:
	default:
		r.reopen()
	}
	return &r.out
}

func (r *Runner) do(o Out) { r.doing, r.out = o.Do, o }

// reopen drops all state, in opened: the view says where it stands.
func (r *Runner) reopen() {
	r.page, r.next, r.from, r.retry, r.retrying = nil, 0, 0, nil, nil
	r.do(Out{Do: DoOpen})
}

func (r *Runner) rebuild(format string, args ...any) {
	r.do(Out{Do: DoRebuild, Why: fmt.Sprintf(format, args...)})
}

func (r *Runner) opened(in *In) {
	if in.Err != nil {
		r.reopen()
		return
	}
	r.fold.reset(in.Parked)
	r.stored, r.seen, r.heard = in.Checkpoint, in.Checkpoint, in.Now
	if r.seen.Position == 0 {
		r.seen = events.Checkpoint{Incarnation: in.Incarnation}
	}
	// Whoever starts compares its checkpoint with the log's own commit there before it takes anything from a feed.
	r.turn = true
	r.retryAll() // a build that starts may be the one that mends what another could not apply
	r.goOn()
}

func (r *Runner) retryAll() { r.retry = r.fold.parkedStreams() }

// before is the position to read after so that the commit at the checkpoint is met again: its hash says whether this
// is still the history that was applied.
func (r *Runner) before() events.Position { return max(r.seen.Position-1, 0) }

// goOn wants the next page.
func (r *Runner) goOn() {
	switch {
	case r.turn:
		r.do(Out{Do: DoStore, After: r.before(), Max: BatchCommitsMax + 1, More: r.more})
	case r.nextRetry():
	default:
		r.do(Out{Do: DoFeed, After: r.before(), Max: BatchCommitsMax + 1, More: r.more})
	}
}

// take looks at a page: what comes at seen + 1 is applied; what does not is dropped, or sends the runner to the log.
func (r *Runner) take(in *In) {
	store := r.doing == DoStore
	if in.Err != nil {
		r.turn, r.more = true, false
		r.stats.Gap = r.stats.Gap || r.hole
		r.do(Out{Do: DoWait, After: r.seen.Position})
		return
	}
	if store && in.Incarnation != r.seen.Incarnation {
		r.rebuild("the log is in incarnation %d, the view in %d", in.Incarnation, r.seen.Incarnation)
		return
	}
	hole, foreign := r.sort(in.Commits)
	switch {
	case store && foreign:
		r.rebuild("the log has another commit at position %d than the view", r.seen.Position)
		return
	case store && len(in.Commits) == 0 && r.seen.Position > 0:
		r.rebuild("the log ends below position %d, where the view stands", r.seen.Position)
		return
	case foreign:
		r.page = r.page[:0] // the feed speaks of another history; only the log's word counts
	}
	r.settle(in, store, hole, foreign)
	if len(r.page) > 0 {
		r.next, r.from = 0, 0
		r.run()
		return
	}
	r.idle(in.Now, store)
}

// settle decides where to read next.
func (r *Runner) settle(in *In, store, hole, foreign bool) {
	if len(r.page) > 0 || store {
		r.heard = in.Now
	}
	r.more = len(in.Commits) > BatchCommitsMax
	if !store {
		r.turn, r.hole = hole || foreign, r.hole || hole
		return
	}
	if r.hole && !hole && len(r.page) > 0 {
		r.stats.Filled++
	}
	r.stats.Gap = hole
	r.turn = hole || r.more
	r.hole = hole
}

// sort puts what follows the checkpoint without a hole into page.
func (r *Runner) sort(commits []events.Commit) (hole, foreign bool) {
	r.page = r.page[:0]
	at := r.seen.Position
	for i := range commits {
		switch c := &commits[i]; {
		case c.Before() == at && c.N > 0:
			r.page = append(r.page, *c)
			at = c.Position
		case c.Before() >= at:
			return true, false
		case c.Position > at:
			return false, true // it begins within what was seen
		default:
			if c.Position == r.seen.Position && c.Hash != r.seen.Hash {
				return false, true
			}
			r.stats.Dropped++
		}
	}
	return false, false
}

// idle waits, or asks the log when the feed was silent for long.
func (r *Runner) idle(now events.Time, store bool) {
	switch {
	case store && !r.turn && r.nextRetry():
	case !store && (r.turn || now.Sub(r.heard) >= quiet):
		r.turn = true
		r.goOn()
	default:
		r.do(Out{Do: DoWait, After: r.seen.Position})
	}
}

// run applies page from where it stands, asks for rows that it needs, and has the batch written.
func (r *Runner) run() {
	for ; r.next < len(r.page); r.next++ {
		c := &r.page[r.next]
		if r.retrying != nil && r.fold.parked[c.Stream] != nil {
			break // it failed again; what follows waits as before
		}
		if v := r.fold.commit(c, r.from); v != 0 {
			r.from = v
			r.ask()
			return
		}
		r.from = 0
	}
	b := &Batch{Partition: r.part, From: r.stored, To: r.seen, Changes: r.fold.rows.changes()}
	if r.retrying != nil {
		r.stillWaiting()
		b.To = r.stored
	} else {
		last := &r.page[len(r.page)-1]
		b.To.Position, b.To.Hash = last.Position, last.Hash
	}
	b.Park, b.Unpark = r.fold.parking()
	r.do(Out{Do: DoApply, Batch: b})
}

// ask wants the rows that stopped the page, and those that the rest of it will ask for.
func (r *Runner) ask() {
	r.fold.scout(&r.page[r.next], r.from)
	for i := r.next + 1; i < len(r.page) && len(r.fold.rows.missed) < keysAskMax; i++ {
		r.fold.scout(&r.page[i], 0)
	}
	r.do(Out{Do: DoRows, Keys: r.fold.rows.ask()})
}

func (r *Runner) applied(in *In) {
	if in.Err != nil {
		r.reopen()
		return
	}
	r.fold.committed()
	r.stored = r.out.Batch.To
	if r.retrying == nil {
		r.seen = r.stored
		r.stats.Commits += int64(len(r.page))
	}
	r.page, r.retrying = r.page[:0], nil
	r.goOn()
}

// nextRetry wants the next parked stream that is to be tried again, if there is one.
func (r *Runner) nextRetry() bool {
	for len(r.retry) > 0 {
		if p := r.fold.parked[r.retry[0]]; p != nil {
			r.do(Out{Do: DoStream, Stream: p.Stream, Version: p.Version, Max: BatchCommitsMax})
			return true
		}
		r.retry = r.retry[1:]
	}
	return false
}

// takeStream applies a parked stream's events up to the checkpoint; what is above comes through the feed.
func (r *Runner) takeStream(in *In) {
	s := r.retry[0]
	p := r.fold.parked[s]
	r.retry = r.retry[1:]
	if in.Err != nil && !errors.Is(in.Err, events.ErrNoStream) {
		r.reopen()
		return
	}
	r.page = r.page[:0]
	for i := range in.Commits {
		if c := in.Commits[i]; c.Last() >= p.Version && c.Position <= r.seen.Position {
			r.page = append(r.page, c)
		}
	}
	if len(r.page) == 0 {
		r.goOn()
		return
	}
	delete(r.fold.parked, s)
	r.fold.touch(s)
	r.retrying, r.next, r.from = p, 0, p.Version
	r.run()
}

// stillWaiting counts what of a retried stream is still parked: it failed again, or there is more than a page of it.
func (r *Runner) stillWaiting() {
	old, s := r.retrying, r.retrying.Stream
	if p := r.fold.parked[s]; p != nil {
		p.Waiting = old.Waiting - int64(p.Version-old.Version)
		return
	}
	done := r.page[len(r.page)-1].Last() + 1
	if left := old.Waiting - int64(done-old.Version); left > 0 {
		p := *old
		p.Version, p.Waiting = done, left
		r.fold.parked[s] = &p
		r.retry = append([]events.Stream{s}, r.retry...)
	}
}
