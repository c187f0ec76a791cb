package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
)

// viewQueue holds batches that wait for the writer. Whoever gets it takes all of them into one transaction: what they
// touch in common, the ends of indexes above all, is written once.
type viewQueue struct {
	sync.Mutex
	calls []*viewCall
}

// viewCall is one call of Apply. Done and err are the writer's.
type viewCall struct {
	view  projections.View
	batch *projections.Batch
	done  bool
	err   error
}

func (q *viewQueue) add(c *viewCall) {
	q.Lock()
	defer q.Unlock()
	q.calls = append(q.calls, c)
}

func (q *viewQueue) take() (all []*viewCall) {
	q.Lock()
	defer q.Unlock()
	all, q.calls = q.calls, nil
	return all
}

func (q *viewQueue) leave(c *viewCall) {
	q.Lock()
	defer q.Unlock()
	q.calls = slices.DeleteFunc(q.calls, func(o *viewCall) bool { return o == c })
}

// Apply writes a batch, perhaps in one transaction with others.
func (v *Views) Apply(ctx context.Context, w projections.View, b *projections.Batch) error {
	err := w.Model.CheckChanges(b.Changes)
	if err == nil {
		call := &viewCall{view: w, batch: b}
		v.queue.add(call)
		v.life.RLock()
		gen := v.gen
		err = v.applyQueued(ctx, call)
		v.life.RUnlock()
		if errors.Is(err, driver.ErrDamaged) {
			err = v.heal(gen, err)
		}
	}
	return failed("apply to", w.Model.Name, w.Build, err)
}

func (v *Views) applyQueued(ctx context.Context, call *viewCall) error {
	v.write.Lock()
	defer v.write.Unlock()
	if call.done {
		return call.err
	}
	if ctx.Err() != nil || v.closed {
		v.queue.leave(call)
		if v.closed {
			return fs.ErrClosed
		}
		return context.Cause(ctx)
	}
	calls := v.queue.take()
	err := v.writer.inside(ctx, "BEGIN IMMEDIATE", func(c *conn) error {
		for _, one := range calls {
			if err := c.applyOne(one); err != nil {
				return err
			}
		}
		return nil
	})
	for _, one := range calls {
		one.done = true
		if err != nil {
			one.err = err
		}
	}
	return call.err
}

// applyOne writes one batch, and keeps for its caller that it may not be written; that happens before anything is.
// An error is one of the whole transaction.
func (c *conn) applyOne(call *viewCall) error {
	w, b := call.view, call.batch
	err := c.phase(w, true)
	if err == nil {
		err = c.move(w, b)
	}
	if errors.Is(err, projections.ErrNoView) || errors.Is(err, projections.ErrMoved) {
		call.err = err
		return nil
	}
	if err == nil {
		err = c.park(w, b.Park, b.Unpark)
	}
	if err == nil {
		err = c.put(w, b.Changes)
	}
	return err
}

// move sets the checkpoint if it is where the batch begins.
func (c *conn) move(w projections.View, b *projections.Batch) error {
	to := []any{
		w.Model.Name, w.Build, int64(b.Partition), int64(b.To.Incarnation), int64(b.To.Position), b.To.Hash[:],
	}
	var err error
	if b.From == (events.Checkpoint{}) {
		err = c.run("INSERT INTO view_checkpoints VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", to...)
	} else {
		err = c.run(`UPDATE view_checkpoints SET incarnation = ?4, position = ?5, hash = ?6
			WHERE model = ?1 AND build = ?2 AND part = ?3 AND incarnation = ?7 AND position = ?8 AND hash = ?9`,
			append(to, int64(b.From.Incarnation), int64(b.From.Position), b.From.Hash[:])...)
	}
	if err == nil && c.Changes() == 0 {
		err = projections.ErrMoved
	}
	return err
}

// put writes changes that fit their tables.
func (c *conn) put(w projections.View, changes []projections.Change) error {
	tables := map[string]*viewTable{}
	for i := range changes {
		ch := &changes[i]
		t := tables[ch.Table]
		if t == nil {
			t = tableOf(w, w.Model.Table(ch.Table))
			tables[ch.Table] = t
		}
		if err := c.change(t, ch); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) change(t *viewTable, ch *projections.Change) error {
	switch {
	case ch.Delete:
		return c.run(t.remove, t.keyOf(ch.Row)...)
	case len(ch.Had) == len(ch.Row) && len(ch.Row) <= 64:
		if there, err := c.differ(t, ch); there || err != nil {
			return err
		}
	}
	return c.run(t.upsert, ch.Row...)
}

// differ sets only the columns that are not as they were: an index without any of them is not touched then.
func (c *conn) differ(t *viewTable, ch *projections.Change) (there bool, err error) {
	mask, args := uint64(0), make([]any, 0, len(ch.Row)+len(t.key))
	for i, v := range ch.Row {
		if !same(v, ch.Had[i]) {
			mask |= 1 << i
			args = append(args, v)
		}
	}
	if mask == 0 {
		return true, nil
	}
	err = c.run(t.update(mask), append(args, t.keyOf(ch.Row)...)...)
	return c.Changes() > 0, err
}

func same(a, b any) bool {
	x, ok := a.([]byte)
	if y, both := b.([]byte); ok && both {
		return bytes.Equal(x, y)
	} else if ok || both {
		return false
	}
	return a == b
}
