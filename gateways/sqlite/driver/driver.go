// Package driver is the little of SQLite that Sluice needs, so that the library behind it can be changed and tests can
// plant faults below it. It must never know a table: schemas and statements belong to its users.
package driver

import (
	"context"
	"errors"
	"fmt"
)

// Driver opens databases. Default is the one that ships.
type Driver struct {
	// Name is for messages.
	Name string
	// Open opens the database at path, creating it unless o.ReadOnly, and runs o.Pragmas in order.
	Open func(path string, o Options) (Conn, error)
	// Harden writes what stands in the file anew and syncs it; a file that is not there is no error. After a crash or
	// a failed sync a file may read well and yet be in memory only, marked clean: a later sync would not write it.
	// Nobody may have the database open meanwhile. Repeating it is safe.
	Harden func(path string) error
}

// Options says how a connection is opened.
type Options struct {
	ReadOnly bool
	// Pragmas are run first, such as "journal_mode=WAL".
	Pragmas []string
}

// Conn is one connection. It serves one goroutine at a time. A lock that another connection holds is waited for, for
// at most five seconds; then ErrBusy.
type Conn interface {
	// Prepare compiles one statement, which lives until the connection is closed. Preparing a text twice may give the
	// same statement.
	Prepare(sql string) (Stmt, error)
	// Exec runs every statement of a script and drops their rows. The script ends with a statement, not with a comment.
	Exec(script string) error
	// Changes is how many rows the last INSERT, UPDATE or DELETE touched.
	Changes() int64
	// Interrupt has statements fail with ErrInterrupted once ctx has ended, until it is called again. Statements that
	// are in the middle of their rows are reset. It costs about a microsecond unless ctx cannot end.
	Interrupt(ctx context.Context)
	// Close finalizes all statements. Closing the last connection of a database writes its log back into it.
	Close() error
}

// Stmt is a prepared statement. Parameters count from 1 and stay bound until they are bound anew, columns from 0.
// A parameter that cannot be bound fails the next Step.
type Stmt interface {
	BindInt(param int, v int64)
	BindFloat(param int, v float64)
	BindText(param int, v string)
	// BindBlob copies v; an empty or nil v is an empty blob, never NULL.
	BindBlob(param int, v []byte)
	BindNull(param int)

	// Step says whether there is a row. After an error the statement is reset already.
	Step() (bool, error)
	ColumnInt(col int) int64
	ColumnFloat(col int) float64
	// ColumnText returns a copy.
	ColumnText(col int) string
	// ColumnBlob appends the column's bytes to dst.
	ColumnBlob(dst []byte, col int) []byte
	// ColumnLen is the length in bytes of a text or blob.
	ColumnLen(col int) int
	ColumnNull(col int) bool
	// Reset ends the statement, and with it the lock or snapshot that it holds outside a transaction.
	Reset() error
}

// Sentinels: what an error of any driver means. errors.Is finds them.
var (
	ErrBusy        = errors.New("database is locked")
	ErrInterrupted = errors.New("interrupted")
	ErrFull        = errors.New("disk is full")
	ErrDamaged     = errors.New("database is damaged")
	ErrIO          = errors.New("input or output failed")
	ErrConstraint  = errors.New("constraint failed")
	ErrReadOnly    = errors.New("database is read-only")
)

// The primary result codes that mean something to us: https://www.sqlite.org/rescode.html
var meanings = map[int]error{
	5: ErrBusy, 6: ErrBusy, 8: ErrReadOnly, 9: ErrInterrupted, 10: ErrIO, 11: ErrDamaged, 13: ErrFull,
	14: ErrIO, 19: ErrConstraint, 26: ErrDamaged,
}

// Error is a failed call, with SQLite's extended result code.
type Error struct {
	Code int
	Err  error
}

// Error is the library's own text.
func (e *Error) Error() string { return fmt.Sprintf("%v (SQLite code %d)", e.Err, e.Code) }

// Unwrap gives the library's error.
func (e *Error) Unwrap() error { return e.Err }

// Is finds the sentinel of the primary code.
func (e *Error) Is(target error) bool {
	m := meanings[e.Code&0xff]
	return m != nil && m == target
}
