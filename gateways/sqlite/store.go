// Package sqlite is the embedded store: the log in one SQLite file, with one writer that commits whatever queued while
// the last commit was on its way to disk. It must never answer an append before its bytes are synced, and never decide
// what a command means.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// PartitionsDefault is how many partitions a new log has.
const PartitionsDefault = 4

// Options says how a store is opened. The zero value is good for production.
type Options struct {
	// Partitions a new log has, and an existing one grows to; it never shrinks. 0: PartitionsDefault, or what is there.
	Partitions int
	// Readers is how many reads run at once; further ones wait. Each keeps up to 16 MiB of pages. 0: 4.
	Readers int
	// QueueMax is how many calls of Append wait for the writer; further ones wait for room until their context ends.
	// 0: 4,096.
	QueueMax int
	// Clock is the store's clock: recorded_at and ownership are judged by it. nil: the machine's.
	Clock func() events.Time
	// Driver is the SQLite under the store. Zero: driver.Default.
	Driver driver.Driver

	// BeforeCommit is called before each commit of appends, when all was looked at and nothing can be seen. With an
	// error the commit fails, as a sync does. For tests; nil costs nothing.
	BeforeCommit func() error
	// AfterCommit is called when a commit is durable and nobody was answered. With an error the answers are lost.
	AfterCommit func() error
}

// Validate reports every mistake at once.
func (o *Options) Validate() error {
	var all []error
	if o.Partitions < 0 || o.Partitions > PartitionsMax {
		all = append(all, fmt.Errorf("%d partitions: at most %d", o.Partitions, PartitionsMax))
	}
	if o.Readers < 0 {
		all = append(all, fmt.Errorf("%d readers", o.Readers))
	}
	if o.QueueMax < 0 {
		all = append(all, fmt.Errorf("a queue of %d", o.QueueMax))
	}
	return errors.Join(all...)
}

func (o *Options) defaults() {
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.QueueMax == 0 {
		o.QueueMax = 4096
	}
	if o.Clock == nil {
		o.Clock = func() events.Time { return events.TimeOf(time.Now()) }
	}
	if o.Driver.Open == nil {
		o.Driver = driver.Default
	}
}

// Store is a log in one folder, which no other process has open. It is safe for concurrent use.
type Store struct {
	files files
	opt   Options
	info  events.LogInfo

	lock    *flock.Flock
	queue   chan *request
	readers chan *reader
	closing sync.Once
	quit    chan struct{} // closed when Close begins
	stopped chan struct{} // closed when the writer has ended
	fault   error         // of closing, set before stopped is closed
}

// Open opens the log in dir, and makes one where there is none. The errors are ErrInUse, ErrOldCopy, ErrDamaged,
// ErrNewerSchema, and faults of the disk; none of them changes what is there.
func Open(dir string, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	o.defaults()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	f := files(dir)
	lock, err := f.lock()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	s, err := open(f, o)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	s.lock = lock
	return s, nil
}

// open is Open under the folder's lock.
func open(f files, o Options) (_ *Store, err error) {
	hw, err := openHighWater(f.highWater())
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	s := &Store{
		files: f, opt: o, queue: make(chan *request, o.QueueMax), readers: make(chan *reader, o.Readers),
		quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	w := &writer{files: f, opt: &s.opt, highWater: hw}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeReaders(len(s.readers)), w.close())
		}
	}()
	if err := s.prepare(&hw.mark); err != nil {
		return nil, err
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	if s.info, err = w.info(); err != nil {
		return nil, f.fault("open log", err)
	}
	w.incarnation = s.info.Incarnation
	if err := hw.mark.check(f, w.incarnation, w.positions()); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := hw.write(w.incarnation, w.parts); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	// One reader at least stays open as long as the store: see writer.reopen.
	for range o.Readers {
		r, err := openReader(f, o.Driver)
		if err != nil {
			return nil, err
		}
		s.readers <- r
	}
	go s.write(w)
	return s, nil
}

// prepare makes the database or brings its schema up to date. What a crash left in memory is made durable first: it
// must not be read, and so told of, before it is.
func (s *Store) prepare(m *mark) error {
	there, err := exists(s.files.log())
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if !there {
		if err := m.check(s.files, m.incarnation, nil); err != nil {
			return fmt.Errorf("open log: there is no database: %w", err)
		}
	}
	for _, name := range []string{s.files.wal(), s.files.log()} {
		if err := s.opt.Driver.Harden(name); err != nil {
			return fmt.Errorf("open log: %w", err)
		}
	}
	c, err := s.opt.Driver.Open(s.files.log(), driver.Options{Pragmas: writePragmas})
	if err != nil {
		return s.files.fault("open log", err)
	}
	partitions := s.opt.Partitions
	if partitions == 0 && !there {
		partitions = PartitionsDefault
	}
	all, err := migrations(schema)
	if err == nil {
		err = migrate(c, all, partitions)
	}
	if err := errors.Join(err, c.Close()); err != nil {
		return s.files.fault("open log", err)
	}
	return syncDir(string(s.files))
}

// Log implements events.Reader.
func (s *Store) Log(ctx context.Context) (events.LogInfo, error) {
	if err := s.usable(ctx); err != nil {
		return events.LogInfo{}, err
	}
	return s.info, nil
}

// usable says whether a call may begin: the error of its context, or ErrClosed.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.quit:
		return events.ErrClosed
	default:
		return ctx.Err()
	}
}

// Close refuses new calls, answers those that wait with ErrClosed, ends what runs, writes the write-ahead log back
// into the database, and gives the folder free. Repeating it is safe.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.quit) })
	<-s.stopped
	return s.fault
}

// shut is the end of Close, run once by the writer.
func (s *Store) shut(w *writer) {
	err := errors.Join(s.closeReaders(cap(s.readers)), w.close())
	if s.lock != nil {
		err = errors.Join(err, s.lock.Unlock())
	}
	if err != nil {
		s.fault = fmt.Errorf("close log: %w", err)
	}
	close(s.stopped)
}

// closeReaders closes so many readers, and waits for reads that run.
func (s *Store) closeReaders(n int) (err error) {
	for range n {
		r := <-s.readers
		err = errors.Join(err, r.c.Close())
	}
	return err
}
