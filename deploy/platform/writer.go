package platform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
)

// writer is the way of one partition's machine appends into the store: one call at a time, each with whatever has
// gathered while the last one was in flight. There is no timer that waits for more.
type writer struct {
	partition events.Partition
	log       events.Appender
	blobs     events.Blobs
	in        *box[[]handle.Tagged]
	answer    func(as []owner.Answer)
	stored    func(a *events.Append)
	meter     *laneMeter
}

// batchMax is how many appends go to the store in one call.
const batchMax = 1024

// unknownRest is what is waited before appends of unknown outcome are submitted again.
const unknownRest = 50 * time.Millisecond

// run works until ctx ends. It returns an error when the store can take nothing any more.
func (w *writer) run(ctx context.Context) error {
	var spare []handle.Tagged
	batch := make([]*events.Append, 0, batchMax)
	verdicts := make([]events.Verdict, batchMax)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.in.full:
		}
		clear(spare)
		todo := w.in.take(spare[:0])
		spare = todo
		for len(todo) > 0 {
			n := min(len(todo), batchMax)
			if err := w.write(ctx, todo[:n], batch[:0], verdicts[:n]); err != nil {
				return err
			}
			todo = todo[n:]
		}
	}
}

func (w *writer) write(ctx context.Context, todo []handle.Tagged, batch []*events.Append, vs []events.Verdict) error {
	for i := range todo {
		for _, b := range todo[i].Write.Blobs {
			if err := w.keep(ctx, b); err != nil {
				return err
			}
		}
		batch = append(batch, todo[i].Write.Append)
	}
	began := time.Now()
	err := w.log.Append(ctx, w.partition, batch, vs)
	w.meter.appended(time.Since(began), len(batch))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil // the end: what is not answered was never promised to anybody
	case errors.Is(err, events.ErrUnknown):
		clear(vs) // Unknown: each is submitted again
		if sleep := (sleeper{}).Wait(ctx, unknownRest); sleep != nil {
			return nil
		}
	default:
		return fmt.Errorf("append to partition %d: %w", w.partition, err)
	}
	as := make([]owner.Answer, len(todo))
	for i := range todo {
		as[i] = owner.Answer{Tag: todo[i].Tag, Verdict: vs[i]}
		if vs[i].Kind == events.Appended {
			w.stored(todo[i].Write.Append)
		}
	}
	w.answer(as)
	return nil
}

// keep puts a blob, however often it takes: the append that names it waits.
func (w *writer) keep(ctx context.Context, b handle.Blob) error {
	for {
		_, err := w.blobs.Put(ctx, b.Tenant, b.Data)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, events.ErrTooLarge) {
			return fmt.Errorf("keep payload %s: %w", b.Name, err)
		}
		if (sleeper{}).Wait(ctx, time.Second) != nil {
			return nil
		}
	}
}
