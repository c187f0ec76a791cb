package platform

import (
	"context"
	"errors"
	"time"

	edge "github.com/sluice-platform/sluice/gateways/http"
	"github.com/sluice-platform/sluice/gateways/telemetry"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// one is a measure with a single reading.
func one(v float64) []telemetry.Reading { return []telemetry.Reading{{Value: v}} }

// owners adds something up over the partitions that this process owns.
func (s *System) owners(f func(p *partition) int64) telemetry.Read {
	return func() ([]telemetry.Reading, error) {
		var n int64
		for i := range s.parts {
			if p := s.parts[i].Load(); p != nil {
				n += f(p)
			}
		}
		return one(float64(n)), nil
	}
}

// newMeter makes the measures of the system; each is read when it is asked for, until ctx ends.
func (s *System) newMeter(ctx context.Context) (*telemetry.Meter, error) {
	m := telemetry.New()
	return m, errors.Join(
		m.Gauge("sluice_owner_hot_streams", "Streams that the owners keep in memory.", "",
			s.owners(func(p *partition) int64 { return p.hot.Load() })),
		m.Gauge("sluice_tasks_waiting", "Tasks that wait for the window or a slot.", "",
			s.owners(func(p *partition) int64 { return p.waiting.Load() })),
		m.Gauge("sluice_slots_in_use", "Attempts that hold a slot.", "",
			s.owners(func(p *partition) int64 { return p.flying.Load() })),
		m.Counter("sluice_lane_appends_total", "Appends of the owners since the start.", "",
			s.owners(func(p *partition) int64 { return p.meter.appends.Load() })),
		m.Gauge("sluice_lane_last_append_seconds", "How long the slowest of the owners' last appends took.", "",
			s.lastAppend),
		m.Gauge("sluice_queue_depth", "Items that wait in the queue.", "class",
			func() ([]telemetry.Reading, error) { return s.queueDepth(ctx) }),
		m.Gauge("sluice_view_lag_events", "Positions that the log has and the view has not.", "view",
			s.ofViews(ctx, func(v ViewStatus) float64 { return float64(v.Lag) })),
		m.Gauge("sluice_view_parked_streams", "Streams of which the view could not apply an event.", "view",
			s.ofViews(ctx, func(v ViewStatus) float64 { return float64(v.Stats.Parked) })),
	)
}

func (s *System) lastAppend() ([]telemetry.Reading, error) {
	var slowest int64
	for i := range s.parts {
		if p := s.parts[i].Load(); p != nil {
			slowest = max(slowest, p.meter.last.Load())
		}
	}
	return one(time.Duration(slowest).Seconds()), nil
}

func (s *System) queueDepth(ctx context.Context) (all []telemetry.Reading, err error) {
	for _, class := range workflow.Classes {
		q, err := s.queue.Stats(ctx, class)
		if err != nil {
			return nil, err
		}
		all = append(all, telemetry.Reading{Value: float64(q.Depth), Label: class})
	}
	return all, nil
}

// ofViews adds something up over a view's partitions.
func (s *System) ofViews(ctx context.Context, f func(ViewStatus) float64) telemetry.Read {
	return func() (all []telemetry.Reading, err error) {
		status, err := s.views.Status(ctx) // by model
		for _, v := range status {
			if n := len(all); n == 0 || all[n-1].Label != v.Model {
				all = append(all, telemetry.Reading{Label: v.Model})
			}
			all[len(all)-1].Value += f(v)
		}
		return all, err
	}
}

// counted tells a meter of an answered request.
func counted(m *telemetry.Meter) func(edge.Answered) {
	return func(a edge.Answered) { m.Request(a.Method, a.Route, a.Status, a.Took) }
}
