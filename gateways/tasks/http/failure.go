package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/egress"
)

// target names a request without anything that may be secret: paths and queries may.
func target(req *http.Request) string { return req.Method + " to " + req.URL.Host }

// statusFailure classes an answer whose status was not expected:
// 429, and 503 that says when to come back, will pass; 408, 425 and other 5xx may; the rest says the same next time.
func (h *Handler) statusFailure(req *http.Request, resp *http.Response) *commands.Failure {
	f := &commands.Failure{
		Class: events.Permanent, Code: "http_" + strconv.Itoa(resp.StatusCode),
		Message: strings.TrimSpace(fmt.Sprintf("%s answered %d %s", target(req), resp.StatusCode,
			http.StatusText(resp.StatusCode))),
	}
	after, told := h.retryAfter(resp.Header)
	switch s := resp.StatusCode; {
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable && told:
		f.Class, f.RetryAfter = events.Throttled, after
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s >= 500:
		f.Class = events.Transient
	}
	return f
}

// retryAfter reads Retry-After (RFC 9110 §10.2.3): seconds, or a date. A date counts from the answer's own Date, since
// the two come from one clock; else from ours.
func (h *Handler) retryAfter(header http.Header) (after time.Duration, told bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(s, 0), retryAfterMax)) * time.Second, s >= 0
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = h.clock.Now().Std()
	}
	return min(max(at.Sub(now), 0), retryAfterMax*time.Second), true
}

// retryAfterMax, in seconds, is a year: what is asked beyond it is a mistake, and the retry policy's cap holds anyway.
const retryAfterMax = 365 * 24 * 3600

// transportFailure classes an error of the request, from the most telling cause to the least. Messages name the host
// and never the URL, which errors of net/http quote in full.
func transportFailure(req *http.Request, err error) *commands.Failure {
	class, code, why := classify(err)
	return &commands.Failure{Class: class, Code: code, Message: target(req) + ": " + why}
}

func classify(err error) (class events.FailureClass, code, why string) {
	var (
		denied   *egress.Denied
		redirect *refusedRedirect
		dns      *net.DNSError
		op       *net.OpError
	)
	switch {
	case errors.As(err, &denied):
		return events.Permanent, "egress_denied", denied.Error()
	case errors.As(err, &redirect):
		return events.Permanent, redirect.code, redirect.why
	case errors.As(err, &dns) && dns.IsNotFound: // a name may be about to be published
		return events.Transient, "dns_not_found", "the host's name is not known"
	case errors.As(err, &dns):
		return events.Transient, "dns_failed", "the host's name could not be looked up"
	case untrusted(err): // another attempt meets the same certificate
		return events.Permanent, "tls_failed", "the connection cannot be trusted: " + tlsReason(err)
	case errors.As(err, &op) && op.Op == "dial":
		return events.Transient, "connect_failed", "no connection: " + op.Err.Error()
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		return events.Transient, "call_timed_out", "no answer in time"
	case errors.Is(err, context.Canceled):
		return events.Transient, "call_cancelled", "the call was given up"
	}
	return events.Transient, "connection_lost", "the connection failed before the answer was complete"
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func untrusted(err error) bool { return tlsReason(err) != "" }

func tlsReason(err error) string {
	var (
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		cert    x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return "its certificate is of an unknown authority"
	case errors.As(err, &host):
		return "its certificate is for another host"
	case errors.As(err, &cert):
		return "its certificate is not valid"
	case errors.As(err, &verify):
		return "its certificate does not verify"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the host does not speak TLS there"
	case errors.As(err, &alert):
		return "the host ended the handshake: " + alert.Error()
	}
	return ""
}
