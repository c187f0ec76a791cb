package platform

import (
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
)

type taskTimes struct{ timeout, heartbeat time.Duration }

// taskPlan is a plan of n tasks of type test without a mapping.
func taskPlan(n int, times *taskTimes) any {
	p := &dag.Plan{}
	for range n {
		t := dag.Task{Name: "t", Type: "test", Timeout: time.Hour, Repeatable: true}
		if times != nil {
			t.Timeout, t.Heartbeat = times.timeout, times.heartbeat
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}
