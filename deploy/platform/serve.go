package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

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
	o := edge.Options{}
	if s != nil {
		o.Incarnation, o.Logger = s.Info.Incarnation, s.logger
	}
	return apiOf(engine{s: s}, o)
}

func apiOf(e engine, o edge.Options) *edge.Server {
	srv := edge.New(apiVersion, o)
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

// Serve answers requests on l until ctx ends; it closes l. A stop ends streams and waits at once with what there is,
// and gives the other requests serveDrainMax to be answered: only then are they cut.
func (s *System) Serve(ctx context.Context, l net.Listener) (err error) {
	meter, err := s.newMeter(context.WithoutCancel(ctx))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := apiOf(engine{s: s, stopping: ctx.Done()}, edge.Options{
		Incarnation: s.Info.Incarnation, Logger: s.logger, Observe: counted(meter),
	})
	srv.Raw("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		state(w, http.StatusOK, "live", nil)
	}))
	srv.Raw("GET /readyz", s.readyz(ctx))
	srv.Raw("GET /metrics", meter.Handler())
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	hs := &http.Server{
		Handler: srv.Handler(), ReadHeaderTimeout: headersMax, ReadTimeout: readMax, IdleTimeout: idleMax,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveDrainMax)
	defer cancel()
	if err = hs.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
		cut()
		err = errors.Join(fmt.Errorf("requests were cut after %s: %w", serveDrainMax, err), hs.Close())
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// readyz says what is not there yet; behind the end of ctx, that the server stops.
func (s *System) readyz(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		not := s.notReady()
		if ctx.Err() != nil {
			not = append(not, "the server stops")
		}
		if len(not) > 0 {
			state(w, http.StatusServiceUnavailable, "not ready", not)
			return
		}
		state(w, http.StatusOK, "ready", nil)
	})
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
