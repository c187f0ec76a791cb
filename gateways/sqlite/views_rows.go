package sqlite

import (
	"context"
	"fmt"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
)

func (t *viewTable) keyOf(r projections.Row) []any {
	key := make([]any, len(t.key))
	for i, at := range t.key {
		key[i] = r[at]
	}
	return key
}

// row reads the row that a statement stands on.
func (t *viewTable) row(s driver.Stmt) projections.Row {
	r := make(projections.Row, len(t.Columns))
	for i, col := range t.Columns {
		switch {
		case s.ColumnNull(i):
		case col.Kind == projections.Text:
			r[i] = s.ColumnText(i)
		case col.Kind == projections.JSON:
			r[i] = s.ColumnBlob([]byte{}, i)
		case col.Kind == projections.Bool:
			r[i] = s.ColumnInt(i) == 1
		default:
			r[i] = s.ColumnInt(i)
		}
	}
	return r
}

// Rows reads rows by key.
func (v *Views) Rows(
	ctx context.Context, w projections.View, keys []projections.Key,
) (rows []projections.Row, err error) {
	err = v.read(ctx, func(c *conn) error {
		rows = make([]projections.Row, len(keys))
		if err := c.exists(w); err != nil {
			return err
		}
		tables := map[string]*viewTable{}
		for i, k := range keys {
			t := tables[k.Table]
			if t == nil {
				t = tableOf(w, w.Model.Table(k.Table))
				tables[k.Table] = t
			}
			if err := c.rows(t.get, func(s driver.Stmt) { rows[i] = t.row(s) }, k.Key...); err != nil {
				return err
			}
		}
		return nil
	})
	return rows, failed("read rows of", w.Model.Name, w.Build, err)
}

func (c *conn) exists(w projections.View) error {
	err := c.phase(w, true)
	if err != nil {
		err = c.phase(w, false)
	}
	return err
}

// Checkpoints returns where a build stands.
func (v *Views) Checkpoints(
	ctx context.Context, w projections.View,
) (at map[events.Partition]events.Checkpoint, err error) {
	err = v.read(ctx, func(c *conn) error {
		if err := c.phase(w, true); err != nil {
			return err
		}
		at, err = c.checkpoints(w.Model.Name, w.Build)
		return err
	})
	return at, failed("read checkpoints of", w.Model.Name, w.Build, err)
}

func (c *conn) checkpoints(model string, build int) (map[events.Partition]events.Checkpoint, error) {
	at := map[events.Partition]events.Checkpoint{}
	err := c.rows("SELECT part, incarnation, position, hash FROM view_checkpoints WHERE model = ? AND build = ?",
		func(s driver.Stmt) {
			cp := events.Checkpoint{
				Incarnation: events.Incarnation(s.ColumnInt(1)), Position: events.Position(s.ColumnInt(2)),
			}
			copy(cp.Hash[:], s.ColumnBlob(nil, 3))
			at[events.Partition(s.ColumnInt(0))] = cp
		}, model, build)
	return at, err
}

// ParkedStreams lists the parked streams of a build.
func (v *Views) ParkedStreams(ctx context.Context, w projections.View) (all []projections.Parked, err error) {
	err = v.read(ctx, func(c *conn) error {
		all = nil
		if err := c.phase(w, true); err != nil {
			return err
		}
		return c.rows(`SELECT stream, version, position, part, reason, detail, waiting FROM view_parked
			WHERE model = ? AND build = ? ORDER BY stream`, func(s driver.Stmt) {
			all = append(all, projections.Parked{
				Stream: events.Stream(s.ColumnText(0)), Version: events.Version(s.ColumnInt(1)),
				Position: events.Position(s.ColumnInt(2)), Part: events.Partition(s.ColumnInt(3)),
				Reason: projections.ParkReason(s.ColumnText(4)), Detail: s.ColumnText(5), Waiting: s.ColumnInt(6),
			})
		}, w.Model.Name, w.Build)
	})
	return all, failed("list parked streams of", w.Model.Name, w.Build, err)
}

// List returns a page of the live build, all of one snapshot.
func (v *Views) List(
	ctx context.Context, m projections.Model, table string, q projections.Query,
) (page projections.Page, err error) {
	declared := m.Table(table)
	if declared == nil {
		return page, fmt.Errorf("%w: no table named %q", projections.ErrRow, table)
	}
	if err := declared.CheckQuery(&q); err != nil {
		return page, err
	}
	err = v.read(ctx, func(c *conn) error {
		page = projections.Page{Version: m.Version}
		if page.Build, err = c.live(m); err != nil {
			return err
		}
		if page.AsOf, err = c.checkpoints(m.Name, page.Build); err != nil {
			return err
		}
		if err := c.rows("SELECT count(*) FROM view_parked WHERE model = ? AND build = ?", func(s driver.Stmt) {
			page.Incomplete = int(s.ColumnInt(0))
		}, m.Name, page.Build); err != nil {
			return err
		}
		t := tableOf(projections.View{Model: m, Build: page.Build}, declared)
		sql, args := t.list(&q)
		return c.rows(sql, func(s driver.Stmt) {
			if len(page.Rows) == q.Limit {
				page.More = true
				return
			}
			page.Rows = append(page.Rows, t.row(s))
		}, args...)
	})
	return page, failed("list", m.Name, 0, err)
}

// Explain says how a page of the live build is found, in SQLite's words: for tests, and for who wonders why a list is
// slow. Errors are those of List.
func (v *Views) Explain(
	ctx context.Context, m projections.Model, table string, q projections.Query,
) (plan []string, err error) {
	declared := m.Table(table)
	if declared == nil {
		return nil, fmt.Errorf("%w: no table named %q", projections.ErrRow, table)
	}
	if err := declared.CheckQuery(&q); err != nil {
		return nil, err
	}
	err = v.read(ctx, func(c *conn) error {
		build, err := c.live(m)
		if err != nil {
			return err
		}
		sql, args := tableOf(projections.View{Model: m, Build: build}, declared).list(&q)
		return c.rows("EXPLAIN QUERY PLAN "+sql, func(s driver.Stmt) { plan = append(plan, s.ColumnText(3)) }, args...)
	})
	return plan, failed("explain a list of", m.Name, 0, err)
}

// live is the build of m's version that answers.
func (c *conn) live(m projections.Model) (build int, err error) {
	err = c.rows(`SELECT b.number FROM view_models m JOIN view_builds b ON b.model = m.model AND b.number = m.live
		WHERE m.model = ? AND b.version = ?`, func(s driver.Stmt) { build = int(s.ColumnInt(0)) }, m.Name, m.Version)
	if err == nil && build == 0 {
		err = fmt.Errorf("%w: version %d", projections.ErrNotLive, m.Version)
	}
	return build, err
}
