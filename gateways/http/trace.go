package http

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

// request is what the chain knows of a request, for whoever answers it.
type request struct {
	trace       string // 32 hex digits
	span        string // 16 hex digits
	incarnation events.Incarnation
	logger      *slog.Logger
}

type requestKey struct{}

// requestOf returns what the chain knows; outside of it, a request of its own.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{trace: random(16), span: random(8), incarnation: 1, logger: slog.New(slog.DiscardHandler)}
}

// Trace is the request's W3C traceparent, for the commands that it causes: of the caller's trace, where it named one.
func Trace(ctx context.Context) string {
	r := requestOf(ctx)
	return "00-" + r.trace + "-" + r.span + "-01"
}

// traced gives every request a trace.
func (s *Server) traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace, ok := callersTrace(r.Header.Get("Traceparent"))
		if !ok {
			trace = random(16)
		}
		known := &request{trace: trace, span: random(8), incarnation: max(s.options.Incarnation, 1), logger: s.options.Logger}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, known)))
	})
}

// callersTrace reads the trace of a traceparent (W3C Trace Context §3.2). One that is none is ignored, as that says.
func callersTrace(s string) (trace string, ok bool) {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || len(s) > 55 && s[:2] == "00" {
		return "", false
	}
	trace = s[3:35]
	hexed := func(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
	zero := func(s string) bool { return strings.Trim(s, "0") == "" }
	return trace, hexed(s[:2]) && hexed(trace) && hexed(s[36:52]) && hexed(s[53:55]) && !zero(trace) && !zero(s[36:52])
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // it never returns an error
	return hex.EncodeToString(b)
}
