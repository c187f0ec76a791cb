package projections

import (
	"context"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// Ports is the world of runners and rebuilds. Feed may be nil: then the log itself is read, and nothing is waited for.
type Ports struct {
	Log   events.Reader
	Feed  events.Feed
	Views Views
}

// Perform does what a runner of view v and partition p wants, and returns the answer but its Now. It blocks for as
// long as the ports do. Of DoRebuild there is nothing to perform.
func (w *Ports) Perform(ctx context.Context, v View, p events.Partition, o *Out) (in In) {
	switch o.Do {
	case DoOpen:
		in.Err = w.open(ctx, v, p, &in)
	case DoFeed:
		if w.Feed == nil {
			in.Commits, in.Err = w.Log.Tail(ctx, p, o.After, o.Max)
		} else {
			in.Commits, in.Err = w.Feed.Read(ctx, p, o.After, o.Max)
		}
	case DoStore:
		var log events.LogInfo
		if in.Commits, in.Err = w.Log.Tail(ctx, p, o.After, o.Max); in.Err == nil {
			log, in.Err = w.Log.Log(ctx)
			in.Incarnation = log.Incarnation
		}
	case DoRows:
		in.Rows, in.Err = w.Views.Rows(ctx, v, o.Keys)
	case DoApply:
		in.Err = w.Views.Apply(ctx, v, o.Batch)
	case DoStream:
		in.Err = w.stream(ctx, o, &in)
	case DoWait:
		if w.Feed != nil {
			in.Err = w.Feed.Wait(ctx, p, o.After)
		}
	}
	if in.Err != nil {
		in.Err = fmt.Errorf("feed view %s build %d from partition %d: %w", v.Model.Name, v.Build, p, in.Err)
	}
	return in
}

func (w *Ports) open(ctx context.Context, v View, p events.Partition, in *In) error {
	at, err := w.Views.Checkpoints(ctx, v)
	if err != nil {
		return err
	}
	parked, err := w.Views.ParkedStreams(ctx, v)
	if err != nil {
		return err
	}
	log, err := w.Log.Log(ctx)
	if err != nil {
		return err
	}
	in.Checkpoint, in.Incarnation = at[p], log.Incarnation
	for i := range parked {
		if parked[i].Part == p {
			in.Parked = append(in.Parked, parked[i])
		}
	}
	return nil
}

// stream reads from the commit that holds the wanted version on.
func (w *Ports) stream(ctx context.Context, o *Out, in *In) error {
	first, err := w.Log.CommitAt(ctx, o.Stream, o.Version)
	if err != nil {
		return err
	}
	rest, err := w.Log.Commits(ctx, o.Stream, first.First, o.Max)
	in.Commits = append([]events.Commit{first}, rest...)
	return err
}
