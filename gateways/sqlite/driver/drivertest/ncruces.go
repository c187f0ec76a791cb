package drivertest

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// Ncruces is SQLite compiled to WebAssembly and from there to Go: another build of the same library than the product's,
// whose files can be replaced.
var Ncruces = driver.Driver{
	Name:   "ncruces",
	Open:   func(path string, o driver.Options) (driver.Conn, error) { return openNcruces(path, "", o) },
	Harden: driver.Harden,
}

type nConn struct {
	c *sqlite3.Conn
}

func openNcruces(path, vfs string, o driver.Options) (driver.Conn, error) {
	query := url.Values{"mode": {"rwc"}}
	if o.ReadOnly {
		query.Set("mode", "ro")
	}
	if vfs != "" {
		query.Set("vfs", vfs)
	}
	uri := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}
	c, err := sqlite3.Open(uri.String())
	if err != nil {
		return nil, coded(err)
	}
	err = c.BusyTimeout(5 * time.Second)
	for _, p := range o.Pragmas {
		if err == nil {
			err = c.Exec("PRAGMA " + p)
		}
	}
	if err != nil {
		return nil, coded(errors.Join(err, c.Close()))
	}
	return &nConn{c}, nil
}

func (n *nConn) Prepare(sql string) (driver.Stmt, error) {
	s, _, err := n.c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, coded(err)
	}
	return &nStmt{s: s}, nil
}

func (n *nConn) Exec(script string) error      { return coded(n.c.Exec(script)) }
func (n *nConn) Changes() int64                { return n.c.Changes() }
func (n *nConn) Interrupt(ctx context.Context) { n.c.SetInterrupt(ctx) }

func (n *nConn) Close() error {
	var all []*sqlite3.Stmt // closing one changes the sequence
	for s := range n.c.Stmts() {
		all = append(all, s)
	}
	for _, s := range all {
		_ = s.Close() // repeats the error of its last Step
	}
	return coded(n.c.Close())
}

type nStmt struct {
	s    *sqlite3.Stmt
	bind error // the first that failed since the last Step
}

func (s *nStmt) bound(err error) {
	if s.bind == nil {
		s.bind = err
	}
}

func (s *nStmt) BindInt(i int, v int64)      { s.bound(s.s.BindInt64(i, v)) }
func (s *nStmt) BindFloat(i int, v float64)  { s.bound(s.s.BindFloat(i, v)) }
func (s *nStmt) BindText(i int, v string)    { s.bound(s.s.BindText(i, v)) }
func (s *nStmt) BindNull(i int)              { s.bound(s.s.BindNull(i)) }
func (s *nStmt) ColumnInt(col int) int64     { return s.s.ColumnInt64(col) }
func (s *nStmt) ColumnFloat(col int) float64 { return s.s.ColumnFloat(col) }
func (s *nStmt) ColumnText(col int) string   { return s.s.ColumnText(col) }
func (s *nStmt) ColumnLen(col int) int       { return len(s.s.ColumnRawBlob(col)) }
func (s *nStmt) ColumnNull(col int) bool     { return s.s.ColumnType(col) == sqlite3.NULL }

func (s *nStmt) BindBlob(i int, v []byte) {
	if v == nil {
		v = []byte{}
	}
	s.bound(s.s.BindBlob(i, v))
}

func (s *nStmt) ColumnBlob(dst []byte, col int) []byte {
	return append(dst, s.s.ColumnRawBlob(col)...)
}

func (s *nStmt) Step() (bool, error) {
	if err := s.bind; err != nil {
		s.bind = nil
		return false, coded(err)
	}
	if s.s.Step() {
		return true, nil
	}
	err := s.s.Err()
	if err != nil {
		_ = s.s.Reset() // repeats it
	}
	return false, coded(err)
}

func (s *nStmt) Reset() error { return coded(s.s.Reset()) }

func coded(err error) error {
	if err == nil {
		return nil
	}
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		code = sqlite3.ExtendedErrorCode(sqlite3.ERROR)
	}
	return &driver.Error{Code: int(code), Err: err}
}
