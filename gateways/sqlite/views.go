package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"sync"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
)

const (
	// viewsLayout is the version of the tables that hold builds and checkpoints. A file of another layout is thrown
	// away: a read model can always be built again.
	viewsLayout = 1
	// viewsReadersMax is how many lists are read at once; more wait.
	viewsReadersMax = 4
)

const viewsSchema = `
CREATE TABLE view_models(model TEXT PRIMARY KEY, last INTEGER NOT NULL, live INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE view_builds(model TEXT, number INTEGER, version INTEGER NOT NULL, loaded INTEGER NOT NULL,
	tables TEXT NOT NULL, PRIMARY KEY(model, number)) WITHOUT ROWID;
CREATE TABLE view_checkpoints(model TEXT, build INTEGER, part INTEGER, incarnation INTEGER NOT NULL,
	position INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(model, build, part)) WITHOUT ROWID;
CREATE TABLE view_parked(model TEXT, build INTEGER, stream TEXT, version INTEGER NOT NULL, position INTEGER NOT NULL,
	part INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, waiting INTEGER NOT NULL,
	PRIMARY KEY(model, build, stream)) WITHOUT ROWID;`

// The file is synced when its log is folded back, not at every commit: a power cut may cost the last batches, which
// the runner applies again, but never half a batch.
var (
	viewsWriterPragmas = []string{
		"page_size=4096", "journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=8000", "cache_size=-16384",
		"foreign_keys=OFF",
	}
	viewsReaderPragmas = []string{"query_only=1", "cache_size=-4096"}
)

// Views keeps read models in one file of their own. The file can be deleted while nobody has it open; one that is
// damaged is deleted here. Safe for concurrent use.
type Views struct {
	path string
	drv  driver.Driver
	log  *slog.Logger

	life    sync.RWMutex // held for writing while the file is replaced
	gen     int          // raised by each replacement
	closed  bool
	writer  *conn
	write   sync.Mutex // of writer
	queue   viewQueue
	readers chan *conn // nil: not opened yet
	numbers map[string]int
}

var _ projections.Views = (*Views)(nil)

// conn is a connection with its prepared statements.
type conn struct {
	driver.Conn
	stmts map[string]driver.Stmt
}

func (c *conn) stmt(sql string) (driver.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, err := c.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", sql, err)
	}
	c.stmts[sql] = s
	return s, nil
}

// OpenViews opens the file at path with d, or makes it. A damaged file, or one of another layout, is deleted and made
// anew; log says so. Other errors are of the file system, or that another process has the file locked.
func OpenViews(d driver.Driver, path string, log *slog.Logger) (*Views, error) {
	v := &Views{path: path, drv: d, log: log, numbers: map[string]int{}}
	err := v.open()
	if errors.Is(err, driver.ErrDamaged) || errors.Is(err, errLayout) {
		v.log.Warn("the views file cannot be used and is made anew", "path", path, "error", err)
		if err = v.remove(); err == nil {
			err = v.open()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open views %s: %w", path, err)
	}
	return v, nil
}

var errLayout = errors.New("another layout")

// open opens the connections. The journal of a file that was deleted must not be taken for that of a new one.
func (v *Views) open() error {
	if _, err := os.Stat(v.path); errors.Is(err, fs.ErrNotExist) {
		if err := v.remove(); err != nil {
			return err
		}
	}
	c, err := v.drv.Open(v.path, driver.Options{Pragmas: viewsWriterPragmas})
	if err != nil {
		return err
	}
	v.writer = &conn{Conn: c, stmts: map[string]driver.Stmt{}}
	if err := v.layout(); err != nil {
		return errors.Join(err, v.writer.Close())
	}
	v.readers = make(chan *conn, viewsReadersMax)
	for range viewsReadersMax {
		v.readers <- nil
	}
	return nil
}

func (v *Views) layout() error {
	s, err := v.writer.stmt("PRAGMA user_version")
	if err != nil {
		return err
	}
	if _, err := s.Step(); err != nil {
		return err
	}
	has := s.ColumnInt(0)
	if err := s.Reset(); err != nil {
		return err
	}
	switch has {
	case viewsLayout:
		return nil
	case 0:
		return v.writer.Exec("BEGIN;" + viewsSchema + "PRAGMA user_version=" + strconv.Itoa(viewsLayout) + ";COMMIT")
	}
	return fmt.Errorf("%w: %d, not %d", errLayout, has, viewsLayout)
}

func (v *Views) remove() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(v.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the file. Repeating it is safe.
func (v *Views) Close() error {
	v.life.Lock()
	defer v.life.Unlock()
	if v.closed {
		return nil
	}
	v.closed = true
	return v.shut()
}

func (v *Views) shut() error {
	var errs []error
	for range viewsReadersMax {
		if c := <-v.readers; c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(append(errs, v.writer.Close())...)
}

// heal throws a damaged file away, once for all that met the damage, and answers ErrNoView: there is nothing left.
func (v *Views) heal(gen int, cause error) error {
	v.life.Lock()
	defer v.life.Unlock()
	if v.gen == gen && !v.closed {
		v.log.Error("the views file is damaged and is made anew", "path", v.path, "error", cause)
		err := errors.Join(v.shut(), v.remove())
		if err := v.open(); err != nil {
			v.closed = true
			return fmt.Errorf("make views %s anew: %w", v.path, err)
		}
		if v.gen++; err != nil {
			v.log.Warn("the damaged views file was not closed cleanly", "path", v.path, "error", err)
		}
	}
	return fmt.Errorf("%w: the file was damaged: %w", projections.ErrNoView, cause)
}

// update runs f in a write transaction. Whatever f returns, the transaction has ended.
func (v *Views) update(ctx context.Context, f func(c *conn) error) error {
	v.life.RLock()
	gen := v.gen
	err := v.updating(ctx, f)
	v.life.RUnlock()
	if errors.Is(err, driver.ErrDamaged) {
		return v.heal(gen, err)
	}
	return err
}

func (v *Views) updating(ctx context.Context, f func(c *conn) error) error {
	if v.closed {
		return fs.ErrClosed
	}
	v.write.Lock()
	defer v.write.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return v.writer.inside(ctx, "BEGIN IMMEDIATE", f)
}

// read runs f in a read transaction: one snapshot.
func (v *Views) read(ctx context.Context, f func(c *conn) error) error {
	v.life.RLock()
	gen := v.gen
	err := v.reading(ctx, f)
	v.life.RUnlock()
	if errors.Is(err, driver.ErrDamaged) {
		return v.heal(gen, err)
	}
	return err
}

func (v *Views) reading(ctx context.Context, f func(c *conn) error) (err error) {
	if v.closed {
		return fs.ErrClosed
	}
	var c *conn
	select {
	case c = <-v.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { v.readers <- c }()
	if c == nil {
		raw, err := v.drv.Open(v.path, driver.Options{Pragmas: viewsReaderPragmas})
		if err != nil {
			return err
		}
		c = &conn{Conn: raw, stmts: map[string]driver.Stmt{}}
	}
	c.Interrupt(ctx)
	return c.inside(ctx, "BEGIN", f)
}

// inside runs f between begin and COMMIT, or ROLLBACK when it fails.
func (c *conn) inside(ctx context.Context, begin string, f func(c *conn) error) error {
	if err := c.run(begin); err != nil {
		return err
	}
	err := f(c)
	if err == nil {
		err = c.run("COMMIT")
	}
	if err != nil {
		c.Interrupt(context.WithoutCancel(ctx)) // the rollback must not be cut short
		if back := c.run("ROLLBACK"); back != nil {
			return errors.Join(err, back)
		}
	}
	return err
}

// run executes a statement without rows.
func (c *conn) run(sql string, args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	return done(s, args...)
}

// done binds, runs and resets a statement without rows.
func done(s driver.Stmt, args ...any) error {
	bind(s, 1, args...)
	if _, err := s.Step(); err != nil {
		return err
	}
	return s.Reset()
}

// rows runs a query and calls each for every row.
func (c *conn) rows(sql string, each func(s driver.Stmt), args ...any) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	bind(s, 1, args...)
	for {
		row, err := s.Step()
		if err != nil {
			return err
		}
		if !row {
			return s.Reset()
		}
		each(s)
	}
}

// bind gives values to parameters from the given one on.
func bind(s driver.Stmt, param int, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			s.BindNull(param + i)
		case string:
			s.BindText(param+i, a)
		case int64:
			s.BindInt(param+i, a)
		case int:
			s.BindInt(param+i, int64(a))
		case bool:
			n := int64(0)
			if a {
				n = 1
			}
			s.BindInt(param+i, n)
		case []byte:
			s.BindBlob(param+i, a)
		default:
			panic(fmt.Sprintf("a parameter is %T", a))
		}
	}
}
