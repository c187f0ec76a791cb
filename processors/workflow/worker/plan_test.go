package worker

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
)

// template compiles one that may read the tasks t0, t1, …
func template(text string) *expr.Template {
	t, problems := expr.Compile([]byte(text), expr.Env{Tasks: []string{"t0", "t1", "t2"}})
	if len(problems) > 0 {
		panic(fmt.Sprint(problems))
	}
	return t
}

func newTask() *Task {
	return &Task{Name: "notify", Type: "http", Timeout: 30 * time.Second, Repeatable: true, With: template(`{"a":1}`)}
}

func planWith(t *Task) any { return &dag.Plan{Tasks: []dag.Task{{Name: "first", Type: "http"}, *t}} }

// reading gives a task a mapping of the input and n outputs; one that is not there is null.
func reading(t *Task, n int) {
	parts := []string{`"${{ input }}"`}
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"${{ tasks.t%d.?output.orValue(null) }}"`, i))
	}
	t.WithRefs, t.With = make([]int32, n), template("["+strings.Join(parts, ",")+"]")
}

func failing(t *Task, code string) {
	if code != expr.CodeMissing {
		panic("a test of " + code)
	}
	t.With = template(`{"a":"${{ {'a':1}.b }}"}`)
}

func refusing(t *Task) {
	s, err := schema.Compile([]byte(`false`))
	if err != nil {
		panic(err)
	}
	t.Output = s
}
