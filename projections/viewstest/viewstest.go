// Package viewstest holds every adapter of projections.Views to one contract.
// It never knows an adapter: what one needs stands in its Harness.
package viewstest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// Harness is what the suite needs of an adapter under test.
type Harness struct {
	// New makes an empty store of views, closed by the harness when the test ends.
	New func(t *testing.T) projections.Views
	// Reopen closes the store and opens what it left, as a restart would; nil when nothing outlives the process.
	Reopen func(t *testing.T, v projections.Views) projections.Views
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range slices.Concat(buildCases, applyCases, listCases) {
		t.Run(c.policy, func(t *testing.T) { c.test(&run{T: t, h: h, views: h.New(t)}) })
	}
}

type testCase struct {
	policy string
	test   func(*run)
}

type run struct {
	*testing.T
	h     Harness
	views projections.Views
}

// Things is a model with every kind of column and filter. Its Apply is never called here.
func Things(version int) projections.Model {
	return projections.Model{
		Name: "things", Version: version, Categories: []string{"thing"},
		Tables: []projections.Table{
			{
				Name: "things",
				Columns: []projections.Column{
					{Name: "tenant", Kind: projections.Text},
					{Name: "id", Kind: projections.Text},
					{Name: "colour", Kind: projections.Text},
					{Name: "size", Kind: projections.Int},
					{Name: "sold", Kind: projections.Bool},
					{Name: "at", Kind: projections.Time},
					{Name: "tags", Kind: projections.JSON},
				},
				Key: []string{"tenant", "id"}, Order: []string{"at"}, Desc: true,
				Indexes: [][]string{{"colour", "sold"}, {"colour"}, {}},
				Filters: []projections.Filter{
					{Name: "colour", Column: "colour", Op: projections.Equal},
					{Name: "sold", Column: "sold", Op: projections.Equal},
					{Name: "size", Column: "size", Op: projections.Equal},
					{Name: "from", Column: "at", Op: projections.From},
					{Name: "before", Column: "at", Op: projections.Before},
					{Name: "like", Column: "colour", Op: projections.Contains},
				},
			},
			{
				Name: "sums",
				Columns: []projections.Column{
					{Name: "tenant", Kind: projections.Text},
					{Name: "part", Kind: projections.Int},
					{Name: "n", Kind: projections.Int},
				},
				Key: []string{"tenant", "part"},
			},
		},
		Apply: func(events.Recorded, projections.Get) []projections.Change { return nil },
	}
}

// thing is a row of Things.
func thing(tenant string, n int64, colour any) projections.Row {
	return projections.Row{tenant, fmt.Sprintf("t%02d", n), colour, n, n%2 == 0, 100 + n/2, []byte(`{"n":1.10}`)}
}

func put(rows ...projections.Row) (cs []projections.Change) {
	for _, r := range rows {
		cs = append(cs, projections.Change{Table: "things", Row: r})
	}
	return cs
}

func at(position events.Position) events.Checkpoint {
	return events.Checkpoint{Incarnation: 1, Position: position, Hash: events.Hash{byte(position)}}
}

type ats = map[events.Partition]events.Checkpoint

// begin makes a build; built makes one and ends its loading at the given checkpoints.
func (r *run) begin(version int) projections.View {
	r.Helper()
	v, err := r.views.Begin(r.Context(), Things(version))
	r.ok(err)
	return v
}

func (r *run) built(version int, where ats, rows ...projections.Row) projections.View {
	r.Helper()
	v := r.begin(version)
	if len(rows) > 0 {
		r.ok(r.views.Load(r.Context(), v, put(rows...)))
	}
	r.ok(r.views.Loaded(r.Context(), v, where, nil))
	return v
}

func (r *run) live(rows ...projections.Row) projections.View {
	r.Helper()
	v := r.built(1, nil, rows...)
	r.ok(r.views.Swap(r.Context(), v))
	return v
}

func (r *run) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *run) refused(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("got %v, want %v", err, want)
	}
}

func (r *run) same(got, want any) {
	r.Helper()
	if !reflect.DeepEqual(got, want) {
		r.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
}

func (r *run) apply(v projections.View, from, to events.Position, cs []projections.Change) {
	r.Helper()
	r.ok(r.views.Apply(r.Context(), v, batch(from, to, cs)))
}

func batch(from, to events.Position, cs []projections.Change) *projections.Batch {
	b := &projections.Batch{To: at(to), Changes: cs}
	if from > 0 {
		b.From = at(from)
	}
	return b
}

func (r *run) row(v projections.View, table string, key ...any) projections.Row {
	r.Helper()
	rows, err := r.views.Rows(r.Context(), v, []projections.Key{{Table: table, Key: key}})
	r.ok(err)
	if len(rows) != 1 {
		r.Fatalf("one key, %d rows", len(rows))
	}
	return rows[0]
}

func (r *run) list(q projections.Query) projections.Page {
	r.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	if q.Tenant == "" {
		q.Tenant = "acme"
	}
	p, err := r.views.List(r.Context(), Things(1), "things", q)
	r.ok(err)
	return p
}

// ids is what a page shows.
func ids(p projections.Page) (all []string) {
	for _, r := range p.Rows {
		all = append(all, r[1].(string))
	}
	return all
}

func (r *run) reopen() {
	r.Helper()
	if r.h.Reopen != nil {
		r.views = r.h.Reopen(r.T, r.views)
	}
}
