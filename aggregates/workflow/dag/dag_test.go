package dag_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

var types = definition.Types{
	"http":      {Repeatable: func(with []byte) bool { return !strings.Contains(string(with), "POST") }},
	"transform": {Pure: true}, "sleep": {Timer: true}, "test": {},
}

func compiled(t testing.TB, raw string) *dag.Plan {
	t.Helper()
	d, problems := definition.Parse([]byte(raw))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, err := dag.New(d, types)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fanout is n branches between a first task and a join.
func fanout(n int) string {
	var b strings.Builder
	b.WriteString("workflow: w\ntasks:\n  a: {type: test}\n")
	var names []string
	for i := range n {
		name := fmt.Sprintf("b%05d", i)
		fmt.Fprintf(&b, "  %s: {type: test, needs: [a]}\n", name)
		names = append(names, name)
	}
	fmt.Fprintf(&b, "  s: {type: test, needs: [%s]}\n", strings.Join(names, ","))
	return b.String()
}

func chain(n int) string {
	var b strings.Builder
	b.WriteString("workflow: w\ntasks:\n  t0: {type: test}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  t%d: {type: test, needs: [t%d]}\n", i, i-1)
	}
	return b.String()
}

func TestAPlanHasWhatTheDefinitionSays(t *testing.T) {
	const raw = `workflow: w
input: {type: object}
deadline: 1h
class: bulk
labels: {b: "2", a: "1"}
tasks:
  z: {type: http, with: {method: POST}}
  y: {type: http, with: {method: GET, url: "${{ input.u }}"}, retry: {jitter: false}}
  x: {type: transform, needs: [z, y], class: high, output: {type: object},
      with: {value: ["${{ tasks.z.output }}", "${{ tasks.y.output }}"]}}
  w: {type: sleep, needs: [x], when: "${{ tasks.z.output.ok }}", with: {for: 1s}, timeout: 5s, heartbeat: 2s}
  v: {type: http, needs: [y], with: {method: POST}, repeatable: true}
output: {r: "${{ tasks.x.output }}", s: "${{ tasks.v.output }}"}
`
	p := compiled(t, raw)
	var names []string
	for i := range p.Tasks {
		names = append(names, p.Tasks[i].Name)
		if o, ok := p.Ordinal(p.Tasks[i].Name); !ok || int(o) != i {
			t.Errorf("%s: ordinal %d, %v", p.Tasks[i].Name, o, ok)
		}
	}
	if !slices.Equal(names, []string{"y", "z", "v", "x", "w"}) {
		t.Fatalf("ordinals go by level, then name: %v", names)
	}
	if _, ok := p.Ordinal("nobody"); ok {
		t.Error("there is no task nobody")
	}
	y, z, v, x, w := &p.Tasks[0], &p.Tasks[1], &p.Tasks[2], &p.Tasks[3], &p.Tasks[4]
	switch {
	case p.Workflow != "w" || p.Deadline != time.Hour || p.Class != "bulk" || p.Input == nil || p.Output == nil:
		t.Errorf("%+v", p)
	case len(p.Labels) != 2 || p.Labels[0].Name != "a":
		t.Errorf("labels are sorted: %v", p.Labels)
	case !y.Repeatable || z.Repeatable || !v.Repeatable || !x.Pure || !w.Timer || x.Class != "high" || w.Class != "bulk":
		t.Errorf("%+v", p.Tasks)
	case y.Retry.Jitter || !z.Retry.Jitter || w.Timeout != 5*time.Second || w.Heartbeat != 2*time.Second ||
		x.Output == nil:
		t.Errorf("%+v", p.Tasks)
	case !slices.Equal(x.Needs, []int32{0, 1}) || !slices.Equal(y.Successors, []int32{2, 3}) ||
		!slices.Equal(z.Successors, []int32{3}):
		t.Errorf("%v %v %v", x.Needs, y.Successors, z.Successors)
	case !slices.Equal(x.WithRefs, []int32{0, 1}) || !slices.Equal(w.WhenRefs, []int32{1}) || w.WithRefs != nil:
		t.Errorf("%v %v", x.WithRefs, w.WhenRefs)
	case !slices.Equal(p.OutputRefs(), []int32{2, 3}):
		t.Errorf("%v", p.OutputRefs())
	}
	d, _ := definition.Parse([]byte(raw))
	again, err := dag.Compile(d.Canonical(), types)
	if err != nil || again.Hash != p.Hash || p.Hash != d.Hash() {
		t.Errorf("canonical content has the same plan: %v", err)
	}
	if p.Size() < len(raw) {
		t.Error(p.Size())
	}
	if _, err := dag.Compile([]byte(`{"workflow":"w","tasks":{"a":{"type":"nope"}}}`), types); err == nil ||
		!strings.Contains(err.Error(), "unknown_type") {
		t.Errorf("what Check refuses has no plan: %v", err)
	}
	if _, err := dag.Compile([]byte(`{`), types); err == nil {
		t.Error("what is not JSON has no plan")
	}
}

func TestAFanOutsBranchesAreOneRange(t *testing.T) {
	p := compiled(t, fanout(9_998))
	for i, s := range p.Tasks[0].Successors {
		if int(s) != i+1 {
			t.Fatal(i, s)
		}
	}
	join := &p.Tasks[9_999]
	if join.Name != "s" || len(join.Needs) != 9_998 || p.Tasks[1].Name != "b00000" {
		t.Fatal(join.Name, len(join.Needs))
	}
}

func TestWF14AChainOfTenThousandIsPlanned(t *testing.T) {
	p := compiled(t, chain(definition.TasksMax))
	for i := range p.Tasks {
		if p.Tasks[i].Name != fmt.Sprintf("t%d", i) || i > 0 && !slices.Equal(p.Tasks[i].Needs, []int32{int32(i - 1)}) {
			t.Fatal(i, p.Tasks[i].Name, p.Tasks[i].Needs)
		}
	}
}

// TestWF13AJoinIsReadyAfterTheLastDistinctCompletion: 6,060 deliveries in 20 seeded orders.
func TestWF13AJoinIsReadyAfterTheLastDistinctCompletion(t *testing.T) {
	const branches = 6_000
	p := compiled(t, fanout(branches))
	s, _ := p.Ordinal("s")
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 13))
		var deliveries []int32
		for i := range int32(branches) {
			deliveries = append(deliveries, i+1)
		}
		for range branches / 100 {
			deliveries = append(deliveries, int32(r.IntN(branches))+1)
		}
		r.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		done := make([]uint64, (len(p.Tasks)+63)/64)
		done[0] |= 1
		distinct, becameReady, repeats := 0, 0, 0
		for _, d := range deliveries {
			if done[d>>6]&(1<<(d&63)) != 0 {
				repeats++
				continue
			}
			done[d>>6] |= 1 << (d & 63)
			distinct++
			if p.Tasks[s].Met(done) {
				becameReady++
				if distinct != branches {
					t.Fatalf("seed %d: ready after %d", seed, distinct)
				}
			}
		}
		if becameReady != 1 || repeats != branches/100 {
			t.Fatalf("seed %d: became ready %d times, %d repeats", seed, becameReady, repeats)
		}
	}
}

func TestMetIsTheSetOfNeeds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 2 + r.IntN(200)
		var b strings.Builder
		b.WriteString("workflow: w\ntasks:\n")
		for i := range n {
			var needs []string
			for j := range i {
				if r.IntN(8) == 0 {
					needs = append(needs, fmt.Sprintf("t%03d", j))
				}
			}
			fmt.Fprintf(&b, "  t%03d: {type: test, needs: [%s]}\n", i, strings.Join(needs, ","))
		}
		p := compiled(t, b.String())
		done := make([]uint64, (n+63)/64)
		for i := range done {
			done[i] = r.Uint64() | r.Uint64() | r.Uint64()
		}
		for i := range p.Tasks {
			task := &p.Tasks[i]
			want := !slices.ContainsFunc(task.Needs, func(n int32) bool { return done[n>>6]&(1<<(n&63)) == 0 })
			if task.Met(done) != want {
				t.Fatalf("task %d needs %v", i, task.Needs)
			}
			for _, n := range task.Needs {
				if int(n) >= i {
					t.Fatalf("task %d needs %d, which comes later", i, n)
				}
			}
			if len(task.Needs) > 0 && task.Met(nil) || len(task.Needs) == 0 && !task.Met(nil) {
				t.Fatal("nothing is in an empty bitset")
			}
		}
	}
}

func TestWF10BackOff(t *testing.T) {
	r := dag.Retry{Base: 2 * time.Second, Factor: 2, Cap: 5 * time.Minute, Jitter: true}
	for i, want := range []int{2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		if got := r.Delay(i + 1); got != time.Duration(want)*time.Second {
			t.Errorf("delay %d: %v", i+1, got)
		}
	}
	never := dag.Retry{Base: 2 * time.Second, Factor: 2}
	if got := never.Delay(1_100); got != dag.DelayMax {
		t.Errorf("without a cap the platform's maximum takes its place: %v", got)
	}
	steep := dag.Retry{Base: 2 * time.Second, Factor: 1e308, Cap: 5 * time.Minute}
	if steep.Delay(1) != 2*time.Second || steep.Delay(2) != 5*time.Minute || steep.Delay(3) != 5*time.Minute {
		t.Error(steep.Delay(1), steep.Delay(2))
	}
	for _, r := range []dag.Retry{
		r, never, steep,
		{Base: 1, Factor: 1.0000000000000002, Cap: time.Hour},
		{
			Base:   7 * time.Millisecond,
			Factor: 1.1, Cap: time.Minute,
		},
		{Base: time.Second, Factor: 1, Cap: time.Second},
		{Base: 3, Factor: 1.5, Cap: dag.DelayMax},
		{
			Base:   time.Hour,
			Factor: 2, Cap: time.Minute,
		},
	} {
		limit := r.Cap
		if limit == 0 {
			limit = dag.DelayMax
		}
		last := time.Duration(0)
		for k := 1; k <= 1_100; k++ {
			d := r.Delay(k)
			if d < last || d <= 0 || d > limit {
				t.Fatalf("%+v: delay %d is %v after %v", r, k, d, last)
			}
			last = d
		}
	}
	for _, odd := range []dag.Retry{
		{},
		{Base: -1, Factor: -1},
		{Base: 1, Factor: math.NaN()},
		{Base: math.MaxInt64, Factor: math.Inf(1)},
	} {
		for _, k := range []int{math.MinInt, 0, 1, 2, math.MaxInt} {
			if d := odd.Delay(k); d <= 0 || d > dag.DelayMax {
				t.Errorf("%+v at %d: %v", odd, k, d)
			}
		}
	}
}

func TestJitterIsUniformUpToTheDelay(t *testing.T) {
	r := dag.Retry{Base: 8 * time.Second, Factor: 2, Cap: time.Minute, Jitter: true}
	if r.Jittered(1, 0) != 0 || r.Jittered(1, math.MaxUint64) != 8*time.Second || r.Jittered(1, 1<<63) != 4*time.Second {
		t.Error(r.Jittered(1, 0), r.Jittered(1, math.MaxUint64), r.Jittered(1, 1<<63))
	}
	random, buckets := rand.New(rand.NewPCG(3, 4)), [8]int{}
	for range 80_000 {
		d := r.Jittered(2, random.Uint64())
		if d < 0 || d > 16*time.Second {
			t.Fatal(d)
		}
		buckets[min(d/(2*time.Second), 7)]++
	}
	for i, n := range buckets {
		if n < 9_500 || n > 10_500 {
			t.Errorf("bucket %d has %d of 80,000", i, n)
		}
	}
	r.Jitter = false
	if r.Jittered(2, 0) != 16*time.Second {
		t.Error("without jitter the delay is exact: ", r.Jittered(2, 0))
	}
}

func BenchmarkNew(b *testing.B) {
	for name, raw := range map[string]string{"fanout": fanout(9_998), "chain": chain(10_000)} {
		d, _ := definition.Parse([]byte(raw))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := dag.New(d, types); err != nil {
					b.Fatal(err)
				}
			}
		})
		content := d.Canonical()
		b.Run(name+"-content", func(b *testing.B) {
			for b.Loop() {
				if _, err := dag.Compile(content, types); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
