package handle

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// tail reads the partition from its start. A seal that is still waiting when nothing follows was read before the last
// read of the log, which therefore holds all that the seal covers, also while others write.
func (v *audit) tail(ctx context.Context) error {
	for {
		if v.seals != nil {
			v.seals.dry = false
			if err := v.seals.fill(ctx); err != nil {
				return err
			}
		}
		page, err := v.Log.Tail(ctx, v.p, v.last, auditPage)
		if err != nil {
			return fmt.Errorf("read after position %d: %w", v.last, err)
		}
		was := v.last
		for i := range page {
			if err := v.commit(ctx, &page[i]); err != nil {
				return err
			}
		}
		v.tell(0)
		if len(page) > 0 && v.last == was {
			return nil // its rows say that they lie before what was read, which is reported: there is no way on
		}
		if len(page) == 0 && (v.seals == nil || !v.seals.beyond()) {
			return nil
		}
	}
}

func (v *audit) tell(heads int) {
	if v.Progress != nil {
		v.Progress(AuditProgress{
			Partition: v.p, Pass: v.pass, Position: v.last, End: v.end, Heads: heads, Streams: len(v.streams),
		})
	}
}

func (v *audit) commit(ctx context.Context, c *events.Commit) error {
	if v.pass == 0 {
		if err := v.place(ctx, c); err != nil {
			return err
		}
	}
	// A damaged row must not lead back: what was read is never read again.
	v.last = max(v.last, c.Position)
	if !v.mine(c.Stream) {
		return nil
	}
	s := v.streams[c.Stream]
	if s == nil {
		s = &chained{}
		v.streams[c.Stream] = s
		v.report.Counts.Streams++
	}
	return v.link(ctx, s, c)
}

// place holds a commit against its partition.
func (v *audit) place(ctx context.Context, c *events.Commit) error {
	v.report.Counts.Commits++
	v.report.Counts.Events += int64(c.N)
	f := about(c)
	if c.Before() != v.last {
		gap := Finding{Kind: FoundHole, Partition: v.p, Position: v.last + 1, LastPosition: c.Before()}
		gap.Detail = fmt.Sprintf("positions %d to %d are missing", gap.Position, gap.LastPosition)
		if c.Before() < v.last {
			gap.Position, gap.LastPosition = c.Before()+1, c.Position
			gap.Detail = fmt.Sprintf("a commit claims positions %d to %d after position %d", gap.Position, c.Position, v.last)
		}
		v.report.found(gap)
	}
	if c.At < v.at {
		v.add(f, FoundOrder, "it was recorded at %s, before the commit in front of it (%s)", c.At, v.at)
	}
	if c.Partition != v.p {
		v.add(f, FoundPartition, "it says that it belongs to partition %d", c.Partition)
	}
	v.at = max(v.at, c.At)
	if v.seals == nil {
		return nil
	}
	return v.seals.commit(ctx, c)
}

// about is a finding that names a commit.
func about(c *events.Commit) Finding {
	return Finding{
		Stream: c.Stream, Version: c.First, LastVersion: c.Last(), Position: c.Before() + 1, LastPosition: c.Position,
	}
}

func (v *audit) add(f Finding, k FindingKind, format string, args ...any) {
	f.Kind, f.Partition, f.Detail = k, v.p, fmt.Sprintf(format, args...)
	v.report.found(f)
}

// link holds a commit against its stream, and reads what it holds. Only the first break of a chain is reported:
// what follows it hangs on it.
func (v *audit) link(ctx context.Context, s *chained, c *events.Commit) error {
	f := about(c)
	sound := true
	broken := func(k FindingKind, format string, args ...any) {
		if sound = k != FoundChain; !s.bad {
			v.add(f, k, format, args...)
		}
		s.bad = true
	}
	if c.First != s.version+1 {
		broken(FoundVersion, "version %d follows version %d", c.First, s.version)
	} else if got := events.Chain(s.hash, c.Stream, c.First, c.N, c.Envelope, c.Events); got != c.Hash {
		broken(FoundChain, "its stored bytes hash to %.16s…, the log says %.16s…", got, c.Hash)
	}
	s.version, s.hash = c.Last(), c.Hash
	recorded, err := events.Decode(c, v.Codec)
	if err != nil {
		broken(FoundDamage, "it cannot be read: %v", err)
		return nil
	}
	for i := range recorded {
		if recorded[i].Event == nil {
			s.newer = true
			v.report.Counts.NewerEvents++
		} else if sound { // else the names it reads may be the damage
			if err := v.blobs(ctx, &recorded[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobs reads every blob that an event names.
func (v *audit) blobs(ctx context.Context, r *events.Recorded) error {
	if v.Blobs == nil {
		return nil
	}
	check := func(name events.Hash, size int64) error {
		v.report.Counts.Blobs++
		data, err := v.Blobs.Get(ctx, r.Stream.Tenant(), name)
		f := Finding{
			Stream: r.Stream, Version: r.Version, LastVersion: r.Version, Position: r.Position, LastPosition: r.Position,
		}
		switch {
		case errors.Is(err, events.ErrNoBlob), errors.Is(err, events.ErrDamagedBlob):
			v.add(f, FoundBlob, "%s names blob %s: %v", r.Type, name, err)
		case err != nil:
			return fmt.Errorf("read blob %s of %s: %w", name, r.Stream, err)
		case size >= 0 && int64(len(data)) != size:
			v.add(f, FoundBlob, "%s names blob %s of %d bytes, it has %d", r.Type, name, size, len(data))
		}
		return nil
	}
	if c, ok := r.Event.(events.Carrier); ok {
		if name, ok := c.Carried().Name(); ok {
			if err := check(name, c.Carried().Size); err != nil {
				return err
			}
		}
	}
	if n, ok := r.Event.(events.Namer); ok {
		return check(n.Named(), -1)
	}
	return nil
}

// ends holds what was read against what the partition's counter knew before.
func (v *audit) ends() {
	done := AuditedPartition{Partition: v.p, End: v.last}
	if v.seals != nil {
		done.SealedTo = v.seals.sealed
	}
	v.report.Partitions = append(v.report.Partitions, done)
	if v.last < v.end {
		v.add(Finding{Position: v.last + 1, LastPosition: v.end}, FoundTail,
			"the partition has given out positions up to %d, its events end at %d", v.end, v.last)
	}
}
