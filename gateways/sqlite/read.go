package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// namesMax bounds the stream names that a reader keeps in memory, about 100 B each.
const namesMax = 1 << 16

// reader is a connection that only reads.
type reader struct {
	c     driver.Conn
	sql   readStmts
	parts []partReads             // by partition, prepared when first used
	names map[int64]events.Stream // by sid, which never changes
}

type readStmts struct {
	head, find, name, open, end, owners, seals stmt
}

// partReads are the statements over a partition's own table.
type partReads struct {
	ready            bool
	stream, at, tail stmt
}

const selectCommits = "SELECT position, sid, first, n, fence, at, command, hash, envelope, events FROM commits_{p} "

func openReader(f files, d driver.Driver) (*reader, error) {
	c, err := d.Open(f.log(), driver.Options{ReadOnly: true, Pragmas: []string{
		"query_only=ON", "cache_size=-16384", "temp_store=MEMORY",
	}})
	if err != nil {
		return nil, f.fault("open a reader", err)
	}
	r := &reader{c: c, names: map[int64]events.Stream{}}
	if err := r.sql.prepare(c); err != nil {
		return nil, f.fault("open a reader", errors.Join(err, c.Close()))
	}
	return r, nil
}

func (q *readStmts) prepare(c driver.Conn) error {
	for _, p := range []struct {
		to  *stmt
		sql string
	}{
		{&q.head, `SELECT part, version, open, due, snapshot_at, hash,
			CASE apart WHEN 1 THEN (SELECT x.snapshot FROM snapshots x WHERE x.sid = s.sid) ELSE snapshot END
			FROM streams s WHERE name=?`},
		{&q.find, `SELECT sid, part FROM streams WHERE name=?`},
		{&q.name, `SELECT name FROM streams WHERE sid=?`},
		{&q.open, `SELECT name, version, due, snapshot_at, hash FROM streams
			WHERE part=? AND name>? AND open=1 ORDER BY name LIMIT ?`},
		{&q.end, `SELECT position, token FROM partitions WHERE part=?`},
		{&q.owners, `SELECT part, tenure, owner, until FROM partitions WHERE tenure>0 ORDER BY part`},
		{&q.seals, `SELECT incarnation, since, commits, at, digest, key, signature, upto FROM seals
			WHERE part=? AND upto>? ORDER BY upto LIMIT ?`},
	} {
		s, err := c.Prepare(p.sql)
		if err != nil {
			return err
		}
		*p.to = stmt{s}
	}
	return nil
}

// of gives the statements of a partition.
func (r *reader) of(p events.Partition) (*partReads, error) {
	for len(r.parts) <= int(p) {
		r.parts = append(r.parts, partReads{})
	}
	q := &r.parts[p]
	if q.ready {
		return q, nil
	}
	for _, s := range []struct {
		to  *stmt
		sql string
	}{
		{&q.stream, selectCommits + "WHERE sid=? AND first>? ORDER BY first LIMIT ?"},
		{&q.at, selectCommits + "WHERE sid=? AND first<=? ORDER BY first DESC LIMIT 1"},
		{&q.tail, selectCommits + "WHERE position>? ORDER BY position LIMIT ?"},
	} {
		got, err := r.c.Prepare(ofPartition(s.sql, p))
		if err != nil {
			return nil, err
		}
		*s.to = stmt{got}
	}
	q.ready = true
	return q, nil
}

// find gives a stream's number and partition, which never change; nil statements for a stream without events.
func (r *reader) find(ctx context.Context, name events.Stream) (int64, events.Partition, *partReads, error) {
	var sid int64
	var p events.Partition
	found := false
	r.sql.find.BindText(1, string(name))
	err := r.sql.find.each(ctx, func() {
		sid, p, found = r.sql.find.ColumnInt(0), events.Partition(r.sql.find.ColumnInt(1)), true
	})
	if err != nil || !found {
		return 0, 0, nil, err
	}
	q, err := r.of(p)
	return sid, p, q, err
}

// read lends a reader to do.
func (s *Store) read(ctx context.Context, act string, do func(*reader) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	select {
	case r := <-s.readers:
		defer func() { s.readers <- r }()
		var d *driver.Error
		err := do(r)
		if errors.As(err, &d) {
			err = s.files.fault(act, err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.quit:
		return events.ErrClosed
	}
}

// each calls do for every row, and resets the statement. It looks at the context now and then: pages may be long.
func (q stmt) each(ctx context.Context, do func()) error {
	for i := 0; ; i++ {
		row, err := q.Step()
		if err != nil {
			return err
		}
		if i%1024 == 1023 {
			err = ctx.Err()
		}
		if !row || err != nil {
			return errors.Join(err, q.Reset())
		}
		do()
	}
}

// Head implements events.Reader.
func (s *Store) Head(ctx context.Context, name events.Stream) (h events.Head, err error) {
	err = s.read(ctx, "read a head", func(r *reader) error {
		q := r.sql.head
		q.BindText(1, string(name))
		return q.each(ctx, func() {
			h = events.Head{
				Stream: name, Partition: events.Partition(q.ColumnInt(0)), Version: events.Version(q.ColumnInt(1)),
				Open: q.ColumnInt(2) == 1, Due: events.Time(q.ColumnInt(3)), SnapshotAt: events.Version(q.ColumnInt(4)),
			}
			q.ColumnBlob(h.Hash[:0], 5)
			h.Snapshot = q.ColumnBlob(nil, 6)
		})
	})
	if err == nil && h.Version == 0 {
		err = fmt.Errorf("head of %.80q: %w", string(name), events.ErrNoStream)
	}
	return h, err
}

// OpenHeads implements events.Reader.
func (s *Store) OpenHeads(ctx context.Context, p events.Partition, after events.Stream,
	most int,
) ([]events.Head, error) {
	if err := s.partition(p); err != nil {
		return nil, err
	}
	var all []events.Head
	err := s.read(ctx, "read open heads", func(r *reader) error {
		q := r.sql.open
		q.BindInt(1, int64(p))
		q.BindText(2, string(after))
		q.BindInt(3, int64(max(0, most)))
		return q.each(ctx, func() {
			h := events.Head{
				Stream: events.Stream(q.ColumnText(0)), Partition: p, Version: events.Version(q.ColumnInt(1)), Open: true,
				Due: events.Time(q.ColumnInt(2)), SnapshotAt: events.Version(q.ColumnInt(3)),
			}
			q.ColumnBlob(h.Hash[:0], 4)
			all = append(all, h)
		})
	})
	return all, err
}

// End implements events.Reader.
func (s *Store) End(ctx context.Context, p events.Partition) (end events.Position, token events.Fence, err error) {
	if err := s.partition(p); err != nil {
		return 0, 0, err
	}
	err = s.read(ctx, "read a partition", func(r *reader) error {
		q := r.sql.end
		q.BindInt(1, int64(p))
		return q.each(ctx, func() { end, token = events.Position(q.ColumnInt(0)), events.Fence(q.ColumnInt(1)) })
	})
	return end, token, err
}

// Owners implements events.Ownership.
func (s *Store) Owners(ctx context.Context) ([]events.Tenure, error) {
	var all []events.Tenure
	err := s.read(ctx, "read owners", func(r *reader) error {
		q := r.sql.owners
		now := s.opt.Clock()
		return q.each(ctx, func() {
			all = append(all, remaining(events.Tenure{
				Partition: events.Partition(q.ColumnInt(0)), Fence: events.Fence(q.ColumnInt(1)), Owner: q.ColumnText(2),
				Until: events.Time(q.ColumnInt(3)),
			}, now))
		})
	})
	return all, err
}

// SealsOf implements events.Seals.
func (s *Store) SealsOf(ctx context.Context, p events.Partition, after events.Position,
	most int,
) ([]events.Seal, error) {
	if err := s.partition(p); err != nil {
		return nil, err
	}
	var all []events.Seal
	err := s.read(ctx, "read seals", func(r *reader) error {
		q := r.sql.seals
		q.BindInt(1, int64(p))
		q.BindInt(2, int64(after))
		q.BindInt(3, int64(max(0, most)))
		return q.each(ctx, func() {
			seal := events.Seal{Partition: p, To: events.Position(q.ColumnInt(7))}
			scanSeal(q, &seal)
			all = append(all, seal)
		})
	})
	return all, err
}
