package sqlite

import (
	"context"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// A page of commits takes memory in pieces of arenaBytes, and a further one when less than arenaSpare is left: most
// commits are smaller. The commits of a piece share it: who keeps one keeps its neighbours' bytes.
const (
	arenaBytes = 32 << 10
	arenaSpare = 4 << 10
)

// pageCommits is how many commits a page of the tail has room for before it has to grow.
const pageCommits = 1024

// page collects commits; their bytes are cut from one piece of memory after another.
type page struct {
	all   []events.Commit
	arena []byte
	short bool // a row whose fixed fields are too short
}

// Commits implements events.Reader.
func (s *Store) Commits(ctx context.Context, name events.Stream, after events.Version,
	most int,
) ([]events.Commit, error) {
	var pg page
	err := s.read(ctx, "read a stream", func(r *reader) error {
		sid, p, q, err := r.find(ctx, name)
		if q == nil || err != nil {
			return err
		}
		q.stream.BindInt(1, sid)
		q.stream.BindInt(2, int64(after))
		q.stream.BindInt(3, int64(max(0, most)))
		return q.stream.each(ctx, func() { pg.add(q.stream, p).Stream = name })
	})
	return pg.done(s.files, err)
}

// CommitAt implements events.Reader.
func (s *Store) CommitAt(ctx context.Context, name events.Stream, v events.Version) (events.Commit, error) {
	var pg page
	err := s.read(ctx, "read a commit", func(r *reader) error {
		sid, p, q, err := r.find(ctx, name)
		if q == nil || err != nil {
			return err
		}
		q.at.BindInt(1, sid)
		q.at.BindInt(2, int64(v))
		return q.at.each(ctx, func() { pg.add(q.at, p).Stream = name })
	})
	all, err := pg.done(s.files, err)
	if err != nil {
		return events.Commit{}, err
	}
	if len(all) == 0 || all[0].Last() < v {
		return events.Commit{}, fmt.Errorf("%.80q at version %d: %w", string(name), v, events.ErrNoStream)
	}
	return all[0], nil
}

// Tail implements events.Reader.
func (s *Store) Tail(ctx context.Context, p events.Partition, after events.Position,
	most int,
) ([]events.Commit, error) {
	if err := s.partition(p); err != nil {
		return nil, err
	}
	pg := page{all: make([]events.Commit, 0, min(max(0, most), pageCommits))}
	err := s.read(ctx, "read a partition", func(r *reader) error {
		part, err := r.of(p)
		if err != nil {
			return err
		}
		q := part.tail
		q.BindInt(1, int64(after))
		q.BindInt(2, int64(max(0, most)))
		eachErr := q.each(ctx, func() {
			c := pg.add(q, p)
			if c.Stream = r.names[q.ColumnInt(1)]; c.Stream == "" && err == nil {
				c.Stream, err = r.name(q.ColumnInt(1))
			}
		})
		if eachErr != nil {
			return eachErr
		}
		return err
	})
	return pg.done(s.files, err)
}

// name finds a stream's name in the database and remembers it.
func (r *reader) name(sid int64) (name events.Stream, err error) {
	q := r.sql.name
	q.BindInt(1, sid)
	row, err := q.Step()
	if err != nil {
		return "", err
	}
	if row {
		name = events.Stream(q.ColumnText(0))
		if len(r.names) >= namesMax {
			clear(r.names)
		}
		r.names[sid] = name
	}
	if err := q.Reset(); err != nil {
		return "", err
	}
	if name == "" {
		return "", fmt.Errorf("%w: there is no stream of number %d", ErrDamaged, sid)
	}
	return name, nil
}

// add reads the row that q stands at, all but the stream's name.
func (p *page) add(q stmt, part events.Partition) *events.Commit {
	p.all = append(p.all, events.Commit{})
	c := &p.all[len(p.all)-1]
	c.Partition, c.Position = part, events.Position(q.ColumnInt(0))
	c.First, c.N = events.Version(q.ColumnInt(2)), int(q.ColumnInt(3))
	c.Fence, c.At = events.Fence(q.ColumnInt(4)), events.Time(q.ColumnInt(5))
	command, hash := q.ColumnBlob(c.Command[:0], 6), q.ColumnBlob(c.Hash[:0], 7)
	p.short = p.short || len(command) != len(c.Command) || len(hash) != len(c.Hash)
	c.Envelope, c.Events = p.blob(q, 8), p.blob(q, 9)
	return c
}

// blob copies a column into the arena.
func (p *page) blob(q stmt, col int) []byte {
	if cap(p.arena)-len(p.arena) < arenaSpare {
		p.arena = make([]byte, 0, max(arenaSpare, min(2*cap(p.arena), arenaBytes)))
	}
	from := len(p.arena)
	p.arena = q.ColumnBlob(p.arena, col)
	return p.arena[from:len(p.arena):len(p.arena)]
}

func (p *page) done(f files, err error) ([]events.Commit, error) {
	if err == nil && p.short {
		err = fmt.Errorf("%w: %s holds a commit without a whole hash or command id", ErrDamaged, f.log())
	}
	if err != nil {
		return nil, err
	}
	return p.all, nil
}
