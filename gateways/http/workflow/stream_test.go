package workflow

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

// still is an engine with one running execution in which nothing happens.
type still struct {
	Engine
	stopping chan struct{}
	full     bool
}

func (still) Incarnation() events.Incarnation { return 1 }

func (s still) Stopping() <-chan struct{} { return s.stopping }

func (s still) Watch(events.Stream) (<-chan struct{}, func(), bool) {
	return make(chan struct{}), func() {}, !s.full
}

func (still) Load(_ context.Context, s events.Stream) (handle.Loaded, error) {
	d := execution.Decider.Untyped()
	return handle.Loaded{
		Stream: s, State: d.Evolve(d.Initial(), events.ExecutionSubmitted{Workflow: "w", Version: 1, Tasks: 1}, 1), Version: 1,
	}, nil
}

func followed(ctx context.Context, e Engine) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f := follower{
		e: e, stream: events.StreamOf(execution.Category, tenant, "x"), after: 1, w: w,
		connection: http.NewResponseController(w),
	}
	f.run(ctx)
	return w
}

func TestWF21QuietAndCrowdedStreams(t *testing.T) {
	t.Run("ninety quiet seconds have five heartbeats at least", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second-1)
			defer cancel()
			if w := followed(ctx, still{}); strings.Count(w.Body.String(), ": heartbeat\n\n") != 5 || !w.Flushed {
				t.Error(w.Body)
			}
		})
	})
	t.Run("a stop ends a quiet stream", func(t *testing.T) {
		stopping := make(chan struct{})
		close(stopping)
		if w := followed(t.Context(), still{stopping: stopping}); w.Body.Len() != 0 {
			t.Error(w.Body)
		}
	})
	t.Run("one too many is refused as a problem, not within a stream", func(t *testing.T) {
		w := followed(t.Context(), still{full: true})
		if w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" ||
			w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"too_many_watchers"`) {
			t.Error(w.Code, w.Header(), w.Body)
		}
	})
}

// FuzzSSEID holds that an id is read exactly as it is written, and that nothing else is one.
func FuzzSSEID(f *testing.F) {
	for _, s := range []string{
		"1-0", "1-41", "2-7", "1-9223372036854775807", "1-9223372036854775808", "", "-", "1-", "-1", "1--1", "01-7", "1-07",
		"1-+7", "+1-7", " 1-7", "1-7 ", "1-7-7", "1.7", "x", "\x00", "1-\u0667",
	} {
		f.Add(s, int64(1))
	}
	f.Fuzz(func(t *testing.T, s string, n int64) {
		now := events.Incarnation(n)
		if v, ok := ParseEventID(s, now); ok && (v < 0 || EventID(v, now) != s) {
			t.Errorf("%q is read as %d", s, v)
		}
		v := events.Version(n &^ (-1 << 63))
		if got, ok := ParseEventID(EventID(v, 3), 3); !ok || got != v {
			t.Errorf("%s is read as %d, %v", EventID(v, 3), got, ok)
		}
		if _, ok := ParseEventID(EventID(v, 3), 4); ok {
			t.Errorf("%s is one of incarnation 4", EventID(v, 3))
		}
	})
}
