package workflow_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/workflow"
)

func TestAnExecutionIsListedAsItsEventsSay(t *testing.T) {
	w := newWorld(t)
	first := submission("onboard", 3)
	first.Labels = []events.Label{{Name: "a\"", Value: "1"}, {Name: "b", Value: "<2>"}}
	first.Parent, first.Deadline, first.Definition = "p0", 9_000, events.Hash{1}
	w.add(stream("acme", "e1"), "story", first, events.TasksReady{To: 2, Class: "standard"})
	w.feed(workflow.Executions())
	row := func() projections.Row {
		t.Helper()
		rows := w.list(workflow.Executions(), "executions", "acme", nil)
		if len(rows) != 1 {
			t.Fatal(rows)
		}
		return rows[0]
	}
	want := projections.Row{
		"acme", "e1", "onboard", int64(3), "RUNNING", "standard", "story", "p0", []byte(`{"a\"":"1","b":"\u003c2\u003e"}`),
		int64(1_000), int64(1_000), nil, nil, nil, int64(5), int64(9_000), events.Hash{1}.String(), int64(1),
	}
	same := func(name string) {
		t.Helper()
		if got := row(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%s\n%s", name, show(got), show(want))
		}
	}
	same("submitted")
	version := int64(2)
	step := func(name, status string, ended bool, code, message any, facts ...events.Event) {
		t.Helper()
		w.clock += 1_000
		w.add(stream("acme", "e1"), "another story", facts...)
		w.feed(workflow.Executions())
		version += int64(len(facts))
		if status != "" {
			want[workflow.Status], want[workflow.EndedAt], want[workflow.ChangedAt] = status, nil, version
			want[workflow.ErrorCode], want[workflow.ErrorMessage] = code, message
		}
		if ended {
			want[workflow.EndedAt] = int64(w.clock)
		}
		same(name)
	}
	step("a task's end changes nothing", "", false, nil, nil, events.TaskCompleted{Task: 1, Attempt: 1})
	step("a retry of a running execution's task changes nothing", "", false, nil, nil, events.TaskRetried{Task: 0, Attempt: 2})
	step("paused", "PAUSED", false, nil, nil, events.ExecutionPaused{})
	step("a retry while paused changes nothing", "", false, nil, nil, events.TaskRetried{Task: 0, Attempt: 3})
	step("resumed", "RUNNING", false, nil, nil, events.ExecutionResumed{})
	step("failed", "FAILED", true, "http_500", "it broke",
		events.TaskFailed{Task: 0, Attempt: 3, Next: events.NextDeadLetter},
		events.ExecutionFailed{Task: 0, Code: "http_500", Message: "it broke"})
	step("reopened", "RUNNING", false, nil, nil, events.TaskRetried{Task: 0, Attempt: 4})
	step("failed again", "FAILED", true, "deaf", "", events.ExecutionFailed{Code: "deaf"})
	step("terminated all the same", "CANCELLED", true, nil, nil, events.ExecutionCancelled{Forced: true})
	w.add(stream("acme", "e2"), "", submission("onboard", 4), events.TasksReady{To: 1})
	w.clock += 1_000
	w.add(stream("acme", "e2"), "", events.TaskCompleted{}, events.ExecutionCompleted{})
	w.feed(workflow.Executions())
	second := w.list(workflow.Executions(), "executions", "acme", map[string]any{"status": "COMPLETED"})
	if len(second) != 1 || second[0][workflow.ID] != "e2" || second[0][workflow.Correlation] != "e2" ||
		second[0][workflow.Labels] != nil || second[0][workflow.Parent] != nil || second[0][workflow.Deadline] != nil {
		t.Errorf("%v", second)
	}
}

// TestCountsListsAndRebuildsAgree plays lives at random and compares lists, counts and a rebuild at every stop.
func TestCountsListsAndRebuildsAgree(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { livesAtRandom(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func livesAtRandom(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t)
	models := []projections.Model{workflow.Executions(), workflow.Counts()}
	var started []events.Stream
	for round := range 20 {
		for range rnd.IntN(60) {
			w.clock += events.Time(rnd.IntN(3))
			if len(started) == 0 || len(started) < 200 && rnd.IntN(3) == 0 {
				s := stream([]string{"acme", "globex"}[rnd.IntN(2)], fmt.Sprintf("e%03d", len(started)))
				started = append(started, s)
				w.add(s, "", submission([]string{"onboard", "bill"}[rnd.IntN(2)], 1), events.TasksReady{To: 1})
				continue
			}
			w.add(started[rnd.IntN(len(started))], "", []events.Event{
				events.ExecutionPaused{},
				events.ExecutionResumed{},
				events.ExecutionCompleted{},
				events.ExecutionFailed{Code: "c"},
				events.TaskRetried{},
				events.ExecutionCancelled{},
				events.ExecutionTimedOut{},
			}[rnd.IntN(7)])
		}
		w.feed(models...)
		if round%5 == 4 {
			before := w.everything(models)
			for _, m := range models {
				w.views[m.Name] = live(t, w.ports, w.codec, m, w.parts)
			}
			if after := w.everything(models); before != after {
				t.Fatalf("fed:\n%s\nrebuilt:\n%s", before, after)
			}
		}
		w.agree()
	}
}

// everything is every row of every table.
func (w *world) everything(models []projections.Model) string {
	var b strings.Builder
	for _, m := range models {
		for _, t := range m.Tables {
			for _, tenant := range []string{"acme", "globex"} {
				for _, r := range w.list(m, t.Name, tenant, nil) {
					b.WriteString(show(r) + "\n")
				}
			}
		}
	}
	return b.String()
}

// agree compares the counts with the list.
func (w *world) agree() {
	w.Helper()
	for _, tenant := range []string{"acme", "globex"} {
		want := map[[2]string]int64{}
		for _, r := range w.list(workflow.Executions(), "executions", tenant, nil) {
			want[[2]string{r[workflow.Workflow].(string), r[workflow.Status].(string)}]++
		}
		got := map[[2]string]int64{}
		for _, c := range workflow.Sum(w.list(workflow.Counts(), "counts", tenant, nil)) {
			if _, twice := got[[2]string{c.Workflow, c.Status}]; twice || c.N <= 0 {
				w.Errorf("%+v", c)
			}
			got[[2]string{c.Workflow, c.Status}] = c.N
		}
		if !reflect.DeepEqual(got, want) {
			w.Errorf("%s: counted %v, listed %v", tenant, got, want)
		}
	}
}

func TestTheFirstPageOfEveryFilterIsARangeOfAnIndex(t *testing.T) {
	v, err := sqlite.OpenViews(driver.Default, filepath.Join(t.TempDir(), "views.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	live(t, projections.Ports{Views: v}, codec(t), workflow.Executions(), 0)
	for _, c := range []struct{ where, want string }{
		{"", "(tenant=?)"},
		{"workflow", "(tenant=? AND workflow=?)"},
		{"status", "(tenant=? AND status=?)"},
		{"correlation", "(tenant=? AND correlation=?)"},
		{"errorCode", "(tenant=? AND error_code=?)"},
		{"workflow version", "(tenant=? AND workflow=? AND version=?)"},
		{"workflow status", "(tenant=? AND workflow=? AND status=?)"},
		{"workflow status errorCode", "(tenant=? AND error_code=?)"},
		{"submittedFrom submittedBefore", "(tenant=? AND submitted_at>? AND submitted_at<?)"},
		{"status submittedFrom", "(tenant=? AND status=? AND submitted_at>?)"},
		{"correlation submittedBefore", "(tenant=? AND correlation=? AND submitted_at<?)"},
	} {
		where := map[string]any{}
		for _, name := range strings.Fields(c.where) {
			where[name] = "x"
			if strings.HasPrefix(name, "submitted") || name == "version" {
				where[name] = int64(1)
			}
		}
		plan, err := v.Explain(t.Context(), workflow.Executions(), "executions", projections.Query{
			Tenant: "acme", Where: where, Limit: 50,
		})
		if err != nil || len(plan) != 1 || !strings.HasPrefix(plan[0], "SEARCH") || !strings.HasSuffix(plan[0], c.want) {
			t.Errorf("%s: %v %v", c.where, plan, err)
		}
	}
}
