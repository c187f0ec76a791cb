// Package telemetry measures the process and shows it to Prometheus.
// It never labels a measure with what callers may choose freely: the number of series stays bounded.
package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Meter holds the measures of one process. Its API names no library: another one may stand behind it (DECISIONS 15).
type Meter struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
}

// requestBounds are seconds: from what a read from memory takes to the longest wait of a request.
var requestBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// New makes a Meter with the measures of the Go runtime and of the process.
func New() *Meter {
	m := &Meter{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_http_request_duration_seconds", Buckets: requestBounds,
			Help: "Time from a request's headers to the end of its answer.",
		}, []string{"method", "route", "status"}),
	}
	m.registry.MustRegister(m.requests, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// methods are those that a label may name; whatever else a client calls its method is "other".
var methods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
	http.MethodDelete: true, http.MethodOptions: true,
}

// Request counts one answered request. Route is a pattern of the API, never an address.
func (m *Meter) Request(method, route string, status int, took time.Duration) {
	if !methods[method] {
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// Reading is one value of a measure. Label tells it from the others, where there are several.
type Reading struct {
	Value float64
	Label string
}

// Read reads a measure. An error leaves the measure out of that answer.
type Read func() ([]Reading, error)

// Gauge adds a measure that is read when it is asked for; label names what tells its readings apart, "" when there is
// one. An error means that there is such a measure already, or that its name is none.
func (m *Meter) Gauge(name, help, label string, read Read) error {
	return m.add(prometheus.GaugeValue, name, help, label, read)
}

// Counter is Gauge for what only grows; its name ends in _total.
func (m *Meter) Counter(name, help, label string, read Read) error {
	return m.add(prometheus.CounterValue, name, help, label, read)
}

func (m *Meter) add(kind prometheus.ValueType, name, help, label string, read Read) error {
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	return m.registry.Register(measure{prometheus.NewDesc(name, help, labels, nil), kind, label != "", read})
}

// Handler answers with all measures in the Prometheus text format, or OpenMetrics for who asks so.
func (m *Meter) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError,
	})
}

// measure is a Read as a collector.
type measure struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	labeled bool
	read    Read
}

// Describe is prometheus.Collector's.
func (m measure) Describe(to chan<- *prometheus.Desc) { to <- m.desc }

// Collect is prometheus.Collector's.
func (m measure) Collect(to chan<- prometheus.Metric) {
	rs, err := m.read()
	if err != nil {
		to <- prometheus.NewInvalidMetric(m.desc, err)
		return
	}
	for _, r := range rs {
		var labels []string
		if m.labeled {
			labels = []string{r.Label}
		}
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, r.Value, labels...)
	}
}
