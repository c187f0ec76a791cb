package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

const (
	// viewsPause is the beat on which a partition that was read a moment ago is read again, unless a whole page waits:
	// batches form, and since all partitions keep one beat, they share a transaction. It is also what a view lags
	// behind under load, less than the 50 ms promised.
	viewsPause = 20 * time.Millisecond
	// viewsRest is how long a view is left alone after its store or the log failed.
	viewsRest = time.Second
)

// viewsPorts is what feeding views needs of the world.
type viewsPorts struct {
	projections.Ports
	Codec  events.Codec
	Clock  commands.Clock
	Models []projections.Model
	Logger *slog.Logger

	started time.Time
}

// viewsRunner feeds every model's live view from every partition. Its methods may be called while Run runs.
type viewsRunner struct {
	ports  viewsPorts
	models map[string]*viewFeed
}

// beat is how long it is until the next one, for who read last at the given time; 0 when that is long ago.
func (p *viewsPorts) beat(read time.Time) time.Duration {
	if time.Since(read) >= viewsPause {
		return 0
	}
	return viewsPause - time.Since(p.started)%viewsPause
}

// viewFeed is one model and the view of it that is fed.
type viewFeed struct {
	ports    *viewsPorts
	model    projections.Model
	building chan struct{}  // holds a token while somebody makes or drops builds
	handOver chan *viewSwap // taken whenever the model is fed, or waits for a build
	ended    chan struct{}  // closed when Run has returned

	mu      sync.Mutex
	view    projections.View // Build 0: none is live yet
	parts   int              // partitions that are fed
	stats   map[events.Partition]projections.Stats
	caught  map[events.Partition]bool // have had nothing to do since the view went live
	retries int                       // how often parked streams were to be tried again
	moved   chan struct{}             // closed and made anew when stats change
}

// viewSwap asks that a build be caught up and swapped in while nothing feeds the live one.
type viewSwap struct {
	view projections.View
	done chan error
}

// ViewStatus is how one model stands in one partition.
type ViewStatus struct {
	Model     string
	Build     projections.View
	Partition events.Partition
	Lag       int64 // positions that the log has and the view has not
	Stats     projections.Stats
}

func newViewsRunner(ports viewsPorts) (*viewsRunner, error) {
	ports.Feed, ports.started = newSharedFeed(ports.Feed), time.Now()
	r := &viewsRunner{ports: ports, models: map[string]*viewFeed{}}
	for _, m := range ports.Models {
		if err := m.Check(); err != nil {
			return nil, err
		}
		r.models[m.Name] = &viewFeed{
			ports: &r.ports, model: m, building: make(chan struct{}, 1), handOver: make(chan *viewSwap),
			ended: make(chan struct{}), moved: make(chan struct{}),
		}
	}
	return r, nil
}

// Run feeds until ctx ends, and returns nil then: whatever fails is tried again.
func (r *viewsRunner) Run(ctx context.Context) error {
	var fs []func(context.Context) error
	for _, m := range r.ports.Models {
		fs = append(fs, r.models[m.Name].run)
	}
	return together(ctx, fs...)
}

func (f *viewFeed) run(ctx context.Context) error {
	defer close(f.ended)
	for ctx.Err() == nil {
		err := f.serve(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil, errors.Is(err, projections.ErrNoView): // look again at once
		default:
			f.ports.Logger.Error("a view cannot be fed", "view", f.model.Name, "error", err)
			if (sleeper{}).Wait(ctx, viewsRest) != nil {
				return nil
			}
		}
	}
	return nil
}

// serve feeds the live view until something else must be fed: another build, or one made anew.
func (f *viewFeed) serve(ctx context.Context) error {
	v, err := f.find(ctx)
	if err != nil || v.Build == 0 {
		return err
	}
	log, err := f.ports.Log.Log(ctx)
	if err != nil {
		return err
	}
	f.goLive(v, log.Partitions)
	feeding, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() {
		fs := make([]func(context.Context) error, log.Partitions)
		for p := range fs {
			fs[p] = func(ctx context.Context) error { return f.feed(ctx, v, events.Partition(p)) }
		}
		ended <- together(feeding, fs...)
	}()
	select {
	case err = <-ended:
	case swap := <-f.handOver:
		stop(context.Canceled)
		if err = <-ended; err == nil {
			err = f.swapIn(ctx, swap.view)
		}
		swap.done <- err
		return nil
	}
	if errors.Is(err, projections.ErrForeign) {
		f.ports.Logger.Error("a view holds what the log does not and is dropped", "view", f.model.Name, "error", err)
		f.goLive(projections.View{}, 0)
		return f.ports.Views.Drop(ctx, projections.Build{Model: f.model.Name, Version: f.model.Version, Number: v.Build})
	}
	return err
}

func (f *viewFeed) goLive(v projections.View, parts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.parts = v, parts
	f.stats, f.caught = map[events.Partition]projections.Stats{}, map[events.Partition]bool{}
	close(f.moved)
	f.moved = make(chan struct{})
}

// feed drives one partition's runner. It returns nil when ctx ends, ErrForeign, or ErrNoView; all else it tries again.
func (f *viewFeed) feed(ctx context.Context, v projections.View, p events.Partition) error {
	r := projections.NewRunner(&f.model, p, f.ports.Codec)
	var in projections.In
	var read time.Time
	retries := 0
	for ctx.Err() == nil {
		in.Now = f.ports.Clock.Now()
		retries, in.Retry = f.retry(retries)
		out := r.Step(&in)
		f.publish(p, r)
		switch out.Do {
		case projections.DoRebuild:
			return fmt.Errorf("%w: build %d, partition %d: %s", projections.ErrForeign, v.Build, p, out.Why)
		case projections.DoFeed, projections.DoStore:
			if rest := f.ports.beat(read); !out.More && rest > 0 && (sleeper{}).Wait(ctx, rest) != nil {
				return nil
			}
			read = time.Now()
		}
		if in = f.ports.Perform(ctx, v, p, out); in.Err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(in.Err, projections.ErrNoView) {
			return in.Err
		}
		f.ports.Logger.Warn("feeding a view failed and is tried again", "view", f.model.Name, "error", in.Err)
		if !errors.Is(in.Err, projections.ErrMoved) && (sleeper{}).Wait(ctx, viewsRest) != nil {
			return nil
		}
	}
	return nil
}

func (f *viewFeed) retry(done int) (now int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retries, f.retries != done
}

func (f *viewFeed) publish(p events.Partition, r *projections.Runner) {
	s := r.Stats()
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.stats[p]
	if s == was {
		return
	}
	f.stats[p] = s
	f.caught[p] = f.caught[p] || s.Quiet && !s.Gap
	if s.Gap && !was.Gap {
		f.ports.Logger.Error("feed_gap: the log lacks what follows the view", "view", f.model.Name,
			"partition", p, "position", s.Seen.Position)
	}
	if s.Seen != was.Seen {
		close(f.moved)
		f.moved = make(chan struct{})
	}
}

// RetryParked has every parked stream of a model tried again.
func (r *viewsRunner) RetryParked(model string) error {
	f := r.models[model]
	if f == nil {
		return fmt.Errorf("%w: %q", projections.ErrNoView, model)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retries++
	return nil
}

// Await returns when the live view of a model has everything of a partition up to a position; ctx's cause when that
// ends first.
func (r *viewsRunner) Await(ctx context.Context, model string, p events.Partition, at events.Position) error {
	f := r.models[model]
	if f == nil {
		return fmt.Errorf("%w: %q", projections.ErrNoView, model)
	}
	for {
		f.mu.Lock()
		seen, moved := f.stats[p].Seen.Position, f.moved
		f.mu.Unlock()
		if seen >= at {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// NotReady names the models whose view is not live, or has not had all of the log yet since the start.
func (r *viewsRunner) NotReady() (names []string) {
	for name, f := range r.models {
		f.mu.Lock()
		ready := f.view.Build > 0
		for p := range f.parts {
			ready = ready && f.caught[events.Partition(p)]
		}
		f.mu.Unlock()
		if !ready {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Status says how every live view stands, by model and partition.
func (r *viewsRunner) Status(ctx context.Context) (all []ViewStatus, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.models)) {
		f := r.models[name]
		f.mu.Lock()
		view, stats := f.view, maps.Clone(f.stats)
		f.mu.Unlock()
		for _, p := range slices.Sorted(maps.Keys(stats)) {
			end, _, err := r.ports.Log.End(ctx, p)
			if err != nil {
				return nil, err
			}
			all = append(all, ViewStatus{
				Model: name, Build: view, Partition: p, Stats: stats[p],
				Lag: max(0, int64(end-stats[p].Seen.Position)),
			})
		}
	}
	return all, nil
}
