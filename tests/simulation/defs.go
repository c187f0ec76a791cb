package simulation

import (
	"fmt"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/tasks/sleep"
	tasktest "github.com/sluice-platform/sluice/gateways/tasks/test"
	"github.com/sluice-platform/sluice/gateways/tasks/transform"
)

var types = definition.Types{"test": tasktest.Type, "sleep": sleep.Type, "transform": transform.Type}

// workflowDef is a definition with its plan.
type workflowDef struct {
	content []byte
	plan    *dag.Plan
}

// poolSize is how many definitions there are. Compiling them is most of what a run would cost, so runs share them: one
// follows from its number alone.
const poolSize = 256

var pool struct {
	sync.Mutex
	byNumber [poolSize]*workflowDef
	byHash   map[events.Hash]*dag.Plan
}

func definitionOf(n int) (*workflowDef, error) {
	pool.Lock()
	defer pool.Unlock()
	if d := pool.byNumber[n]; d != nil {
		return d, nil
	}
	text := randomDefinition(n)
	parsed, problems := definition.Parse([]byte(text))
	if len(problems) > 0 {
		return nil, fmt.Errorf("definition %d: %v: %s", n, problems, text)
	}
	plan, err := dag.New(parsed, types)
	if err != nil {
		return nil, fmt.Errorf("definition %d: %w: %s", n, err, text)
	}
	d := &workflowDef{parsed.Canonical(), plan}
	if pool.byHash == nil {
		pool.byHash = map[events.Hash]*dag.Plan{}
	}
	pool.byNumber[n], pool.byHash[plan.Hash] = d, plan
	return d, nil
}

// compile is handle.Compile over the pool.
func compile(content []byte) (any, int, error) {
	hash := events.Hash(sha(content))
	pool.Lock()
	plan := pool.byHash[hash]
	pool.Unlock()
	if plan == nil {
		return nil, 0, fmt.Errorf("no definition of the pool has the hash %s", hash)
	}
	return plan, plan.Size(), nil
}

// sketch is a definition in the making.
type sketch struct {
	r     dice
	tasks []string
	wide  bool
	gives []bool // the task's output has a number n
	b     strings.Builder
}

func randomDefinition(n int) string {
	s := &sketch{r: newDice(uint64(n), 0xdef)}
	size := 1 + s.r.IntN(12)
	if n%12 == 11 {
		size, s.wide = 60+s.r.IntN(41), true
	}
	fmt.Fprintf(&s.b, `{"workflow":"w%d"`, n)
	if s.r.IntN(5) == 0 {
		fmt.Fprintf(&s.b, `,"deadline":"%ds"`, 20+s.r.IntN(400))
	}
	s.b.WriteString(`,"tasks":{`)
	for i := range size {
		if i > 0 {
			s.b.WriteString(",")
		}
		s.task(i, s.wide && i == size-1)
	}
	s.b.WriteString("}")
	if last := size - 1; s.gives[last] && s.r.IntN(2) == 0 {
		fmt.Fprintf(&s.b, `,"output":{"n":"${{ tasks.t%d.output.n }}"}`, last)
	}
	s.b.WriteString("}")
	return s.b.String()
}

// task writes one: a join of all before it, or one that needs a few of them.
func (s *sketch) task(i int, join bool) {
	var needs []int
	for j := range i {
		if join || !s.wide && s.r.IntN(i+1) < 2 {
			needs = append(needs, j)
		}
	}
	kind := "test"
	if k := s.r.IntN(10); k < 2 && !join {
		kind = "sleep"
	} else if k < 4 {
		kind = "transform"
	}
	fmt.Fprintf(&s.b, `"t%d":{"type":%q`, i, kind)
	if len(needs) > 0 {
		s.b.WriteString(`,"needs":[`)
		for k, j := range needs {
			if k > 0 {
				s.b.WriteString(",")
			}
			fmt.Fprintf(&s.b, `"t%d"`, j)
		}
		s.b.WriteString("]")
	}
	value := s.value(needs)
	if s.r.IntN(10) == 0 {
		fmt.Fprintf(&s.b, `,"when":"${{ input.n %% %d != 0 }}"`, 2+s.r.IntN(3))
	}
	s.gives = append(s.gives, kind != "sleep")
	switch kind {
	case "sleep":
		fmt.Fprintf(&s.b, `,"with":{"for":"%dms"}}`, 1+s.r.IntN(50_000)*s.r.IntN(2)+s.r.IntN(500))
	case "transform":
		fmt.Fprintf(&s.b, `,"with":{"value":%s}}`, value)
	default:
		s.work(value)
	}
}

// value is an object with a number n, at times one that is read from what came before.
func (s *sketch) value(needs []int) string {
	if s.r.IntN(2) == 0 {
		for _, j := range needs {
			if s.gives[j] {
				return fmt.Sprintf(`{"n":"${{ tasks.t%d.output.n }}"}`, j)
			}
		}
		return `{"n":"${{ input.n }}"}`
	}
	pad := 0
	switch k := s.r.IntN(12); {
	case s.wide && k > 4:
		pad = 3_900
	case k == 0:
		pad = 5_000 // a blob
	case k < 3:
		pad = 3_900 // the log grows until there are snapshots
	}
	return fmt.Sprintf(`{"n":%d,"pad":%q}`, s.r.IntN(100), strings.Repeat("x", pad))
}

func (s *sketch) work(value string) {
	fmt.Fprintf(&s.b, `,"with":{"succeed":{"output":%s}`, value)
	if s.r.IntN(3) == 0 {
		class := "transient"
		if k := s.r.IntN(20); k == 0 {
			class = "permanent"
		} else if k < 6 {
			class = "throttled"
		}
		fmt.Fprintf(&s.b, `,"fail":{"times":%d,"class":%q}`, 1+s.r.IntN(2), class)
	}
	s.b.WriteString("}")
	fmt.Fprintf(&s.b, `,"timeout":"%ds","retry":{"maxAttempts":%d,"base":"%dms","factor":2,"cap":"40s"}`,
		1+s.r.IntN(20), 2+s.r.IntN(4), 1+s.r.IntN(3_000))
	if s.r.IntN(10) == 0 {
		s.b.WriteString(`,"repeatable":false`)
	}
	if s.r.IntN(8) == 0 {
		s.b.WriteString(`,"heartbeat":"5s"`)
	}
	if s.r.IntN(4) == 0 {
		s.b.WriteString(`,"class":"high"`)
	}
	s.b.WriteString("}")
}
