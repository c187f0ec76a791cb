package sqlite_test

import (
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/viewstest"
)

func TestAPageIsARangeOfAnIndex(t *testing.T) {
	v := newViews(t)
	filled(t, v, 3)
	explain := func(q projections.Query) string {
		t.Helper()
		plan, err := v.Explain(t.Context(), viewstest.Things(1), "things", q)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plan, "; ")
	}
	after := projections.Row{"acme", "t1", "red", int64(1), true, int64(9), nil}
	for _, c := range []struct {
		where map[string]any
		want  string
	}{
		{nil, "v_things_1_things_i2 (tenant=?)"},
		{map[string]any{"colour": "red"}, "v_things_1_things_i1 (tenant=? AND colour=?)"},
		{map[string]any{"colour": "red", "sold": true}, "v_things_1_things_i0 (tenant=? AND colour=? AND sold=?)"},
		{map[string]any{"colour": "red", "from": int64(1)}, "v_things_1_things_i1 (tenant=? AND colour=? AND at>?)"},
		{map[string]any{"from": int64(1), "before": int64(5)}, "v_things_1_things_i2 (tenant=? AND at>? AND at<?)"},
	} {
		for _, q := range []projections.Query{
			{Tenant: "acme", Limit: 50, Where: c.where}, {Tenant: "acme", Limit: 50, Where: c.where, Reverse: true},
		} {
			plan := explain(q)
			if !strings.Contains(plan, c.want) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%v: %s", c.where, plan)
			}
			q.After = after
			plan = explain(q)
			if !strings.Contains(plan, "SEARCH") || strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, "at") {
				t.Errorf("%v after a row: %s", c.where, plan)
			}
		}
	}
}
