package workflow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/gateways/cli"
	"github.com/sluice-platform/sluice/gateways/cli/workflow"
)

// server answers by route, and keeps what it was asked.
type server struct {
	*httptest.Server
	asked []string // method, path and query, key, content type, body
}

func serve(t *testing.T, routes map[string]string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked = append(s.asked, strings.Join([]string{
			r.Method + " " + r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), string(body),
		}, "|"))
		answer, ok := routes[r.Method+" "+r.URL.RequestURI()]
		kind := "application/json"
		if strings.HasSuffix(r.URL.Path, "/stream") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"code":"not_found","detail":"no route"}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) call(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &cli.App{In: strings.NewReader(in), Out: &o, Err: &e, Output: cli.Table, Server: s.URL}
	code = a.Run(t.Context(), args, workflow.Verbs)
	return code, o.String(), e.String()
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

const (
	done = `{"id":"e1","workflow":"w","version":2,"status":"COMPLETED","input":{"n":1.50},"output":null,
		"startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:02Z",
		"labels":{"a":"b"},
		"tasks":[{"name":"t","type":"http","status":"COMPLETED","attempt":1}]}`
	failed = `{"id":"e1","workflow":"w","version":2,"status":"FAILED",
		"error":{"code":"boom","message":"it broke","task":"t"}}`
)

func TestApply(t *testing.T) {
	s := serve(t, map[string]string{
		"POST /v1/workflows/w/versions": `{"workflow":"w","version":2,"hash":"abcdef0123456789","tasks":3}`,
	})
	for name, c := range map[string]struct{ file, content, kind string }{
		"YAML": {"a.yaml", "# first\nworkflow: w\ntasks: {}\n", "application/yaml"},
		"JSON": {"a.json", `{"tasks":{"x":{"workflow":"no"}},"workflow":"w"}`, "application/json"},
		"a file that does not parse goes to the server, which says all that is wrong": {
			"b.yaml", "workflow: w\ntasks: {]\n", "application/yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.asked = nil
			code, out, errs := s.call(t, "", "apply", "-f", file(t, c.file, c.content))
			if code != 0 || !strings.Contains(out, "abcdef012345") {
				t.Fatalf("code %d: %s%s", code, out, errs)
			}
			if want := "POST /v1/workflows/w/versions||" + c.kind + "|" + c.content; s.asked[0] != want {
				t.Errorf("sent %q", s.asked[0])
			}
		})
	}
	t.Run("a file without a name is not sent", func(t *testing.T) {
		s.asked = nil
		if code, _, errs := s.call(t, "tasks: {}", "apply", "-f", "-"); code != 2 || len(s.asked) != 0 {
			t.Errorf("code %d, asked %q: %s", code, s.asked, errs)
		}
	})
}

func TestRunWaits(t *testing.T) {
	routes := map[string]string{
		"POST /v1/workflows/w/executions?wait=30s": done,
		"GET /v1/executions/e1":                    done,
	}
	s := serve(t, routes)
	t.Run("the JSON has these members, all of them, in this order", func(t *testing.T) {
		code, out, errs := s.call(t, "", "run", "w", "--input", `{"n":1.50}`, "--wait", "--key", "k", "-o", "json")
		if code != 0 {
			t.Fatalf("code %d: %s", code, errs)
		}
		if got := members(t, out); got != "id workflow version status input output error startedAt endedAt tasks" {
			t.Errorf("members %s", got)
		}
		if !strings.Contains(out, "1.50") || !strings.Contains(s.asked[0], `|k|application/json|{"input":{"n":1.50}}`) {
			t.Errorf("sent %q, printed %s", s.asked[0], out)
		}
	})
	t.Run("a failed execution is exit code 1, with its result printed", func(t *testing.T) {
		s := serve(t, map[string]string{
			"POST /v1/workflows/w/executions?wait=30s": failed, "GET /v1/executions/e1": failed,
		})
		code, out, _ := s.call(t, "", "run", "w", "--wait")
		if code != 1 || !strings.Contains(out, "t: boom: it broke") {
			t.Errorf("code %d: %s", code, out)
		}
	})
	t.Run("what takes longer than one request is followed to its end", func(t *testing.T) {
		s := serve(t, nil)
		shown := 0
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{"id":"e1","version":2}`)
			case strings.HasSuffix(r.URL.Path, "/stream"):
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: end\ndata: {}\n\n")
			default:
				if shown++; shown < 3 {
					fmt.Fprint(w, `{"id":"e1","status":"RUNNING"}`)
					return
				}
				fmt.Fprint(w, done)
			}
		})
		if code, out, errs := s.call(t, "", "run", "w", "--wait"); code != 0 || !strings.Contains(out, "COMPLETED") {
			t.Errorf("code %d: %s%s", code, out, errs)
		}
	})
}

func TestRunThatLosesItsServerNamesTheExecution(t *testing.T) {
	s := serve(t, map[string]string{
		"POST /v1/workflows/w/executions?wait=30s": `{"id":"e9","version":1,"status":"RUNNING"}`,
	})
	code, _, errs := s.call(t, "", "run", "w", "--wait")
	if code != 1 || !strings.Contains(errs, "executions watch e9") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// members lists the keys of an object in their order.
func members(t *testing.T, object string) string {
	t.Helper()
	var names []string
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

func TestRunOfAFilePublishesItFirst(t *testing.T) {
	s := serve(t, map[string]string{
		"POST /v1/workflows/w/versions":   `{"workflow":"w","version":7}`,
		"POST /v1/workflows/w/executions": `{"id":"e1","version":7,"status":"PENDING"}`,
	})
	in := file(t, "in.json", `[1]`)
	code, out, errs := s.call(t, "", "run", "-f", file(t, "w.yaml", "workflow: w\n"), "--input", "@"+in)
	if code != 0 || !strings.Contains(out, "executions watch e1") {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if !strings.HasSuffix(s.asked[1], `{"input":[1],"version":7}`) {
		t.Errorf("started with %q", s.asked[1])
	}
}

func TestWatchPrintsEventsApartFromTheAnswer(t *testing.T) {
	s := serve(t, map[string]string{
		"GET /v1/executions/e1/stream": "id: 1\ndata: {\"type\":\"task_completed\",\"data\":{\"task\":1}}\n\n" +
			"event: end\ndata: {}\n\n",
		"GET /v1/executions/e1": failed,
	})
	code, out, errs := s.call(t, "", "executions", "watch", "e1", "-o", "json")
	if code != 1 || !strings.Contains(errs, `task_completed  {"task":1}`) || !json.Valid([]byte(out)) {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

func TestListAndEvents(t *testing.T) {
	const list, history = "GET /v1/executions?", "GET /v1/executions/e1/events?"
	s := serve(t, map[string]string{
		list + "before=2026-01-01T00%3A00%3A00Z&limit=2&status=FAILED": `{"items":[` + failed + `],"nextCursor":"c1"}`,
		history + "limit=500":          `{"items":[{"type":"a","extra":1}],"nextCursor":"n"}`,
		history + "cursor=n&limit=500": `{"items":[{"type":"b"}]}`,
	})
	code, out, errs := s.call(t, "", "executions", "list", "--status", "failed", "--limit", "2",
		"--before", "2026-01-01T00:00:00Z")
	if code != 0 || !strings.Contains(out, "e1") || !strings.Contains(out, "--cursor c1") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	code, out, errs = s.call(t, "", "executions", "events", "e1", "-o", "yaml")
	if code != 0 || !strings.Contains(out, "extra: 1") || !strings.Contains(out, "type: b") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if code, _, _ := s.call(t, "", "executions", "list", "--from", "yesterday"); code != 2 {
		t.Errorf("a moment that is none: code %d", code)
	}
}

func TestActs(t *testing.T) {
	for _, what := range []string{"cancel", "pause", "resume", "terminate", "replay"} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, map[string]string{"POST /v1/executions/e1/" + what: `{"id":"e2","status":"X"}`})
			if code, _, _ := s.call(t, "", "executions", what, "e1"); code != 2 || len(s.asked) != 0 {
				t.Errorf("without a reason: code %d, asked %q", code, s.asked)
			}
			code, out, errs := s.call(t, "", "executions", what, "e1", "--reason", "so", "--key", "k")
			if code != 0 || !strings.Contains(out, "executions show e2") {
				t.Fatalf("code %d: %s%s", code, out, errs)
			}
			if !strings.HasSuffix(s.asked[0], `|k|application/json|{"reason":"so"}`) {
				t.Errorf("sent %q", s.asked[0])
			}
		})
	}
	t.Run("retry names the task, and may give it another input", func(t *testing.T) {
		s := serve(t, map[string]string{"POST /v1/executions/e1/tasks/a%2Fb/retry": `{"id":"e1"}`})
		code, _, errs := s.call(t, "", "executions", "retry", "e1", "a/b", "--reason", "so", "--with", `{"x":1}`)
		if code != 0 || !strings.HasSuffix(s.asked[0], `{"reason":"so","with":{"x":1}}`) {
			t.Errorf("code %d, sent %q: %s", code, s.asked, errs)
		}
	})
}
