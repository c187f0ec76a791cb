package http_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/egress"
	task "github.com/sluice-platform/sluice/gateways/tasks/http"
	"github.com/sluice-platform/sluice/processors/workflow"
)

type fixedClock events.Time

func (c fixedClock) Now() events.Time { return events.Time(c) }

// noon is 2026-03-01T12:00:00Z.
var noon = events.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func handler(t *testing.T) *task.Handler {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: []string{"*"}, AllowPrivate: egress.Loopback}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := task.New(guard, fixedClock(noon))
	t.Cleanup(h.Close)
	return h
}

func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func work(with string) workflow.Work {
	w := workflow.Work{
		Name: "create", Key: events.Derive("test", "key"), With: []byte(with), Correlation: "order-7", Timeout: time.Minute,
	}
	w.Attempt, w.Trace = 2, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	return w
}

func run(t *testing.T, with string) (string, *commands.Failure) {
	t.Helper()
	out, failure := handler(t).Run(t.Context(), work(with))
	if failure == nil && !json.Valid(out) {
		t.Fatalf("the output is no JSON: %s", out)
	}
	return string(out), failure
}

func wantFailure(t *testing.T, f *commands.Failure, class events.FailureClass, code string) {
	t.Helper()
	if f == nil || f.Class != class || f.Code != code {
		t.Fatalf("failure %+v, want %s %s", f, class, code)
	}
}

func TestARequestIsMadeAsTheTaskSays(t *testing.T) {
	var got *http.Request
	var body string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.WriteHeader(http.StatusNoContent)
	})
	out, failure := run(t, fmt.Sprintf(`{"method":"post","url":"%s/customers?a=1",
		"query":{"id":12345678901234567890,"tag":["x","y z"],"none":null,"ok":true},
		"headers":{"X-Api-Key":"k","accept":["text/plain","application/json"]},
		"json":{"big":12345678901234567890, "dec":1.10}}`, url))
	if failure != nil {
		t.Fatalf("%+v", failure)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/customers" {
		t.Errorf("%s %s", got.Method, got.URL)
	}
	if q := got.URL.RawQuery; q != "a=1&id=12345678901234567890&ok=true&tag=x&tag=y+z" {
		t.Errorf("query %s", q)
	}
	if body != `{"big":12345678901234567890, "dec":1.10}` {
		t.Errorf("the body keeps its digits: %s", body)
	}
	key := events.Derive("test", "key").String()
	for name, want := range map[string]string{
		"Idempotency-Key": key, "X-Task-Execution-Id": key,
		"X-Correlation-Id": "order-7", "Traceparent": work("").Trace, "X-Api-Key": "k", "Content-Type": "application/json",
		"Accept": "text/plain, application/json", "User-Agent": "sluice",
	} {
		if v := strings.Join(got.Header.Values(name), ", "); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
	if !strings.HasPrefix(out, `{"status":204,`) || !strings.HasSuffix(out, `"body":null}`) {
		t.Errorf("output %s", out)
	}
}

func TestADefinitionsHeaderReplacesOurs(t *testing.T) {
	var got http.Header
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	_, f := run(t, `{"method":"PUT","url":"`+url+`","body":"a,b",
		"headers":{"idempotency-key":"mine","content-type":"text/csv"}}`)
	if f != nil {
		t.Fatalf("%+v", f)
	}
	if got.Get("Idempotency-Key") != "mine" || got.Get("Content-Type") != "text/csv" {
		t.Fatalf("headers %v", got)
	}
}

func TestTheBodyOfAnAnswer(t *testing.T) {
	digits := `{"n":12345678901234567890, "d":1.10}`
	for _, c := range []struct{ name, kind, body, want string }{
		{"JSON stands as it came, digit for digit", "application/json", digits, digits + "}"},
		{"JSON by suffix", "application/problem+json; charset=utf-8", `[1]`, `[1]}`},
		{"a text is a string", "text/plain", "a\"b\n", `"a\"b\n"}`},
		{"JSON that does not say so is a text", "text/plain", `{"a":1}`, `"{\"a\":1}"}`},
		{"no body is null", "application/json", "", `null}`},
		{"bytes are base64 with a marker", "image/png", "\x89PNG\xff", `"iVBOR/8=","encoding":"base64"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.body)
			})
			out, f := run(t, `{"url":"`+url+`"}`)
			if f != nil || !strings.HasSuffix(out, `"body":`+c.want) {
				t.Fatalf("output %s, failure %+v", out, f)
			}
		})
	}
	t.Run("what says it is JSON and is not is a permanent failure that quotes nothing", func(t *testing.T) {
		for _, body := range []string{`{"secret":`, `{"secret":1,"secret":2}`, `"\ud800"`} {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			})
			_, f := run(t, `{"url":"`+url+`"}`)
			wantFailure(t, f, events.Permanent, "invalid_response_body")
			if strings.Contains(f.Message, "secret") {
				t.Fatalf("message %q", f.Message)
			}
		}
	})
}

func TestHeadersOfAnAnswer(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Date"] = nil
		h.Set("Etag", `"7"`)
		h.Set("Set-Cookie", "session=1")
		h.Set("X-Total-Count", "3")
		h.Set("X-Internal", "no")
		h.Add("Link", "<a>")
		h.Add("Link", "<b>")
		w.WriteHeader(http.StatusNoContent)
	})
	out, f := run(t, `{"url":"`+url+`","responseHeaders":["x-total-count","set-cookie"]}`)
	want := `{"status":204,"headers":{"etag":"\"7\"","link":"<a>, <b>","x-total-count":"3"},"body":null}`
	if f != nil || out != want {
		t.Fatalf("output %s, failure %+v", out, f)
	}
}

func TestStatusesAreClassed(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		headers map[string]string
		class   events.FailureClass
		after   time.Duration
	}{
		{"bad request", 400, nil, events.Permanent, 0},
		{"not found", 404, nil, events.Permanent, 0},
		{"request timeout", 408, nil, events.Transient, 0},
		{"too early", 425, nil, events.Transient, 0},
		{"server error", 500, nil, events.Transient, 0},
		{"bad gateway", 502, nil, events.Transient, 0},
		{"unavailable", 503, nil, events.Transient, 0},
		{"unavailable until", 503, map[string]string{"Retry-After": "7"}, events.Throttled, 7 * time.Second},
		{"too many", 429, nil, events.Throttled, 0},
		{"too many, seconds", 429, map[string]string{"Retry-After": " 120 "}, events.Throttled, 2 * time.Minute},
		{"too many, a date by the answer's clock", 429, map[string]string{
			"Date": "Sun, 01 Mar 2026 10:00:00 GMT", "Retry-After": "Sun, 01 Mar 2026 10:00:30 GMT",
		}, events.Throttled, 30 * time.Second},
		{"too many, a date by our clock", 429, map[string]string{
			"Date": "", "Retry-After": "Sun, 01 Mar 2026 12:01:00 GMT",
		}, events.Throttled, time.Minute},
		{"too many, a date gone by", 429, map[string]string{
			"Date": "Sun, 01 Mar 2026 10:00:00 GMT", "Retry-After": "Sun, 01 Mar 2026 09:00:00 GMT",
		}, events.Throttled, 0},
		{"too many, nonsense", 429, map[string]string{"Retry-After": "soon"}, events.Throttled, 0},
		{
			"too many, beyond any number", 429,
			map[string]string{"Retry-After": "9223372036854775807"},
			events.Throttled, 365 * 24 * time.Hour,
		},
		{"an answer that is not expected", 304, nil, events.Permanent, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, v := range c.headers {
					if v == "" {
						w.Header()[name] = nil
						continue
					}
					w.Header().Set(name, v)
				}
				w.WriteHeader(c.status)
			})
			_, f := run(t, `{"url":"`+url+`/orders/4711?token=secret"}`)
			wantFailure(t, f, c.class, fmt.Sprintf("http_%d", c.status))
			if f.RetryAfter != c.after {
				t.Fatalf("retry after %s, want %s", f.RetryAfter, c.after)
			}
			if strings.Contains(f.Message, "secret") || strings.Contains(f.Message, "4711") {
				t.Fatalf("message %q", f.Message)
			}
		})
	}
}

func TestWhatIsExpectedIsASuccess(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Query().Get("s"), &status)
		w.WriteHeader(status)
	})
	for _, c := range []struct {
		expect string
		status int
		ok     bool
	}{
		{`[404]`, 404, true},
		{`[404]`, 200, false},
		{`["4xx", 201]`, 410, true},
		{`["4xx", 201]`, 201, true},
		{`["200-204"]`, 204, true},
		{`["200-204"]`, 205, false},
		{`["404"]`, 404, true},
	} {
		_, f := run(t, fmt.Sprintf(`{"url":"%s","query":{"s":%d},"expect":%s}`, url, c.status, c.expect))
		if (f == nil) != c.ok {
			t.Errorf("expect %s, answered %d: %+v", c.expect, c.status, f)
		}
	}
}

func TestAMappingThatIsWrongIsAPermanentFailureThatQuotesNoValue(t *testing.T) {
	for _, with := range []string{
		``, `[]`, `{}`, `{"url":1}`, `{"url":"http://x.test","metod":"GET"}`, `{"url":"http://x.test","method":"CONNECT"}`,
		`{"url":"http://x.test","json":1,"body":"secret"}`, `{"url":"http://x.test","headers":{"Host":"y"}}`,
		`{"url":"http://x.test","headers":{"A B":"secret"}}`, `{"url":"http://x.test","headers":{"A":"secret\r\nB: c"}}`,
		`{"url":"http://x.test","headers":{"A":{"secret":1}}}`, `{"url":"http://x.test","query":{"a":[["secret"]]}}`,
		`{"url":"http://secret:%zz"}`, `{"url":"mailto:secret@x.test"}`, `{"url":"http://x.test","expect":[99]}`,
		`{"url":"http://x.test","expect":["2yy"]}`, `{"url":"http://x.test","headers":"secret"}`,
	} {
		_, f := run(t, with)
		wantFailure(t, f, events.Permanent, "invalid_with")
		if strings.Contains(f.Message, "secret") {
			t.Errorf("message %q", f.Message)
		}
	}
}

func TestRedirects(t *testing.T) {
	var headers http.Header
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { headers = r.Header })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/away":
			http.Redirect(w, r, strings.Replace(other, "127.0.0.1", "localhost", 1), http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/once":
			http.Redirect(w, r, "/done", http.StatusTemporaryRedirect)
		case "/done":
			_, _ = io.Copy(w, r.Body)
		}
	})
	t.Run("a loop ends after five", func(t *testing.T) {
		_, f := run(t, `{"url":"`+url+`/loop"}`)
		wantFailure(t, f, events.Permanent, "too_many_redirects")
	})
	t.Run("a definition's own headers do not follow to another host", func(t *testing.T) {
		if _, f := run(t, `{"url":"`+url+`/away","headers":{"X-Api-Key":"k"}}`); f != nil {
			t.Fatalf("%+v", f)
		}
		if headers.Get("X-Api-Key") != "" || headers.Get("Idempotency-Key") == "" {
			t.Fatalf("headers %v", headers)
		}
	})
	t.Run("each target is checked", func(t *testing.T) {
		for _, path := range []string{"/metadata", "/file"} {
			_, f := run(t, `{"url":"`+url+path+`"}`)
			wantFailure(t, f, events.Permanent, "egress_denied")
		}
	})
	t.Run("307 repeats method and body", func(t *testing.T) {
		out, f := run(t, `{"method":"POST","url":"`+url+`/once","body":"again"}`)
		if f != nil || !strings.HasSuffix(out, `"body":"again"}`) {
			t.Fatalf("output %s, failure %+v", out, f)
		}
	})
}

func TestFailuresBeforeAnAnswer(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	t.Cleanup(secure.Close)
	plain := serve(t, http.NotFound)
	cut := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	reset := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // closing then resets
		_ = conn.Close()
	})
	half := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	for _, c := range []struct {
		name, url string
		class     events.FailureClass
		code      string
	}{
		{"nobody listens", gone.URL, events.Transient, "connect_failed"},
		{"an unknown authority", secure.URL, events.Permanent, "tls_failed"},
		{"no TLS there", strings.Replace(plain, "http:", "https:", 1), events.Permanent, "tls_failed"},
		{"the connection is cut", cut, events.Transient, "connection_lost"},
		{"the connection is reset", reset, events.Transient, "connection_lost"},
		{"the body is cut", half, events.Transient, "connection_lost"},
		{"a private address", "http://10.0.0.1/", events.Permanent, "egress_denied"},
		{"another scheme", "ftp://x.test/", events.Permanent, "egress_denied"},
		{"userinfo", "http://user:secret@127.0.0.1/", events.Permanent, "egress_denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, f := run(t, `{"url":"`+c.url+`"}`)
			wantFailure(t, f, c.class, c.code)
			if strings.Contains(f.Message, "secret") {
				t.Fatalf("message %q", f.Message)
			}
		})
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, f := handler(t).Run(ctx, work(`{"url":"`+url+`"}`))
	wantFailure(t, f, events.Transient, "call_cancelled")
}

func TestWF18AnAnswerAboveTheMaximumIsRefusedAndNotCut(t *testing.T) {
	chunk := strings.Repeat("x", 1<<20)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/told" {
			w.Header().Set("Content-Length", "33554433")
		}
		for range 33 {
			_, _ = io.WriteString(w, chunk)
		}
	})
	for _, path := range []string{"/told", "/untold"} {
		_, f := run(t, `{"url":"`+url+path+`"}`)
		wantFailure(t, f, events.Permanent, "payload_too_large")
		if !strings.Contains(f.Message, "33554433") || !strings.Contains(f.Message, "33554432") {
			t.Errorf("it names size and limit: %q", f.Message)
		}
	}
}
