package sqlite_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/viewstest"
)

// fullConn is a connection whose commits fail while the disk is full.
type fullConn struct {
	driver.Conn
	full *atomic.Bool
}

func (c fullConn) Prepare(sql string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(sql)
	if sql == "COMMIT" && err == nil {
		return fullStmt{s, c.full}, nil
	}
	return s, err
}

type fullStmt struct {
	driver.Stmt
	full *atomic.Bool
}

func (s fullStmt) Step() (bool, error) {
	if s.full.Load() {
		return false, driver.ErrFull
	}
	return s.Stmt.Step()
}

func TestABatchThatCannotBeCommittedFailsForAllThatShareItAndWritesNothing(t *testing.T) {
	var full atomic.Bool
	d := driver.Driver{Name: "full", Open: func(path string, o driver.Options) (driver.Conn, error) {
		c, err := driver.Default.Open(path, o)
		return fullConn{c, &full}, err
	}}
	v, err := sqlite.OpenViews(d, filepath.Join(t.TempDir(), "views.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	w := filled(t, v, 0)
	batch := func(p events.Partition) *projections.Batch {
		return &projections.Batch{Partition: p, To: events.Checkpoint{Incarnation: 1, Position: 1}, Changes: []projections.Change{
			{Table: "sums", Row: projections.Row{"acme", int64(p), int64(1)}},
		}}
	}
	apply := func() (errs [8]error) {
		var wg sync.WaitGroup
		for p := range errs {
			wg.Go(func() { errs[p] = v.Apply(t.Context(), w, batch(events.Partition(p))) })
		}
		wg.Wait()
		return errs
	}
	full.Store(true)
	for p, err := range apply() {
		if !errors.Is(err, driver.ErrFull) {
			t.Errorf("partition %d: %v", p, err)
		}
	}
	full.Store(false)
	page, err := v.List(t.Context(), viewstest.Things(1), "sums", projections.Query{Tenant: "acme", Limit: 10})
	if err != nil || len(page.Rows) != 0 || len(page.AsOf) != 0 {
		t.Errorf("%+v %v", page, err)
	}
	for p, err := range apply() {
		if err != nil {
			t.Errorf("partition %d once there is room: %v", p, err)
		}
	}
}
