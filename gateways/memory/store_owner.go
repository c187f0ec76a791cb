package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// write locks a partition as an append does, and the store, and calls do with what the clock says then: a call that
// waited for the lock is judged by the time at which it got it.
func (s *Store) write(ctx context.Context, p events.Partition, do func(*partition, events.Time) error) error {
	part, err := s.partition(p)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	part.lock.Lock()
	defer part.lock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return events.ErrClosed
	}
	return do(part, s.opt.Clock())
}

// Acquire implements events.Ownership. An owner may acquire what it still owns: the token rises all the same.
func (s *Store) Acquire(ctx context.Context, p events.Partition, owner string,
	lasts time.Duration,
) (events.Tenure, error) {
	var t events.Tenure
	err := s.write(ctx, p, func(part *partition, now events.Time) error {
		if part.tenure.Owner != owner && part.tenure.Until > now {
			t = left(part.tenure, now)
			return fmt.Errorf("acquire partition %d: %w: %s has token %d until %s", p, events.ErrHeld, t.Owner, t.Fence, t.Until)
		}
		part.fence++
		part.tenure = events.Tenure{Partition: p, Fence: part.fence, Owner: owner, Until: now.Add(lasts)}
		t = left(part.tenure, now)
		return nil
	})
	return t, err
}

// Renew implements events.Ownership.
func (s *Store) Renew(ctx context.Context, t events.Tenure, lasts time.Duration) (events.Tenure, error) {
	var renewed events.Tenure
	err := s.write(ctx, t.Partition, func(part *partition, now events.Time) error {
		if !part.holds(t) || part.tenure.Until <= now {
			return fmt.Errorf("renew token %d of partition %d: %w: the highest is %d", t.Fence, t.Partition,
				events.ErrNotOwner, part.fence)
		}
		part.tenure.Until = now.Add(lasts)
		renewed = left(part.tenure, now)
		return nil
	})
	return renewed, err
}

// Release implements events.Ownership. Releasing what another has acquired since changes nothing.
func (s *Store) Release(ctx context.Context, t events.Tenure) error {
	return s.write(ctx, t.Partition, func(part *partition, now events.Time) error {
		if part.holds(t) {
			part.tenure.Until = min(part.tenure.Until, now)
		}
		return nil
	})
}

// holds says whether t is the partition's last tenure, ended or not, and nobody has raised the token above it.
func (part *partition) holds(t events.Tenure) bool {
	return part.tenure.Fence == t.Fence && part.tenure.Owner == t.Owner && part.fence == t.Fence
}

func left(t events.Tenure, now events.Time) events.Tenure {
	t.Left = t.Until.Sub(now)
	return t
}

// Owners implements events.Ownership.
func (s *Store) Owners(ctx context.Context) ([]events.Tenure, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	now := s.opt.Clock()
	var all []events.Tenure
	for _, part := range s.parts {
		if part.tenure.Fence != 0 {
			all = append(all, left(part.tenure, now))
		}
	}
	return all, nil
}

// PutSeal implements events.Seals.
func (s *Store) PutSeal(ctx context.Context, seal events.Seal) error {
	return s.write(ctx, seal.Partition, func(part *partition, _ events.Time) error {
		i := part.sealAfter(seal.To - 1)
		if i < len(part.seals) && part.seals[i].To == seal.To {
			if !sameSeal(part.seals[i], seal) {
				return fmt.Errorf("partition %d has another seal at position %d", seal.Partition, seal.To)
			}
			return nil
		}
		seal.Signature = bytes.Clone(seal.Signature)
		part.seals = slices.Insert(part.seals, i, seal)
		return nil
	})
}

func sameSeal(a, b events.Seal) bool {
	signed := bytes.Equal(a.Signature, b.Signature)
	return signed && a.Partition == b.Partition && a.Incarnation == b.Incarnation && a.From == b.From && a.To == b.To &&
		a.Commits == b.Commits && a.At == b.At && a.Digest == b.Digest && a.Key == b.Key
}

// sealAfter is the index of the first seal with To > p.
func (part *partition) sealAfter(p events.Position) int {
	return sort.Search(len(part.seals), func(i int) bool { return part.seals[i].To > p })
}

// SealsOf implements events.Seals.
func (s *Store) SealsOf(ctx context.Context, p events.Partition, after events.Position,
	most int,
) ([]events.Seal, error) {
	part, err := s.partition(p)
	if err != nil {
		return nil, err
	}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	i := part.sealAfter(after)
	page := slices.Clone(part.seals[i:min(len(part.seals), i+max(0, most))])
	for j := range page {
		page[j].Signature = bytes.Clone(page[j].Signature)
	}
	return page, nil
}
