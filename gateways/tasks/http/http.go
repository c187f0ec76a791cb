// Package http runs tasks of type http: one request, its answer as the output.
// It never logs a body, a header or a URL, and never calls what the egress guard does not allow.
package http

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/gateways/egress"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// The bounds of the one transport that all http tasks of a process share.
const (
	idleMax            = 256
	idleHostMax        = 64
	idleTimeout        = 90 * time.Second
	handshakeTimeout   = 10 * time.Second
	responseHeadersMax = 256 << 10
	redirectsMax       = 5
	drainedMax         = 64 << 10
)

// Handler makes the requests. It is safe for concurrent use.
type Handler struct {
	client    *http.Client
	transport *http.Transport
	guard     *egress.Guard
	clock     commands.Clock
}

var _ workflow.Handler = (*Handler)(nil)

// New makes a handler whose every connection goes through the guard. The clock is asked when an answer says "retry
// after" a date and has none of its own.
func New(guard *egress.Guard, clock commands.Clock) *Handler {
	h := &Handler{guard: guard, clock: clock}
	h.transport = &http.Transport{
		DialContext:            guard.Dial,
		Proxy:                  nil, // a proxy would resolve the name anew, behind the guard's back
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           idleMax,
		MaxIdleConnsPerHost:    idleHostMax,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: responseHeadersMax,
	}
	h.client = &http.Client{Transport: h.transport, CheckRedirect: h.checkRedirect}
	return h
}

// Close ends the connections that no request uses.
func (h *Handler) Close() { h.transport.CloseIdleConnections() }

// Run makes one request. Its output is {"status", "headers", "body"}; a status that is not expected is a failure.
func (h *Handler) Run(ctx context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	asked, failure := parseWith(w.With)
	if failure != nil {
		return nil, failure
	}
	req, err := asked.request(ctx, w)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if err := h.guard.CheckURL(req.URL); err != nil {
		return nil, transportFailure(req, err)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, transportFailure(req, err)
	}
	defer resp.Body.Close()
	if !asked.expects(resp.StatusCode) {
		_, _ = io.CopyN(io.Discard, resp.Body, drainedMax) // read to its end, the connection serves the next request
		return nil, h.statusFailure(req, resp)
	}
	return asked.output(req, resp)
}

// checkRedirect is asked before each redirect is followed.
func (h *Handler) checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	switch {
	case len(via) > redirectsMax:
		return &refusedRedirect{code: "too_many_redirects", why: "redirected more than 5 times"}
	case last.URL.Scheme == "https" && req.URL.Scheme == "http":
		return &refusedRedirect{code: "redirect_refused", why: "redirected from https to http"}
	}
	if err := h.guard.CheckURL(req.URL); err != nil {
		return err
	}
	if req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		// net/http drops what it knows to be secret; a definition's own headers (X-Api-Key) may be just that.
		for name := range req.Header {
			if !crossesOrigins[name] {
				req.Header.Del(name)
			}
		}
	}
	return nil
}

// crossesOrigins are the headers that follow a redirect to another host.
var crossesOrigins = map[string]bool{
	"Accept": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true, "Idempotency-Key": true,
	"X-Correlation-Id": true, "X-Task-Execution-Id": true, "Traceparent": true,
}

type refusedRedirect struct{ code, why string }

func (r *refusedRedirect) Error() string { return r.why }
