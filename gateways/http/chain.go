package http

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sluice-platform/sluice/events"
)

// Server is the API before it listens: resources register on API, Handler is what serves.
type Server struct {
	API     huma.API
	mux     *http.ServeMux
	options Options
}

// Options of a Server; the zero value serves.
type Options struct {
	Incarnation events.Incarnation // of the log, for tags
	Logger      *slog.Logger       // nil: none
	Observe     func(Answered)     // told of each answer; must not block
	InFlight    int                // requests at once, streams not counted; 0: InFlightMax
}

// InFlightMax is how many requests are served at once. More are told to come again: each may hold a body of 1 MiB.
const InFlightMax = 4096

// Unbounded marks an operation that InFlight does not count, since its own limit holds.
var Unbounded = map[string]any{"unbounded": true}

// New makes a server without resources.
func New(version string, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.InFlight == 0 {
		o.InFlight = InFlightMax
	}
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("Sluice", version)
	cfg.CreateHooks = nil // no $schema member in every body
	cfg.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "/v1/openapi", "", ""
	cfg.Info.Description = "One log for work, capacity and quota."
	cfg.Transformers = []huma.Transformer{traceProblem}
	api := humago.New(mux, cfg)
	huma.ValidateStrictCasing = true // Reason is not reason
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return newError(nil, status, msg, errs...)
	}
	at := pointers{api.OpenAPI().Components.Schemas}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return newError(func(location string) string { return at.of(ctx.Operation(), location) }, status, msg, errs...)
	}
	api.UseMiddleware(atMost(api, o.InFlight), onlyKnownQuery(api))
	return &Server{API: api, mux: mux, options: o}
}

// Raw registers a handler that is not described in the API: health, metrics.
func (s *Server) Raw(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Handler is the whole chain.
func (s *Server) Handler() http.Handler {
	return s.traced(s.observed(s.recovered(loopback(typed(s.known(s.mux))))))
}

// route is the pattern that serves a request.
func (s *Server) route(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	_, path, _ := strings.Cut(pattern, " ")
	if path == "" {
		return "none"
	}
	return path
}

// known answers for addresses that are none, and for methods that an address does not have.
func (s *Server) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := s.mux.Handler(r)
		if pattern != "" {
			next.ServeHTTP(w, r)
			return
		}
		said := &silent{header: http.Header{}}
		h.ServeHTTP(said, r)
		if said.status == http.StatusMethodNotAllowed {
			w.Header()["Allow"] = said.header["Allow"]
			write(r.Context(), w, problem(http.StatusMethodNotAllowed, "method_not_allowed",
				r.URL.Path+" is asked with "+said.header.Get("Allow")))
			return
		}
		write(r.Context(), w, problem(http.StatusNotFound, "not_found", "there is nothing at "+r.Method+" "+r.URL.Path))
	})
}

// silent hears what the mux would answer.
type silent struct {
	header http.Header
	status int
}

func (s *silent) Header() http.Header         { return s.header }
func (s *silent) Write(b []byte) (int, error) { return len(b), nil }
func (s *silent) WriteHeader(code int)        { s.status = code }

// typed refuses a body that does not say what it is: a browser sends such a one for any page without asking first.
func typed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Header.Get("Content-Type") == "" {
			write(r.Context(), w, problem(http.StatusUnsupportedMediaType, "unsupported_media_type",
				"name the body's type, such as Content-Type: application/json"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback keeps web pages from driving a server that knows nobody but the local developer: the Host must be a
// loopback name, the Origin our own or absent (DESIGN §10).
func loopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) || !ownOrigin(r.Header.Values("Origin"), r.Host) {
			write(r.Context(), w, problem(http.StatusForbidden, "foreign_origin",
				"only this machine's own programs and pages may call; use a loopback name, without a foreign Origin"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func ownOrigin(origins []string, host string) bool {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, host) {
			return false
		}
	}
	return true
}
