package sluice

import (
	"context"
	"encoding/json"
	"net/http"
)

// VerifyAudit has the server read its whole log and hold it to its promises. The report's findings are empty when all
// of them hold.
func (c *Client) VerifyAudit(ctx context.Context) (raw json.RawMessage, err error) {
	_, err = c.post(ctx, path("audit", "verify"), nil, nil, &raw)
	return raw, err
}

// Backup has the server copy its log and blobs under a name that is not taken yet.
func (c *Client) Backup(ctx context.Context, name string) (raw json.RawMessage, err error) {
	_, err = c.post(ctx, path("backups"), nil, map[string]string{"name": name}, &raw)
	return raw, err
}

// Counts returns how many executions there are, as the counts view groups them.
func (c *Client) Counts(ctx context.Context) (raw json.RawMessage, err error) {
	err = c.get(ctx, path("counts"), nil, &raw)
	return raw, err
}

// Live says whether the process answers at all: nil when it does.
func (c *Client) Live(ctx context.Context) error { return c.get(ctx, "/livez", nil, nil) }

// Ready says whether the server takes work: nil when it does, a *Problem that says what is not ready when it does not.
func (c *Client) Ready(ctx context.Context) error { return c.get(ctx, "/readyz", nil, nil) }

// Metrics returns the metrics in the text form of Prometheus.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	resp, err := c.send(ctx, request{
		method: http.MethodGet, path: "/metrics", header: http.Header{"Accept": {"text/plain"}},
	})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := readAll(resp.Body)
	return string(text), err
}
