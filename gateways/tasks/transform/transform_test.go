package transform_test

import (
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/tasks/transform"
	"github.com/sluice-platform/sluice/processors/workflow"
)

func TestTheValueIsTheOutputDigitForDigit(t *testing.T) {
	for _, value := range []string{`{"n":12345678901234567890, "d":1.10}`, `"x"`, `null`, `[]`, `false`} {
		out, f := transform.Handler{}.Run(t.Context(), workflow.Work{With: []byte(`{"value": ` + value + `}`)})
		if f != nil || string(out) != value {
			t.Errorf("output %s, failure %+v, want %s", out, f, value)
		}
	}
}

func TestAMappingWithoutAValueIsAPermanentFailure(t *testing.T) {
	for _, with := range []string{``, `{}`, `[]`, `{"value":1,"other":2}`} {
		_, f := transform.Handler{}.Run(t.Context(), workflow.Work{With: []byte(with)})
		if f == nil || f.Class != events.Permanent || f.Code != "invalid_with" {
			t.Errorf("with %s: %+v", with, f)
		}
	}
}
