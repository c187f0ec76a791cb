package http

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Server is the API before it listens: resources register on API, Handler is what serves.
type Server struct {
	API huma.API
	mux *http.ServeMux
}

// New makes a server without resources.
func New(version string) *Server {
	huma.NewError = newError
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return newError(status, msg, errs...)
	}
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("Sluice", version)
	cfg.CreateHooks = nil // no $schema member in every body
	cfg.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath = "/v1/openapi", "", ""
	cfg.Info.Description = "One log for work, capacity and quota."
	api := humago.New(mux, cfg)
	api.UseMiddleware(onlyKnownQuery(api))
	return &Server{API: api, mux: mux}
}

// Raw registers a handler that is not described in the API: health, metrics.
func (s *Server) Raw(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Handler is the whole chain.
func (s *Server) Handler() http.Handler {
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, problem(http.StatusNotFound, "not_found", "there is nothing at "+r.Method+" "+r.URL.Path))
	})
	return loopback(s.mux)
}

// loopback keeps web pages from driving a server that knows nobody but the local developer: the Host must be a
// loopback name, the Origin our own or absent (DESIGN §10).
func loopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) || !ownOrigin(r.Header.Get("Origin"), r.Host) {
			write(w, problem(http.StatusForbidden, "foreign_origin",
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

func ownOrigin(origin, host string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, host)
}
