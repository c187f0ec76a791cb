package execution_test

import (
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// BenchmarkCompletion is one completion, decided and evolved: a fifth of a chain of five with its submission left out,
// and one of 10,000 branches into a join.
func BenchmarkCompletion(b *testing.B) {
	b.Run("chain of five", func(b *testing.B) {
		p := chain(b, 5, "type: http")
		first := event(submitted(p, "{}"))
		results := make([]commands.ExecutionCommand, len(p.Tasks))
		for t := range results {
			results[t] = success(int32(t), 1, `{"ok":true}`)
		}
		b.ReportAllocs()
		for i := 0; i < b.N; i += len(results) {
			b.StopTimer()
			s := execution.Evolve(&execution.State{}, first, 1)
			s = execution.Evolve(s, ready(0), 2)
			b.StartTimer()
			complete(b, s, p, results)
		}
	})
	b.Run("fan-out of 10,000", func(b *testing.B) {
		const n = 9_999
		p := fanout(b, n)
		first := event(submitted(p, "{}"))
		results := make([]commands.ExecutionCommand, n)
		for t := range results {
			results[t] = success(int32(t), 1, `{"ok":true}`)
		}
		b.ReportAllocs()
		for left := b.N; left > 0; left -= n {
			b.StopTimer()
			s := execution.Evolve(&execution.State{}, first, 1)
			s = execution.Evolve(s, events.TasksReady{To: n, Class: class}, 2)
			b.StartTimer()
			complete(b, s, p, results[:min(n, left)])
		}
	})
}

func complete(b *testing.B, s *execution.State, p *dag.Plan, results []commands.ExecutionCommand) {
	version := events.Version(2)
	var refs aggregates.Refs = onlyPlan{p}
	for _, c := range results {
		es, err := execution.Decide(s, c, meta{Version: version, At: 1}, refs)
		if err != nil || len(es) == 0 {
			b.Fatal(es, err)
		}
		for _, e := range es {
			version++
			s = execution.Evolve(s, e, version)
		}
	}
}

// BenchmarkBackOffs is one failure among 10,000 tasks in back-off: a downstream that is down.
func BenchmarkBackOffs(b *testing.B) {
	const n = 9_999
	p := fanout(b, n)
	s := execution.Evolve(&execution.State{}, submitted(p, "{}"), 1)
	s = execution.Evolve(s, events.TasksReady{To: n, Class: class}, 2)
	for t := range int32(n) {
		s = execution.Evolve(s, retrying(t, 1, events.Transient, events.Time(t*7919%n)), 3)
	}
	b.ReportAllocs()
	for i := range b.N {
		t := int32(i % n)
		s = execution.Evolve(s, retrying(t, s.Attempt(t), events.Transient, events.Time(i*7919%n)), 4)
		s.Due()
	}
}

func BenchmarkSnapshot(b *testing.B) {
	const n = 9_999
	p := fanout(b, n)
	s := execution.Evolve(&execution.State{}, submitted(p, "{}"), 1)
	for t := range int32(n) {
		s = execution.Evolve(s, completed(t, 1, "{}"), events.Version(t+2))
	}
	bytes := s.Encode(nil)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			bytes = s.Encode(bytes[:0])
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := execution.DecodeState(bytes); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPureChain is a chain of 1,000 transforms, decided with its submission.
func BenchmarkPureChain(b *testing.B) {
	p := chain(b, 1_000, "type: transform, with: {value: \"${{ input }}\"}")
	c := submit(p, "1")
	b.ReportAllocs()
	for range b.N {
		if es, err := execution.Decide(&execution.State{}, c, meta{}, onlyPlan{p}); err != nil || len(es) != 1_002 {
			b.Fatal(len(es), err)
		}
	}
}
