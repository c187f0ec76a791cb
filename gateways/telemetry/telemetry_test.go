package telemetry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/gateways/telemetry"
)

func TestMeasuresAreShownAsPrometheusHasThem(t *testing.T) {
	m := telemetry.New()
	m.Request("GET", "/v1/executions/{id}", 404, 3*time.Millisecond)
	m.Request("PURGE-x", "none", 405, time.Millisecond)
	err := errors.Join(
		m.Gauge("sluice_queue_depth", "Waiting.", "class", func() ([]telemetry.Reading, error) {
			return []telemetry.Reading{{Value: 3, Label: "bulk"}, {Value: 1, Label: "high"}}, nil
		}),
		m.Gauge("sluice_broken", "Cannot be read.", "", func() ([]telemetry.Reading, error) {
			return nil, errors.New("no")
		}),
		m.Counter("sluice_lane_appends_total", "Appends.", "", func() ([]telemetry.Reading, error) {
			return []telemetry.Reading{{Value: 7}}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`sluice_http_request_duration_seconds_count{method="GET",route="/v1/executions/{id}",status="404"} 1`,
		`sluice_http_request_duration_seconds_bucket{method="GET",route="/v1/executions/{id}",status="404",le="0.005"} 1`,
		`sluice_queue_depth{class="bulk"} 3`, `sluice_queue_depth{class="high"} 1`, `sluice_lane_appends_total 7`,
		`sluice_http_request_duration_seconds_count{method="other",route="none",status="405"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no %s in %s", line, w.Body)
		}
	}
	if w.Code != 200 || strings.Contains(w.Body.String(), "sluice_broken") {
		t.Errorf("a measure that cannot be read spoils the others: %d", w.Code)
	}
}
