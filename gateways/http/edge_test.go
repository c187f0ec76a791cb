package http_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

func TestEveryKindOfRefusalHasAStatus(t *testing.T) {
	for _, k := range commands.Kinds {
		err := edge.Refusal(commands.Refuse(k, "code", "reason"))
		var p *edge.Problem
		if !errors.As(err, &p) || p.Status < 400 || p.Code != "code" {
			t.Errorf("%s: %v", k, err)
		}
	}
}

func TestAFaultOfOursShowsNoDetail(t *testing.T) {
	var p *edge.Problem
	if err := edge.Refusal(errors.New("disk at /secret is on fire")); !errors.As(err, &p) || p.Status != 503 ||
		strings.Contains(p.Detail, "secret") {
		t.Fatal(p)
	}
}

func TestES09IfMatch(t *testing.T) {
	for header, want := range map[string]bool{
		`"3"`: true, `"2"`: false, `W/"3"`: false, `"1", "3"`: true, `*`: true, ``: true, `"2.3"`: false, `"x"`: false,
	} {
		e, err := edge.ParseIfMatch(header, 1)
		if err != nil || e.Holds(3) != want {
			t.Errorf("%s on version 3: %v, %v; want %v", header, e.Holds(3), err, want)
		}
	}
	if e, err := edge.ParseIfMatch(`*`, 1); err != nil || e.Holds(events.NoStream) {
		t.Error("* matches no version")
	}
	for _, header := range []string{`3`, `"3`, `"1", 3`} {
		if _, err := edge.ParseIfMatch(header, 1); err == nil {
			t.Errorf("%s: want a refusal", header)
		}
	}
	if e, _ := edge.ParseIfMatch(edge.ETag(7, 2), 2); !e.Holds(7) || edge.ETag(7, 2) != `"2.7"` || edge.ETag(7, 1) != `"7"` {
		t.Error("a tag names its incarnation after a restore")
	}
}

func TestOnlyThisMachineMayCall(t *testing.T) {
	srv := edge.New("1")
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
