// Package dag turns a checked definition into the plan that executions run by.
// It never changes a plan once it is made: deciders, dispatchers and workers share it.
package dag

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/events"
)

// Plan is one version of a definition, ready to run. A task's ordinal is its place in Tasks.
type Plan struct {
	Hash     events.Hash
	Workflow string
	Tasks    []Task         // by level (longest path from a root), then name: what a task needs has lower ordinals
	Input    *schema.Schema // nil: any
	Output   *expr.Template // nil: none
	Deadline time.Duration  // 0: none
	Class    string
	Labels   []events.Label

	outputRefs []int32
	byName     map[string]int32
	size       int
}

// Task is one task of a plan.
type Task struct {
	Name, Type, Class string
	Pure              bool // decided in the append
	Timer             bool // waited for by the owner
	Repeatable        bool
	Needs, Successors []int32
	When, With        *expr.Template // nil: absent
	// WhenRefs and WithRefs are the tasks whose outputs the templates read, in the order of Template.Tasks.
	WhenRefs, WithRefs []int32
	Output             *schema.Schema // nil: any
	Retry              Retry
	Timeout, Heartbeat time.Duration // Heartbeat 0: none

	low  int32    // first word of the mask of needs
	mask []uint64 // of needs
}

// Ordinal finds a task by name.
func (p *Plan) Ordinal(name string) (int32, bool) {
	t, ok := p.byName[name]
	return t, ok
}

// OutputRefs are the tasks whose outputs the workflow's output reads, in the order of its template's Tasks.
func (p *Plan) OutputRefs() []int32 { return p.outputRefs }

// Size is about how many bytes the plan takes in memory.
func (p *Plan) Size() int { return p.size }

// Met says that all that the task needs is in done, a bitset by ordinal. What a bitset is too short for is not in it.
func (t *Task) Met(done []uint64) bool {
	if len(t.mask) > 0 && int(t.low)+len(t.mask) > len(done) {
		return false
	}
	for i, want := range t.mask {
		if done[int(t.low)+i]&want != want {
			return false
		}
	}
	return true
}

// Compile makes the plan of canonical content: what a version's hash stands for. It fails on content that
// definition.Check would refuse, with the first problem. Repeating it gives an equal plan.
func Compile(content []byte, types definition.Types) (*Plan, error) {
	d, problems := definition.Parse(content)
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return New(d, types)
}

// New makes the plan of a definition, as Compile does of its content.
func New(d *definition.Definition, types definition.Types) (*Plan, error) {
	if problems := d.Check(types); len(problems) > 0 {
		return nil, invalid(problems)
	}
	content := d.Canonical()
	p := &Plan{
		Hash: sha256.Sum256(content), Workflow: d.Workflow, Deadline: d.Deadline, Class: d.Class, Labels: d.Labels,
		Input: d.InputSchema, Output: d.OutputTemplate,
		Tasks: make([]Task, len(d.Tasks)), byName: make(map[string]int32, len(d.Tasks)),
	}
	order := levels(d)
	for ordinal, i := range order {
		p.byName[d.Tasks[i].Name] = int32(ordinal)
	}
	edges := 0
	for ordinal, i := range order {
		p.task(int32(ordinal), &d.Tasks[i], types[d.Tasks[i].Type])
		edges += len(d.Tasks[i].Needs)
	}
	p.outputRefs = p.refs(p.Output)
	p.size = 4*len(content) + taskBytes*len(p.Tasks) + needBytes*edges
	return p, nil
}

// What a plan takes in memory, beside what its templates and schemas take: some four times their text.
const (
	taskBytes = 512
	needBytes = 16
)

func invalid(problems []definition.Problem) error {
	p := problems[0]
	return fmt.Errorf("definition is not valid at %q: %s: %s (%d problems)", p.Pointer, p.Code, p.Detail, len(problems))
}

// levels orders the tasks by level and name. Each need is looked at twice, whatever the number of paths.
func levels(d *definition.Definition) []int {
	index := make(map[string]int, len(d.Tasks))
	for i := range d.Tasks {
		index[d.Tasks[i].Name] = i
	}
	successors := make([][]int32, len(d.Tasks))
	open, level := make([]int, len(d.Tasks)), make([]int, len(d.Tasks))
	var order []int
	for i := range d.Tasks {
		for _, need := range d.Tasks[i].Needs {
			n := index[need]
			successors[n] = append(successors[n], int32(i))
		}
		if open[i] = len(d.Tasks[i].Needs); open[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, s := range successors[order[at]] {
			level[s] = max(level[s], level[order[at]]+1)
			if open[s]--; open[s] == 0 {
				order = append(order, int(s))
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if level[a] != level[b] {
			return level[a] - level[b]
		}
		return strings.Compare(d.Tasks[a].Name, d.Tasks[b].Name)
	})
	return order
}

func (p *Plan) task(ordinal int32, d *definition.Task, kind definition.Type) {
	t := &p.Tasks[ordinal]
	*t = Task{
		Name: d.Name, Type: d.Type, Class: d.Class, Pure: kind.Pure, Timer: kind.Timer, Repeatable: repeatable(d, kind),
		Retry: Retry(d.Retry), Timeout: d.Timeout, Heartbeat: d.Heartbeat,
		When: d.WhenTemplate, With: d.WithTemplate, Output: d.OutputSchema,
	}
	t.WhenRefs, t.WithRefs = p.refs(t.When), p.refs(t.With)
	for _, need := range d.Needs {
		n := p.byName[need]
		t.Needs = append(t.Needs, n)
		p.Tasks[n].Successors = append(p.Tasks[n].Successors, ordinal) // sorted: ordinals are gone through in order
	}
	slices.Sort(t.Needs)
	t.maskNeeds()
}

func repeatable(d *definition.Task, kind definition.Type) bool {
	switch {
	case d.Repeatable != nil:
		return *d.Repeatable
	case kind.Repeatable != nil:
		return kind.Repeatable(d.With)
	default:
		return true
	}
}

// refs are the ordinals of the tasks that a template reads, in the order of its Tasks.
func (p *Plan) refs(t *expr.Template) []int32 {
	if t == nil {
		return nil
	}
	var refs []int32
	for _, name := range t.Tasks() {
		refs = append(refs, p.byName[name])
	}
	return refs
}

func (t *Task) maskNeeds() {
	if len(t.Needs) == 0 {
		return
	}
	t.low = t.Needs[0] >> 6
	t.mask = make([]uint64, t.Needs[len(t.Needs)-1]>>6-t.low+1)
	for _, n := range t.Needs {
		t.mask[n>>6-t.low] |= 1 << (n & 63)
	}
}
