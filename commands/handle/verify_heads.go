package handle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/events"
)

// headPage is how many heads are checked between two reports of progress.
const headPage = 256

// heads holds the heads of all streams read against their commits, and looks for heads without any.
func (v *audit) heads(ctx context.Context) error {
	names := make([]events.Stream, 0, len(v.streams))
	for s := range v.streams {
		names = append(names, s)
	}
	slices.Sort(names)
	for i, name := range names {
		if err := v.head(ctx, name, v.streams[name]); err != nil {
			return err
		}
		if i%headPage == headPage-1 || i == len(names)-1 {
			v.tell(i + 1)
		}
	}
	return v.orphans(ctx)
}

// orphans finds open heads whose commits are gone. One whose stream was born since the log was read is none.
func (v *audit) orphans(ctx context.Context) error {
	for after := events.Stream(""); ; {
		page, err := v.Log.OpenHeads(ctx, v.p, after, auditPage)
		if err != nil {
			return fmt.Errorf("read open heads after %q: %w", after, err)
		}
		for _, h := range page {
			if after = h.Stream; v.streams[h.Stream] != nil || !v.mine(h.Stream) {
				continue
			}
			first, err := v.Log.Commits(ctx, h.Stream, events.NoStream, 1)
			if err != nil {
				return fmt.Errorf("read %s: %w", h.Stream, err)
			}
			if len(first) == 0 {
				v.add(Finding{Stream: h.Stream, Version: 1, LastVersion: h.Version}, FoundTail,
					"its head stands at version %d, and the log holds no event of it", h.Version)
			}
		}
		if len(page) < auditPage {
			return nil
		}
	}
}

func (v *audit) head(ctx context.Context, name events.Stream, s *chained) error {
	f := Finding{Stream: name, Version: s.version, LastVersion: s.version}
	h, err := v.Log.Head(ctx, name)
	if errors.Is(err, events.ErrNoStream) {
		v.add(f, FoundHead, "it has %d events and no head", s.version)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read head of %s: %w", name, err)
	}
	if err := v.grown(ctx, name, s, h.Version); err != nil {
		return err
	}
	f.LastVersion = h.Version
	switch {
	case h.Version > s.version:
		f.Version = s.version + 1
		v.add(f, FoundTail, "its head stands at version %d, its events end at %d", h.Version, s.version)
		return nil
	case h.Version < s.version:
		f.Version, f.LastVersion = h.Version+1, s.version
		v.add(f, FoundHead, "its head stands at version %d, its events end at %d", h.Version, s.version)
		return nil
	case h.Hash != s.hash:
		v.add(f, FoundHead, "its head says hash %.16s…, its last commit %.16s…", h.Hash, s.hash)
	case h.Partition != v.p:
		v.add(f, FoundPartition, "its head says that it lives in partition %d", h.Partition)
	}
	agg := v.aggs[name.Category()]
	if agg == nil || s.bad || s.newer {
		return nil
	}
	return v.refold(ctx, h, agg)
}

// grown follows a stream that was appended to after the log was read, up to its head.
func (v *audit) grown(ctx context.Context, name events.Stream, s *chained, upTo events.Version) error {
	for s.version < upTo {
		page, err := v.Log.Commits(ctx, name, s.version, auditPage)
		if err != nil {
			return fmt.Errorf("read %s after version %d: %w", name, s.version, err)
		}
		if len(page) == 0 {
			return nil
		}
		for i := range page {
			if page[i].Last() > upTo {
				return nil
			}
			was := s.version
			if err := v.link(ctx, s, &page[i]); err != nil || s.version <= was {
				return err
			}
		}
	}
	return nil
}

// refold folds the stream anew up to its head, and holds what the head keeps of the state against it.
func (v *audit) refold(ctx context.Context, h events.Head, agg aggregates.Aggregate) (err error) {
	l := Loaded{Stream: h.Stream, Partition: h.Partition, State: agg.Initial()}
	f := Finding{Stream: h.Stream, Version: 1, LastVersion: h.Version}
	defer func() {
		if p := recover(); p != nil {
			v.add(f, FoundSnapshot, "folding version %d and on panics: %v", l.Version+1, p)
			err = nil
		}
	}()
	v.report.Counts.Refolded++
	compared := len(h.Snapshot) == 0 || v.otherReducer(h.Snapshot, agg)
	for l.Version < h.Version {
		page, err := v.Log.Commits(ctx, h.Stream, l.Version, loadPage)
		if err != nil {
			return fmt.Errorf("read %s after version %d: %w", h.Stream, l.Version, err)
		}
		if len(page) == 0 {
			break // reported before
		}
		for i := range page {
			if page[i].Last() > h.Version {
				break
			}
			if err := l.fold(&page[i], v.Codec, agg); err != nil {
				v.add(f, FoundDamage, "it cannot be folded: %v", err)
				return nil
			}
			if l.Version == h.SnapshotAt && !compared {
				compared = true
				v.snapshot(&l, h, agg)
			}
		}
	}
	if !compared {
		f.LastVersion = h.SnapshotAt
		v.add(f, FoundSnapshot, "its snapshot is of version %d, where no commit ends", h.SnapshotAt)
	}
	v.index(&l, h, agg)
	return nil
}

// otherReducer says that a snapshot is whole and of another reducer: then nobody reads it.
func (v *audit) otherReducer(snapshot []byte, agg aggregates.Aggregate) bool {
	body, err := snapshotBody(snapshot)
	if err != nil {
		return false
	}
	if made, n := binary.Uvarint(body); n > 0 && made != uint64(agg.Reducer()) {
		v.report.Counts.OldSnapshots++
		return true
	}
	return false
}

func (v *audit) snapshot(l *Loaded, h events.Head, agg aggregates.Aggregate) {
	v.report.Counts.Snapshots++
	if !bytes.Equal(l.snapshot(agg), h.Snapshot) {
		v.add(Finding{Stream: h.Stream, Version: 1, LastVersion: h.SnapshotAt}, FoundSnapshot,
			"its snapshot at version %d is not what its events fold to", h.SnapshotAt)
	}
}

// index holds the columns that take-over goes by against the state: an execution that is open and not marked so
// would never be run on.
func (v *audit) index(l *Loaded, h events.Head, agg aggregates.Aggregate) {
	f := Finding{Stream: h.Stream, Version: h.Version, LastVersion: h.Version}
	if open := agg.Open(l.State); open != h.Open {
		v.add(f, FoundHead, "its head says open = %t, its events say %t", h.Open, open)
	}
	if due := headDue(agg, l.State, l.At); due != h.Due {
		v.add(f, FoundHead, "its head says due = %q, its events say %q", stamp(h.Due), stamp(due))
	}
}

// headDue is the due that the commit decided at the given time left in the head (see pack).
func headDue(agg aggregates.Aggregate, s aggregates.State, at events.Time) events.Time {
	if due := agg.Due(s); due > at.Add(dueAhead) {
		return due
	}
	return 0
}

func stamp(t events.Time) string {
	if t == 0 {
		return ""
	}
	return t.String()
}
