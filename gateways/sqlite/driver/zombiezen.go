package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
)

// busyMax is how long a connection waits for another one's lock.
const busyMax = 5 * time.Second

// Default is zombiezen.com/go/sqlite over modernc.org/sqlite: SQLite in pure Go through its C-shaped interface.
var Default = Driver{Name: "zombiezen", Open: openZombiezen, Harden: Harden}

// Open opens path with Default for reading and writing.
func Open(path string, pragmas ...string) (Conn, error) {
	return Default.Open(path, Options{Pragmas: pragmas})
}

type zConn struct {
	c *sqlite.Conn
}

func openZombiezen(path string, o Options) (Conn, error) {
	flags := sqlite.OpenReadWrite | sqlite.OpenCreate
	if o.ReadOnly {
		flags = sqlite.OpenReadOnly
	}
	c, err := sqlite.OpenConn(path, flags)
	if err != nil {
		return nil, coded(err)
	}
	c.SetBusyTimeout(busyMax)
	z := &zConn{c}
	for _, p := range o.Pragmas {
		if err := z.Exec("PRAGMA " + p); err != nil {
			_ = c.Close() // the error that counts is the first one
			return nil, err
		}
	}
	return z, nil
}

func (z *zConn) Prepare(sql string) (Stmt, error) {
	s, err := z.c.Prepare(sql)
	if err != nil {
		return nil, coded(err)
	}
	return &zStmt{s}, nil
}

func (z *zConn) Exec(script string) error {
	for script = strings.TrimSpace(script); script != ""; {
		s, rest, err := z.c.PrepareTransient(script)
		if err != nil {
			return coded(err)
		}
		if err := drain(s); err != nil {
			return coded(err)
		}
		script = strings.TrimSpace(script[len(script)-rest:])
	}
	return nil
}

// drain runs a statement to its end and finalizes it.
func drain(s *sqlite.Stmt) error {
	defer s.Finalize() //nolint:errcheck // repeats the error of Step
	for {
		row, err := s.Step()
		if err != nil || !row {
			return err
		}
	}
}

func (z *zConn) Changes() int64 { return int64(z.c.Changes()) }

func (z *zConn) Interrupt(ctx context.Context) { z.c.SetInterrupt(ctx.Done()) }

func (z *zConn) Close() error { return coded(z.c.Close()) }

type zStmt struct {
	s *sqlite.Stmt
}

func (s *zStmt) BindInt(i int, v int64)      { s.s.BindInt64(i, v) }
func (s *zStmt) BindFloat(i int, v float64)  { s.s.BindFloat(i, v) }
func (s *zStmt) BindText(i int, v string)    { s.s.BindText(i, v) }
func (s *zStmt) BindBlob(i int, v []byte)    { s.s.BindBytes(i, v) }
func (s *zStmt) BindNull(i int)              { s.s.BindNull(i) }
func (s *zStmt) ColumnInt(col int) int64     { return s.s.ColumnInt64(col) }
func (s *zStmt) ColumnFloat(col int) float64 { return s.s.ColumnFloat(col) }
func (s *zStmt) ColumnText(col int) string   { return s.s.ColumnText(col) }
func (s *zStmt) ColumnLen(col int) int       { return s.s.ColumnLen(col) }
func (s *zStmt) ColumnNull(col int) bool     { return s.s.ColumnIsNull(col) }

func (s *zStmt) ColumnBlob(dst []byte, col int) []byte {
	at, room := len(dst), cap(dst)-len(dst)
	n := s.s.ColumnBytes(col, dst[at:cap(dst)])
	if n == room { // it fits exactly, or was cut
		n = s.s.ColumnLen(col)
		dst = slices.Grow(dst, n)
		s.s.ColumnBytes(col, dst[at:at+n])
	}
	return dst[:at+n]
}

func (s *zStmt) Step() (bool, error) {
	row, err := s.s.Step()
	if err != nil {
		return false, coded(err)
	}
	return row, nil
}

func (s *zStmt) Reset() error { return coded(s.s.Reset()) }

func coded(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: int(sqlite.ErrCode(err)), Err: err}
}
