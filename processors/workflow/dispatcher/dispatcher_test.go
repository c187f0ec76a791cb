package dispatcher

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/owner"
)

const noon events.Time = 1_000_000_000

// waiting is a dispatcher with an execution in memory of which n tasks wait for their slots.
func waiting(n int32) (*Dispatcher, *handle.Hot) {
	d := New(Config{}, owner.New(handle.NewLane(handle.LaneConfig{})))
	x := &exec{plan: &dag.Plan{}, flights: map[int32]*flight{}}
	h := &handle.Hot{Loaded: handle.Loaded{Stream: "execution/acme/a"}, Data: x, Index: -1}
	s := execution.Evolve(&execution.State{}, events.ExecutionSubmitted{Tasks: n}, 1)
	h.State = execution.Evolve(s, events.TasksReady{To: n}, 2)
	for t := range n {
		x.plan.Tasks = append(x.plan.Tasks, dag.Task{Type: "test", Timeout: time.Minute})
		f := &flight{hot: h, task: t, attempt: 1, readyAt: noon}
		x.flights[t] = f
		d.lines.push(f, lineOf(f))
	}
	return d, h
}

func takes(t *testing.T, d *Dispatcher, want ...int32) {
	t.Helper()
	got := d.Out().Takes
	if len(got) != len(want) {
		t.Fatalf("%d slots are asked for, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Member.Task != want[i] {
			t.Fatalf("slot %d is for task %d, want %d", i, got[i].Member.Task, want[i])
		}
	}
}

func TestTasksThatGetNoSlotAskAgainInTheirOrder(t *testing.T) {
	d, _ := waiting(4)
	d.Flush(noon)
	takes(t, d, 0, 1, 2, 3)
	wake := d.Granted([]kernel.SlotAnswer{{Granted: true}, {Reason: "slot_type"}, {Reason: "slot_type"}}, noon)
	if wake != noon.Add(slotRetry) {
		t.Fatalf("it wants its next step at %d", wake)
	}
	if d.Waiting() != 3 || d.InFlight() != 1 {
		t.Fatalf("%d wait, %d are in flight", d.Waiting(), d.InFlight())
	}
	d.Out().Reset()
	d.Flush(wake)
	takes(t, d, 1, 2, 3)
}

func TestNothingIsAskedForAnExecutionThatIsBeingReadAgain(t *testing.T) {
	d, h := waiting(2)
	state := h.State
	h.State = nil // its append met a conflict
	d.Flush(noon)
	takes(t, d)
	if d.Waiting() != 2 {
		t.Fatalf("%d wait", d.Waiting())
	}
	h.State = state
	d.Flush(noon)
	takes(t, d, 0, 1)
}

func TestAnAttemptThatStartedElsewhereIsWatchedOver(t *testing.T) {
	e := events.TaskStarted{Task: 0, Attempt: 1, Worker: "w", SentAt: noon - 7, SlotWait: 3, StartedAt: noon - 5}
	for name, send := range map[string]bool{"while it waits for its slot": false, "when it was sent again": true} {
		t.Run(name, func(t *testing.T) {
			d, h := waiting(1)
			if send {
				d.Flush(noon)
				d.Granted([]kernel.SlotAnswer{{Granted: true}}, noon)
			}
			x := h.Data.(*exec)
			d.Stored(h, []events.Fact{{Event: e}}, noon)
			f := x.flights[0]
			if f.phase != running || f.sentAt != e.SentAt || f.slotWait != 3*time.Microsecond {
				t.Fatalf("phase %d, sent at %d, waited %s", f.phase, f.sentAt, f.slotWait)
			}
			if f.due != e.StartedAt.Add(time.Minute+timeoutGrace) {
				t.Fatalf("due %d", f.due)
			}
			if d.Waiting() != 0 || d.queued != 0 || d.InFlight() != 1 {
				t.Fatalf("due %d, %d wait, %d queued, %d in flight", h.Due, d.Waiting(), d.queued, d.InFlight())
			}
			d.close(x, f)
			if d.InFlight() != 0 || len(d.Out().Frees) != 1 || d.queued != 0 {
				t.Fatal("its slot is kept")
			}
		})
	}
}

func TestAStartThatAnAppendOfUnknownOutcomeHasStoredIsWatchedOver(t *testing.T) {
	d, h := waiting(1)
	d.Flush(noon)
	d.Granted([]kernel.SlotAnswer{{Granted: true}}, noon)
	execution.Evolve(state(h), events.TaskStarted{Task: 0, Attempt: 1, Worker: "w", SentAt: noon, StartedAt: noon + 5}, 3)
	d.Read(h, noon+9)
	if f := h.Data.(*exec).flights[0]; f.phase != running || f.startedAt != noon+5 || d.queued != 0 {
		t.Fatalf("phase %d, started at %d, %d queued", f.phase, f.startedAt, d.queued)
	}
}

func TestAStartThatBringsNothingAboutCounts(t *testing.T) {
	for _, c := range []struct {
		name       string
		repeatable bool
		worker     string
		at         events.Time
		want       bool
	}{
		{"told again", false, "w", noon, true},
		{"begun again, of what may run twice", true, "w", noon + 9, true},
		{"not begun again, of what must not run twice", false, "w", noon + 9, false},
		{"not by another worker", true, "v", noon, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, h := waiting(1)
			d.exec(h).plan.Tasks[0].Repeatable = c.repeatable
			execution.Evolve(state(h), events.TaskStarted{Task: 0, Attempt: 1, Worker: "w", SentAt: noon, StartedAt: noon}, 3)
			m := handle.Machine{Command: commands.StartTask{Task: 0, Attempt: 1, Worker: c.worker, StartedAt: c.at}}
			if got := d.Settled(h, m, 0); got != c.want {
				t.Fatalf("counts: %t", got)
			}
		})
	}
}
