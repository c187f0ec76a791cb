package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-platform/sluice/events"
)

// request is one call that waits for the writer. Its caller may leave; so what the writer touches is the request's own.
type request struct {
	p     events.Partition
	batch []*events.Append
	out   []events.Verdict
	job   func(*writer, *partition, events.Time) error // instead of a batch: a write of the store's own
	state atomic.Int32
	err   error
	done  chan struct{} // one value when answered
}

// Who has a request: it waits for the writer, the writer has it, its caller has the answer, or has left without.
const (
	waits int32 = iota
	taken
	answered
	left
)

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

// Append implements events.Appender. A call whose context ends while it waits for the writer stores nothing and gets
// the context's error; one whose batch is on its way to disk gets ErrUnknown.
func (s *Store) Append(ctx context.Context, p events.Partition, batch []*events.Append, out []events.Verdict) error {
	if err := events.CheckBatch(p, s.info.Partitions, batch, out); err != nil {
		return err
	}
	r := s.request(p)
	r.batch = append(r.batch, batch...)
	for range batch {
		r.out = append(r.out, events.Verdict{})
	}
	err := s.submit(ctx, r)
	if err == nil {
		copy(out, r.out)
	}
	s.recycle(r)
	if err != nil {
		return fmt.Errorf("append to partition %d: %w", p, err)
	}
	return nil
}

func (s *Store) request(p events.Partition) *request {
	r := requests.Get().(*request)
	r.p, r.batch, r.out, r.job, r.err = p, r.batch[:0], r.out[:0], nil, nil
	r.state.Store(waits)
	return r
}

// recycle keeps a request for another call, unless the writer may still touch it.
func (s *Store) recycle(r *request) {
	if r.state.Load() == left {
		return
	}
	clear(r.batch)
	requests.Put(r)
}

// submit hands r to the writer and waits for the answer. When it returns without having been answered, r's state is
// left, and its out must not be read.
func (s *Store) submit(ctx context.Context, r *request) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.quit:
		return events.ErrClosed
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waits, left) {
			return ctx.Err()
		}
		if r.state.CompareAndSwap(taken, left) {
			return fmt.Errorf("%w: %w", events.ErrUnknown, ctx.Err())
		}
	case <-s.stopped:
		if r.state.CompareAndSwap(waits, left) {
			return events.ErrClosed
		}
	}
	<-r.done // the answer was on its way
	return r.err
}
