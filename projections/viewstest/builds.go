package viewstest

import (
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

var buildCases = []testCase{
	{"a model that nobody has built has no builds, and nothing answers", func(r *run) {
		all, err := r.views.Builds(r.Context(), "things")
		r.ok(err)
		if len(all) != 0 {
			r.Fatal(all)
		}
		_, err = r.views.List(r.Context(), Things(1), "things", projections.Query{Tenant: "acme", Limit: 1})
		r.refused(err, projections.ErrNotLive)
	}},
	{"a wrong declaration is refused before anything is made", func(r *run) {
		m := Things(1)
		m.Tables[0].Columns[2].Name = `x"; DROP TABLE things; --`
		_, err := r.views.Begin(r.Context(), m)
		r.refused(err, projections.ErrModel)
	}},
	{"builds are numbered, and a number is never used again", func(r *run) {
		first, second := r.begin(1), r.begin(2)
		r.ok(r.views.Drop(r.Context(), projections.Build{Model: "things", Number: second.Build}))
		r.ok(r.views.Drop(r.Context(), projections.Build{Model: "things", Number: second.Build}))
		r.reopen()
		if third := r.begin(1); first.Build != 1 || second.Build != 2 || third.Build != 3 {
			r.Fatal(first.Build, second.Build, third.Build)
		}
		all, err := r.views.Builds(r.Context(), "things")
		r.ok(err)
		r.same(all, []projections.Build{
			{Model: "things", Version: 1, Number: 1}, {Model: "things", Version: 1, Number: 3},
		})
	}},
	{"a build is loaded, then applied to, never both", func(r *run) {
		v := r.begin(1)
		r.refused(r.views.Apply(r.Context(), v, batch(0, 1, nil)), projections.ErrNoView)
		r.refused(r.views.Swap(r.Context(), v), projections.ErrNoView)
		_, err := r.views.Checkpoints(r.Context(), v)
		r.refused(err, projections.ErrNoView)
		r.ok(r.views.Load(r.Context(), v, put(thing("acme", 1, "red"))))
		r.ok(r.views.Load(r.Context(), v, put(thing("acme", 1, "blue"), thing("acme", 2, nil))))
		r.same(r.row(v, "things", "acme", "t01"), thing("acme", 1, "blue"))
		r.ok(r.views.Loaded(r.Context(), v, ats{0: at(7), 3: at(9)}, []projections.Parked{parked("thing/acme/x", 3)}))
		r.refused(r.views.Load(r.Context(), v, nil), projections.ErrNoView)
		r.refused(r.views.Loaded(r.Context(), v, nil, nil), projections.ErrNoView)
		r.reopen()
		where, err := r.views.Checkpoints(r.Context(), v)
		r.ok(err)
		r.same(where, ats{0: at(7), 3: at(9)})
		ps, err := r.views.ParkedStreams(r.Context(), v)
		r.ok(err)
		r.same(ps, []projections.Parked{parked("thing/acme/x", 3)})
		r.same(r.row(v, "things", "acme", "t02"), thing("acme", 2, nil))
	}},
	{"builds share nothing", func(r *run) {
		a, b := r.built(1, nil, thing("acme", 1, "red")), r.built(1, nil)
		if got := r.row(b, "things", "acme", "t01"); got != nil {
			r.Fatal(got)
		}
		r.apply(b, 0, 4, put(thing("acme", 1, "green")))
		r.same(r.row(a, "things", "acme", "t01"), thing("acme", 1, "red"))
		r.apply(a, 0, 2, nil)
	}},
	{"a build that was dropped is gone for every call", func(r *run) {
		v := r.live()
		r.ok(r.views.Drop(r.Context(), projections.Build{Model: "things", Number: v.Build}))
		r.refused(r.views.Apply(r.Context(), v, batch(0, 1, nil)), projections.ErrNoView)
		_, err := r.views.Rows(r.Context(), v, []projections.Key{{Table: "things", Key: projections.Row{"acme", "t01"}}})
		r.refused(err, projections.ErrNoView)
		_, err = r.views.List(r.Context(), Things(1), "things", projections.Query{Tenant: "acme", Limit: 1})
		r.refused(err, projections.ErrNotLive)
	}},
	{"ES-30 a build is swapped in when it is past the live one on every partition, by the rows of the moment", swaps},
	{"ES-30 a roll-back is another swap, after the old build has caught up", func(r *run) {
		old := r.built(1, ats{0: at(5)}, thing("acme", 1, "old"))
		r.ok(r.views.Swap(r.Context(), old))
		fresh := r.built(2, ats{0: at(5)})
		r.ok(r.views.Swap(r.Context(), fresh))
		_, err := r.views.List(r.Context(), Things(1), "things", projections.Query{Tenant: "acme", Limit: 1})
		r.refused(err, projections.ErrNotLive)
		r.apply(fresh, 5, 9, nil)
		r.refused(r.views.Swap(r.Context(), old), projections.ErrBehind)
		r.apply(old, 5, 9, nil)
		r.ok(r.views.Swap(r.Context(), old))
		r.same(ids(r.list(projections.Query{})), []string{"t01"})
	}},
	{"a build of a newer incarnation is past an older one's ghosts", func(r *run) {
		old := r.built(1, ats{0: at(99)})
		r.ok(r.views.Swap(r.Context(), old))
		r.ok(r.views.Swap(r.Context(), r.built(1, ats{0: {Incarnation: 2, Position: 10}})))
	}},
}

func swaps(r *run) {
	v1 := r.built(1, ats{0: at(120), 1: at(80)})
	r.ok(r.views.Swap(r.Context(), v1))
	r.ok(r.views.Swap(r.Context(), v1))
	r.refused(r.views.Swap(r.Context(), r.built(1, ats{0: at(120), 1: at(79)})), projections.ErrBehind)
	r.refused(r.views.Swap(r.Context(), r.built(1, ats{0: at(120)})), projections.ErrBehind)
	v2 := r.built(1, ats{0: at(121), 1: at(80)}, thing("acme", 1, "new"))
	r.apply(v1, 120, 122, nil)
	r.refused(r.views.Swap(r.Context(), v2), projections.ErrBehind)
	r.reopen()
	if p := r.list(projections.Query{}); p.Build != v1.Build || len(p.Rows) != 0 {
		r.Fatalf("a refused swap changed what answers: %+v", p)
	}
	r.apply(v2, 121, 122, nil)
	r.ok(r.views.Swap(r.Context(), v2))
	r.reopen()
	p := r.list(projections.Query{})
	r.same(p.AsOf, ats{0: at(122), 1: at(80)})
	if p.Build != v2.Build || p.Version != 1 || len(p.Rows) != 1 {
		r.Fatalf("%+v", p)
	}
	all, err := r.views.Builds(r.Context(), "things")
	r.ok(err)
	for _, b := range all {
		if b.Live != (b.Number == v2.Build) {
			r.Fatalf("%+v", b)
		}
	}
}

func parked(s events.Stream, waiting int64) projections.Parked {
	return projections.Parked{
		Stream: s, Version: 4, Position: 11, Part: 3, Reason: projections.ParkPanic, Detail: "no \"words\"", Waiting: waiting,
	}
}
