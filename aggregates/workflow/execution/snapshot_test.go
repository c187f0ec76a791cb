package execution_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/events"
)

// rich is a state with something of everything.
func rich(t testing.TB) *execution.State {
	p := planOf(t, transitionTasks)
	first := submitted(p, `{"x":1}`)
	first.Deadline, first.Parent = 3600*second, "parent"
	return running(t, p, first, startedTimer(taskS), ready(taskA, taskX),
		events.TasksHeld{Tasks: []int32{taskX}},
		events.TaskStarted{Task: taskX, Attempt: 1, Worker: "w1", SentAt: 1, StartedAt: 2},
		retrying(taskX, 1, events.TimedOut, 5), events.TaskResultLate{Task: taskX, Attempt: 1, EndedAt: 4},
		completed(taskA, 1, "1"), ready(taskB), dead(taskB, 1, events.Permanent), failed(taskB),
		events.TaskRetried{Task: taskB, Attempt: 2, With: text("{}")},
		dead(taskB, 2, events.Permanent), failed(taskB)).State()
}

func TestSnapshots(t *testing.T) {
	t.Run("what is written is read", func(t *testing.T) {
		b := rich(t).Encode([]byte("before"))
		s, err := execution.DecodeState(b[6:])
		if err != nil || !bytes.Equal(s.Encode(nil), b[6:]) {
			t.Fatalf("%v", err)
		}
		for task := range s.Tasks() {
			if got, want := s.Task(task), rich(t).Task(task); got != want {
				t.Errorf("task %d is %+v, was %+v", task, got, want)
			}
		}
		if s.Due() != rich(t).Due() || s.Failure() != rich(t).Failure() || s.Settled() != 1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("bytes that were cut, or have more behind them, are refused", func(t *testing.T) {
		b := rich(t).Encode(nil)
		for n := range b {
			if _, err := execution.DecodeState(b[:n]); err == nil {
				t.Errorf("the first %d of %d bytes pass", n, len(b))
			}
		}
		if _, err := execution.DecodeState(append(b, 0)); err == nil {
			t.Error("one byte more passes")
		}
	})
	t.Run("one state has one form: longer numbers, or two events of one version, are refused", func(t *testing.T) {
		b := (&execution.State{}).Encode(nil)
		if _, err := execution.DecodeState(b); err != nil || b[1] != 0 {
			t.Fatal(err, b)
		}
		if _, err := execution.DecodeState(append([]byte{b[0], 0x80, 0}, b[2:]...)); err == nil {
			t.Error("an overlong number passes")
		}
		s := rich(t)
		for task := range s.Tasks() {
			s = execution.Evolve(s, completed(task, 1, "1"), 20)
		}
		if _, err := execution.DecodeState(s.Encode(nil)); err == nil {
			t.Error("two tasks that were completed by one event pass")
		}
	})
	t.Run("a done task takes some five bytes, whatever the order, and others next to nothing", func(t *testing.T) {
		output := `"` + strings.Repeat("x", 200) + `"` // its size takes two bytes
		for _, n := range []int{10, 1_000, 10_000} {
			p := fanout(t, n-1)
			s := execution.Evolve(&execution.State{}, submitted(p, ""), 1)
			empty := len(s.Encode(nil))
			s = execution.Evolve(s, events.TasksReady{To: int32(n - 1), Class: class}, 2)
			open := len(s.Encode(nil))
			order := rand.New(rand.NewPCG(1, 2)).Perm(n - 1)
			for i, task := range order {
				s = execution.Evolve(s, completed(int32(task), 1, output), events.Version(i+3))
			}
			full := len(s.Encode(nil))
			t.Logf("%d tasks: %d bytes, ready %d, done %d (%.2f a task)", n, empty, open, full, float64(full-empty)/float64(n))
			if perTask := float64(full-empty) / float64(n); perTask > 6 || open != empty {
				t.Errorf("%.2f bytes a task, ready ones %d", perTask, open-empty)
			}
		}
	})
}

// FuzzSnapshot: any bytes are refused or are exactly what the state that they stand for is written as.
func FuzzSnapshot(f *testing.F) {
	f.Add(rich(f).Encode(nil))
	f.Add((&execution.State{}).Encode(nil))
	f.Add([]byte{})
	p := fanout(f, 70)
	s := execution.Evolve(&execution.State{}, submitted(p, ""), 1)
	f.Add(s.Encode(nil))
	f.Add(execution.Evolve(s, completed(3, 2, "1"), 2).Encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := execution.DecodeState(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.Encode(nil), b) {
			t.Error("it is written otherwise")
		}
		s.EachReady(func(task int32) { s.Task(task) })
		s.Due()
		for v := events.Version(1); v < 3; v++ {
			s = execution.Evolve(s, completed(0, 1, "1"), v)
			s = execution.Evolve(s, events.TaskRetried{Task: 1, Attempt: 2}, v)
		}
		if _, err := execution.DecodeState(s.Encode(nil)); err != nil && s.Status() != execution.None {
			t.Error("what follows cannot be read")
		}
	})
}

// TestAnyFactCanBeFolded: Evolve is total. What makes no sense changes nothing that a snapshot could not hold.
func TestAnyFactCanBeFolded(t *testing.T) {
	p := planOf(t, transitionTasks)
	number := rapid.SampledFrom([]int32{math.MinInt32, -1, 0, 1, 2, 3, 4, 64, math.MaxInt32})
	rapid.Check(t, func(r *rapid.T) {
		s := &execution.State{}
		for v := range rapid.IntRange(1, 30).Draw(r, "facts") {
			task, attempt := number.Draw(r, "task"), number.Draw(r, "attempt")
			at := events.Time(rapid.IntRange(-1, 3).Draw(r, "at"))
			first := submitted(p, "")
			first.Tasks = rapid.SampledFrom([]int32{4, 4, 4, -1, 65}).Draw(r, "size")
			s = execution.Evolve(s, rapid.SampledFrom([]event{
				first,
				events.TasksReady{Tasks: []int32{task}, From: attempt, To: task},
				events.TimerStarted{Task: task, Until: at},
				events.TaskStarted{Task: task, Attempt: attempt, Worker: "w"},
				completed(task, attempt, "1"),
				retrying(task, attempt, events.Transient, at), dead(task, attempt, events.TimedOut),
				events.TaskSkipped{Task: task},
				events.TasksHeld{Tasks: []int32{task, attempt}},
				events.TaskResultLate{Task: task, Attempt: attempt},
				events.TaskRetried{Task: task, Attempt: attempt},
				events.ExecutionPaused{},
				events.ExecutionResumed{},
				cancelled, timedOut, failed(task),
				events.ExecutionCompleted{},
			}).Draw(r, "fact"), events.Version(v+1))
			if s.Status() == execution.None {
				continue
			}
			b := s.Encode(nil)
			again, err := execution.DecodeState(b)
			if err != nil || !bytes.Equal(again.Encode(nil), b) || again.Due() != s.Due() {
				r.Fatalf("%v, %+v", err, s)
			}
		}
	})
}
