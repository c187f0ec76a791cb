package platform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// RebuildProgress is told how many of the log's events a rebuild has had, and how many there were when it began. It
// may be called from several goroutines at once.
type RebuildProgress func(done, total int64)

// Replay builds a model's view from the log beside the live one and swaps it in; the old build is kept for a roll-back
// until the next. It needs Run. When it is cut short the live view stays, and the next start removes what is left.
func (r *viewsRunner) Replay(ctx context.Context, model string, progress RebuildProgress) error {
	f := r.models[model]
	if f == nil {
		return fmt.Errorf("replay: %w: %q", projections.ErrNoView, model)
	}
	if err := f.alone(ctx); err != nil {
		return err
	}
	defer f.others()
	v, err := f.build(ctx, progress)
	if err == nil {
		err = f.hand(ctx, v)
	}
	if err != nil {
		return fmt.Errorf("replay %s: %w", model, errors.Join(err, f.drop(ctx, v)))
	}
	_, err = f.tidy(ctx)
	return err
}

// RollBack swaps the newest build that does not answer back in, once it has caught up. It needs Run. ErrNoView when
// there is none of this version.
func (r *viewsRunner) RollBack(ctx context.Context, model string) error {
	f := r.models[model]
	if f == nil {
		return fmt.Errorf("roll back: %w: %q", projections.ErrNoView, model)
	}
	if err := f.alone(ctx); err != nil {
		return err
	}
	defer f.others()
	all, err := f.ports.Views.Builds(ctx, model)
	if err != nil {
		return err
	}
	for _, b := range slices.Backward(all) {
		if b.Loaded && !b.Live && b.Version == f.model.Version {
			return f.hand(ctx, projections.View{Model: f.model, Build: b.Number})
		}
	}
	return fmt.Errorf("roll back %s: %w that could answer instead", model, projections.ErrNoView)
}

// hand has a build caught up, most of it while the live one is still fed, and swapped in.
func (f *viewFeed) hand(ctx context.Context, v projections.View) error {
	if err := f.catchUp(ctx, v); err != nil {
		return err
	}
	swap := &viewSwap{view: v, done: make(chan error, 1)}
	select {
	case f.handOver <- swap:
		return <-swap.done
	case <-f.ended:
		return fmt.Errorf("swap in build %d: the platform is stopping", v.Build)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// alone waits until nobody else makes or drops builds of the model; others lets them.
func (f *viewFeed) alone(ctx context.Context) error {
	select {
	case f.building <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *viewFeed) others() { <-f.building }

// find returns the build to feed. While a replay is under way it touches no build: it takes the live one or, when
// there is none, the replay's as soon as that is handed over. Build 0 says that one was: look again.
func (f *viewFeed) find(ctx context.Context) (projections.View, error) {
	select {
	case f.building <- struct{}{}:
		defer f.others()
		return f.open(ctx)
	default:
	}
	all, err := f.ports.Views.Builds(ctx, f.model.Name)
	for _, b := range all {
		if b.Live && b.Version == f.model.Version {
			return projections.View{Model: f.model, Build: b.Number}, nil
		}
	}
	if err != nil {
		return projections.View{}, err
	}
	select {
	case f.building <- struct{}{}:
		defer f.others()
		return f.open(ctx)
	case swap := <-f.handOver:
		swap.done <- f.swapIn(ctx, swap.view)
		return projections.View{}, nil
	case <-ctx.Done():
		return projections.View{}, context.Cause(ctx)
	}
}

// open finds the build to feed, or makes one: when there is none of this version, or the file was thrown away. It is
// alone.
func (f *viewFeed) open(ctx context.Context) (projections.View, error) {
	all, err := f.tidy(ctx)
	if err != nil {
		return projections.View{}, err
	}
	for _, b := range slices.Backward(all) {
		if b.Version != f.model.Version {
			continue
		}
		v := projections.View{Model: f.model, Build: b.Number}
		if b.Live {
			return v, nil
		}
		if err := f.swapIn(ctx, v); !errors.Is(err, projections.ErrForeign) {
			return v, err
		}
		if err := f.drop(ctx, v); err != nil {
			return v, err
		}
	}
	f.ports.Logger.Info("a view is built from the log", "view", f.model.Name, "version", f.model.Version)
	v, err := f.build(ctx, func(int64, int64) {})
	if err == nil {
		err = f.swapIn(ctx, v)
	}
	if err != nil {
		err = errors.Join(err, f.drop(ctx, v))
	}
	return v, err
}

// tidy drops what was never loaded, and of the builds that do not answer all but the newest. What is left is ordered
// so that the live one comes last. It is alone.
func (f *viewFeed) tidy(ctx context.Context) (left []projections.Build, err error) {
	all, err := f.ports.Views.Builds(ctx, f.model.Name)
	if err != nil {
		return nil, err
	}
	kept := false
	for _, b := range slices.Backward(all) {
		if b.Loaded && (b.Live || !kept) {
			kept = kept || !b.Live
			left = append(left, b)
			continue
		}
		if err := f.ports.Views.Drop(ctx, b); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(left, func(a, b projections.Build) int {
		switch {
		case a.Live == b.Live:
			return 0
		case a.Live:
			return 1
		}
		return -1
	})
	return left, nil
}

// drop removes a build that came to nothing, also when ctx has ended.
func (f *viewFeed) drop(ctx context.Context, v projections.View) error {
	if v.Build == 0 {
		return nil
	}
	err := f.ports.Views.Drop(context.WithoutCancel(ctx), projections.Build{Model: f.model.Name, Number: v.Build})
	if errors.Is(err, projections.ErrNoView) {
		err = nil
	}
	return err
}

// build folds the whole log into a new build, as many partitions at once as there are processors.
func (f *viewFeed) build(ctx context.Context, progress RebuildProgress) (v projections.View, err error) {
	log, err := f.ports.Log.Log(ctx)
	if err != nil {
		return v, err
	}
	ends, total := make([]events.Position, log.Partitions), int64(0)
	for p := range ends {
		if ends[p], _, err = f.ports.Log.End(ctx, events.Partition(p)); err != nil {
			return v, err
		}
		total += int64(ends[p])
	}
	if v, err = f.ports.Views.Begin(ctx, f.model); err != nil {
		return v, err
	}
	var (
		mu     sync.Mutex
		done   atomic.Int64
		at     = map[events.Partition]events.Checkpoint{}
		parked []projections.Parked
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for p := range ends {
		group.Go(func() error {
			p := events.Partition(p)
			folded, err := f.ports.Fold(ctx, v, p, f.ports.Codec, ends[p], func(n int64) {
				progress(done.Add(n), total)
			})
			mu.Lock()
			defer mu.Unlock()
			at[p], parked = folded.At, append(parked, folded.Parked...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return v, err
	}
	return v, f.ports.Views.Loaded(context.WithoutCancel(ctx), v, at, parked)
}

// catchUp gives a build everything that the log has.
func (f *viewFeed) catchUp(ctx context.Context, v projections.View) error {
	log, err := f.ports.Log.Log(ctx)
	for p := 0; err == nil && p < log.Partitions; p++ {
		err = f.ports.CatchUp(ctx, v, events.Partition(p), f.ports.Codec)
	}
	return err
}

// swapIn makes a build the one that answers. Nothing of this process feeds the live one meanwhile.
func (f *viewFeed) swapIn(ctx context.Context, v projections.View) error {
	if err := f.catchUp(ctx, v); err != nil {
		return err
	}
	return f.ports.Views.Swap(ctx, v)
}
