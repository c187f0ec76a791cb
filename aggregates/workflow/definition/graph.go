package definition

import "slices"

// graph is the tasks by number and the needs that name another task. What is wrong with the others is told elsewhere.
type graph struct {
	index      map[string]int32
	needs      [][]int32
	successors [][]int32
	visited    int        // needs looked at, over all: the cost is the graph's, not that of its paths
	above      [][]uint64 // bitsets of ancestors, made when first asked for; nil for a task behind a cycle
}

func newGraph(d *Definition) *graph {
	n := len(d.Tasks)
	g := &graph{index: make(map[string]int32, n), needs: make([][]int32, n), successors: make([][]int32, n)}
	for i := range d.Tasks {
		g.index[d.Tasks[i].Name] = int32(i)
	}
	for i := range d.Tasks {
		for _, need := range d.Tasks[i].Needs {
			if at, ok := g.index[need]; ok && int(at) != i {
				g.needs[i] = append(g.needs[i], at)
				g.successors[at] = append(g.successors[at], int32(i))
			}
		}
	}
	return g
}

// order returns the tasks that can be put in an order, needs first (Kahn 1962), as if those in cut needed nothing.
func (g *graph) order(cut map[int32]bool) []int32 {
	open := make([]int, len(g.needs))
	order := make([]int32, 0, len(g.needs))
	for i, needs := range g.needs {
		if open[i] = len(needs); open[i] == 0 || cut[int32(i)] {
			order = append(order, int32(i))
		}
	}
	for at := 0; at < len(order); at++ {
		for _, s := range g.successors[order[at]] {
			g.visited++
			if open[s]--; open[s] == 0 && !cut[s] {
				order = append(order, s)
			}
		}
	}
	return order
}

// cycle finds one that goes through none of the tasks in cut, in the order in which the tasks would run, beginning
// with the one that stands first in the source; nil for none.
func (g *graph) cycle(cut map[int32]bool) []int32 {
	order := g.order(cut)
	if len(order) == len(g.needs) {
		return nil
	}
	left := make([]bool, len(g.needs))
	for i := range left {
		left[i] = true
	}
	for _, i := range order {
		left[i] = false
	}
	// Every task that is left needs one that is left: going from need to need must come back.
	at := int32(slices.Index(left, true))
	place := map[int32]int{}
	var path []int32
	for {
		if from, been := place[at]; been {
			path = path[from:]
			break
		}
		place[at] = len(path)
		path = append(path, at)
		next := slices.IndexFunc(g.needs[at], func(need int32) bool { g.visited++; return left[need] })
		at = g.needs[at][next]
	}
	slices.Reverse(path) // from need to needed is against the arrows
	first := slices.Index(path, slices.Min(path))
	return append(slices.Clone(path[first:]), path[:first]...)
}

// ancestor says that a task surely runs before another; known is false for one in or behind a cycle. All answers are
// made at once: a bitset a task, 12 MB for 10,000, in the order of the tasks, so that each need is looked at once.
func (g *graph) ancestor(of, task int32) (is, known bool) {
	if g.above == nil {
		words := (len(g.needs) + 63) / 64
		g.above = make([][]uint64, len(g.needs))
		for _, i := range g.order(nil) {
			set := make([]uint64, words)
			for _, need := range g.needs[i] {
				g.visited++
				set[need>>6] |= 1 << (need & 63)
				for w, word := range g.above[need] {
					set[w] |= word
				}
			}
			g.above[i] = set
		}
	}
	set := g.above[of]
	return set != nil && set[task>>6]&(1<<(task&63)) != 0, set != nil
}
