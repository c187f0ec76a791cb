package worker

import (
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/commands"
)

// Task is what a job knows of its task.
type Task = dag.Task

func taskOf(value any, n int32) (*Task, bool) {
	p, ok := value.(*dag.Plan)
	if !ok || n < 0 || int(n) >= len(p.Tasks) {
		return nil, false
	}
	return &p.Tasks[n], true
}

func readsInput(t *Task) bool { return t.With != nil && t.With.UsesInput() }

var noMapping = []byte("{}")

// evaluate fills the mapping in; outputs answers by place in WithRefs, nil for a task that has none.
func evaluate(t *Task, input []byte, outputs func(int) []byte) ([]byte, *commands.Failure) {
	switch {
	case t.With == nil:
		return noMapping, nil
	case t.With.Constant():
		with, _ := t.With.Eval(expr.Scope{})
		return with, nil
	}
	if input == nil {
		input = []byte("null")
	}
	with, wrong := t.With.Eval(expr.Scope{Input: input, Output: func(name string) ([]byte, bool) {
		i, ok := slices.BinarySearch(t.With.Tasks(), name)
		if !ok {
			return nil, false
		}
		text := outputs(i)
		return text, text != nil
	}})
	if wrong != nil {
		return nil, permanent(wrong.Code, "task %s, mapping %s: %s", t.Name, wrong.Place, wrong.Detail)
	}
	return with, nil
}

// checkOutput holds an output to the task's schema.
func checkOutput(t *Task, out []byte) *commands.Failure {
	if t.Output == nil {
		return nil
	}
	if len(out) == 0 {
		out = []byte("null")
	}
	wrong := t.Output.Validate(out)
	if len(wrong) == 0 {
		return nil
	}
	detail := fmt.Sprintf("the output does not fit its schema at %q: %s", wrong[0].Pointer, wrong[0].Detail)
	return permanent("output_mismatch", "%s", detail)
}
