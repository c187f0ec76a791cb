package viewstest

import (
	"maps"
	"slices"

	"github.com/sluice-platform/sluice/projections"
)

var listCases = []testCase{
	{"a list is sorted by order and key, newest first, and has one tenant's rows", func(r *run) {
		r.live(thing("acme", 4, "red"), thing("acme", 1, "red"), thing("globex", 2, "red"), thing("acme", 5, "red"),
			thing("acm", 6, "red"), thing("acme%", 7, "red"))
		p := r.list(projections.Query{})
		r.same(ids(p), []string{"t05", "t04", "t01"})
		r.same(p.Rows[0], thing("acme", 5, "red"))
		r.same(ids(r.list(projections.Query{Tenant: "globex"})), []string{"t02"})
		r.same(ids(r.list(projections.Query{Tenant: "nobody"})), []string(nil))
		_, err := r.views.List(r.Context(), Things(1), "things", projections.Query{Limit: 3})
		r.refused(err, projections.ErrRow)
	}},
	{"a table without an order is listed by key", func(r *run) {
		v := r.live()
		var cs []projections.Change
		for _, n := range []int64{10, 9, 2} {
			cs = append(cs, projections.Change{Table: "sums", Row: projections.Row{"acme", n, n}})
		}
		r.apply(v, 0, 1, cs)
		p, err := r.views.List(r.Context(), Things(1), "sums", projections.Query{Tenant: "acme", Limit: 2})
		r.ok(err)
		r.same(p.Rows, []projections.Row{{"acme", int64(2), int64(2)}, {"acme", int64(9), int64(9)}})
	}},
	{"pages meet without a gap, both ways, also among rows of one moment", func(r *run) {
		var rows []projections.Row
		for n := range int64(23) {
			rows = append(rows, thing("acme", n, "red"))
		}
		r.live(rows...)
		all := ids(r.list(projections.Query{}))
		if len(all) != 23 || !slices.IsSortedFunc(all, func(a, b string) int { return -compareText(a, b) }) {
			r.Fatal(all)
		}
		for _, where := range []map[string]any{nil, {"colour": "red"}, {"like": "ED"}, {"from": int64(0)}} {
			r.same(r.walk(where, false), all)
			back := r.walk(where, true)
			slices.Reverse(back)
			r.same(back, all)
		}
	}},
	{"a page says whether there is more", func(r *run) {
		r.live(thing("acme", 1, "red"), thing("acme", 2, "red"))
		if r.list(projections.Query{Limit: 2}).More || !r.list(projections.Query{Limit: 1}).More {
			r.Fatal("wrong")
		}
	}},
	{"filters are held to, each and together; nothing matches a value that is not there", filters},
	{"a filter or a value that the table does not declare is refused", func(r *run) {
		r.live()
		for _, c := range []struct {
			where map[string]any
			want  error
		}{
			{map[string]any{"color": "red"}, projections.ErrUnknownFilter},
			{map[string]any{"colour": int64(3)}, projections.ErrRow},
			{map[string]any{"colour": nil}, projections.ErrRow},
		} {
			_, err := r.views.List(r.Context(), Things(1), "things", projections.Query{Tenant: "acme", Limit: 1, Where: c.where})
			r.refused(err, c.want)
		}
		for _, limit := range []int{0, -1, projections.PageMax + 1} {
			_, err := r.views.List(r.Context(), Things(1), "things", projections.Query{Tenant: "acme", Limit: limit})
			r.refused(err, projections.ErrRow)
		}
	}},
	{"a list follows what is written", func(r *run) {
		v := r.live(thing("acme", 1, "red"), thing("acme", 2, "red"))
		red := projections.Query{Where: map[string]any{"colour": "red"}}
		blue := projections.Query{Where: map[string]any{"colour": "blue"}}
		r.apply(v, 0, 1, []projections.Change{
			{Table: "things", Row: thing("acme", 1, "blue"), Had: thing("acme", 1, "red")},
		})
		r.same(ids(r.list(red)), []string{"t02"})
		r.same(ids(r.list(blue)), []string{"t01"})
		r.apply(v, 1, 2, []projections.Change{{Table: "things", Row: thing("acme", 1, "blue"), Delete: true}})
		r.same(ids(r.list(blue)), []string(nil))
	}},
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// walk pages through a list by fours.
func (r *run) walk(where map[string]any, reverse bool) (all []string) {
	r.Helper()
	var after projections.Row
	for range 100 {
		p := r.list(projections.Query{Where: where, After: after, Limit: 4, Reverse: reverse})
		all = append(all, ids(p)...)
		if !p.More {
			return all
		}
		after = p.Rows[len(p.Rows)-1]
	}
	r.Fatal("the list has no end")
	return nil
}

func filters(r *run) {
	none := thing("acme", 9, nil)
	none[3], none[4] = nil, nil
	r.live(thing("acme", 1, "red"), thing("acme", 2, "Dark Red"), thing("acme", 3, "red_"), thing("acme", 4, "red"), none)
	for _, c := range []struct {
		want  []string
		where map[string]any
	}{
		{[]string{"t04", "t01"}, map[string]any{"colour": "red"}},
		{nil, map[string]any{"colour": "RED"}},
		{[]string{"t04"}, map[string]any{"colour": "red", "sold": true}},
		{[]string{"t01"}, map[string]any{"colour": "red", "sold": false}},
		{[]string{"t04", "t02"}, map[string]any{"sold": true}},
		{[]string{"t03", "t01"}, map[string]any{"sold": false}},
		{[]string{"t03"}, map[string]any{"size": int64(3)}},
		{[]string{"t09", "t04"}, map[string]any{"from": int64(102)}},
		{[]string{"t03", "t02", "t01"}, map[string]any{"before": int64(102)}},
		{[]string{"t03", "t02"}, map[string]any{"from": int64(101), "before": int64(102)}},
		{[]string{"t01"}, map[string]any{"colour": "red", "before": int64(101)}},
		{[]string{"t04", "t03", "t02", "t01"}, map[string]any{"like": "rED"}},
		{[]string{"t03"}, map[string]any{"like": "d_"}},
		{nil, map[string]any{"like": "%"}},
	} {
		if got := ids(r.list(projections.Query{Where: c.where})); !slices.Equal(got, c.want) {
			r.Errorf("%v: got %v, want %v", maps.Clone(c.where), got, c.want)
		}
	}
}
