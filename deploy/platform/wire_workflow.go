//sluice:owns gateways/tasks/
//sluice:owns gateways/memory/queue.go gateways/memory/queue_order.go gateways/memory/queue_test.go
//sluice:owns deploy/platform/worker.go deploy/platform/worker_inbox.go deploy/platform/worker_slot.go
//sluice:owns deploy/platform/worker_test.go deploy/platform/worker_bench_test.go deploy/platform/worker_plan_test.go
//sluice:owns deploy/platform/task_types_test.go
//sluice:owns deploy/platform/system.go deploy/platform/system_test.go deploy/platform/partition.go
//sluice:owns deploy/platform/engine.go deploy/platform/api.go deploy/platform/serve.go deploy/platform/metrics.go
//sluice:owns deploy/platform/serve_test.go deploy/platform/bench_verb.go deploy/platform/edge_test.go
//sluice:owns deploy/platform/bench.go deploy/platform/bench_linux.go deploy/platform/bench_other.go
//sluice:owns deploy/platform/doctor.go deploy/platform/tenure.go deploy/platform/up.go
//sluice:owns deploy/platform/verbs.go deploy/platform/verbs_test.go
//sluice:owns tests/simulation/ tests/chaos/ tests/acceptance/

package platform

import (
	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/gateways/egress"
	taskhttp "github.com/sluice-platform/sluice/gateways/tasks/http"
	"github.com/sluice-platform/sluice/gateways/tasks/sleep"
	tasktest "github.com/sluice-platform/sluice/gateways/tasks/test"
	"github.com/sluice-platform/sluice/gateways/tasks/transform"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// workflowAggregates are the domain's.
func workflowAggregates() []aggregates.Aggregate {
	return []aggregates.Aggregate{execution.Decider.Untyped(), definition.Decider.Untyped()}
}

// compileDefinition turns a definition's content into its plan, for the cache of references.
func compileDefinition(types definition.Types) func([]byte) (any, int, error) {
	return func(content []byte) (any, int, error) {
		p, err := dag.Compile(content, types)
		if err != nil {
			return nil, 0, err
		}
		return p, p.Size(), nil
	}
}

// taskTypes are the kinds of task of this deployment, and what runs them.
type taskTypes struct {
	types    definition.Types
	handlers map[string]workflow.Handler
	close    func()
}

func newTaskTypes(cfg Config) (taskTypes, error) {
	guard, err := egress.New(egress.Config{Allow: cfg.EgressAllow, AllowPrivate: cfg.EgressPrivate}, nil)
	if err != nil {
		return taskTypes{}, err
	}
	calls := taskhttp.New(guard, systemClock{})
	return taskTypes{
		types: definition.Types{
			"http":      taskhttp.Type,
			"transform": transform.Type,
			"sleep":     sleep.Type,
			"test":      tasktest.Type,
		},
		handlers: map[string]workflow.Handler{"http": calls, "transform": transform.Handler{}, "test": tasktest.Handler{}},
		close:    calls.Close,
	}, nil
}
