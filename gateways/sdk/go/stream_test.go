package sluice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// serving answers each connection by the next of its turns; the last answers all further ones.
func serving(t *testing.T, turns ...http.HandlerFunc) *Client {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn := turns[min(n, len(turns)-1)]
		n++
		turn(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := New(s.URL, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func stream(text string, broken bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
		if broken {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

func TestFollow(t *testing.T) {
	t.Run("a broken stream is read on after the last whole message, each once", func(t *testing.T) {
		var asked []string
		note := func(h http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Header.Get("Last-Event-ID"))
				h(w, r)
			}
		}
		c := serving(t,
			note(stream("retry: 1\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: ha", true)),
			note(stream("id: 3\nevent: x\ndata: c\ndata: d\n\n: heartbeat\n\nevent: end\ndata: {}\n\n", false)))
		var got []string
		err := c.Follow(t.Context(), "e", "", time.Minute, func(m Message) error {
			got = append(got, m.ID+m.Event+string(m.Data))
			return nil
		})
		if want := []string{"1messagea", "2messageb", "3xc\nd", "3end{}"}; err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q; %v", got, want, err)
		}
		if want := []string{"", "2"}; !slices.Equal(asked, want) {
			t.Fatalf("read on after %q, want %q", asked, want)
		}
	})
	t.Run("a refusal ends it with its problem", func(t *testing.T) {
		c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"execution_not_found","title":"Not found"}`)
		})
		var p *Problem
		err := c.Follow(t.Context(), "e", "", time.Minute, func(Message) error { return nil })
		if !errors.As(err, &p) || p.Code != "execution_not_found" || p.Status != 404 {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a stream that ends without the end is read on, and one that has none any more is over", func(t *testing.T) {
		n := 0
		c := serving(t, stream("retry: 1\nid: 1\ndata: a\n\n", false), func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last-Event-ID") == "1" {
				w.WriteHeader(http.StatusNoContent)
			}
		})
		err := c.Follow(t.Context(), "e", "", time.Minute, func(Message) error { n++; return nil })
		if err != nil || n != 1 {
			t.Fatalf("%d messages, %v", n, err)
		}
	})
	t.Run("a server with too many watchers is asked again", func(t *testing.T) {
		c := serving(t, stream("event: problem\ndata: {\"code\":\"too_many_watchers\"}\n\n", false),
			stream("event: end\ndata: {}\n\n", false))
		if err := c.Follow(t.Context(), "e", "", time.Minute, func(Message) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("patience has an end", func(t *testing.T) {
		c := serving(t, stream("id: 1\n", true))
		err := c.Follow(t.Context(), "e", "", time.Millisecond, func(Message) error { return nil })
		if !errors.Is(err, ErrUnreachable) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("the reader's own error ends it", func(t *testing.T) {
		c := serving(t, stream("data: a\n\n", false))
		mine := errors.New("enough")
		if err := c.Follow(t.Context(), "e", "", time.Minute, func(Message) error { return mine }); !errors.Is(err, mine) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a cancelled context is its cause", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		mine := errors.New("stopped")
		c := serving(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel(mine)
			<-r.Context().Done()
		})
		if err := c.Follow(ctx, "e", "", time.Minute, func(Message) error { return nil }); !errors.Is(err, mine) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestStart(t *testing.T) {
	var keys []string
	var body, query string
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		b := make([]byte, 200)
		n, _ := r.Body.Read(b)
		body, query = string(b[:n]), r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"x","version":3,"output":1.000000000000000000001}`)
	})
	t.Run("numbers keep their digits, both ways", func(t *testing.T) {
		e, err := c.Start(t.Context(), "w", Start{Input: []byte(`{"n":12345678901234567890.10}`), Wait: 30 * time.Second})
		if err != nil || string(e.Output) != "1.000000000000000000001" || e.Workflow != "w" {
			t.Fatalf("got %+v, %v", e, err)
		}
		if !strings.Contains(body, "12345678901234567890.10") || query != "wait=30s" {
			t.Fatalf("sent %s ? %s", body, query)
		}
	})
	t.Run("each start has a key of its own, unless one is given", func(t *testing.T) {
		keys = nil
		for _, k := range []string{"", "", "mine"} {
			if _, err := c.Start(t.Context(), "w", Start{Key: k}); err != nil {
				t.Fatal(err)
			}
		}
		if keys[0] == "" || keys[0] == keys[1] || keys[2] != "mine" {
			t.Fatalf("keys %q", keys)
		}
	})
}

func TestRebuildHearsProgress(t *testing.T) {
	var got []Progress
	hear := func(p Progress) { got = append(got, p) }
	c := serving(t,
		stream("event: progress\ndata: {\"done\":1,\"total\":2}\n\nevent: done\ndata: {\"view\":\"v\"}\n\n", false),
		stream("event: progress\ndata: {\"done\":1,\"total\":2}\n\n", false))
	raw, err := c.Rebuild(t.Context(), "v", hear)
	if err != nil || string(raw) != `{"view":"v"}` || !slices.Equal(got, []Progress{{1, 2}}) {
		t.Fatalf("got %s, %v, %v", raw, got, err)
	}
	if _, err := c.Rebuild(t.Context(), "v", nil); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("a stream without an end is no success: %v", err)
	}
}
