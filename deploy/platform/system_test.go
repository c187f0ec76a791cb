package platform

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// running opens a system on dir and runs it until the test ends.
func running(t *testing.T, dir string) (s *System, stop func()) {
	t.Helper()
	cfg := Default()
	cfg.Data = dir
	s, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	once := false
	stop = func() {
		if once {
			return
		}
		once = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// publish makes a definition a version.
func publish(t *testing.T, s *System, source string) (name string, version int64, hash events.Hash) {
	t.Helper()
	d, problems := definition.Parse([]byte(source))
	if len(problems) == 0 {
		problems = d.Check(s.Types.types)
	}
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	version, out, err := s.Publish(t.Context(), d, commands.Meta{Command: randomIDs{}.NewID(), Tenant: "default", Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Handler.Load(t.Context(), out.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return d.Workflow, version, l.State.(*definition.State).Versions[version-1].Hash
}

// submit starts an execution and returns its stream.
func submit(t *testing.T, s *System, source, input string) events.Stream {
	t.Helper()
	name, version, hash := publish(t, s, source)
	stream := events.StreamOf(execution.Category, "default", randomIDs{}.NewID().String())
	c := commands.SubmitExecution{Workflow: name, Version: version, Definition: hash, Input: events.InlinePayload([]byte(input))}
	m := commands.Meta{Command: randomIDs{}.NewID(), Tenant: "default", Actor: "test"}
	if _, err := s.Handler.Do(t.Context(), stream, c, m); err != nil {
		t.Fatal(err)
	}
	return stream
}

func await(t *testing.T, s *System, stream events.Stream) *execution.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := s.Await(ctx, stream)
	if err != nil {
		t.Fatalf("%v; %+v", err, l.State)
	}
	return l.State.(*execution.State)
}

const mixed = `
workflow: mixed
input: {type: object, required: [email]}
tasks:
  first: {type: test, with: {succeed: {output: {id: 7}}}}
  score: {type: transform, needs: [first], with: {value: "${{ {'risk': size(input.email) % 7, 'id': tasks.first.output.id} }}"}}
  rest: {type: sleep, needs: [first], with: {for: 10ms}}
  never: {type: test, needs: [score], when: "${{ tasks.score.output.risk > 100 }}", with: {succeed: {output: 1}}}
  last: {type: test, needs: [score, rest, never], with: {succeed: {output: "${{ tasks.score.output.risk }}"}}}
output: {risk: "${{ tasks.score.output.risk }}", id: "${{ tasks.first.output.id }}", last: "${{ tasks.last.output }}"}
`

func TestAnExecutionOfEveryKindOfTaskEnds(t *testing.T) {
	s, _ := running(t, t.TempDir())
	stream := submit(t, s, mixed, `{"email":"a@b.example"}`)
	x := await(t, s, stream)
	if x.Status() != execution.Completed {
		t.Fatalf("%v: %+v", x.Status(), x.Failure())
	}
}

func TestWhatRunsWhenTheProcessEndsGoesOnInTheNext(t *testing.T) {
	dir := t.TempDir()
	s, stop := running(t, dir)
	stream := submit(t, s, `
workflow: long
tasks:
  a: {type: sleep, with: {for: 300ms}}
  b: {type: test, needs: [a], with: {succeed: {output: 1}}}
`, `null`)
	stop()
	s, _ = running(t, dir)
	if x := await(t, s, stream); x.Status() != execution.Completed {
		t.Fatalf("%v: %+v", x.Status(), x.Failure())
	}
}

func TestAFailureThatNothingHelpsAgainstFailsTheExecution(t *testing.T) {
	s, _ := running(t, t.TempDir())
	stream := submit(t, s, `
workflow: fails
tasks:
  a: {type: test, with: {fail: {times: 9, class: permanent, code: broken}}}
  b: {type: test, needs: [a], with: {succeed: {output: 1}}}
`, `null`)
	x := await(t, s, stream)
	if x.Status() != execution.Failed || x.Failure().Code != "broken" || x.TaskStatus(0) != "DEAD_LETTERED" {
		t.Fatalf("%v: %+v, %s", x.Status(), x.Failure(), x.TaskStatus(0))
	}
}

func TestATransientFailureIsTriedAgain(t *testing.T) {
	s, _ := running(t, t.TempDir())
	stream := submit(t, s, `
workflow: retries
tasks:
  a: {type: test, retry: {base: 5ms, factor: 1, maxAttempts: 4}, with: {fail: {times: 3}, succeed: {output: 1}}}
`, `null`)
	if x := await(t, s, stream); x.Status() != execution.Completed {
		t.Fatalf("%v: %+v", x.Status(), x.Failure())
	}
}

func TestAMappingThatFailsFailsTheExecution(t *testing.T) {
	s, _ := running(t, t.TempDir())
	stream := submit(t, s, `
workflow: maps
tasks:
  a: {type: test, with: {succeed: {output: "${{ input.nobody }}"}}}
`, `{}`)
	if x := await(t, s, stream); x.Status() != execution.Failed || x.Failure().Code != "mapping_path_missing" {
		t.Fatalf("%v: %+v", x.Status(), x.Failure())
	}
}
