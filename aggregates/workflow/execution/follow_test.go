package execution_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

func TestBranches(t *testing.T) {
	const source = `
tasks:
  a: {type: http}
  b: {type: http, needs: [a], when: "${{ tasks.a.output.go }}"}
  c: {type: http, needs: [b]}
  d: {type: http, needs: [a, c]}
`
	p := planOf(t, source)
	began := []event{submitted(p, ""), ready(0)}
	t.Run("a condition that holds makes the task ready", func(t *testing.T) {
		running(t, p, began...).When(success(0, 1, `{"go":true}`)).Then(completed(0, 1, `{"go":true}`), ready(1))
	})
	t.Run("one that does not skips it, and what needs nothing else; a join goes on with what is left", func(t *testing.T) {
		running(t, p, began...).When(success(0, 1, `{"go":false}`)).Then(completed(0, 1, `{"go":false}`),
			events.TaskSkipped{Task: 1, Why: "when", Refs: []int64{3}}, events.TaskSkipped{Task: 2, Why: "needs"}, ready(3))
	})
	t.Run("anything but true and false is permanent", func(t *testing.T) {
		running(t, p, began...).When(success(0, 1, `{"go":"true"}`)).Then(append([]event{completed(0, 1, `{"go":"true"}`)},
			stepDead(1, "when_not_bool", `the condition came to "true", which is neither true nor false`)...)...)
	})
	t.Run("WF-20 a path that is not there fails the task and says where; it is never null", func(t *testing.T) {
		o := running(t, p, began...).When(success(0, 1, `{}`))
		es, err := o.Events()
		if err != nil || len(es) != 3 {
			t.Fatalf("%+v, %v", es, err)
		}
		f := es[1].(events.TaskFailed)
		if f.Code != "mapping_path_missing" || f.Class != events.Permanent || f.Next != events.NextDeadLetter ||
			!strings.HasPrefix(f.Message, "task b, condition: ") || !strings.Contains(f.Message, "tasks.a.output.go") {
			t.Errorf("%+v", f)
		}
		s := o.Then(es...)
		if v := s.State().Task(1); v.Status != execution.TaskDeadLettered ||
			v.Code != "mapping_path_missing" || v.Failed != 4 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("when every branch is skipped the execution completes", func(t *testing.T) {
		p := planOf(t, "tasks: {a: {type: http, when: \"${{ input.x }}\"}, b: {type: http, needs: [a]}}")
		running(t, p).When(submit(p, `{"x":false}`)).Then(submitted(p, `{"x":false}`),
			events.TaskSkipped{Task: 0, Why: "when"}, events.TaskSkipped{Task: 1, Why: "needs"}, events.ExecutionCompleted{})
	})
}

func TestTimers(t *testing.T) {
	p := planOf(t, `
tasks:
  a: {type: sleep, with: {for: "${{ input.wait }}"}}
  b: {type: http, needs: [a]}
`)
	began := []event{submitted(p, `{"wait":"2s"}`), events.TimerStarted{Task: 0, Until: 5 + 2*second}}
	t.Run("a sleep is decided when it is ready", func(t *testing.T) {
		s := running(t, p).When(submit(p, `{"wait":"2s"}`), meta{At: 5}).Then(began...)
		if v := s.State().Task(0); v.Status != execution.TaskRunning || v.Until != 5+2*second || s.State().Due() != v.Until {
			t.Errorf("%+v, due %d", v, s.State().Due())
		}
	})
	t.Run("WF-11 a timer of 61 s waits 61 s, one that cannot be read is permanent", func(t *testing.T) {
		running(t, p).When(submit(p, `{"wait":"PT61S"}`)).
			Then(submitted(p, `{"wait":"PT61S"}`), events.TimerStarted{Task: 0, Until: 61 * second})
		for _, wait := range []string{`90`, `"90"`, `"-5s"`, `"1h 30m"`, `""`, `null`} {
			es, err := running(t, p).When(submit(p, `{"wait":`+wait+`}`)).Events()
			if err != nil || len(es) != 3 {
				t.Fatalf("%s: %v, %v", wait, es, err)
			}
			if f := es[1].(events.TaskFailed); f.Code != "sleep_for_invalid" || f.Next != events.NextDeadLetter {
				t.Errorf("%s: %+v", wait, f)
			}
		}
	})
	t.Run("it is done when its time has come, and not before", func(t *testing.T) {
		at := 5 + 2*second
		s := running(t, p, began...)
		s.When(commands.FireTimer{Task: 0}, meta{At: at - 1}).ThenNothing()
		s.When(commands.FireTimer{Task: 0}, meta{At: at + 9}).
			Then(events.TaskCompleted{Task: 0, SentAt: at, StartedAt: at, EndedAt: at}, ready(1))
		s.When(commands.FireTimer{Task: 1}, meta{At: at}).ThenNothing()
		s.When(commands.FireTimer{Task: 7}, meta{At: at}).ThenNothing()
		s.When(commands.FireTimer{Task: -1}, meta{At: at}).ThenNothing()
	})
	t.Run("no result of a worker ends it", func(t *testing.T) {
		s := running(t, p, began...)
		s.When(success(0, 1, "1")).ThenNothing()
		s.When(failure(0, 1, events.Permanent)).ThenNothing()
		s.When(commands.TimeOutTask{Task: 0, Attempt: 1}).ThenNothing()
		s.When(commands.StartTask{Task: 0, Attempt: 1, Worker: "w1"}).ThenNothing()
	})
	t.Run("ES-36 after a cancel a timer that is left over, and a late result, bring nothing back", func(t *testing.T) {
		s := running(t, p, append(began, events.ExecutionCancelled{})...)
		s.When(commands.FireTimer{Task: 0}, meta{At: 9 * second}).ThenNothing()
		s.When(success(1, 1, "1")).ThenNothing()
		if s.State().Due() != 0 || s.State().Open() {
			t.Errorf("due %d", s.State().Due())
		}
	})
}

func TestSteps(t *testing.T) {
	t.Run("a step reads outputs of the log, of its own append, and of a blob", func(t *testing.T) {
		p := planOf(t, `
tasks:
  a: {type: http}
  b: {type: transform, needs: [a], with: {value: "${{ tasks.a.output.n }}"}}
  c: {type: transform, needs: [b], with: {value: ["${{ tasks.a.output.n }}", "${{ tasks.b.output }}"]}}
`)
		began := []event{submitted(p, ""), ready(0)}
		running(t, p, began...).When(success(0, 1, `{"n":1.10}`)).Then(completed(0, 1, `{"n":1.10}`),
			pure(1, 0, "1.10", 3), pure(2, 0, "[1.10,1.10]", 3, 4), events.ExecutionCompleted{})
		s, blob := running(t, p, began...).Blob([]byte(`{"n":7,"rest":"` + strings.Repeat("x", 5000) + `"}`))
		c, e := success(0, 1, ""), completed(0, 1, "")
		c.Output, e.Output = blob, blob
		s.When(c).Then(e, pure(1, 0, "7", 3), pure(2, 0, "[7,7]", 3, 4), events.ExecutionCompleted{})
	})
	t.Run("a task without an output, a sleep or a skipped one, has none: that is no null", func(t *testing.T) {
		p := planOf(t, `
tasks:
  a: {type: sleep, with: {for: 1s}}
  b: {type: transform, needs: [a], with: {value: {x: "${{ tasks.a.?output }}", y: 1}}}
  c: {type: transform, needs: [a], with: {value: "${{ tasks.a.output }}"}}
`)
		es, err := running(t, p, submitted(p, ""), events.TimerStarted{Task: 0, Until: 1}).
			When(commands.FireTimer{Task: 0}, meta{At: 1}).Events()
		if err != nil || len(es) != 4 || string(es[1].(events.TaskCompleted).Output.Inline) != `{"y":1}` ||
			es[2].(events.TaskFailed).Code != "mapping_path_missing" || es[3].(events.ExecutionFailed).Task != 2 {
			t.Errorf("%+v, %v", es, err)
		}
	})
	t.Run("a failing step keeps no sibling from being decided; the execution fails last", func(t *testing.T) {
		p := planOf(t, `
tasks:
  a: {type: transform, with: {value: "${{ input.none }}"}}
  b: {type: http}
  c: {type: transform, with: {value: 2}}
`)
		es, err := running(t, p).When(submit(p, `{"a":1}`)).Events()
		if err != nil || len(es) != 5 {
			t.Fatalf("%+v, %v", es, err)
		}
		if _, last := es[4].(events.ExecutionFailed); !last || es[1].(events.TaskFailed).Task != 0 {
			t.Errorf("%+v", es)
		}
	})
	t.Run("an output that does not fit its schema is permanent", func(t *testing.T) {
		p := planOf(t, `tasks: {a: {type: transform, with: {value: 1}, output: {type: string}}}`)
		es, err := running(t, p).When(submit(p, "")).Events()
		if err != nil || es[1].(events.TaskFailed).Code != "output_mismatch" ||
			es[1].(events.TaskFailed).Class != events.Permanent {
			t.Errorf("%+v, %v", es, err)
		}
	})
	t.Run("number_out_of_range is permanent and says where", func(t *testing.T) {
		p := planOf(t, `tasks: {a: {type: transform, with: {value: {deep: "${{ input.n + 1 }}"}}}}`)
		es, err := running(t, p).When(submit(p, `{"n":12345678901234567890123}`)).Events()
		if err != nil {
			t.Fatal(err)
		}
		if f := es[1].(events.TaskFailed); f.Code != "number_out_of_range" ||
			!strings.Contains(f.Message, "task a, mapping /value/deep") {
			t.Errorf("%+v", f)
		}
	})
	t.Run("WF-20 data is never evaluated", func(t *testing.T) {
		const input = `{"note":"${workflow.input.secret} ${{ input.secret }}","Space Value":7,"secret":"x"}`
		p := planOf(t, `
tasks:
  a__b: {type: http}
  d:
    type: transform
    needs: [a__b]
    with: {value: ["${{ input.note }}", "${{ input['Space Value'] }}", "${{ tasks.a__b.output }}"]}
`)
		running(t, p, submitted(p, input), ready(0)).When(success(0, 1, `"${{ input.secret }}"`)).
			Then(completed(0, 1, `"${{ input.secret }}"`),
				pure(1, 0, `["${workflow.input.secret} ${{ input.secret }}",7,"${{ input.secret }}"]`, 3),
				events.ExecutionCompleted{})
	})
}

func TestLargeSteps(t *testing.T) {
	p := planOf(t, `
tasks:
  a: {type: http}
  b: {type: http}
  c: {type: transform, needs: [a, b], with: {value: ["${{ tasks.a.output }}", "${{ tasks.b.output }}"]}}
`)
	past := func(size int) []event {
		return []event{submitted(p, ""), ready(0, 1), events.TaskCompleted{
			Task: 0, Attempt: 1, Output: text(`"` + strings.Repeat("x", size-2) + `"`),
		}}
	}
	const limit = 256 << 10
	t.Run("a step that reads 256 KiB is decided in place", func(t *testing.T) {
		es, err := running(t, p, past(limit-1)...).With(blobRef(past(limit - 1)[2])).When(success(1, 1, "1")).Events()
		if err != nil || len(es) != 3 || es[1].(events.TaskCompleted).Output.Size != limit-1+4 {
			t.Errorf("%d events, %v", len(es), err)
		}
	})
	t.Run("one that reads more goes to a worker, without its inputs being read", func(t *testing.T) {
		running(t, p, past(limit)...).When(success(1, 1, "1")).Then(completed(1, 1, "1"), ready(2))
	})
	t.Run("what no worker can do instead is bounded too: it is never read", func(t *testing.T) {
		const all = "${{ [tasks.a.output, tasks.b.output, tasks.c.output] }}"
		const three = "tasks:\n  a: {type: http}\n  b: {type: http}\n  c: {type: http}\n"
		p := planOf(t, three+"  d:\n    type: http\n    needs: [a, b, c]\n"+
			`    when: "${{ size([tasks.a.output, tasks.b.output, tasks.c.output]) > 0 }}"`)
		q := planOf(t, three+"output: \""+all+"\"\n")
		huge := func(task int32) events.TaskCompleted {
			e := completed(task, 1, "")
			e.Output = events.Payload{Blob: make([]byte, 32), Size: events.BlobBytesMax}
			return e
		}
		last := success(2, 1, "")
		last.Output = huge(2).Output
		es, err := running(t, p, submitted(p, ""), ready(0, 1, 2), huge(0), huge(1)).When(last).Events()
		if err != nil || len(es) != 3 || es[1].(events.TaskFailed).Code != "payload_too_large" {
			t.Errorf("%+v, %v", es, err)
		}
		es, err = running(t, q, submitted(q, ""), ready(0, 1, 2), huge(0), huge(1)).When(last).Events()
		if err != nil || len(es) != 2 || es[1].(events.ExecutionFailed).Code != "payload_too_large" {
			t.Errorf("%+v, %v", es, err)
		}
	})
	t.Run("one append computes a bounded amount; what is beyond goes to workers", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("tasks:\n")
		for i := range 100 {
			fmt.Fprintf(&b, "  t%02d: {type: transform, with: {value: \"${{ input }}\"}}\n", i)
		}
		p := planOf(t, b.String())
		es, err := running(t, p).When(submit(p, `"`+strings.Repeat("x", 100_000)+`"`)).Events()
		if err != nil || len(es) != 1+11+1 {
			t.Fatalf("%d events, %v", len(es), err)
		}
		if e := es[12].(events.TasksReady); e.From != 11 || e.To != 100 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the largest definition fits one append, whatever its tasks are", func(t *testing.T) {
		for _, task := range []string{
			"type: sleep, with: {for: 1s}", "type: transform, with: {value: 1}", `type: http, when: "${{ input.no }}"`,
			`type: transform, with: {value: "${{ input.a.b.c }}"}`,
		} {
			var b strings.Builder
			b.WriteString("tasks:\n")
			for i := range 10_000 {
				fmt.Fprintf(&b, "  t%05d: {%s}\n", i, task)
			}
			p := planOf(t, b.String())
			es, err := execution.Decider.Decide(&execution.State{}, submit(p, `{"no":false}`), meta{At: 1}, onlyPlan{p})
			size := 0
			for _, e := range es {
				size += 60
				if f, ok := e.(events.TaskFailed); ok {
					size += len(f.Message)
				}
			}
			if err != nil || len(es) > events.CommitEventsMax || size > events.CommitBytesMax {
				t.Errorf("%s: %d events, some %d bytes, %v", task, len(es), size, err)
			}
		}
	})
}

func TestTheOutputOfTheWorkflow(t *testing.T) {
	p := planOf(t, "tasks: {a: {type: http}}\noutput: {x: \"${{ tasks.a.output.x }}\"}")
	began := []event{submitted(p, ""), ready(0)}
	t.Run("is made when all is done", func(t *testing.T) {
		running(t, p, began...).When(success(0, 1, `{"x":1}`)).Then(completed(0, 1, `{"x":1}`),
			events.ExecutionCompleted{Output: text(`{"x":1}`), Refs: []int64{3}})
	})
	t.Run("or the execution fails, of no task", func(t *testing.T) {
		o := running(t, p, began...).When(success(0, 1, `{}`))
		es, err := o.Events()
		if err != nil || len(es) != 2 {
			t.Fatalf("%+v, %v", es, err)
		}
		f := es[1].(events.ExecutionFailed)
		if f.Task != -1 || f.Code != "mapping_path_missing" ||
			!strings.HasPrefix(f.Message, "the workflow's output: mapping /x: ") {
			t.Errorf("%+v", f)
		}
		s := o.Then(es...)
		s.When(commands.RetryTask{Task: "a"}).ThenRefused(commands.CodeNotDeadLettered)
		s.When(commands.TerminateExecution{}).Then(events.ExecutionCancelled{Forced: true})
	})
}

// TestWF13AVeryWideFanOutJoinsOnceAfterTheLast delivers every completion in random order, one in a hundred twice.
func TestWF13AVeryWideFanOutJoinsOnceAfterTheLast(t *testing.T) {
	const n = 6000
	p := fanout(t, n)
	for seed := range uint64(20) {
		s := execution.Evolve(&execution.State{}, submitted(p, ""), 1)
		s = execution.Evolve(s, events.TasksReady{To: n, Class: class}, 2)
		r := rand.New(rand.NewPCG(seed, 13))
		order := r.Perm(n)
		for range n / 100 {
			order = append(order, r.IntN(n))
		}
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		version, distinct, nothing, joined := events.Version(2), 0, 0, 0
		for _, task := range order {
			es, err := execution.Decide(s, success(int32(task), 1, "1"), meta{Version: version}, onlyPlan{p})
			if err != nil {
				t.Fatal(err)
			}
			if len(es) == 0 {
				nothing++
				continue
			}
			distinct++
			for _, e := range es {
				version++
				s = execution.Evolve(s, e, version)
				if e, ok := e.(events.TasksReady); ok {
					joined++
					if e.From != n || e.To != n+1 || distinct != n {
						t.Fatalf("seed %d: %+v after %d completions", seed, e, distinct)
					}
				}
			}
		}
		if joined != 1 || nothing != n/100 || distinct != n {
			t.Fatalf("seed %d: joined %d times, %d no-ops, %d completions", seed, joined, nothing, distinct)
		}
		es, err := execution.Decide(s, success(n, 1, "1"), meta{Version: version}, onlyPlan{p})
		if err != nil || len(es) != 2 {
			t.Fatalf("seed %d: %v, %v", seed, es, err)
		}
		if _, ok := es[1].(events.ExecutionCompleted); !ok {
			t.Fatalf("seed %d: %v", seed, es)
		}
	}
}
