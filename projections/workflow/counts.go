package workflow

import (
	"cmp"
	"slices"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// Counts counts executions by workflow and status. Partitions are applied side by side, so each has a row of its own;
// Sum adds them. Table counted holds what each execution that may go on is counted as, so that a step of its life takes
// it from one count to the other. An execution that begins and ends within a batch never has a row there.
func Counts() projections.Model {
	text, number := projections.Text, projections.Int
	return projections.Model{
		Name: "counts", Version: 1,
		Categories: []string{category}, Types: lifecycle,
		Tables: []projections.Table{
			{
				Name: "counts",
				Columns: []projections.Column{
					{Name: "tenant", Kind: text},
					{Name: "workflow", Kind: text},
					{Name: "status", Kind: text},
					{Name: "part", Kind: number},
					{Name: "n", Kind: number},
				},
				Key:     []string{"tenant", "workflow", "status", "part"},
				Filters: []projections.Filter{{Name: "workflow", Column: "workflow", Op: projections.Equal}},
			},
			{
				Name: "counted",
				Columns: []projections.Column{
					{Name: "tenant", Kind: text},
					{Name: "id", Kind: text},
					{Name: "workflow", Kind: text},
					{Name: "status", Kind: text},
				},
				Key: []string{"tenant", "id"},
			},
		},
		Apply: applyCount,
	}
}

func applyCount(r events.Recorded, get projections.Get) []projections.Change {
	tenant, id := r.Stream.Tenant(), r.Stream.ID()
	count := func(workflow, status string, by int64) projections.Change {
		key := projections.Row{tenant, workflow, status, int64(r.Partition)}
		n := by
		if old, ok := get("counts", key...); ok {
			n += old[4].(int64)
		}
		return projections.Change{Table: "counts", Row: append(key, n), Delete: n == 0}
	}
	if e, ok := r.Event.(events.ExecutionSubmitted); ok {
		to := statusAfter("", e)
		return []projections.Change{
			count(e.Workflow, to, 1),
			{Table: "counted", Row: projections.Row{tenant, id, e.Workflow, to}, New: true},
		}
	}
	old, ok := get("counted", tenant, id)
	if !ok {
		return nil
	}
	workflow, was := old[2].(string), old[3].(string)
	to := statusAfter(was, r.Event)
	if to == was {
		return nil
	}
	return []projections.Change{
		count(workflow, was, -1), count(workflow, to, 1),
		{Table: "counted", Row: projections.Row{tenant, id, workflow, to}, Delete: final(to)},
	}
}

// Count is how many executions of a workflow have a status.
type Count struct {
	Workflow, Status string
	N                int64
}

// Sum adds what each partition counted, in order of workflow and status. rows are those of table counts, all of them.
func Sum(rows []projections.Row) []Count {
	var all []Count
	for _, r := range rows {
		all = append(all, Count{r[1].(string), r[2].(string), r[4].(int64)})
	}
	slices.SortStableFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Status, b.Status))
	})
	out := all[:0]
	for _, c := range all {
		if n := len(out); n > 0 && out[n-1].Workflow == c.Workflow && out[n-1].Status == c.Status {
			out[n-1].N += c.N
		} else {
			out = append(out, c)
		}
	}
	return out
}
