package sqlite

import (
	"fmt"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// snapshotInlineMax is how large a snapshot may be to stand in the head's own row (DESIGN §3).
const snapshotInlineMax = 8 << 10

// stmt is a prepared statement that is run to its end and reset.
type stmt struct{ driver.Stmt }

// run runs a statement that gives no rows.
func (q stmt) run() error {
	if _, err := q.Step(); err != nil {
		return err
	}
	return q.Reset()
}

type writeStmts struct {
	begin, commit, rollback         stmt
	head, insertHead                stmt
	version, moved, snapshot, apart stmt
	unapart, counter, tenure        stmt
	seal, sealed                    stmt
}

func (q *writeStmts) prepare(c driver.Conn) error {
	for _, p := range []struct {
		to  *stmt
		sql string
	}{
		{&q.begin, "BEGIN IMMEDIATE"},
		{&q.commit, "COMMIT"},
		{&q.rollback, "ROLLBACK"},
		{&q.head, "SELECT sid, part, version, open, due, apart FROM streams WHERE name=?"},
		{&q.insertHead, `INSERT INTO streams (sid, name, part, version, open, due, snapshot_at, apart, hash, snapshot)
			VALUES (?,?,?,?,?,?,?,?,?,?)`},
		// An update touches each index whose column it names, changed or not; so the common one names none.
		{&q.version, "UPDATE streams SET version=?2, hash=?3 WHERE sid=?1"},
		{&q.moved, "UPDATE streams SET version=?2, hash=?3, open=?4, due=?5 WHERE sid=?1"},
		{&q.snapshot, `UPDATE streams SET version=?2, hash=?3, open=?4, due=?5, snapshot_at=?6, apart=?7, snapshot=?8
			WHERE sid=?1`},
		{&q.apart, "INSERT OR REPLACE INTO snapshots (sid, snapshot) VALUES (?,?)"},
		{&q.unapart, "DELETE FROM snapshots WHERE sid=?"},
		{&q.counter, "UPDATE partitions SET position=?2, token=?3 WHERE part=?1"},
		{&q.tenure, "UPDATE partitions SET token=?2, tenure=?3, owner=?4, until=?5 WHERE part=?1"},
		{&q.sealed, `SELECT incarnation, since, commits, at, digest, key, signature FROM seals WHERE part=? AND upto=?`},
		{&q.seal, `INSERT INTO seals (incarnation, since, commits, at, digest, key, signature, part, upto)
			VALUES (?,?,?,?,?,?,?,?,?)`},
	} {
		s, err := c.Prepare(p.sql)
		if err != nil {
			return err
		}
		*p.to = stmt{s}
	}
	return nil
}

// prepare prepares the statements over a partition's own table.
func (part *partition) prepare(c driver.Conn, p events.Partition) error {
	original, err := c.Prepare(ofPartition("SELECT command, n, position, at FROM commits_{p} WHERE sid=? AND first=?", p))
	if err != nil {
		return err
	}
	insert, err := c.Prepare(ofPartition(`INSERT INTO commits_{p}
		(position, sid, first, n, fence, at, command, hash, envelope, events) VALUES (?,?,?,?,?,?,?,?,?,?)`, p))
	part.original, part.insert = stmt{original}, stmt{insert}
	return err
}

// know sees that the heads of a batch are in memory, and refuses a batch with a stream of another partition.
func (w *writer) know(batch []*events.Append) (refused, failed error) {
	for _, a := range batch {
		h, err := w.headOf(a.Stream)
		if err != nil {
			return nil, w.files.fault(fmt.Sprintf("read the head of %s", a.Stream), err)
		}
		if h != nil && h.part != a.Partition {
			return fmt.Errorf("%s: %w: it lives in partition %d, not %d", a.Stream, events.ErrInvalidAppend, h.part,
				a.Partition), nil
		}
	}
	return nil, nil
}

// headOf returns nil for a stream without events.
func (w *writer) headOf(name events.Stream) (*head, error) {
	if h := w.heads.get(name); h != nil {
		return h, nil
	}
	q := w.sql.head
	q.BindText(1, string(name))
	row, err := q.Step()
	if err != nil {
		return nil, err
	}
	var h *head
	if row {
		h = &head{
			name: name, sid: q.ColumnInt(0), part: events.Partition(q.ColumnInt(1)), version: events.Version(q.ColumnInt(2)),
			open: q.ColumnInt(3) == 1, due: events.Time(q.ColumnInt(4)), apart: q.ColumnInt(5) == 1,
		}
		w.heads.put(h)
	}
	return h, q.Reset()
}

// judge answers one append and writes it if nothing stands against it.
func (w *writer) judge(part *partition, a *events.Append, at events.Time) (v events.Verdict, err error) {
	h := w.heads.get(a.Stream)
	var version events.Version
	if h != nil {
		version = h.version
	}
	if version > a.Expected {
		if v, err = part.findOriginal(h, a); err != nil || v.Kind == events.Duplicate {
			return v, err
		}
	}
	switch {
	case a.Fence != 0 && a.Fence < part.token:
		return events.Verdict{Kind: events.Fenced, Fence: part.token}, nil
	case a.Expected != version:
		return events.Verdict{Kind: events.Conflict, Version: version}, nil
	}
	if h == nil {
		w.sid++
		h = &head{name: a.Stream, sid: w.sid, part: a.Partition, born: true}
		w.heads.put(h)
	}
	if err := w.insert(h, part, a, at); err != nil {
		return v, err
	}
	return events.Verdict{Kind: events.Appended, Version: h.version, Position: part.position, At: at}, nil
}

// findOriginal is the verdict duplicate if the commit that starts behind a's expected version has a's command.
func (part *partition) findOriginal(h *head, a *events.Append) (v events.Verdict, err error) {
	q := part.original
	q.BindInt(1, h.sid)
	q.BindInt(2, int64(a.Expected)+1)
	row, err := q.Step()
	if err != nil {
		return v, err
	}
	var command events.ID
	if row && len(q.ColumnBlob(command[:0], 0)) == len(command) && command == a.Command {
		v = events.Verdict{
			Kind: events.Duplicate, Version: a.Expected + events.Version(q.ColumnInt(1)),
			Position: events.Position(q.ColumnInt(2)), At: events.Time(q.ColumnInt(3)),
		}
	}
	return v, q.Reset()
}

// insert writes a's row and moves everything in memory behind it; flush writes the rest.
func (w *writer) insert(h *head, part *partition, a *events.Append, at events.Time) error {
	if err := w.begin(); err != nil {
		return err
	}
	end := part.position + events.Position(a.N)
	q := part.insert
	q.BindInt(1, int64(end))
	q.BindInt(2, h.sid)
	q.BindInt(3, int64(h.version)+1)
	q.BindInt(4, int64(a.N))
	q.BindInt(5, int64(a.Fence))
	q.BindInt(6, int64(at))
	q.BindBlob(7, a.Command[:])
	q.BindBlob(8, a.Hash[:])
	q.BindBlob(9, a.Envelope)
	q.BindBlob(10, a.Events)
	if err := q.run(); err != nil {
		return err
	}
	part.position, part.token, part.at, part.dirty = end, max(part.token, a.Fence), at, true
	h.version += events.Version(a.N)
	if h.last == nil {
		w.dirty = append(w.dirty, h)
	}
	h.last = a
	if a.Head.Snapshot != nil {
		h.snap, h.snapAt = a, h.version
	}
	w.appended++
	return nil
}

// flush writes the heads and counters that the transaction has moved, each once.
func (w *writer) flush() error {
	for _, h := range w.dirty {
		if err := w.flushHead(h); err != nil {
			return err
		}
		h.last, h.snap, h.born = nil, nil, false
	}
	clear(w.dirty)
	w.dirty = w.dirty[:0]
	for i := range w.parts {
		if p := &w.parts[i]; p.dirty {
			q := w.sql.counter
			q.BindInt(1, int64(i))
			q.BindInt(2, int64(p.position))
			q.BindInt(3, int64(p.token))
			if err := q.run(); err != nil {
				return err
			}
			p.dirty = false
		}
	}
	return nil
}

func (w *writer) flushHead(h *head) error {
	u := &h.last.Head
	moved := h.open != u.Open || h.due != u.Due
	h.open, h.due = u.Open, u.Due
	switch {
	case h.born:
		return w.insertHead(h)
	case h.snap != nil:
		return w.updateSnapshot(h)
	}
	q := w.sql.version
	if moved {
		q = w.sql.moved
		q.BindInt(4, flag(h.open))
		q.BindInt(5, int64(h.due))
	}
	q.BindInt(1, h.sid)
	q.BindInt(2, int64(h.version))
	q.BindBlob(3, h.last.Hash[:])
	return q.run()
}

func (w *writer) insertHead(h *head) error {
	q := w.sql.insertHead
	q.BindInt(1, h.sid)
	q.BindText(2, string(h.name))
	q.BindInt(3, int64(h.part))
	q.BindInt(4, int64(h.version))
	q.BindInt(5, flag(h.open))
	q.BindInt(6, int64(h.due))
	q.BindBlob(9, h.last.Hash[:])
	return w.bindSnapshot(h, q, 7, 8, 10)
}

func (w *writer) updateSnapshot(h *head) error {
	q := w.sql.snapshot
	q.BindInt(1, h.sid)
	q.BindInt(2, int64(h.version))
	q.BindBlob(3, h.last.Hash[:])
	q.BindInt(4, flag(h.open))
	q.BindInt(5, int64(h.due))
	return w.bindSnapshot(h, q, 6, 7, 8)
}

// bindSnapshot binds snapshot_at, apart and snapshot, runs q, and puts a large snapshot into its own table.
func (w *writer) bindSnapshot(h *head, q stmt, at, apart, snapshot int) error {
	var bytes []byte
	if h.snap != nil {
		bytes = h.snap.Head.Snapshot
	}
	was := h.apart
	h.apart = len(bytes) > snapshotInlineMax
	q.BindInt(at, int64(h.snapAt))
	q.BindInt(apart, flag(h.apart))
	q.BindNull(snapshot)
	if !h.apart && h.snap != nil {
		q.BindBlob(snapshot, bytes)
	}
	if err := q.run(); err != nil {
		return err
	}
	switch {
	case h.apart:
		q = w.sql.apart
		q.BindBlob(2, bytes)
	case was:
		q = w.sql.unapart
	default:
		return nil
	}
	q.BindInt(1, h.sid)
	return q.run()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
