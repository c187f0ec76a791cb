package simulation

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/projections"
	projworkflow "github.com/sluice-platform/sluice/projections/workflow"
)

// view is one live read model with the runner that feeds it.
type view struct {
	projections.View
	runner *projections.Runner
	in     projections.In
}

// holey is a feed that may be late, double, and leave holes.
type holey struct {
	s    *sim
	hole *events.Commit // the first that was left out, for the planted bug
}

func (f *holey) Read(
	ctx context.Context, p events.Partition, after events.Position, most int,
) ([]events.Commit, error) {
	page, err := f.s.store.Tail(ctx, p, after, min(most, 1+f.s.r.IntN(12)))
	f.hole = nil
	if err != nil || len(page) == 0 {
		return page, err
	}
	switch {
	case f.s.odd(10):
		return nil, nil
	case len(page) > 1 && f.s.odd(15):
		f.s.stats.Holes++
		i := f.s.r.IntN(len(page) - 1) // the first of the page may have been seen already
		hole := page[i]
		f.hole = &hole
		return slices.Delete(page, i, i+1), nil
	case f.s.odd(10):
		return append(page, page[f.s.r.IntN(len(page))]), nil
	case after > 0 && f.s.odd(5):
		return f.s.store.Tail(ctx, p, max(after-10, 0), most)
	}
	return page, nil
}

func (f *holey) Wait(context.Context, events.Partition, events.Position) error { return nil }

var models = []projections.Model{projworkflow.Executions(), projworkflow.Counts()}

func (s *sim) beginViews() {
	s.mviews = memory.NewViews()
	for i := range models {
		v, err := s.mviews.Begin(ctx, models[i])
		s.must(err)
		info, err := s.store.Log(ctx)
		s.must(err)
		s.must(s.mviews.Loaded(ctx, v, map[events.Partition]events.Checkpoint{0: {Incarnation: info.Incarnation}}, nil))
		s.must(s.mviews.Swap(ctx, v))
		s.views = append(s.views, &view{View: v, runner: projections.NewRunner(&models[i], 0, s.codec)})
	}
}

// feed lets one view's runner take a step.
func (s *sim) feed() bool {
	if !s.faults {
		return false // what is left, the end catches up with
	}
	v := s.views[s.r.IntN(len(s.views))]
	if st := v.runner.Stats(); st.Quiet && st.Seen.Position == s.log.seen && !s.odd(5) {
		return false
	}
	if s.odd(2) { // its process died: another reads on from the checkpoint
		v.runner, v.in = projections.NewRunner(&v.Model, 0, s.codec), projections.In{}
	}
	v.in.Now = s.now
	out := v.runner.Step(&v.in)
	if out.Do == projections.DoRebuild {
		s.bad("view %s was to be rebuilt: %s", v.Model.Name, out.Why)
		return true
	}
	feed := &holey{s: s}
	ports := projections.Ports{Log: s.store, Feed: feed, Views: s.mviews}
	if s.odd(3) {
		v.in = projections.In{Err: events.ErrClosed} // the request was lost
		return true
	}
	v.in = ports.Perform(ctx, v.View, 0, out)
	if feed.hole != nil && s.opt.Bug == SkipHole {
		s.skip(v, feed)
	}
	if s.odd(3) {
		v.in = projections.In{Err: events.ErrClosed} // the answer was lost
	}
	return true
}

// skip is the planted bug: the checkpoint moves over what the feed has left out.
func (s *sim) skip(v *view, f *holey) {
	at, err := s.mviews.Checkpoints(ctx, v.View)
	s.must(err)
	if at[0].Position != f.hole.Before() {
		return
	}
	to := events.Checkpoint{Incarnation: at[0].Incarnation, Position: f.hole.Position, Hash: f.hole.Hash}
	s.must(s.mviews.Apply(ctx, v.View, &projections.Batch{From: at[0], To: to}))
	v.runner, v.in = projections.NewRunner(&v.Model, 0, s.codec), projections.In{}
}

// viewsAgree compares what the views have come to with views that are built anew.
func (s *sim) viewsAgree() {
	ports := projections.Ports{Log: s.store, Views: s.mviews}
	end, _, err := s.store.End(ctx, 0)
	s.must(err)
	for _, v := range s.views {
		if err := ports.CatchUp(ctx, v.View, 0, s.codec); err != nil {
			s.bad("%v", err)
			return
		}
		live := s.rows(&v.Model)
		fresh, err := s.mviews.Begin(ctx, v.Model)
		s.must(err)
		folded, err := ports.Fold(ctx, fresh, 0, s.codec, end, func(int64) {})
		s.must(err)
		s.must(s.mviews.Loaded(ctx, fresh, map[events.Partition]events.Checkpoint{0: folded.At}, folded.Parked))
		s.must(s.mviews.Swap(ctx, fresh))
		if anew := s.rows(&v.Model); live != anew {
			s.bad("view %s is not what a rebuild gives:\n%s\nbut\n%s", v.Model.Name, live, anew)
		}
	}
}

func (s *sim) rows(m *projections.Model) (all string) {
	for _, tenant := range tenants {
		for i := range m.Tables {
			q := projections.Query{Tenant: tenant, Limit: projections.PageMax}
			for {
				page, err := s.mviews.List(ctx, *m, m.Tables[i].Name, q)
				if err != nil {
					s.bad("list %s: %v", m.Name, err)
					return ""
				}
				for _, r := range page.Rows {
					all += fmt.Sprint([]any(r)...) + "\n"
					q.After = r
				}
				if page.Incomplete > 0 {
					s.bad("view %s has parked %d streams", m.Name, page.Incomplete)
				}
				if !page.More {
					break
				}
			}
		}
	}
	return all
}
