package viewstest

import (
	"errors"
	"sync"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

var applyCases = []testCase{
	{"a batch puts, replaces and removes rows and moves its checkpoint", func(r *run) {
		v := r.live(thing("acme", 1, "red"), thing("acme", 2, "red"))
		gone := projections.Row{"acme", "t02", nil, nil, nil, nil, nil}
		r.apply(v, 0, 3, append(put(thing("acme", 3, nil), thing("acme", 1, "blue")),
			projections.Change{Table: "things", Row: gone, Delete: true},
			projections.Change{Table: "sums", Row: projections.Row{"acme", int64(0), int64(-7)}}))
		r.reopen()
		r.same(r.row(v, "things", "acme", "t01"), thing("acme", 1, "blue"))
		r.same(r.row(v, "things", "acme", "t03"), thing("acme", 3, nil))
		r.same(r.row(v, "sums", "acme", int64(0)), projections.Row{"acme", int64(0), int64(-7)})
		if got := r.row(v, "things", "acme", "t02"); got != nil {
			r.Fatal(got)
		}
		where, err := r.views.Checkpoints(r.Context(), v)
		r.ok(err)
		r.same(where, ats{0: at(3)})
	}},
	{"removing what is not there is no fault", func(r *run) {
		gone := projections.Row{"acme", "t09", nil, nil, nil, nil, nil}
		r.apply(r.live(), 0, 1, []projections.Change{{Table: "things", Row: gone, Delete: true}})
	}},
	{"what the caller knows of a row spares writes and never changes the result", func(r *run) {
		old := thing("acme", 1, "red")
		v := r.live(old)
		for n, colour := range []any{"blue", "blue", nil, "red"} {
			row := append(projections.Row(nil), old...)
			row[2], row[5] = colour, int64(200+n)
			r.apply(v, events.Position(n), events.Position(n+1), []projections.Change{{Table: "things", Row: row, Had: old}})
			r.same(r.row(v, "things", "acme", "t01"), row)
			r.same(ids(r.list(projections.Query{Where: map[string]any{"from": int64(200 + n)}})), []string{"t01"})
			old = row
		}
	}},
	{"what the caller knows wrongly of a row that is not there loses nothing", func(r *run) {
		v := r.live()
		now := thing("acme", 1, "blue")
		r.apply(v, 0, 1, []projections.Change{{Table: "things", Row: now, Had: thing("acme", 1, "red")}})
		r.same(r.row(v, "things", "acme", "t01"), now)
	}},
	{"rows are read as they are asked for, nil for those that are not there", func(r *run) {
		v := r.live(thing("acme", 1, "red"), thing("acme", 2, "red"))
		rows, err := r.views.Rows(r.Context(), v, []projections.Key{
			{Table: "things", Key: projections.Row{"acme", "t02"}},
			{Table: "things", Key: projections.Row{"globex", "t02"}},
			{Table: "sums", Key: projections.Row{"acme", int64(1)}},
			{Table: "things", Key: projections.Row{"acme", "t01"}},
		})
		r.ok(err)
		r.same(rows, []projections.Row{thing("acme", 2, "red"), nil, nil, thing("acme", 1, "red")})
	}},
	{"a batch whose checkpoint has moved writes nothing", func(r *run) {
		v := r.live()
		r.apply(v, 0, 5, put(thing("acme", 1, "red")))
		for _, wrong := range []events.Checkpoint{
			{},
			at(4),
			{Incarnation: 2, Position: 5, Hash: at(5).Hash},
			{Incarnation: 1, Position: 5},
		} {
			b := batch(0, 6, put(thing("acme", 1, "blue"), thing("acme", 2, "blue")))
			b.From, b.Park = wrong, []projections.Parked{parked("thing/acme/x", 1)}
			r.refused(r.views.Apply(r.Context(), v, b), projections.ErrMoved)
		}
		r.same(r.row(v, "things", "acme", "t01"), thing("acme", 1, "red"))
		p := r.list(projections.Query{})
		r.same(p.AsOf, ats{0: at(5)})
		if len(p.Rows) != 1 || p.Incomplete != 0 {
			r.Fatalf("%+v", p)
		}
	}},
	{"a batch with a row that does not fit writes nothing", func(r *run) {
		v := r.live()
		short, wrong := thing("acme", 1, "red")[:3], thing("acme", 1, int64(4))
		noKey, noOrder := thing("acme", 1, "red"), thing("acme", 1, "red")
		noKey[1], noOrder[5] = nil, nil
		for _, bad := range []projections.Row{short, wrong, noKey, noOrder} {
			r.refused(r.views.Apply(r.Context(), v, batch(0, 1, put(thing("acme", 2, "red"), bad))), projections.ErrRow)
		}
		r.refused(r.views.Apply(r.Context(), v, batch(0, 1, []projections.Change{{Table: "other"}})), projections.ErrRow)
		r.apply(v, 0, 1, nil)
		if got := r.row(v, "things", "acme", "t02"); got != nil {
			r.Fatal(got)
		}
	}},
	{"ES-22 of two appliers of one partition one wins, whole, and the other writes nothing", twoAppliers},
	{"partitions have checkpoints of their own", func(r *run) {
		v := r.live()
		b := batch(0, 7, nil)
		b.Partition = 3
		r.ok(r.views.Apply(r.Context(), v, b))
		r.apply(v, 0, 2, nil)
		r.same(r.list(projections.Query{}).AsOf, ats{0: at(2), 3: at(7)})
	}},
	{"parked streams are kept, counted in every answer, and freed", func(r *run) {
		v := r.live()
		b := batch(0, 1, nil)
		b.Park = []projections.Parked{parked("thing/acme/b", 1), parked("thing/acme/a", 1)}
		r.ok(r.views.Apply(r.Context(), v, b))
		b = batch(1, 2, nil)
		b.Park = []projections.Parked{parked("thing/acme/b", 5)}
		r.ok(r.views.Apply(r.Context(), v, b))
		r.reopen()
		ps, err := r.views.ParkedStreams(r.Context(), v)
		r.ok(err)
		r.same(ps, []projections.Parked{parked("thing/acme/a", 1), parked("thing/acme/b", 5)})
		if p := r.list(projections.Query{}); p.Incomplete != 2 {
			r.Fatal(p.Incomplete)
		}
		b = batch(2, 2, put(thing("acme", 1, "red")))
		b.Unpark = []events.Stream{"thing/acme/a"}
		r.ok(r.views.Apply(r.Context(), v, b))
		if p := r.list(projections.Query{}); p.Incomplete != 1 || len(p.Rows) != 1 {
			r.Fatalf("%+v", p)
		}
	}},
	{"ES-29 what one build parked is no fault of another", func(r *run) {
		v1 := r.live()
		b := batch(0, 7, nil)
		b.Park = []projections.Parked{parked("thing/acme/a", 1)}
		r.ok(r.views.Apply(r.Context(), v1, b))
		v2 := r.built(2, nil)
		ps, err := r.views.ParkedStreams(r.Context(), v2)
		r.ok(err)
		if len(ps) != 0 {
			r.Fatal(ps)
		}
		r.apply(v2, 0, 7, put(thing("acme", 7, "red")))
	}},
}

// twoAppliers plays ES-22: both add ten to a total of fifty and move the checkpoint from 50 to 60.
func twoAppliers(r *run) {
	v := r.built(1, ats{0: at(50)})
	r.ok(r.views.Load(r.Context(), r.begin(1), nil)) // another build under way is no hindrance
	sum := func(n int64) []projections.Change {
		return []projections.Change{{Table: "sums", Row: projections.Row{"acme", int64(0), n}}}
	}
	r.apply(v, 50, 51, sum(50))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = r.views.Apply(r.Context(), v, batch(51, 61, append(sum(60), put(thing("acme", int64(i), "x"))...)))
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, projections.ErrMoved) {
			r.Fatal(err)
		}
	}
	r.ok(r.views.Swap(r.Context(), v))
	p := r.list(projections.Query{})
	r.same(r.row(v, "sums", "acme", int64(0)), projections.Row{"acme", int64(0), int64(60)})
	if won != 1 || len(p.Rows) != 1 || p.AsOf[0] != at(61) {
		r.Fatalf("%d won: %+v", won, p)
	}
}
