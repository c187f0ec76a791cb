package test_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/tasks/test"
	"github.com/sluice-platform/sluice/processors/workflow"
)

func run(ctx context.Context, with string, attempt int32) (string, *commands.Failure) {
	w := workflow.Work{With: []byte(with)}
	w.Attempt = attempt
	out, f := test.Handler{}.Run(ctx, w)
	return string(out), f
}

func TestItSucceedsWithWhatIsAsked(t *testing.T) {
	for with, want := range map[string]string{
		`{}`:                                 `null`,
		`{"succeed":{"output":{"a": 1.10}}}`: `{"a": 1.10}`,
		`{"succeed":{"bytes":5}}`:            `"xxx"`,
		`{"succeed":{"output":1},"fail":{"times":0}}`: `1`,
		`{"succeed":{"output":false},"hang":""}`:      ``,
	} {
		out, f := run(t.Context(), with, 1)
		if out != want || (f != nil) != (want == "") {
			t.Errorf("%s gives %s, %+v", with, out, f)
		}
	}
}

func TestABigOutputHasTheSizeAskedForAndIsJSON(t *testing.T) {
	for _, n := range []string{"2", "4097", "33554433"} {
		out, f := run(t.Context(), `{"succeed":{"bytes":`+n+`}}`, 1)
		if f != nil || !json.Valid([]byte(out)) {
			t.Fatalf("%+v", f)
		}
		if want := json.Number(n); want != json.Number(itoa(len(out))) {
			t.Fatalf("%d bytes, want %s", len(out), n)
		}
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestTheFirstAttemptsFailAndTheNextSucceeds(t *testing.T) {
	with := `{"succeed":{"output":7},
		"fail":{"times":2,"class":"throttled","code":"busy","message":"later","retryAfter":"PT1M30S"}}`
	for attempt := range int32(5) {
		out, f := run(t.Context(), with, attempt+1)
		if attempt < 2 {
			want := commands.Failure{Class: events.Throttled, Code: "busy", Message: "later", RetryAfter: 90 * time.Second}
			if f == nil || *f != want {
				t.Fatalf("attempt %d: %+v", attempt+1, f)
			}
			continue
		}
		if f != nil || out != "7" {
			t.Fatalf("attempt %d: %s, %+v", attempt+1, out, f)
		}
	}
}

func TestAFailureHasDefaults(t *testing.T) {
	_, f := run(t.Context(), `{"fail":{"times":1}}`, 1)
	if f == nil || f.Class != events.Transient || f.Code != "test_failure" {
		t.Fatalf("%+v", f)
	}
}

func TestItWorksAsLongAsAskedAndBeatsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := 0
		began := time.Now()
		w := workflow.Work{With: []byte(`{"hang":"10s","beat":"3s"}`), Heartbeat: func() { beats++ }}
		w.Attempt = 1
		if _, f := (test.Handler{}).Run(t.Context(), w); f != nil {
			t.Fatalf("%+v", f)
		}
		if took := time.Since(began); took != 10*time.Second || beats != 3 {
			t.Fatalf("worked %s with %d beats", took, beats)
		}
	})
}

func TestItReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
		_, f := run(ctx, `{"hang":"1h"}`, 1)
		if f == nil || f.Code != "cancelled" || f.Message != "enough" {
			t.Fatalf("%+v", f)
		}
	})
}

func TestItPanicsWhenAsked(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("it did not")
		}
	}()
	_, _ = run(t.Context(), `{"panic":true}`, 1)
}

func TestAMappingThatIsWrongIsAPermanentFailure(t *testing.T) {
	for _, with := range []string{
		``, `[]`, `{"outputs":1}`, `{"succeed":{"bytes":1}}`, `{"succeed":{"bytes":67108865}}`,
		`{"succeed":{"bytes":5,"output":1}}`, `{"fail":{"class":"odd"}}`, `{"fail":{"times":-1}}`,
		`{"hang":5}`, `{"hang":"5"}`,
	} {
		_, f := run(t.Context(), with, 1)
		if f == nil || f.Class != events.Permanent || f.Code != "invalid_with" {
			t.Errorf("with %s: %+v", with, f)
		}
	}
}
