package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

func TestEveryKindOfRefusalHasAStatus(t *testing.T) {
	for _, k := range commands.Kinds {
		err := edge.Refusal(t.Context(), commands.Refuse(k, "code", "reason"))
		var p *edge.Problem
		if !errors.As(err, &p) || p.Status < 400 || p.Code != "code" {
			t.Errorf("%s: %v", k, err)
		}
	}
}

func TestAFaultOfOursShowsNoDetail(t *testing.T) {
	var p *edge.Problem
	if err := edge.Refusal(t.Context(), errors.New("disk at /secret is on fire")); !errors.As(err, &p) || p.Status != 503 ||
		strings.Contains(p.Detail, "secret") {
		t.Fatal(p)
	}
}

func TestES09IfMatch(t *testing.T) {
	for header, want := range map[string]bool{
		`"3"`: true, `"2"`: false, `W/"3"`: false, `"1", "3"`: true, `*`: true, ``: true, `"2.3"`: false, `"x"`: false,
		`"03"`: false, `"+3"`: false, `"1.3"`: false, `"a,b", "3"`: true, `W/"3","3"`: true,
	} {
		e, err := edge.ParseIfMatch(header, 1)
		if err != nil || e.Holds(3) != want {
			t.Errorf("%s on version 3: %v, %v; want %v", header, e.Holds(3), err, want)
		}
	}
	if e, err := edge.ParseIfMatch(`*`, 1); err != nil || e.Holds(events.NoStream) {
		t.Error("* matches no version")
	}
	for _, header := range []string{`3`, `"3`, `"1", 3`, `"1" "3"`, `"3",`, `,"3"`, `*, "3"`, `w/"3"`} {
		if _, err := edge.ParseIfMatch(header, 1); err == nil {
			t.Errorf("%s: want a refusal", header)
		}
	}
	if e, _ := edge.ParseIfMatch(edge.ETag(7, 2), 2); !e.Holds(7) || edge.ETag(7, 2) != `"2.7"` || edge.ETag(7, 1) != `"7"` {
		t.Error("a tag names its incarnation after a restore")
	}
}

func TestOnlyThisMachineMayCall(t *testing.T) {
	srv := edge.New("1", edge.Options{})
	srv.Raw("GET /x", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	h := srv.Handler()
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:7510", "", 204},
		{"localhost:7510", "http://localhost:7510", 204},
		{"[::1]:7510", "", 204},
		{"evil.example", "", 403},
		{"127.0.0.1:7510", "http://evil.example", 403},
		{"127.0.0.1:7510", "https://127.0.0.1:7510", 403},
		{"127.0.0.1.evil.example", "", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s from %q: %d, want %d", c.host, c.origin, w.Code, c.want)
		}
	}
}

// small is a server with an operation that has a bit of everything.
func small(t *testing.T, o edge.Options, do func() error) func(method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	srv := edge.New("1", o)
	type in struct {
		Body struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels,omitempty"`
			Many   []struct {
				Q int `json:"q"`
			} `json:"many,omitempty"`
		}
	}
	huma.Register(srv.API, huma.Operation{Method: http.MethodPost, Path: "/v1/x"},
		func(context.Context, *in) (*struct{}, error) { return nil, do() })
	h := srv.Handler()
	return func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

func TestViolationsPointIntoTheBody(t *testing.T) {
	call := small(t, edge.Options{}, func() error { return nil })
	for body, want := range map[string][]string{
		`{"name":1}`: {"/name"},
		`{"name":"a","many":[{"q":1},{"q":"x"}]}`:   {"/many/1/q"},
		`{"name":"a","many":[{"q":1,"r/~":2}]}`:     {"/many/0/r~1~0"},
		`{"name":"a","labels":{"a":1}}`:             {"/labels/a"},
		`{"name":"a","labels":{"a.b":1}}`:           {"/labels"},
		`{"name":2,"many":[{"q":"x"}],"more":true}`: {"/name", "/many/0/q", "/more"},
	} {
		var p edge.Problem
		w := call("POST", "/v1/x", body)
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 422 {
			t.Fatal(body, w.Code, w.Body)
		}
		var got []string
		for _, v := range p.Errors {
			got = append(got, v.Pointer)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestAPanicIsAnAnswerThatShowsNothing(t *testing.T) {
	var seen []edge.Answered
	var log strings.Builder
	call := small(t, edge.Options{
		Observe: func(a edge.Answered) { seen = append(seen, a) },
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
	}, func() error { panic("the secret") })
	w := call("POST", "/v1/x", `{"name":"a"}`)
	var p edge.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 500 || p.Code != "internal" ||
		strings.Contains(w.Body.String(), "secret") {
		t.Error(w.Code, w.Body)
	}
	if len(seen) != 1 || seen[0].Status != 500 || seen[0].Route != "/v1/x" || seen[0].Method != http.MethodPost {
		t.Error(seen)
	}
	if strings.Count(log.String(), "traceId="+p.TraceID) != 2 || !strings.Contains(log.String(), "the secret") {
		t.Error(log.String())
	}
	if call("GET", "/v1/nothing/here", ""); seen[1].Route != "none" {
		t.Error("an address stands in a label:", seen[1])
	}
}

func TestMoreThanCanBeAnsweredIsToldToComeAgain(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	call := small(t, edge.Options{InFlight: 1}, func() error {
		inside <- struct{}{}
		<-leave
		return nil
	})
	first := make(chan int, 1)
	go func() { first <- call("POST", "/v1/x", `{"name":"a"}`).Code }()
	<-inside
	if w := call("POST", "/v1/x", `{"name":"a"}`); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Error(w.Code, w.Header())
	}
	leave <- struct{}{}
	if code := <-first; code != 204 {
		t.Error(code)
	}
	go func() { first <- call("POST", "/v1/x", `{"name":"a"}`).Code }()
	<-inside
	leave <- struct{}{}
	if code := <-first; code != 204 {
		t.Error("the place was not given back:", code)
	}
}

func TestACallersTraceGoesOn(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for header, want := range map[string]bool{
		"00-" + trace + "-b7ad6b7169203331-01":                   true,
		"01-" + trace + "-b7ad6b7169203331-01-more":              true,
		"00-" + trace + "-b7ad6b7169203331-01-more":              false,
		"ff-" + trace + "-b7ad6b7169203331-01":                   false,
		"00-" + trace + "-0000000000000000-01":                   false,
		"00-" + strings.ToUpper(trace) + "-b7ad6b7169203331-01":  false,
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01": false,
		"": false, "x": false,
	} {
		var got string
		srv := edge.New("1", edge.Options{})
		srv.Raw("GET /x", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = edge.Trace(r.Context()) }))
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Host = "localhost"
		r.Header.Set("Traceparent", header)
		srv.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if len(got) != 55 || (got[3:35] == trace) != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}
