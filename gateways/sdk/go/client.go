// Package sluice is the Go client of a Sluice server. It never imports anything beyond the standard library, so that
// it can be cut out of this repository, and it never decides what the server should.
package sluice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// answerBytesMax bounds an answer that is read whole: an execution with the outputs of a page of tasks, each at most
// a blob, is far below it.
const answerBytesMax = 256 << 20

// ErrUnreachable says that no server answered: nothing is known of what was asked. Repeat what has an idempotency key.
var ErrUnreachable = errors.New("server is unreachable")

// Client speaks to one server. It may be used from many goroutines.
type Client struct {
	base *url.URL
	http *http.Client
}

// New makes a client for the server at an address like http://127.0.0.1:7510. A nil h is http.DefaultClient; its
// Timeout must be zero, or streams and waits end with it. An error means that the address is none.
func New(server string, h *http.Client) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil {
		return nil, fmt.Errorf("server address: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("server address %q is not like http://127.0.0.1:7510", server)
	}
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{base: u, http: h}, nil
}

// Server is the address that New was given.
func (c *Client) Server() string { return c.base.String() }

// request is one call before it is sent.
type request struct {
	method string
	path   string // under the server's address, its segments escaped
	query  url.Values
	header http.Header
	body   []byte
	kind   string // of the body
}

// path joins segments, each escaped, below /v1.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// send makes the call and returns an answer below 300; any other becomes a *Problem.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	target := c.base.String() + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", r.kind)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, context.Cause(ctx))
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, problemOf(resp)
	}
	return resp, nil
}

// call makes the call and decodes a JSON answer into out; nil throws it away.
func (c *Client) call(ctx context.Context, r request, out any) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := readAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: the answer broke off: %w: %w", r.method, r.path, ErrUnreachable, err)
	}
	if out == nil || len(body) == 0 {
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); !strings.HasSuffix(kind, "json") {
		return fmt.Errorf("%s %s answered %q, not JSON: is this a Sluice server?", r.method, r.path, kind)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}
	return nil
}

func (c *Client) get(ctx context.Context, p string, query url.Values, out any) error {
	return c.call(ctx, request{method: http.MethodGet, path: p, query: query}, out)
}

// post sends in as JSON; nil sends an empty object.
func (c *Client) post(ctx context.Context, p string, header http.Header, in, out any) error {
	return c.postQuery(ctx, p, nil, header, in, out)
}

func (c *Client) postQuery(
	ctx context.Context, p string, query url.Values, header http.Header, in, out any,
) error {
	body := []byte("{}")
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("POST %s: write the body: %w", p, err)
		}
	}
	return c.call(ctx, request{
		method: http.MethodPost, path: p, query: query, header: header, body: body, kind: "application/json",
	}, out)
}

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, answerBytesMax+1))
	if err == nil && len(body) > answerBytesMax {
		err = fmt.Errorf("it is larger than %d bytes", answerBytesMax)
	}
	return body, err
}
