package http

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// Answered is one request behind its answer. Route is a pattern of the API, never the address: it labels metrics.
type Answered struct {
	Method string
	Route  string
	Status int
	Took   time.Duration
}

// recorder remembers the status of an answer. Unwrap lets http.ResponseController reach the connection.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(code int) {
	if r.status == 0 {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// observed logs every request and tells Observe of it. No body, header or query is logged: they may hold secrets.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if rec.status == 0 {
				rec.status = http.StatusOK
			}
			a := Answered{Method: r.Method, Route: s.route(r), Status: rec.status, Took: time.Since(begun)}
			if s.options.Observe != nil {
				s.options.Observe(a)
			}
			s.log(r.Context(), r, a)
		}()
		next.ServeHTTP(rec, r)
	})
}

// log writes faults of ours as warnings, refusals as information, and the rest for whoever looks closely.
func (s *Server) log(ctx context.Context, r *http.Request, a Answered) {
	level := slog.LevelDebug
	switch {
	case a.Status >= http.StatusInternalServerError:
		level = slog.LevelWarn
	case a.Status >= http.StatusBadRequest:
		level = slog.LevelInfo
	}
	if !s.options.Logger.Enabled(ctx, level) {
		return
	}
	known := requestOf(ctx)
	s.options.Logger.LogAttrs(ctx, level, "request",
		slog.String("traceId", known.trace), slog.String("spanId", known.span), slog.String("method", a.Method),
		slog.String("route", a.Route), slog.String("path", r.URL.Path), slog.Int("status", a.Status),
		slog.Duration("took", a.Took))
}

// recovered answers a request whose handler panicked, as far as nothing was answered yet.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault)
			}
			s.options.Logger.ErrorContext(r.Context(), "request panicked", "traceId", requestOf(r.Context()).trace,
				"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			if rec, ok := w.(*recorder); ok && rec.status != 0 {
				panic(http.ErrAbortHandler) // half an answer must not look like a whole one
			}
			write(r.Context(), w, problem(http.StatusInternalServerError, "internal",
				"this failed on our side; whether it took effect is unknown, so repeat it with its Idempotency-Key"))
		}()
		next.ServeHTTP(w, r)
	})
}
