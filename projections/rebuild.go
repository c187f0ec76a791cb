package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// The memory that a rebuild folds a partition in; above either it loads what it has and starts with nothing.
const (
	RebuildRowsMax  = 100_000
	RebuildBytesMax = 96 << 20 // estimated
)

var (
	// ErrGap says that the log lacks a position below its end: audit it. Nothing above was applied.
	ErrGap = errors.New("the log has a gap")
	// ErrForeign says that a view's history is not the log's: it must be dropped and built anew.
	ErrForeign = errors.New("view is of another history")
)

// Folded is what Fold has loaded of one partition.
type Folded struct {
	At     events.Checkpoint
	Parked []Parked
}

// Fold applies everything that the log has of partition p, up to position end or a little beyond, to a build that is
// not loaded yet. Partitions may be folded side by side. progress is told after each page how many positions it had.
// After an error the build is of no use and must be dropped. ErrGap when the log lacks a position.
func (w *Ports) Fold(
	ctx context.Context, v View, p events.Partition, codec events.Codec, end events.Position, progress func(n int64),
) (Folded, error) {
	log, err := w.Log.Log(ctx)
	if err != nil {
		return Folded{}, fmt.Errorf("fold partition %d: %w", p, err)
	}
	f := newFold(&v.Model, codec)
	f.rows.whole = true
	at := events.Checkpoint{Incarnation: log.Incarnation}
	for at.Position < end {
		page, err := w.Log.Tail(ctx, p, at.Position, BatchCommitsMax)
		if err == nil && (len(page) == 0 || page[0].Before() != at.Position) {
			err = fmt.Errorf("%w behind position %d", ErrGap, at.Position)
		}
		if err != nil {
			return Folded{}, fmt.Errorf("fold partition %d: %w", p, err)
		}
		was := at.Position
		if err := w.foldPage(ctx, v, f, page, &at); err != nil {
			return Folded{}, fmt.Errorf("fold partition %d behind position %d: %w", p, at.Position, err)
		}
		progress(int64(at.Position - was))
	}
	if err := w.spill(ctx, v, f); err != nil {
		return Folded{}, fmt.Errorf("fold partition %d: %w", p, err)
	}
	out := Folded{At: at}
	for _, s := range f.parkedStreams() {
		out.Parked = append(out.Parked, *f.parked[s])
	}
	return out, nil
}

func (w *Ports) foldPage(ctx context.Context, v View, f *fold, page []events.Commit, at *events.Checkpoint) error {
	for i := range page {
		c := &page[i]
		if c.Before() != at.Position {
			return ErrGap
		}
		for from := f.commit(c, 0); from != 0; from = f.commit(c, from) {
			f.scout(c, from)
			for j := i + 1; j < len(page) && len(f.rows.missed) < keysAskMax; j++ {
				f.scout(&page[j], 0)
			}
			keys := f.rows.ask()
			rows, err := w.Views.Rows(ctx, v, keys)
			if err != nil {
				return err
			}
			f.rows.fill(keys, rows)
		}
		at.Position, at.Hash = c.Position, c.Hash
		if len(f.rows.young) > RebuildRowsMax || f.rows.bytes > RebuildBytesMax {
			if err := w.spill(ctx, v, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill loads all changes, in order of key since that is how a table grows cheapest, and forgets them.
func (w *Ports) spill(ctx context.Context, v View, f *fold) error {
	changes := f.rows.changes()
	keys := make([][]byte, len(changes))
	order := make([]int, len(changes))
	for i := range changes {
		keys[i] = AppendKey(nil, changes[i].Table, v.Model.Table(changes[i].Table).KeyOf(changes[i].Row))
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	sorted := make([]Change, len(changes))
	for to, from := range order {
		sorted[to] = changes[from]
	}
	for part := range slices.Chunk(sorted, loadRowsMax) {
		if err := w.Views.Load(ctx, v, part); err != nil {
			return err
		}
	}
	f.rows.forget()
	return nil
}

// loadRowsMax is how many rows are loaded in one transaction: others write between.
const loadRowsMax = 10_000

// CatchUp feeds a loaded build from the log until it has everything that the log has. It is for a view that nobody
// else feeds. ErrForeign when the view's history is not the log's, ErrGap when the log lacks a position.
func (w *Ports) CatchUp(ctx context.Context, v View, p events.Partition, codec events.Codec) error {
	direct := Ports{Log: w.Log, Views: w.Views}
	r := NewRunner(&v.Model, p, codec)
	var in In
	for {
		out := r.Step(&in)
		switch out.Do {
		case DoRebuild:
			return fmt.Errorf("%w: %s build %d, partition %d: %s", ErrForeign, v.Model.Name, v.Build, p, out.Why)
		case DoWait:
			if r.Stats().Gap {
				return fmt.Errorf("catch up %s build %d: %w in partition %d behind position %d",
					v.Model.Name, v.Build, ErrGap, p, r.Stats().Seen.Position)
			}
			return nil
		}
		if in = direct.Perform(ctx, v, p, out); in.Err != nil {
			return in.Err
		}
	}
}
