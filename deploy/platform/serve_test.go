package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// edgeOf serves a running system.
func edgeOf(t *testing.T, dir string) (call func(method, path, body string, headers ...string) answer, stop func()) {
	t.Helper()
	s, end := running(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(s.notReady()) > 0 {
		if (sleeper{}).Wait(ctx, 5*time.Millisecond) != nil {
			t.Fatal("it never was ready: ", s.notReady())
		}
	}
	h := api(s).Handler()
	call = func(method, path, body string, headers ...string) answer {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Result().Body)
		a := answer{status: w.Code, header: w.Header(), text: string(text)}
		_ = json.Unmarshal(text, &a.body)
		return a
	}
	return call, end
}

type answer struct {
	status int
	header http.Header
	text   string
	body   struct {
		ID, Status, Code, NextCursor string
		Output                       json.RawMessage
		Errors                       []struct{ Code, Pointer string }
		Items                        []json.RawMessage
	}
}

const held = `{"workflow":"held","tasks":{"a":{"type":"sleep","with":{"for":"1h"}}}}`

func TestES08AnIdempotencyKeyIsOneExecution(t *testing.T) {
	dir := t.TempDir()
	call, stop := edgeOf(t, dir)
	if a := call("POST", "/v1/workflows/held/versions", held); a.status != 201 {
		t.Fatal(a.status, a.text)
	}
	submit := func(body string) answer {
		return call("POST", "/v1/workflows/held/executions", body, "Idempotency-Key", "k1")
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for range 20 {
		wg.Go(func() {
			a := submit(`{"input":{"a":1,"b":2}}`)
			mu.Lock()
			defer mu.Unlock()
			ids[fmt.Sprint(a.status, a.body.ID, a.header.Get("ETag"))] = true
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Fatalf("twenty at once: %v", ids)
	}
	first := submit(`{"input":{"a":1,"b":2}}`)
	if again := submit(`{ "input" : {"b":2, "a":1} }`); again.body.ID != first.body.ID {
		t.Error("white space and the order of members make a difference")
	}
	if other := submit(`{"input":{"a":1,"b":3}}`); other.status != 422 || other.body.Code != "idempotency_key_reused" {
		t.Error("another body:", other.status, other.text)
	}
	pause := func(reason string) answer {
		return call("POST", "/v1/executions/"+first.body.ID+"/pause", `{"reason":"`+reason+`"}`, "Idempotency-Key", "k3")
	}
	paused := pause("night")
	if paused.status != 202 {
		t.Fatal(paused.status, paused.text)
	}
	if a := call("POST", "/v1/executions/"+first.body.ID+"/resume", `{"reason":"day"}`); a.status != 202 {
		t.Fatal(a.status, a.text)
	}
	if again := pause("night"); again.header.Get("ETag") != paused.header.Get("ETag") || again.text != paused.text {
		t.Error("the same pause, later:", again.header.Get("ETag"), "was", paused.header.Get("ETag"))
	}
	if other := pause("noon"); other.status != 422 {
		t.Error("the same key with another reason:", other.status)
	}
	stop()
	call, _ = edgeOf(t, dir)
	if again := submitOn(call); again.body.ID != first.body.ID || again.header.Get("ETag") != first.header.Get("ETag") {
		t.Error("after a restart:", again.text)
	}
}

func submitOn(call func(method, path, body string, headers ...string) answer) answer {
	return call("POST", "/v1/workflows/held/executions", `{"input":{"a":1,"b":2}}`, "Idempotency-Key", "k1")
}

func TestBadRequestsAreRefusedWithTheirPlace(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	if a := call("POST", "/v1/workflows/held/versions", held); a.status != 201 {
		t.Fatal(a.status, a.text)
	}
	const executions = "/v1/workflows/held/executions"
	for _, c := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"an unknown field", "POST", executions, `{"inputs":1}`, 422},
		{"a duplicate member", "POST", executions, `{"input":1,"input":2}`, 400},
		{"a lone surrogate", "POST", executions, `{"input":"\ud800"}`, 400},
		{"NUL", "POST", executions, `{"input":"\u0000"}`, 400},
		{"deep nesting", "POST", executions, `{"input":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, 400},
		{"no JSON", "POST", executions, `{"input":`, 400},
		{"an unknown query parameter", "GET", "/v1/executions?state=RUNNING", ``, 400},
		{"a bad cursor", "GET", "/v1/executions?cursor=zzz", ``, 400},
		{"an unknown workflow", "POST", "/v1/workflows/nobody/executions", `{}`, 404},
		{"an unknown version", "POST", executions, `{"version":9}`, 404},
		{"an unknown execution", "GET", "/v1/executions/nobody", ``, 404},
		{"an act without a reason", "POST", "/v1/executions/nobody/cancel", `{}`, 422},
		{"a task that is none", "POST", "/v1/executions/nobody/tasks/a/retry", `{"reason":"x"}`, 404},
		{"a definition with two faults", "POST", "/v1/workflows/bad/versions", `{"workflow":"bad","taks":{},"tasks":{"a":{"type":"no"}}}`, 422},
		{"nothing there", "GET", "/v2", ``, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := call(c.method, c.path, c.body)
			if a.status != c.want || a.header.Get("Content-Type") != "application/problem+json" || a.body.Code == "" {
				t.Errorf("%d %s %s, want %d", a.status, a.header.Get("Content-Type"), a.text, c.want)
			}
		})
	}
	if a := call("GET", "/v1/executions", ""); a.status != 200 || len(a.body.Items) != 0 {
		t.Error("something was stored:", a.text)
	}
}

func TestWF21TheStreamGoesOnWhereItWasCut(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	call("POST", "/v1/workflows/quick/versions", `{"workflow":"quick","tasks":{"a":{"type":"test"},"b":{"type":"test","needs":["a"]}}}`)
	x := call("POST", "/v1/workflows/quick/executions?wait=20s", `{}`)
	if x.status != 200 || x.body.Status != "COMPLETED" {
		t.Fatal(x.status, x.text)
	}
	path := "/v1/executions/" + x.body.ID + "/stream"
	all := call("GET", path, "")
	if strings.Count(all.text, "event: fact") != 6 || !strings.Contains(all.text, "event: end") {
		t.Fatal(all.text)
	}
	if rest := call("GET", path, "", "Last-Event-ID", "1-4"); strings.Count(rest.text, "event: fact") != 2 ||
		!strings.HasPrefix(rest.text, "id: 1-5\n") {
		t.Error("after 4:", rest.text)
	}
	if over := call("GET", path, "", "Last-Event-ID", "1-6"); over.status != 204 {
		t.Error("after the end:", over.status)
	}
	for _, id := range []string{"2-3", "1-99", "x", "1-"} {
		if a := call("GET", path, "", "Last-Event-ID", id); !strings.Contains(a.text, "event: resync") {
			t.Errorf("%s: %s", id, a.text)
		}
	}
}

func TestTheDescriptionOfTheAPIIsCurrent(t *testing.T) {
	want, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../schemas/openapi.yaml")
	if err != nil || string(got) != string(want) {
		t.Fatalf("schemas/openapi.yaml is not what the handlers say (%v): run task gen", err)
	}
}
