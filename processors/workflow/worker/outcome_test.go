package worker

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

func TestWF18Outputs(t *testing.T) {
	wide := []byte(`"` + strings.Repeat("a", 4_094) + "€" + `"`) // a character of three bytes across byte 4,096
	quoted := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, c := range []struct {
		name   string
		out    []byte
		inline bool
	}{
		{"4,095 bytes stand in the event", quoted(4_095), true},
		{"4,096 bytes stand in the event", quoted(4_096), true},
		{"4,097 bytes are a blob", quoted(4_097), false},
		{"a character across the limit is not cut", wide, false},
		{"5,000,000 bytes are a blob", quoted(5_000_000), false},
		{"the maximum is a blob", quoted(events.BlobBytesMax), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := at(t, nil)
			b.running()
			b.step(Returned{Output: c.out})
			want := events.InlinePayload(c.out)
			if !c.inline {
				if !bytes.Equal(b.out.Store, c.out) || b.out.Result != nil {
					t.Fatalf("%d bytes are stored, want all %d", len(b.out.Store), len(c.out))
				}
				b.step(Stored{Name: events.Hash{9}})
				want = events.BlobPayload(events.Hash{9}, len(c.out))
			}
			got := b.reported().Output
			if !bytes.Equal(got.Inline, want.Inline) || !bytes.Equal(got.Blob, want.Blob) || got.Size != want.Size {
				t.Fatalf("inline %d bytes, blob %x, size %d", len(got.Inline), got.Blob, got.Size)
			}
		})
	}
	t.Run("one byte above the maximum is refused with size and limit", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Returned{Output: quoted(events.BlobBytesMax + 1)})
		f := b.failed(events.Permanent, "payload_too_large")
		if !strings.Contains(f.Message, "33554433") || !strings.Contains(f.Message, "33554432") {
			t.Fatalf("message %q", f.Message)
		}
	})
}

func TestAnOutputThatIsNoJSONIsAPermanentFailure(t *testing.T) {
	for _, out := range []string{"", "{", `{"a":1,"a":2}`, "\"\xff\"", "1 2"} {
		b := at(t, nil)
		b.running()
		b.step(Returned{Output: []byte(out)})
		b.failed(events.Permanent, "invalid_output")
	}
}

func TestAnOutputByReferenceIsHeldToTheTasksSchema(t *testing.T) {
	b := at(t, func(_ *workflow.Delivery, task *Task) { refusing(task) })
	b.running()
	b.step(Returned{Output: []byte(`"` + strings.Repeat("x", 5_000) + `"`)})
	b.failed(events.Permanent, "output_mismatch")
	t.Run("a small one is left to the decider", func(t *testing.T) {
		b := at(t, func(_ *workflow.Delivery, task *Task) { refusing(task) })
		b.running()
		b.step(Returned{Output: []byte(`"x"`)})
		if r := b.reported(); r.Failure != nil {
			t.Fatalf("%+v", r.Failure)
		}
	})
}

func TestABlobStoreThatFailsIsTriedAgain(t *testing.T) {
	b := at(t, nil)
	b.running()
	out := []byte(`"` + strings.Repeat("x", 5_000) + `"`)
	b.step(Returned{Output: out})
	tries := 1
	for b.out.Result == nil {
		b.step(Stored{Err: errors.New("disk full")})
		for b.out.Store == nil && b.out.Result == nil {
			b.now = b.out.Wake
			if b.step(Tick{}); b.out.Renew {
				b.step(Renewed{})
			}
		}
		tries++
	}
	if tries != triesMax+1 {
		t.Fatalf("tried %d times", tries-1)
	}
	r := b.reported()
	if r.Failure.Class != events.Transient || r.Failure.Code != "output_not_stored" || !r.Output.Empty() {
		t.Fatalf("%+v", r)
	}
}

func TestAReportThatFailsIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		repeatable bool
		outcome    workflow.Outcome
	}{{true, workflow.Release}, {false, workflow.Accept}} {
		b := at(t, func(_ *workflow.Delivery, task *Task) { task.Repeatable = c.repeatable })
		b.running()
		b.step(Returned{Output: []byte("1")})
		tries := 0
		for !b.job.Done() {
			if b.out.Result != nil {
				tries++
				b.step(Reported{Err: errors.New("busy")})
				continue
			}
			b.now = b.out.Wake
			if b.step(Tick{}); b.out.Renew {
				b.step(Renewed{})
			}
		}
		b.settled(c.outcome, true)
		if tries != triesMax {
			t.Fatalf("tried %d times", tries)
		}
	}
}

func TestFailuresOfHandlersAreReportedAsTheyAre(t *testing.T) {
	b := at(t, nil)
	b.running()
	f := commands.Failure{Class: events.Throttled, Code: "http_429", Message: "slow down", RetryAfter: 7 * time.Second}
	b.step(Returned{Failure: &f})
	if got := b.failed(events.Throttled, "http_429"); *got != f {
		t.Fatalf("%+v", got)
	}
	t.Run("a text that is too long is cut at a whole character", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Returned{Failure: &commands.Failure{Class: "odd", Message: strings.Repeat("€", 2_000)}})
		got := b.failed(events.Permanent, "failed")
		if len(got.Message) > messageMax || strings.Trim(got.Message, "€") != "…" {
			t.Fatalf("%d bytes: %q", len(got.Message), got.Message[len(got.Message)-10:])
		}
	})
	t.Run("a panic is permanent and shows nothing of the inside", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Returned{Panicked: true})
		b.failed(events.Permanent, "handler_panic")
	})
}

func TestADrain(t *testing.T) {
	hard := func(_ *workflow.Delivery, task *Task) { task.Repeatable = false }
	t.Run("what has not started is given back", func(t *testing.T) {
		for _, to := range []func(*bench){
			func(b *bench) { b.begin() },
			func(b *bench) { reading(b.task, 0); b.planned() },
			func(b *bench) { b.task.Repeatable = false; b.planned() },
		} {
			b := at(t, nil)
			to(b)
			b.step(Drained{})
			b.settled(workflow.Release, true)
		}
	})
	t.Run("WF-26 what runs is cancelled, given back, and burns no attempt", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		if b.step(Drained{}); !errors.Is(b.out.Cancel, ErrDrained) {
			t.Fatalf("%+v", b.out)
		}
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "call_cancelled"}})
		b.settled(workflow.Release, true)
	})
	t.Run("what was timed out before stays so", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.job.wait.renew, b.job.wait.start = 0, 0
		b.after(30*time.Second, Tick{})
		b.step(Drained{})
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "call_cancelled"}})
		b.failed(events.TimedOut, "task_timeout")
	})
	t.Run("what ends well all the same is reported", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Drained{})
		b.step(Returned{Output: []byte("1")})
		b.reported()
	})
	t.Run("what must not run twice is a failure, since its effect may have happened", func(t *testing.T) {
		b := at(t, hard)
		b.running()
		b.step(Drained{})
		b.step(Returned{Failure: &commands.Failure{Class: events.Transient, Code: "call_cancelled"}})
		b.failed(events.Transient, "worker_ended")
	})
	t.Run("a report is tried once more and then given up", func(t *testing.T) {
		b := at(t, nil)
		b.running()
		b.step(Returned{Output: []byte("1")})
		b.step(Reported{Err: errors.New("busy")})
		if b.step(Drained{}); b.out.Result == nil {
			t.Fatalf("%+v", b.out)
		}
		b.step(Reported{Err: errors.New("busy")})
		b.settled(workflow.Release, true)
	})
}

func TestAnInputThatNobodyWaitsForChangesNothing(t *testing.T) {
	inputs := []Input{
		Received{},
		Began{},
		Loaded{},
		Answered{Counts: true},
		Returned{Output: []byte("1")},
		Abandoned{},
		Stored{},
		Reported{},
		Beat{At: t0},
		Tick{},
	}
	states := map[string]func(*bench){
		"beginning": func(b *bench) { b.step(Received{}) },
		"resting":   func(b *bench) { b.step(Received{}); b.step(Began{Err: errors.New("x")}) },
		"reporting": func(b *bench) { b.running(); b.step(Returned{Output: []byte("1")}) },
		"done":      func(b *bench) { b.running(); b.step(Returned{Output: []byte("1")}); b.step(Reported{}) },
	}
	awaited := map[string]string{"beginning": "worker.Began", "reporting": "worker.Reported"}
	for name, to := range states {
		for _, in := range inputs {
			if fmt.Sprintf("%T", in) == awaited[name] {
				continue
			}
			b := at(t, nil)
			to(b)
			before := b.job.phase
			out := b.job.Step(in, b.now)
			wake := out.Wake
			out.Wake = 0
			if fmt.Sprintf("%+v", *out) != fmt.Sprintf("%+v", Effects{}) || b.job.phase != before {
				t.Errorf("%s, %T: %+v (wake %s)", name, in, out, wake)
			}
		}
	}
}
