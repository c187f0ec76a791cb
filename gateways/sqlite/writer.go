package sqlite

import (
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// One commit to disk takes at most so many appends and bytes, so that nobody waits long behind it and its pages stay
// in memory. A single call goes to disk whole, whatever its size.
const (
	groupAppendsMax = 4096
	groupBytesMax   = 16 << 20
)

var writePragmas = []string{
	"page_size=4096", "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000", "cache_size=-16384",
	"temp_store=MEMORY", "foreign_keys=OFF",
}

// writer is the one goroutine that writes, and what it knows.
type writer struct {
	files       files
	opt         *Options
	highWater   *highWater
	incarnation events.Incarnation

	c        driver.Conn // nil after a failure, until it could be opened again
	sql      writeStmts
	parts    []partition
	heads    heads
	sid      int64 // the highest
	within   bool  // a transaction is open
	dirty    []*head
	appended int  // in this transaction
	sealing  bool // this transaction holds a seal
}

// partition is a partition's counter row.
type partition struct {
	position events.Position
	token    events.Fence
	at       events.Time // recorded_at of the last commit
	tenure   events.Tenure
	dirty    bool

	original, insert stmt
}

// write serves the queue until the store is closed.
func (s *Store) write(w *writer) {
	var group []*request
	for {
		var r *request
		select {
		case r = <-s.queue:
		case <-s.quit:
			s.refuse()
			s.shut(w)
			return
		}
		group = s.gather(group[:0], r)
		for _, r := range w.serve(group) {
			r.answer()
		}
		clear(group)
	}
}

// gather takes what has queued behind r, up to the maxima.
func (s *Store) gather(group []*request, r *request) []*request {
	for appends, bytes := 0, 0; ; {
		if r.state.CompareAndSwap(waits, taken) {
			group = append(group, r)
			appends += len(r.batch)
			for _, a := range r.batch {
				bytes += len(a.Envelope) + len(a.Events) + len(a.Head.Snapshot)
			}
		}
		if appends >= groupAppendsMax || bytes >= groupBytesMax {
			return group
		}
		select {
		case r = <-s.queue:
		default:
			return group
		}
	}
}

// refuse answers what has queued when the store was closed.
func (s *Store) refuse() {
	for {
		select {
		case r := <-s.queue:
			if r.state.CompareAndSwap(waits, taken) {
				r.err = events.ErrClosed
				r.answer()
			}
		default:
			return
		}
	}
}

// answer tells the caller, if it is still there, that err and out are set.
func (r *request) answer() {
	if r.state.CompareAndSwap(taken, answered) {
		r.done <- struct{}{}
	}
}

// serve stores a group in one transaction and sets the error of each request. When that fails, the database has been
// opened anew and its tail re-read before serve returns: nobody is answered out of a state that is not known.
func (w *writer) serve(group []*request) []*request {
	if len(group) == 0 {
		return group
	}
	err := w.usable()
	for _, r := range group {
		if err != nil {
			break
		}
		var refused error
		if refused, err = w.one(r); err == nil {
			r.err = refused
		}
	}
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		for _, r := range group {
			r.err = err
		}
		if again := w.reopen(); again != nil {
			w.c = nil // usable tries again
		}
	}
	return group
}

// usable opens the database again after a failure that it could not be opened behind.
func (w *writer) usable() error {
	if w.c != nil {
		return nil
	}
	return w.open()
}

// one judges a request, and writes what it may. The first error is the request's own; with the second, which is the
// database's, nothing of the group can stay.
func (w *writer) one(r *request) (refused, failed error) {
	part := &w.parts[r.p]
	if r.job != nil {
		return w.do(r, part)
	}
	if refused, failed = w.know(r.batch); refused != nil || failed != nil {
		return refused, failed
	}
	at := max(part.at, w.opt.Clock())
	for i, a := range r.batch {
		if r.out[i], failed = w.judge(part, a, at); failed != nil {
			return nil, w.files.fault(fmt.Sprintf("append to %s at version %d", a.Stream, a.Expected), failed)
		}
	}
	return nil, nil
}

// do runs a write of the store's own. It refuses before it writes, or not at all.
func (w *writer) do(r *request, part *partition) (refused, failed error) {
	err := r.job(w, part, w.opt.Clock())
	var d *driver.Error
	if errors.As(err, &d) {
		return nil, w.files.fault("write", err)
	}
	return err, nil
}

// commit makes the transaction durable. What fails here may have happened, but for a full disk, which is told of
// before the page that ends the transaction is written.
func (w *writer) commit() error {
	if !w.within {
		return nil
	}
	if err := w.flush(); err != nil {
		return w.files.fault("commit", err)
	}
	if w.appended > 0 && w.opt.BeforeCommit != nil {
		if err := w.opt.BeforeCommit(); err != nil {
			return fmt.Errorf("commit: %w: %w", events.ErrUnknown, err)
		}
	}
	if err := w.sql.commit.run(); err != nil {
		err = w.files.fault("commit", err)
		if !errors.Is(err, ErrDiskFull) {
			err = fmt.Errorf("%w: %w", events.ErrUnknown, err)
		}
		return err
	}
	if w.appended > 0 && w.opt.AfterCommit != nil {
		if err := w.opt.AfterCommit(); err != nil {
			return fmt.Errorf("commit: %w: %w", events.ErrUnknown, err)
		}
	}
	// A mark that cannot be written is lower than it could be; that is no reason to refuse what is durable.
	_ = w.highWater.write(w.incarnation, w.parts)
	if w.sealing {
		_ = w.highWater.sync()
	}
	w.within, w.appended, w.sealing = false, 0, false
	w.heads.age()
	return nil
}

// begin opens the transaction at the first row that is to be written; a group of losers opens none.
func (w *writer) begin() error {
	if w.within {
		return nil
	}
	if err := w.sql.begin.run(); err != nil {
		return err
	}
	w.within = true
	return nil
}

// reopen drops all that the writer believes and reads it anew. Frames of a commit whose sync failed may stand in the
// write-ahead log, and the kernel may hold them as clean though they are on no disk. They are not adopted: the store's
// readers keep the index of the log alive, and it ends before them, so that the next commit overwrites them.
func (w *writer) reopen() error {
	if w.c != nil {
		if w.within {
			_ = w.sql.rollback.run() // closing does it too
		}
		_ = w.c.Close() // what it could say is no news
		w.c = nil
	}
	return w.open()
}

// open opens the database and reads its counters.
func (w *writer) open() error {
	c, err := w.opt.Driver.Open(w.files.log(), driver.Options{Pragmas: writePragmas})
	if err != nil {
		return w.files.fault("open log", err)
	}
	w.heads, w.dirty, w.within, w.appended = newHeads(), nil, false, 0
	w.sealing = false
	if err = w.sql.prepare(c); err == nil {
		err = w.load(c)
	}
	if err != nil {
		return w.files.fault("open log", errors.Join(err, c.Close()))
	}
	w.c = c
	return nil
}

// close closes what is open.
func (w *writer) close() error {
	err := w.highWater.close()
	if w.c != nil {
		err = errors.Join(err, w.c.Close())
	}
	return err
}

func (w *writer) positions() []events.Position {
	var all []events.Position
	for i := range w.parts {
		all = append(all, w.parts[i].position)
	}
	return all
}
