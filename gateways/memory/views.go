package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// Views keeps read models in this process: for tests, simulation, and for reading how an adapter is written.
type Views struct {
	mu     sync.RWMutex
	builds map[string][]*build // by model, oldest first
	last   map[string]int      // number given last, by model
}

type build struct {
	projections.Build
	model  projections.Model
	rows   map[string]projections.Row
	tables map[string]map[string]struct{} // keys by table
	at     map[events.Partition]events.Checkpoint
	parked map[events.Stream]projections.Parked
}

var _ projections.Views = (*Views)(nil)

// NewViews makes an empty store of read models.
func NewViews() *Views { return &Views{builds: map[string][]*build{}, last: map[string]int{}} }

// Close does nothing.
func (v *Views) Close() error { return nil }

// Builds lists the builds of a model.
func (v *Views) Builds(_ context.Context, model string) ([]projections.Build, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []projections.Build
	for _, b := range v.builds[model] {
		all = append(all, b.Build)
	}
	return all, nil
}

// Begin makes an empty build.
func (v *Views) Begin(_ context.Context, m projections.Model) (projections.View, error) {
	if err := m.Check(); err != nil {
		return projections.View{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last[m.Name]++
	b := &build{
		Build: projections.Build{Model: m.Name, Version: m.Version, Number: v.last[m.Name]},
		model: m,
		rows:  map[string]projections.Row{}, tables: map[string]map[string]struct{}{},
		at: map[events.Partition]events.Checkpoint{}, parked: map[events.Stream]projections.Parked{},
	}
	for i := range m.Tables {
		b.tables[m.Tables[i].Name] = map[string]struct{}{}
	}
	v.builds[m.Name] = append(v.builds[m.Name], b)
	return projections.View{Model: m, Build: b.Number}, nil
}

// find returns a view's build; ErrNoView when it is not there, or not in the phase that the caller needs.
func (v *Views) find(w projections.View, loaded bool) (*build, error) {
	for _, b := range v.builds[w.Model.Name] {
		if b.Number == w.Build && b.Loaded == loaded {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: %s build %d", projections.ErrNoView, w.Model.Name, w.Build)
}

// Load puts rows into a build.
func (v *Views) Load(_ context.Context, w projections.View, rows []projections.Change) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.find(w, false)
	if err != nil {
		return err
	}
	return b.put(rows)
}

// Loaded ends the loading of a build.
func (v *Views) Loaded(
	_ context.Context, w projections.View, at map[events.Partition]events.Checkpoint, parked []projections.Parked,
) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.find(w, false)
	if err != nil {
		return err
	}
	b.Loaded = true
	maps.Copy(b.at, at)
	for _, p := range parked {
		b.parked[p.Stream] = p
	}
	return nil
}

// Checkpoints returns where a build stands.
func (v *Views) Checkpoints(
	_ context.Context, w projections.View,
) (map[events.Partition]events.Checkpoint, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	b, err := v.find(w, true)
	if err != nil {
		return nil, err
	}
	return maps.Clone(b.at), nil
}

// ParkedStreams lists the parked streams of a build.
func (v *Views) ParkedStreams(_ context.Context, w projections.View) ([]projections.Parked, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	b, err := v.find(w, true)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(b.parked), func(a, b projections.Parked) int {
		return strings.Compare(string(a.Stream), string(b.Stream))
	}), nil
}

// Rows reads rows by key.
func (v *Views) Rows(_ context.Context, w projections.View, keys []projections.Key) ([]projections.Row, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	b, err := v.find(w, true)
	if err != nil {
		if b, err = v.find(w, false); err != nil {
			return nil, err
		}
	}
	rows := make([]projections.Row, len(keys))
	for i, k := range keys {
		rows[i] = b.rows[string(projections.AppendKey(nil, k.Table, k.Key))]
	}
	return rows, nil
}

// Apply writes a batch.
func (v *Views) Apply(_ context.Context, w projections.View, batch *projections.Batch) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.find(w, true)
	if err != nil {
		return err
	}
	if b.at[batch.Partition] != batch.From {
		return fmt.Errorf("%w: %s partition %d", projections.ErrMoved, w.Model.Name, batch.Partition)
	}
	if err := b.put(batch.Changes); err != nil {
		return err
	}
	for _, p := range batch.Park {
		b.parked[p.Stream] = p
	}
	for _, s := range batch.Unpark {
		delete(b.parked, s)
	}
	b.at[batch.Partition] = batch.To
	return nil
}

// put writes all changes or, when one does not fit its table, none.
func (b *build) put(changes []projections.Change) error {
	if err := b.model.CheckChanges(changes); err != nil {
		return err
	}
	for i := range changes {
		c := &changes[i]
		key := string(projections.AppendKey(nil, c.Table, b.model.Table(c.Table).KeyOf(c.Row)))
		if c.Delete {
			delete(b.rows, key)
			delete(b.tables[c.Table], key)
			continue
		}
		b.rows[key] = c.Row
		b.tables[c.Table][key] = struct{}{}
	}
	return nil
}

// Swap makes a build the one that answers.
func (v *Views) Swap(_ context.Context, w projections.View) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.find(w, true)
	if err != nil {
		return err
	}
	live := v.live(w.Model.Name)
	if live != nil {
		for p, at := range live.at {
			if !projections.Past(b.at[p], at) {
				return fmt.Errorf("%w: %s build %d, partition %d", projections.ErrBehind, b.Model, b.Number, p)
			}
		}
		live.Live = false
	}
	b.Live = true
	return nil
}

func (v *Views) live(model string) *build {
	for _, b := range v.builds[model] {
		if b.Live {
			return b
		}
	}
	return nil
}

// Drop removes a build.
func (v *Views) Drop(_ context.Context, d projections.Build) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.builds[d.Model] = slices.DeleteFunc(v.builds[d.Model], func(b *build) bool { return b.Number == d.Number })
	return nil
}

// List returns a page of the live build.
func (v *Views) List(
	_ context.Context, m projections.Model, table string, q projections.Query,
) (projections.Page, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	b := v.live(m.Name)
	if b == nil || b.Version != m.Version {
		return projections.Page{}, fmt.Errorf("%w: %s version %d", projections.ErrNotLive, m.Name, m.Version)
	}
	t := b.model.Table(table)
	if t == nil {
		return projections.Page{}, fmt.Errorf("%w: no table named %q", projections.ErrRow, table)
	}
	if err := t.CheckQuery(&q); err != nil {
		return projections.Page{}, err
	}
	rows := b.list(t, &q)
	page := projections.Page{
		Rows: rows[:min(len(rows), q.Limit)], More: len(rows) > q.Limit,
		Version: b.Version, Build: b.Number, AsOf: maps.Clone(b.at), Incomplete: len(b.parked),
	}
	return page, nil
}

// list returns every row behind q.After, in the order of the list.
func (b *build) list(t *projections.Table, q *projections.Query) []projections.Row {
	var at []int
	for _, name := range t.Sorted() {
		at = append(at, t.Column(name))
	}
	order := func(x, y projections.Row) int {
		for _, i := range at {
			if c := compare(x[i], y[i]); c != 0 {
				if t.Desc != q.Reverse {
					return -c
				}
				return c
			}
		}
		return 0
	}
	var rows []projections.Row
	for key := range b.tables[t.Name] {
		if r := b.rows[key]; matches(t, r, q) && (q.After == nil || order(q.After, r) < 0) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, order)
	return rows
}

func matches(t *projections.Table, r projections.Row, q *projections.Query) bool {
	if r[t.Column(t.Key[0])] != q.Tenant {
		return false
	}
	for _, f := range t.Filters {
		want, ok := q.Where[f.Name]
		if !ok {
			continue
		}
		has := r[t.Column(f.Column)]
		switch {
		case has == nil,
			f.Op == projections.Equal && compare(has, want) != 0,
			f.Op == projections.From && compare(has, want) < 0,
			f.Op == projections.Before && compare(has, want) >= 0,
			f.Op == projections.Contains && !strings.Contains(lower(has.(string)), lower(want.(string))):
			return false
		}
	}
	return true
}

// compare orders two values of one column.
func compare(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	case bool:
		switch {
		case a == b.(bool):
			return 0
		case a:
			return 1
		}
		return -1
	}
	return 0
}

// lower maps A–Z to a–z and leaves all else, as SQLite does.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
