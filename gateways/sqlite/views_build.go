package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
)

// Builds lists the builds of a model.
func (v *Views) Builds(ctx context.Context, model string) (all []projections.Build, err error) {
	err = v.read(ctx, func(c *conn) error {
		all = nil
		return c.rows(`SELECT b.number, b.version, b.loaded, b.number = m.live FROM view_builds b
			JOIN view_models m ON m.model = b.model WHERE b.model = ? ORDER BY b.number`, func(s driver.Stmt) {
			all = append(all, projections.Build{
				Model: model, Number: int(s.ColumnInt(0)), Version: int(s.ColumnInt(1)),
				Loaded: s.ColumnInt(2) == 1, Live: s.ColumnInt(3) == 1,
			})
		}, model)
	})
	return all, failed("list builds of", model, 0, err)
}

// failed wraps an error with the act and its object.
func failed(act, model string, build int, err error) error {
	switch {
	case err == nil:
		return nil
	case build == 0:
		return fmt.Errorf("%s view %s: %w", act, model, err)
	}
	return fmt.Errorf("%s view %s build %d: %w", act, model, build, err)
}

// Begin makes an empty build: tables without indexes, which Loaded makes over what is there then.
func (v *Views) Begin(ctx context.Context, m projections.Model) (w projections.View, err error) {
	if err := m.Check(); err != nil {
		return w, err
	}
	err = v.update(ctx, func(c *conn) error {
		number := 0
		err := c.rows("SELECT last FROM view_models WHERE model = ?", func(s driver.Stmt) {
			number = int(s.ColumnInt(0))
		}, m.Name)
		if err != nil {
			return err
		}
		// A file that was thrown away knows no numbers, but somebody may still hold a view of it.
		number = max(number, v.numbers[m.Name]) + 1
		v.numbers[m.Name] = number
		w = projections.View{Model: m, Build: number}
		var names []string
		for i := range m.Tables {
			t := tableOf(w, &m.Tables[i])
			names = append(names, strings.Trim(t.name, `"`))
			if err := c.Exec(t.create); err != nil {
				return err
			}
		}
		if err := c.run(`INSERT INTO view_models VALUES(?1, ?2, 0)
			ON CONFLICT(model) DO UPDATE SET last = excluded.last`, m.Name, number); err != nil {
			return err
		}
		return c.run("INSERT INTO view_builds VALUES(?, ?, ?, 0, ?)",
			m.Name, number, m.Version, strings.Join(names, "\n"))
	})
	return w, failed("begin", m.Name, 0, err)
}

// phase returns ErrNoView unless the build is there and loaded, or not loaded, as the caller needs.
func (c *conn) phase(w projections.View, loaded bool) error {
	found := false
	err := c.rows("SELECT 1 FROM view_builds WHERE model = ? AND number = ? AND loaded = ?", func(driver.Stmt) {
		found = true
	}, w.Model.Name, w.Build, loaded)
	if err == nil && !found {
		err = projections.ErrNoView
	}
	return err
}

// Load puts rows into a build.
func (v *Views) Load(ctx context.Context, w projections.View, rows []projections.Change) error {
	err := w.Model.CheckChanges(rows)
	if err == nil {
		err = v.update(ctx, func(c *conn) error {
			if err := c.phase(w, false); err != nil {
				return err
			}
			return c.put(w, rows)
		})
	}
	return failed("load", w.Model.Name, w.Build, err)
}

// Loaded makes the indexes, each in a transaction of its own so that others may write between, and ends the loading.
func (v *Views) Loaded(
	ctx context.Context, w projections.View, at map[events.Partition]events.Checkpoint, parked []projections.Parked,
) error {
	for i := range w.Model.Tables {
		t := tableOf(w, &w.Model.Tables[i])
		for n := range t.Indexes {
			err := v.update(ctx, func(c *conn) error {
				if err := c.phase(w, false); err != nil {
					return err
				}
				return c.Exec(strings.Replace(t.index(n), "CREATE INDEX", "CREATE INDEX IF NOT EXISTS", 1))
			})
			if err != nil {
				return failed("index", w.Model.Name, w.Build, err)
			}
		}
	}
	return failed("end loading of", w.Model.Name, w.Build, v.update(ctx, func(c *conn) error {
		if err := c.phase(w, false); err != nil {
			return err
		}
		for p, cp := range at {
			if cp == (events.Checkpoint{}) {
				continue
			}
			if err := c.run("INSERT INTO view_checkpoints VALUES(?, ?, ?, ?, ?, ?)", w.Model.Name, w.Build, int64(p),
				int64(cp.Incarnation), int64(cp.Position), cp.Hash[:]); err != nil {
				return err
			}
		}
		if err := c.park(w, parked, nil); err != nil {
			return err
		}
		return c.run("UPDATE view_builds SET loaded = 1 WHERE model = ? AND number = ?", w.Model.Name, w.Build)
	}))
}

func (c *conn) park(w projections.View, park []projections.Parked, unpark []events.Stream) error {
	for i := range park {
		p := &park[i]
		if err := c.run("INSERT OR REPLACE INTO view_parked VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", w.Model.Name, w.Build,
			string(p.Stream), int64(p.Version), int64(p.Position), int64(p.Part), string(p.Reason), p.Detail,
			p.Waiting); err != nil {
			return err
		}
	}
	for _, s := range unpark {
		if err := c.run("DELETE FROM view_parked WHERE model = ? AND build = ? AND stream = ?",
			w.Model.Name, w.Build, string(s)); err != nil {
			return err
		}
	}
	return nil
}

// Swap makes a build the one that answers.
func (v *Views) Swap(ctx context.Context, w projections.View) error {
	return failed("swap in", w.Model.Name, w.Build, v.update(ctx, func(c *conn) error {
		if err := c.phase(w, true); err != nil {
			return err
		}
		behind := false
		// The proof and the flip are one transaction, and a file has one writer: nothing moves in between.
		err := c.rows(`SELECT 1 FROM view_models m
			JOIN view_checkpoints l ON l.model = m.model AND l.build = m.live
			LEFT JOIN view_checkpoints n ON n.model = m.model AND n.build = ?2 AND n.part = l.part
			WHERE m.model = ?1 AND NOT coalesce(n.incarnation > l.incarnation
				OR n.incarnation = l.incarnation AND n.position >= l.position, 0)`,
			func(driver.Stmt) { behind = true }, w.Model.Name, w.Build)
		switch {
		case err != nil:
			return err
		case behind:
			return projections.ErrBehind
		}
		return c.run("UPDATE view_models SET live = ?2 WHERE model = ?1", w.Model.Name, w.Build)
	}))
}

// Drop removes a build.
func (v *Views) Drop(ctx context.Context, b projections.Build) error {
	return failed("drop", b.Model, b.Number, v.update(ctx, func(c *conn) error {
		var tables []string
		err := c.rows("SELECT tables FROM view_builds WHERE model = ? AND number = ?", func(s driver.Stmt) {
			tables = strings.Split(s.ColumnText(0), "\n")
		}, b.Model, b.Number)
		if err != nil {
			return err
		}
		for _, name := range tables {
			if err := c.Exec(fmt.Sprintf("DROP TABLE IF EXISTS %q", name)); err != nil {
				return err
			}
		}
		for _, sql := range []string{
			"DELETE FROM view_builds WHERE model = ?1 AND number = ?2",
			"DELETE FROM view_checkpoints WHERE model = ?1 AND build = ?2",
			"DELETE FROM view_parked WHERE model = ?1 AND build = ?2",
			"UPDATE view_models SET live = 0 WHERE model = ?1 AND live = ?2",
		} {
			if err := c.run(sql, b.Model, b.Number); err != nil {
				return err
			}
		}
		return nil
	}))
}
