package definition

import (
	"strings"
)

// Check returns everything that is wrong with the definition for a deployment with these task types, by place. None
// means that dag.New and dag.Compile will take it. Repeating it gives the same; it is for one goroutine at a time.
func (d *Definition) Check(types Types) []Problem {
	c := &checker{d: d, types: types, problems: problems{more: d.problems.more}}
	c.problems.list = append(c.problems.list, d.problems.list...)
	c.graph = newGraph(d)
	for i := range d.Tasks {
		c.task(&d.Tasks[i])
	}
	c.cycles()
	c.compile()
	return c.problems.sorted()
}

type checker struct {
	d        *Definition
	types    Types
	graph    *graph
	problems problems
}

// problem tells one of a node; nil stands for the whole definition.
func (c *checker) problem(n *node, pointer, code, detail string) {
	if n == nil {
		n = c.d.root
	}
	c.problems.at(n, pointer, code, detail)
}

// at is the pointer of a task.
func (t *Task) pointer() string { return "/tasks/" + escape(t.Name) }

func (c *checker) task(t *Task) {
	at := t.pointer()
	named := t.at.member("type")
	switch _, ok := c.types[t.Type]; {
	case t.Type == "" && t.at.kind == object && named == nil:
		c.problem(t.at, at+"/type", "required", "name the task's type: "+known(c.types))
	case t.Type == "" && (named == nil || named.kind != text): // told already
	case reserved[t.Type]:
		c.problem(named, at+"/type", "not_yet", t.Type+" is reserved for a later release")
	case !ok:
		c.problem(named, at+"/type", "unknown_type", "there is no task type "+quoted(t.Type)+"; known are "+known(c.types))
	}
	seen := map[string]bool{}
	for i, need := range t.Needs {
		_, exists := c.graph.index[need]
		switch place, at := t.needs[i], at+"/needs/"+itoa(i); {
		case need == t.Name:
			c.problem(place, at, "dag_cycle", "a task cannot need itself: "+shorten([]string{t.Name, t.Name}))
		case !exists:
			c.problem(place, at, "unknown_task", "there is no task "+quoted(need))
		case seen[need]:
			c.problem(place, at, "join_duplicate", quoted(need)+" is needed already; name it once")
		}
		seen[need] = true
	}
}

// cyclesMax is how many cycles are told; the others are seen when these are cut.
const cyclesMax = 10

// cycles tells the paths of cycles that have no task in common.
func (c *checker) cycles() {
	cut := map[int32]bool{}
	for range cyclesMax {
		cycle := c.graph.cycle(cut)
		if cycle == nil {
			return
		}
		names := make([]string, 0, len(cycle)+1)
		for _, i := range cycle {
			cut[i] = true
			names = append(names, c.d.Tasks[i].Name)
		}
		first := &c.d.Tasks[cycle[0]]
		c.problem(first.at.member("needs"), first.pointer()+"/needs", "dag_cycle",
			"these tasks wait for each other: "+shorten(append(names, first.Name))+"; remove one of the needs")
	}
}

// pathMax is how many tasks of a cycle are shown.
const pathMax = 20

func shorten(path []string) string {
	if len(path) > pathMax {
		path = append(append([]string{}, path[:pathMax]...), "…", path[len(path)-1])
	}
	return strings.Join(path, " → ")
}
