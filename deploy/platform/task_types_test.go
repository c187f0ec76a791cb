package platform

import (
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
)

func TestEveryTaskTypeHasASchemaThatFitsItsHandler(t *testing.T) {
	kinds, err := newTaskTypes(Config{EgressAllow: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer kinds.close()
	for _, c := range []struct {
		kind, with string
		fits       bool
	}{
		{"http", `{"url":"http://x.test"}`, true},
		{"http", `{"method":"POST","url":"u","json":null,"query":{"a":[1,null]},"headers":{"A":"b"}}`, true},
		{"http", `{"url":"u","expect":[204,"2xx","200-204"]}`, true},
		{"http", `{"url":"u","json":1,"body":"x"}`, false},
		{"http", `{"url":"u","metod":"GET"}`, false},
		{"http", `{"url":"u","expect":["6xx"]}`, false},
		{"http", `{"url":"u","headers":{"A":{}}}`, false},
		{"http", `{}`, false},
		{"transform", `{"value":null}`, true},
		{"transform", `{}`, false},
		{"sleep", `{"for":"2s"}`, true},
		{"sleep", `{"for":2}`, false},
		{"test", `{}`, true},
		{"test", `{"fail":{"times":2,"class":"throttled","retryAfter":"1s"},"hang":"1s","beat":"1s"}`, true},
		{"test", `{"succeed":{"bytes":67108864}}`, true},
		{"test", `{"succeed":{"bytes":67108865}}`, false},
		{"test", `{"succeed":{"bytes":5,"output":1}}`, false},
		{"test", `{"fail":{"times":1,"class":"odd"}}`, false},
	} {
		s, err := schema.Compile(kinds.types[c.kind].With)
		if err != nil {
			t.Fatalf("%s: %v", c.kind, err)
		}
		if wrong := s.Validate([]byte(c.with)); (len(wrong) == 0) != c.fits {
			t.Errorf("%s %s: %v, want a fit: %v", c.kind, c.with, wrong, c.fits)
		}
	}
}

func TestEveryTaskTypeButATimerHasAHandler(t *testing.T) {
	kinds, err := newTaskTypes(Config{EgressAllow: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer kinds.close()
	for name, kind := range kinds.types {
		if _, ok := kinds.handlers[name]; ok == kind.Timer {
			t.Errorf("type %s: timer is %v, handler is %v", name, kind.Timer, ok)
		}
	}
}
