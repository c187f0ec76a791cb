package sqlite

import (
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// load reads what the writer counts on from the database, and holds each counter against the last row it counts.
func (w *writer) load(c driver.Conn) error {
	w.parts = nil
	const counters = "SELECT position, token, tenure, owner, until FROM partitions ORDER BY part"
	err := rows(c, counters, func(s driver.Stmt) error {
		w.parts = append(w.parts, partition{
			position: events.Position(s.ColumnInt(0)), token: events.Fence(s.ColumnInt(1)),
			tenure: events.Tenure{
				Partition: events.Partition(len(w.parts)), Fence: events.Fence(s.ColumnInt(2)), Owner: s.ColumnText(3),
				Until: events.Time(s.ColumnInt(4)),
			},
		})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range w.parts {
		p := events.Partition(i)
		if err := errors.Join(w.loadLast(c, p), w.parts[i].prepare(c, p)); err != nil {
			return err
		}
	}
	return rows(c, "SELECT coalesce(max(sid), 0) FROM streams", func(s driver.Stmt) error {
		w.sid = s.ColumnInt(0)
		return nil
	})
}

func (w *writer) loadLast(c driver.Conn, p events.Partition) error {
	part := &w.parts[p]
	var last events.Position
	query := ofPartition("SELECT position, at FROM commits_{p} ORDER BY position DESC LIMIT 1", p)
	err := rows(c, query, func(s driver.Stmt) error {
		last, part.at = events.Position(s.ColumnInt(0)), events.Time(s.ColumnInt(1))
		return nil
	})
	if err == nil && last != part.position {
		return fmt.Errorf("%w: partition %d counts %d positions, its last commit ends at %d", ErrDamaged, p,
			part.position, last)
	}
	return err
}

// info reads what the log is.
func (w *writer) info() (info events.LogInfo, err error) {
	info, err = readInfo(w.c)
	info.Partitions = len(w.parts)
	return info, err
}

func readInfo(c driver.Conn) (info events.LogInfo, err error) {
	info.Features = events.Features{PositionAtAppend: true, FenceScope: "partition"}
	n := 0
	err = rows(c, "SELECT id, incarnation FROM log", func(s driver.Stmt) error {
		n += len(s.ColumnBlob(info.ID[:0], 0))
		info.Incarnation = events.Incarnation(s.ColumnInt(1))
		return nil
	})
	if err == nil && n != len(info.ID) {
		err = fmt.Errorf("%w: it does not say which log it is", ErrDamaged)
	}
	return info, err
}

// rows runs a query once.
func rows(c driver.Conn, query string, each func(driver.Stmt) error) error {
	s, err := c.Prepare(query)
	if err != nil {
		return err
	}
	for {
		row, err := s.Step()
		if err != nil {
			return err
		}
		if !row {
			return s.Reset()
		}
		if err := each(s); err != nil {
			return err
		}
	}
}
