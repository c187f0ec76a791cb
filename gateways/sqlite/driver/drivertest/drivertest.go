// Package drivertest is the contract of driver.Driver, and a second driver with a disk that fails on demand.
// It must never be part of the product.
package drivertest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// Run holds a driver to the contract. dir gives a folder that the driver can make files in.
func Run(t *testing.T, d driver.Driver, dir func(t *testing.T) string) {
	open := func(t *testing.T, path string, o driver.Options) driver.Conn {
		t.Helper()
		c, err := d.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	fresh := func(t *testing.T) (driver.Conn, string) {
		t.Helper()
		path := filepath.Join(dir(t), "test.db")
		c := open(t, path, driver.Options{Pragmas: []string{"journal_mode=WAL", "synchronous=FULL"}})
		must(t, c.Exec("CREATE TABLE t(a INTEGER PRIMARY KEY, b);\n -- between\n INSERT INTO t VALUES (0, 'zero');\n"))
		return c, path
	}

	t.Run("every kind of value comes back as it went in", func(t *testing.T) {
		c, _ := fresh(t)
		big := bytes.Repeat([]byte{0, 1, 254}, 1<<16)
		put := prepare(t, c, "INSERT INTO t VALUES (?, ?)")
		get := prepare(t, c, "SELECT b FROM t WHERE a=?")
		values := []struct {
			bind  func()
			check func() bool
		}{
			{func() { put.BindInt(2, math.MinInt64) }, func() bool { return get.ColumnInt(0) == math.MinInt64 }},
			{func() { put.BindFloat(2, -0.5) }, func() bool { return get.ColumnFloat(0) == -0.5 }},
			{func() { put.BindText(2, "é\x00") }, func() bool { return get.ColumnText(0) == "é\x00" && get.ColumnLen(0) == 3 }},
			{func() { put.BindText(2, "") }, func() bool { return get.ColumnText(0) == "" && !get.ColumnNull(0) }},
			{func() { put.BindBlob(2, big) }, func() bool { return bytes.Equal(get.ColumnBlob(nil, 0), big) }},
			{func() { put.BindBlob(2, nil) }, func() bool { return get.ColumnLen(0) == 0 && !get.ColumnNull(0) }},
			{func() { put.BindNull(2) }, func() bool { return get.ColumnNull(0) && len(get.ColumnBlob(nil, 0)) == 0 }},
		}
		for i, v := range values {
			put.BindInt(1, int64(i+1))
			v.bind()
			run(t, put)
			if c.Changes() != 1 {
				t.Errorf("value %d: %d rows changed", i, c.Changes())
			}
			get.BindInt(1, int64(i+1))
			if row, err := get.Step(); !row || err != nil || !v.check() {
				t.Errorf("value %d came back as %q (%v, %v)", i, get.ColumnText(0), row, err)
			}
			must(t, get.Reset())
		}
	})
	t.Run("a blob is appended to what is there", func(t *testing.T) {
		c, _ := fresh(t)
		s := prepare(t, c, "SELECT x'0304', x'05'")
		if row, err := s.Step(); !row || err != nil {
			t.Fatal(row, err)
		}
		got := s.ColumnBlob([]byte{1, 2}, 0)
		if got = s.ColumnBlob(got, 1); !bytes.Equal(got, []byte{1, 2, 3, 4, 5}) {
			t.Fatal(got)
		}
		must(t, s.Reset())
	})
	t.Run("an error names its sentinel and leaves the statement usable", func(t *testing.T) {
		c, path := fresh(t)
		put := prepare(t, c, "INSERT INTO t VALUES (?, 1)")
		put.BindInt(1, 0)
		if _, err := put.Step(); !errors.Is(err, driver.ErrConstraint) {
			t.Fatal(err)
		}
		put.BindInt(1, 1)
		run(t, put)
		r := open(t, path, driver.Options{ReadOnly: true})
		if err := r.Exec("DELETE FROM t"); !errors.Is(err, driver.ErrReadOnly) {
			t.Fatal(err)
		}
		if _, err := c.Prepare("SELEKT 1"); err == nil {
			t.Fatal("a statement that is none was prepared")
		}
		if err := c.Exec("INSERT INTO t VALUES (2, 1); INSERT INTO t VALUES (2, 1)"); !errors.Is(err, driver.ErrConstraint) {
			t.Fatal(err)
		}
	})
	t.Run("a reader sees what was committed, and a snapshot until it is reset", func(t *testing.T) {
		c, path := fresh(t)
		r := open(t, path, driver.Options{ReadOnly: true})
		s := prepare(t, r, "SELECT count(*) FROM t UNION ALL SELECT count(*) FROM t")
		put := prepare(t, c, "INSERT INTO t VALUES (?, 1)")
		for i := range int64(3) {
			if row, err := s.Step(); !row || err != nil || s.ColumnInt(0) != i+1 {
				t.Fatal(row, err, s.ColumnInt(0))
			}
			put.BindInt(1, i+1)
			run(t, put)
			if row, err := s.Step(); !row || err != nil || s.ColumnInt(0) != i+1 {
				t.Fatal(row, err, s.ColumnInt(0))
			}
			must(t, s.Reset())
		}
	})
	t.Run("an interrupt stops a statement that runs, until it is lifted", func(t *testing.T) {
		c, _ := fresh(t)
		s := prepare(t, c, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT count(*) FROM n")
		ctx, cancel := context.WithCancel(t.Context())
		c.Interrupt(ctx)
		done := make(chan error, 1)
		go func() {
			_, err := s.Step()
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, driver.ErrInterrupted) {
			t.Fatal(err)
		}
		c.Interrupt(context.WithoutCancel(t.Context()))
		must(t, c.Exec("SELECT 1"))
	})
	t.Run("a file that is no database is damaged", func(t *testing.T) {
		c, path := fresh(t)
		must(t, c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
		path = filepath.Join(filepath.Dir(path), "other.db")
		other, err := d.Open(path, driver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		must(t, other.Exec("CREATE TABLE t(a); PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql='CREATE'"))
		must(t, other.Close())
		if other, err = d.Open(path, driver.Options{}); err == nil {
			err = other.Exec("SELECT * FROM t")
			must(t, other.Close())
		}
		if !errors.Is(err, driver.ErrDamaged) {
			t.Fatal(err)
		}
	})
	t.Run("a file may be hardened that is not there", func(t *testing.T) {
		_, path := fresh(t)
		must(t, d.Harden(path+"-none"))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func prepare(t *testing.T, c driver.Conn, sql string) driver.Stmt {
	t.Helper()
	s, err := c.Prepare(sql)
	must(t, err)
	return s
}

func run(t *testing.T, s driver.Stmt) {
	t.Helper()
	if row, err := s.Step(); row || err != nil {
		t.Fatal(row, err)
	}
	must(t, s.Reset())
}
