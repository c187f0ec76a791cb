package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// do has the writer run job in its next transaction, judged by the time at which it is its turn.
func (s *Store) do(ctx context.Context, p events.Partition, job func(*writer, *partition, events.Time) error) error {
	if err := s.partition(p); err != nil {
		return err
	}
	r := s.request(p)
	r.job = job
	err := s.submit(ctx, r)
	s.recycle(r)
	return err
}

func (s *Store) partition(p events.Partition) error {
	if p < 0 || int(p) >= s.info.Partitions {
		return fmt.Errorf("there is no partition %d among %d", p, s.info.Partitions)
	}
	return nil
}

// Acquire implements events.Ownership. An owner may acquire what it still owns: the token rises all the same.
func (s *Store) Acquire(ctx context.Context, p events.Partition, owner string,
	lasts time.Duration,
) (events.Tenure, error) {
	result := make(chan events.Tenure, 1) // a channel, since the caller may leave while the writer fills it
	err := s.do(ctx, p, func(w *writer, part *partition, now events.Time) error {
		if part.tenure.Owner != owner && part.tenure.Until > now {
			held := remaining(part.tenure, now)
			result <- held
			return fmt.Errorf("%w: %s has token %d until %s", events.ErrHeld, held.Owner, held.Fence, held.Until)
		}
		part.token++
		part.tenure = events.Tenure{Partition: p, Fence: part.token, Owner: owner, Until: now.Add(lasts)}
		result <- remaining(part.tenure, now)
		return w.putTenure(part)
	})
	switch {
	case err == nil:
		return <-result, nil
	case errors.Is(err, events.ErrHeld):
		return <-result, fmt.Errorf("acquire partition %d: %w", p, err)
	default:
		return events.Tenure{}, fmt.Errorf("acquire partition %d: %w", p, err)
	}
}

// Renew implements events.Ownership.
func (s *Store) Renew(ctx context.Context, t events.Tenure, lasts time.Duration) (events.Tenure, error) {
	result := make(chan events.Tenure, 1)
	err := s.do(ctx, t.Partition, func(w *writer, part *partition, now events.Time) error {
		if !part.holds(t) || part.tenure.Until <= now {
			return fmt.Errorf("%w: the highest is %d", events.ErrNotOwner, part.token)
		}
		part.tenure.Until = now.Add(lasts)
		result <- remaining(part.tenure, now)
		return w.putTenure(part)
	})
	if err != nil {
		return events.Tenure{}, fmt.Errorf("renew token %d of partition %d: %w", t.Fence, t.Partition, err)
	}
	return <-result, nil
}

// Release implements events.Ownership. Releasing what another has acquired since changes nothing.
func (s *Store) Release(ctx context.Context, t events.Tenure) error {
	err := s.do(ctx, t.Partition, func(w *writer, part *partition, now events.Time) error {
		if !part.holds(t) || part.tenure.Until <= now {
			return nil
		}
		part.tenure.Until = now
		return w.putTenure(part)
	})
	if err != nil {
		return fmt.Errorf("release token %d of partition %d: %w", t.Fence, t.Partition, err)
	}
	return nil
}

// holds says whether t is the partition's last tenure, ended or not, and nobody has raised the token above it.
func (part *partition) holds(t events.Tenure) bool {
	return t.Fence != 0 && part.tenure.Fence == t.Fence && part.tenure.Owner == t.Owner && part.token == t.Fence
}

func remaining(t events.Tenure, now events.Time) events.Tenure {
	t.Left = t.Until.Sub(now)
	return t
}

func (w *writer) putTenure(part *partition) error {
	if err := w.begin(); err != nil {
		return err
	}
	q := w.sql.tenure
	q.BindInt(1, int64(part.tenure.Partition))
	q.BindInt(2, int64(part.token))
	q.BindInt(3, int64(part.tenure.Fence))
	q.BindText(4, part.tenure.Owner)
	q.BindInt(5, int64(part.tenure.Until))
	return q.run()
}

// PutSeal implements events.Seals.
func (s *Store) PutSeal(ctx context.Context, seal events.Seal) error {
	seal.Signature = bytes.Clone(seal.Signature) // the caller may leave
	err := s.do(ctx, seal.Partition, func(w *writer, _ *partition, _ events.Time) error {
		there, same, err := w.sealed(&seal)
		if err != nil || same {
			return err
		}
		if there {
			return fmt.Errorf("there is another seal at position %d", seal.To)
		}
		return w.putSeal(&seal)
	})
	if err != nil {
		return fmt.Errorf("seal partition %d: %w", seal.Partition, err)
	}
	return nil
}

// sealed says whether there is a seal at that place, and whether it is the same.
func (w *writer) sealed(s *events.Seal) (there, same bool, err error) {
	q := w.sql.sealed
	q.BindInt(1, int64(s.Partition))
	q.BindInt(2, int64(s.To))
	if there, err = q.Step(); err != nil {
		return false, false, err
	}
	if there {
		old := events.Seal{Partition: s.Partition, To: s.To}
		scanSeal(q, &old)
		signed := bytes.Equal(old.Signature, s.Signature)
		same = signed && old.Incarnation == s.Incarnation && old.From == s.From && old.Commits == s.Commits &&
			old.At == s.At && old.Digest == s.Digest && old.Key == s.Key
	}
	return there, same, q.Reset()
}

func (w *writer) putSeal(s *events.Seal) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.sealing = true
	q := w.sql.seal
	q.BindInt(1, int64(s.Incarnation))
	q.BindInt(2, int64(s.From))
	q.BindInt(3, s.Commits)
	q.BindInt(4, int64(s.At))
	q.BindBlob(5, s.Digest[:])
	q.BindBlob(6, s.Key[:])
	q.BindBlob(7, s.Signature)
	q.BindInt(8, int64(s.Partition))
	q.BindInt(9, int64(s.To))
	return q.run()
}

// scanSeal reads the columns incarnation, since, commits, at, digest, key, signature.
func scanSeal(q stmt, s *events.Seal) {
	s.Incarnation = events.Incarnation(q.ColumnInt(0))
	s.From = events.Position(q.ColumnInt(1))
	s.Commits = q.ColumnInt(2)
	s.At = events.Time(q.ColumnInt(3))
	q.ColumnBlob(s.Digest[:0], 4)
	q.ColumnBlob(s.Key[:0], 5)
	s.Signature = q.ColumnBlob(nil, 6)
}
