// Package platform puts the pieces together: configuration, lifetimes, and what drives the state machines.
// It never decides anything; whatever has a rule in it belongs to another layer.
package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/kernel/parking"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/blob"
	"github.com/sluice-platform/sluice/gateways/keys"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/gateways/storetail"
	"github.com/sluice-platform/sluice/processors/workflow"
	"github.com/sluice-platform/sluice/processors/workflow/live"
	"github.com/sluice-platform/sluice/projections"
	projworkflow "github.com/sluice-platform/sluice/projections/workflow"
	"github.com/sluice-platform/sluice/schemas"
)

// ownerName is who owns the partitions of an embedded log: whoever holds the folder's lock.
const ownerName = "embedded"

// System is one process with an embedded log and every role.
type System struct {
	cfg    Config
	logger *slog.Logger

	Store    *sqlite.Store
	Blobs    *blob.Folder
	Codec    events.Codec
	Refs     *handle.Refs
	Handler  *handle.Handler
	Views    projections.Views
	Keys     *keys.Pair
	Info     events.LogInfo
	Attempts *live.Attempts
	Types    taskTypes

	queue   *memory.Queue
	slots   *memory.Slots
	feed    *storetail.Feed
	views   *viewsRunner
	watches *watches
	parts   []atomic.Pointer[partition]
	worker  *workerRunner
	// aggregates are all of this build.
	aggregates []aggregates.Aggregate
	boot       string // names this process among all that ever ran on the folder
}

// Open opens the folder and makes everything that is needed, without starting anything.
func Open(ctx context.Context, cfg Config, logger *slog.Logger) (s *System, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s = &System{cfg: cfg, logger: logger, watches: newWatches(), boot: randomIDs{}.NewID().String()[:8]}
	s.aggregates = allAggregates()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if s.Store, err = sqlite.Open(cfg.Data, sqlite.Options{Partitions: cfg.Partitions}); err != nil {
		return s, err
	}
	if s.Info, err = s.Store.Log(ctx); err != nil {
		return s, err
	}
	if s.Blobs, err = blob.Open(filepath.Join(cfg.Data, "blobs")); err != nil {
		return s, err
	}
	if s.Keys, err = keys.Open(cfg.Data); err != nil {
		return s, err
	}
	if s.Codec, err = avro.New(events.Registered(), schemas.Avro()); err != nil {
		return s, err
	}
	if s.Types, err = newTaskTypes(cfg); err != nil {
		return s, err
	}
	s.Refs = handle.NewRefs(s.Store, s.Codec, s.Blobs, compileDefinition(s.Types.types))
	s.Handler = handle.New(handle.Config{
		Log: s.Store, Codec: s.Codec, Blobs: s.Blobs, Refs: s.Refs, Aggregates: s.Aggregates(),
		Partitions: s.Info.Partitions, Clock: systemClock{}, Rand: entropy{}, Waiter: sleeper{},
		Parking: parkingOf{s}, Committed: s.committed,
	})
	s.Attempts = live.New(systemClock{}, s.counts)
	s.queue = memory.NewQueue(systemClock{}, cfg.QueueDepth)
	s.slots = memory.NewSlots(systemClock{}, func(_, taskType string) (int, int) {
		return cfg.TenantSlots, cfg.TypeSlots[taskType]
	})
	s.feed = storetail.New(s.Store)
	s.parts = make([]atomic.Pointer[partition], s.Info.Partitions)
	return s, s.openViews()
}

func (s *System) openViews() (err error) {
	views, err := sqlite.OpenViews(driver.Default, filepath.Join(s.cfg.Data, "views.db"), s.logger)
	if err != nil {
		return err
	}
	s.Views = views
	s.views, err = newViewsRunner(viewsPorts{
		Ports: projections.Ports{Log: s.Store, Feed: s.feed, Views: views}, Codec: s.Codec, Clock: systemClock{},
		Models: []projections.Model{projworkflow.Executions(), projworkflow.Counts()}, Logger: s.logger,
	})
	return err
}

// parkingOf breaks the circle: the handler parks by way of itself.
type parkingOf struct{ s *System }

// Park keeps a command that panicked.
func (p parkingOf) Park(ctx context.Context, c handle.Parked) error { return p.s.Handler.Park(ctx, c) }

func allAggregates() []aggregates.Aggregate {
	return append(workflowAggregates(), parking.Decider.Untyped())
}

// Aggregates are all of this build.
func (s *System) Aggregates() []aggregates.Aggregate { return s.aggregates }

// Close closes what Open opened. Run has returned.
func (s *System) Close() error {
	var errs []error
	if s.Types.close != nil {
		s.Types.close()
	}
	if s.Views != nil {
		errs = append(errs, s.Views.Close())
	}
	if s.Blobs != nil {
		errs = append(errs, s.Blobs.Close())
	}
	if s.Store != nil {
		errs = append(errs, s.Store.Close())
	}
	return errors.Join(errs...)
}

// Run runs every role until ctx ends. The worker stops first: what it still reports is taken by the owners.
func (s *System) Run(ctx context.Context) error {
	owners, stopOwners := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopOwners(nil)
	done := make(chan error, 1)
	go func() { done <- s.runOwners(owners) }()
	err := together(ctx,
		s.runWorker,
		func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case err := <-done:
				done <- err
				return err
			}
		},
	)
	stopOwners(context.Canceled)
	return errors.Join(err, errIfNew(err, <-done))
}

func errIfNew(known, err error) error {
	if errors.Is(known, err) {
		return nil
	}
	return err
}

func (s *System) runWorker(ctx context.Context) error {
	if s.cfg.Workers == 0 {
		<-ctx.Done()
		return nil
	}
	s.worker = newWorker(workerConfig{Name: s.workerName(), Slots: s.cfg.Workers, Drain: s.cfg.Drain}, workerPorts{
		Queue: s.queue, Attempts: s.Attempts, Reports: reportsOf{s}, Refs: s.Refs, Blobs: s.Blobs,
		Clock: systemClock{}, Handlers: s.Types.handlers, Log: s.logger,
	})
	return s.worker.Run(ctx)
}

// workerName says of which life of the folder a worker is, so that a later one knows that it is gone.
func (s *System) workerName() string { return ownerName + "/" + s.boot }

func (s *System) gone(worker string) bool {
	return strings.HasPrefix(worker, ownerName+"/") && worker != s.workerName()
}

func (s *System) runOwners(ctx context.Context) error {
	fs := []func(context.Context) error{s.views.Run}
	for p := range s.parts {
		id := events.Partition(p)
		fs = append(fs,
			func(ctx context.Context) error {
				return ownPartition(ctx, s.Store, id, ownerName, s.logger, func(ctx context.Context, t events.Tenure) error {
					return s.runPartition(ctx, t)
				})
			},
			func(ctx context.Context) error { return seal(ctx, s.Store, id, s.Keys, s.logger) },
		)
	}
	return together(ctx, fs...)
}

func (s *System) runPartition(ctx context.Context, t events.Tenure) error {
	p := newPartition(t.Partition, t.Fence, partitionPorts{
		Handler: s.Handler, Refs: s.Refs, Log: s.Store, Blobs: s.Blobs, Queue: s.queue, Slots: s.slots,
		Attempts: s.Attempts, Parking: s.Handler, Changed: s.changed, Unblock: s.unblock, Logger: s.logger,
		Aggregates: s.Aggregates(), Codec: s.Codec, Gone: s.gone,
	})
	s.parts[t.Partition].Store(p)
	defer s.parts[t.Partition].CompareAndSwap(p, nil)
	return p.run(ctx)
}

// committed hands a stream that a caller's command has moved to its owner.
func (s *System) committed(l handle.Loaded, _ events.Time) {
	stream, at, open := l.Stream, l.Partition, s.open(l)
	if p := s.parts[at].Load(); p != nil {
		p.handOver(l)
	}
	s.changed(at, stream, open)
}

// changed tells everybody who waits that a stream has grown.
func (s *System) changed(p events.Partition, stream events.Stream, open bool) {
	s.feed.Notify(p)
	s.watches.changed(stream, open)
}

// open says whether an owner has work with a stream.
func (s *System) open(l handle.Loaded) bool {
	for _, a := range s.aggregates {
		if a.Category() == l.Stream.Category() {
			return a.Open(l.State)
		}
	}
	return false
}

// unblock tells the owners of the other partitions that slots were freed.
func (s *System) unblock(from events.Partition, tenants []string) {
	for i := range s.parts {
		if p := s.parts[i].Load(); p != nil && p.id != from && p.waiting.Load() > 0 {
			p.in.put(func(in *incoming) { in.unblock = append(in.unblock, tenants...) })
		}
	}
}

// counts asks the log whether an attempt may still count.
func (s *System) counts(ctx context.Context, it workflow.Item) (bool, error) {
	head, err := s.Store.Head(ctx, it.Stream)
	if err != nil {
		return false, fmt.Errorf("read head of %s: %w", it.Stream, err)
	}
	return head.Open, nil
}

// reportsOf brings workers' reports to the owners of this process.
type reportsOf struct{ s *System }

// Report never fails: a report for a partition that nobody here owns is lost, and its task is sent again.
func (r reportsOf) Report(_ context.Context, report workflow.Report) error {
	if p := r.s.parts[report.Partition].Load(); p != nil {
		p.report(report, r.s.workerName())
	}
	return nil
}
