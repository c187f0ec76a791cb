package platform

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	edge "github.com/sluice-platform/sluice/gateways/http"
	"github.com/sluice-platform/sluice/gateways/http/kernel"
	"github.com/sluice-platform/sluice/gateways/http/workflow"
)

const (
	headersMax    = 10 * time.Second // to read a request's headers
	readMax       = 60 * time.Second // to read a request
	idleMax       = 2 * time.Minute
	serveDrainMax = 5 * time.Second // what a stop waits for requests; streams are cut before
)

// apiVersion is that of the API, not of the build.
const apiVersion = "1"

// api makes the server of a system; nil describes it only.
func api(s *System) *edge.Server {
	srv := edge.New(apiVersion)
	e := engine{s}
	workflow.Definitions(srv.API, e)
	workflow.Submissions(srv.API, e)
	workflow.Reads(srv.API, e)
	workflow.Streams(srv.API, e)
	workflow.Acts(srv.API, e)
	kernel.Register(srv.API, e)
	return srv
}

// OpenAPI is the API's description, as schemas/openapi.yaml holds it.
func OpenAPI() ([]byte, error) { return api(nil).API.OpenAPI().YAML() }

// Serve answers requests on l until ctx ends. It returns after the last answer, or when those that are left were cut.
func (s *System) Serve(ctx context.Context, l net.Listener) error {
	srv := api(s)
	srv.Raw("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		state(w, http.StatusOK,
			"live", nil)
	}))
	srv.Raw("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if not := s.notReady(); len(not) > 0 {
			state(w, http.StatusServiceUnavailable, "not ready", not)
			return
		}
		state(w, http.StatusOK, "ready", nil)
	}))
	srv.Raw("GET /metrics", promhttp.HandlerFor(s.metrics(ctx), promhttp.HandlerOpts{}))
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	hs := &http.Server{
		Handler: srv.Handler(), ReadHeaderTimeout: headersMax, ReadTimeout: readMax, IdleTimeout: idleMax,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cut() // streams and waits end; short requests have their answer below
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveDrainMax)
	defer cancel()
	err := hs.Shutdown(drain)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func state(w http.ResponseWriter, code int, status string, not []string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "notReady": not}) // whoever does not read it is gone
}

// notReady names what is not there yet: partitions without an owner, views that have not caught up.
func (s *System) notReady() (not []string) {
	for i := range s.parts {
		if s.parts[i].Load() == nil {
			not = append(not, "a partition has no owner")
			break
		}
	}
	for _, v := range s.views.NotReady() {
		not = append(not, "view "+v+" is behind the log")
	}
	return not
}

// metrics are read when they are asked for.
func (s *System) metrics(ctx context.Context) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	sum := func(f func(p *partition) int64) func() float64 {
		return func() (n float64) {
			for i := range s.parts {
				if p := s.parts[i].Load(); p != nil {
					n += float64(f(p))
				}
			}
			return n
		}
	}
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "sluice", Name: name, Help: help}, f))
	}
	gauge("owner_hot_streams", "Streams that the owners keep in memory.",
		sum(func(p *partition) int64 { return p.hot.Load() }))
	gauge("tasks_waiting", "Tasks that wait for the window or a slot.",
		sum(func(p *partition) int64 { return p.waiting.Load() }))
	gauge("slots_in_use", "Attempts that hold a slot.", sum(func(p *partition) int64 { return p.flying.Load() }))
	gauge("lane_last_append_seconds", "How long the last append of an owner took.",
		func() float64 { return sum(func(p *partition) int64 { return p.meter.last.Load() })() / 1e9 })
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: "sluice", Name: "lane_appends_total", Help: "Appends of the owners since the start.",
	}, sum(func(p *partition) int64 { return p.meter.appends.Load() })))
	gauge("view_lag_events", "Events that the log has and the views have not.", func() (n float64) {
		all, err := s.views.Status(ctx)
		if err != nil {
			return -1
		}
		for _, v := range all {
			n += float64(v.Lag)
		}
		return n
	})
	return r
}
