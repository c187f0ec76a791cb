package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/gateways/sqlite"
)

const quick = `{"workflow":"quick","tasks":{"a":{"type":"test"},"b":{"type":"test","needs":["a"]}}}`

type caller = func(method, path, body string, headers ...string) answer

// started publishes a workflow and starts it.
func started(t *testing.T, call caller, definition, name string, headers ...string) answer {
	t.Helper()
	if a := call("POST", "/v1/workflows/"+name+"/versions", definition); a.status/100 != 2 {
		t.Fatal(a.status, a.text)
	}
	a := call("POST", "/v1/workflows/"+name+"/executions", `{}`, headers...)
	if a.status != 202 {
		t.Fatal(a.status, a.text)
	}
	return a
}

func TestWF24IdempotencyBelongsToTheWorkflowsKey(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	first := started(t, call, held, "held", "Idempotency-Key", "k1")
	t.Run("twenty at once start one execution", func(t *testing.T) {
		var wg sync.WaitGroup
		ids := make([]string, 20)
		for i := range ids {
			wg.Go(func() {
				ids[i] = call("POST", "/v1/workflows/held/executions", `{"labels":{"n":"1"}}`, "Idempotency-Key", "k2").body.ID
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Fatal(ids)
			}
		}
		events := call("GET", "/v1/executions/"+ids[0]+"/events", "")
		if n := strings.Count(events.text, `"workflow.execution_submitted"`); n != 1 {
			t.Errorf("%d submissions in %s", n, events.text)
		}
	})
	t.Run("a newer version of the workflow does not change what the key started", func(t *testing.T) {
		call("POST", "/v1/workflows/held/versions", strings.Replace(held, `"1h"`, `"2h"`, 1))
		again := call("POST", "/v1/workflows/held/executions", `{}`, "Idempotency-Key", "k1")
		if again.text != first.text || again.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("%s, was %s", again.text, first.text)
		}
	})
	t.Run("the same key on another workflow is another execution", func(t *testing.T) {
		if other := started(t, call, quick, "quick", "Idempotency-Key", "k1"); other.body.ID == first.body.ID {
			t.Error(other.body.ID)
		}
	})
	t.Run("escapes make no difference, digits do", func(t *testing.T) {
		submit := func(body string) answer {
			return call("POST", "/v1/workflows/held/executions", body, "Idempotency-Key", "k4")
		}
		a := submit(`{"input":{"a":9007199254740993,"b":"A"}}`)
		if same := submit(`{"input":{"b":"\u0041","a":9007199254740993}}`); same.body.ID != a.body.ID {
			t.Error("escape:", same.text)
		}
		if other := submit(`{"input":{"a":9007199254740992,"b":"A"}}`); other.status != 422 {
			t.Error("another number:", other.status, other.text)
		}
	})
}

func TestWF19NamesAndKeysAtTheEdge(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	for _, name := range []string{"a%2Fb", "a%20b", "a%23b%3Fc", "%252F", "%C3%A9", "e%CC%81", "%F0%9F%98%80", strings.Repeat("a", 300)} {
		if a := call("POST", "/v1/workflows/"+name+"/versions", `{"tasks":{"a":{"type":"test"}}}`); a.status != 422 {
			t.Errorf("name %.20s: %d %s", name, a.status, a.text)
		}
	}
	for _, name := range []string{"a.b_c-1", "a__b"} {
		if a := call("POST", "/v1/workflows/"+name+"/versions", strings.Replace(quick, "quick", name, 1)); a.status != 201 {
			t.Errorf("name %s: %d %s", name, a.status, a.text)
		}
	}
	const executions = "/v1/workflows/a__b/executions"
	seen := map[string]bool{}
	for _, key := range []string{"a/b", "a b", "a#b?c", "%2F", "\u00e9", "e\u0301", "\U0001f600"} {
		body, _ := json.Marshal(map[string]string{"correlation": key})
		a := call("POST", executions+"?wait=20s", string(body))
		var x struct{ Correlation string }
		if err := json.Unmarshal([]byte(a.text), &x); err != nil || a.status != 200 || x.Correlation != key {
			t.Errorf("correlation %q: %d %s", key, a.status, a.text)
		}
		seen[a.body.ID] = true
	}
	if len(seen) != 7 {
		t.Error("two keys are one:", seen)
	}
	for field, body := range map[string]string{
		"/correlation": `{"correlation":"` + strings.Repeat("é", 128) + `"}`,
		"/labels/a~1b": `{"labels":{"a/b":"` + strings.Repeat("a", 300) + `"}}`,
	} {
		if a := call("POST", executions, body); a.status != 422 || len(a.body.Errors) != 1 || a.body.Errors[0].Pointer != field {
			t.Errorf("%s: %d %s", field, a.status, a.text)
		}
	}
	for _, key := range []string{"a b", "é", strings.Repeat("a", 300)} {
		if a := call("POST", executions, `{}`, "Idempotency-Key", key); a.status != 422 {
			t.Errorf("header key %.20q: %d %s", key, a.status, a.text)
		}
	}
}

func TestES09IfMatchOverHTTP(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	id := started(t, call, held, "held").body.ID
	tag := func() string { return call("GET", "/v1/executions/"+id, "").header.Get("ETag") }
	pause := func(id, match string) answer {
		return call("POST", "/v1/executions/"+id+"/pause", `{"reason":"x"}`, "If-Match", match)
	}
	now := tag()
	for match, want := range map[string]int{`"99"`: 412, "W/" + now: 412, strings.Trim(now, `"`): 400, `"x"`: 412} {
		a := pause(id, match)
		if a.status != want || tag() != now {
			t.Errorf("%s at %s: %d %s, then %s", match, now, a.status, a.text, tag())
		}
		if want == 412 && (a.header.Get("ETag") != now || !strings.Contains(a.text, `"version":`+strings.Trim(now, `"`))) {
			t.Errorf("%s: ETag %s, %s", match, a.header.Get("ETag"), a.text)
		}
	}
	if a := pause("nobody", "*"); a.status != 404 {
		t.Error("* on nothing:", a.status, a.text)
	}
	if a := call("POST", "/v1/executions/"+id+"/replay", `{"reason":"x"}`, "If-Match", `"99"`); a.status != 412 {
		t.Error("replay of a stale one:", a.status, a.text)
	}
	for _, match := range []string{now, "*", `"1", ` + tag()} {
		if match != "*" {
			match = strings.Replace(match, now, tag(), 1)
		}
		if a := pause(id, match); a.status != 202 || a.header.Get("ETag") != tag() {
			t.Errorf("%s: %d %s", match, a.status, a.text)
		}
		call("POST", "/v1/executions/"+id+"/resume", `{"reason":"x"}`)
	}
}

func TestTagsAndStreamsAfterARestore(t *testing.T) {
	dir, again := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	call, stop := edgeOf(t, dir)
	id := started(t, call, held, "held").body.ID
	a := call("POST", "/v1/backups", `{"name":"b1"}`)
	var made struct{ Folder string }
	if err := json.Unmarshal([]byte(a.text), &made); err != nil || a.status != 201 {
		t.Fatal(a.status, a.text)
	}
	if twice := call("POST", "/v1/backups", `{"name":"b1"}`); twice.status != 409 {
		t.Error("a backup over a backup:", twice.status)
	}
	stop()
	if _, err := sqlite.Restore(t.Context(), sqlite.RestoreOptions{
		From: made.Folder, To: again, Blobs: filepath.Join(again, "blobs"),
	}); err != nil {
		t.Fatal(err)
	}
	call, _ = edgeOf(t, again)
	tag := call("GET", "/v1/executions/"+id, "").header.Get("ETag")
	if !strings.HasPrefix(tag, `"2.`) {
		t.Error("tag:", tag)
	}
	stale := call("POST", "/v1/executions/"+id+"/pause", `{"reason":"x"}`, "If-Match", `"2"`)
	if stale.status != 412 || stale.header.Get("ETag") != tag {
		t.Error("a tag from before:", stale.status, stale.header.Get("ETag"), "now", tag)
	}
}

func TestWhatIsAskedWrongly(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	id := started(t, call, held, "held").body.ID
	for _, c := range []struct {
		name, method, path, body, kind string
		want                           int
		code                           string
	}{
		{"a method that is not there", "DELETE", "/v1/executions/" + id, "", "", 405, "method_not_allowed"},
		{"a body without a type", "POST", "/v1/workflows/held/executions", "{}", "", 415, "unsupported_media_type"},
		{"a form", "POST", "/v1/workflows/held/executions", "{}", "application/x-www-form-urlencoded", 415, "unsupported_media_type"},
		{"a definition as text", "POST", "/v1/workflows/held/versions", held, "text/plain", 415, "unsupported_media_type"},
		{"a name in other letters", "POST", "/v1/executions/" + id + "/pause", `{"Reason":"x"}`, "application/json", 422, "invalid"},
		{
			"a body over 1 MiB", "POST", "/v1/workflows/held/executions", `{"input":"` + strings.Repeat("a", 1<<20) + `"}`,
			"application/json", 413, "body_too_large",
		},
		{"a parameter twice", "GET", "/v1/executions?limit=1&limit=2", "", "", 400, "repeated_parameter"},
		{"a limit of 501", "GET", "/v1/executions?limit=501", "", "", 422, "invalid"},
		{"a task cursor beyond all numbers", "GET", "/v1/executions/" + id + "?taskCursor=2147483648", "", "", 400, "bad_cursor"},
		{"a task cursor beyond all tasks", "GET", "/v1/executions/" + id + "?taskCursor=2147483600", "", "", 400, "bad_cursor"},
		{"a view that is none", "POST", "/v1/views/none/rebuild", "{}", "application/json", 404, "not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := call(c.method, c.path, c.body, "Content-Type", c.kind, "Traceparent",
				"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			if a.status != c.want || a.body.Code != c.code || a.header.Get("Content-Type") != "application/problem+json" ||
				!strings.Contains(a.text, `"traceId":"0af7651916cd43dd8448eb211c80319c"`) {
				t.Errorf("%d %s, want %d %s", a.status, a.text, c.want, c.code)
			}
		})
	}
	if a := call("GET", "/v1/executions?b=1&a=2&limit=1", ""); len(a.body.Errors) != 2 || a.body.Errors[0].Pointer != "query.a" {
		t.Error("all unknown parameters, in order:", a.text)
	}
}

func TestRepeatsAndPages(t *testing.T) {
	call, _ := edgeOf(t, t.TempDir())
	if a := started(t, call, quick, "quick"); a.header.Get("Location") != "/v1/executions/"+a.body.ID || a.header.Get("Sluice-Token") == "" {
		t.Error(a.header)
	}
	if a := call("POST", "/v1/workflows/quick/versions", quick); a.status != http.StatusOK {
		t.Error("the same content again:", a.status, a.text)
	}
	var token string
	for range 4 {
		token = call("POST", "/v1/workflows/quick/executions?wait=20s", `{}`).header.Get("Sluice-Token")
	}
	ids := map[string]bool{}
	pages := 0
	for cursor := ""; pages < 10; pages++ {
		a := call("GET", "/v1/executions?workflow=quick&limit=2"+cursor, "", "Sluice-Token", token)
		for _, item := range a.body.Items {
			var x struct{ ID string }
			if err := json.Unmarshal(item, &x); err != nil || ids[x.ID] {
				t.Fatal("twice:", x.ID, err)
			}
			ids[x.ID] = true
		}
		if a.body.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + a.body.NextCursor
	}
	if len(ids) != 5 || pages != 2 {
		t.Errorf("%d executions in %d pages", len(ids), pages+1)
	}
	for _, accept := range []string{"application/json", "text/event-stream, application/json"} {
		a := call("POST", "/v1/views/counts/rebuild", "", "Accept", accept, "Content-Type", "")
		if a.status != 200 || !strings.Contains(a.text, `{"view":"counts"}`) ||
			strings.Contains(a.text, "event: done") != strings.HasPrefix(accept, "text/event-stream") {
			t.Error(accept, a.status, a.text)
		}
	}
	if a := call("GET", "/v1/counts", ""); !strings.Contains(a.text, `"count":5`) {
		t.Error("counts:", a.text)
	}
	if a := call("POST", "/v1/audit/verify", "", "Content-Type", ""); a.status != 200 || !strings.Contains(a.text, `"findings":[]`) {
		t.Error("verify:", a.status, a.text)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// textOf reads an answer to its end.
func textOf(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// until waits for what no channel tells.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !holds() {
		if (sleeper{}).Wait(ctx, time.Millisecond) != nil {
			t.Fatal("it never came")
		}
	}
}

func TestAStopEndsWaitsAndStreamsWithWhatThereIs(t *testing.T) {
	s, _ := running(t, t.TempDir())
	until(t, func() bool { return len(s.notReady()) == 0 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	base := "http://" + l.Addr().String()
	post := func(path, body string) (*http.Response, error) {
		return http.Post(base+path, "application/json", strings.NewReader(body))
	}
	if r, err := post("/v1/workflows/held/versions", held); err != nil || r.StatusCode != http.StatusCreated {
		t.Fatal(r, err)
	}
	r, err := post("/v1/workflows/held/executions", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.Get(base + r.Header.Get("Location") + "/stream")
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatal(stream, err)
	}
	first := make([]byte, 4)
	if _, err := stream.Body.Read(first); err != nil || string(first) != "id: " {
		t.Fatal(string(first), err)
	}
	waits := make(chan string, 1)
	go func() {
		r, err := post("/v1/workflows/held/executions?wait=60s", `{"labels":{"w":"1"}}`)
		if err != nil {
			waits <- err.Error()
			return
		}
		waits <- fmt.Sprint(r.StatusCode)
	}()
	until(t, func() bool {
		s.watches.mu.RLock()
		defer s.watches.mu.RUnlock()
		return s.watches.many == 2
	})
	metrics, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, metrics)
	for _, name := range []string{
		"sluice_queue_depth{class=\"bulk\"} 0", "sluice_lane_appends_total ", "sluice_view_lag_events{view=\"counts\"} ",
		"sluice_view_parked_streams{view=\"executions\"} 0", "route=\"/v1/workflows/{name}/executions\",status=\"202\"",
	} {
		if !strings.Contains(text, name) {
			t.Errorf("metrics have no %s", name)
		}
	}
	cancel()
	if got := <-waits; got != "202" {
		t.Error("a wait at the stop:", got)
	}
	textOf(t, stream)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
