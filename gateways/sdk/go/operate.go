package sluice

import (
	"context"
	"net/http"
)

// AuditReport is what an audit of the log has found.
type AuditReport struct {
	Log         string           `json:"log"`
	Incarnation int64            `json:"incarnation"`
	Partitions  []AuditPartition `json:"partitions"`
	Counts      map[string]int64 `json:"counts"` // commits, events, streams, seals and so on that were looked at
	Findings    []AuditFinding   `json:"findings"`
	More        int64            `json:"more"`       // findings that were left out
	NotChecked  []string         `json:"notChecked"` // what was not looked at
}

// AuditPartition says how far one partition was read, and how much of it seals cover.
type AuditPartition struct {
	Partition int   `json:"partition"`
	End       int64 `json:"end"`
	SealedTo  int64 `json:"sealedTo"`
}

// AuditFinding is one place where the log does not hold. Zero numbers are not known.
type AuditFinding struct {
	Kind         string `json:"kind"`
	Partition    int    `json:"partition"`
	Stream       string `json:"stream,omitempty"`
	Version      int64  `json:"version,omitempty"` // the first that does not hold
	LastVersion  int64  `json:"lastVersion,omitempty"`
	Position     int64  `json:"position,omitempty"`
	LastPosition int64  `json:"lastPosition,omitempty"`
	Detail       string `json:"detail"`
}

// OK says that nothing was found. What is in NotChecked was not looked at.
func (r *AuditReport) OK() bool { return len(r.Findings) == 0 && r.More == 0 }

// VerifyAudit has the server read its whole log and hold it to its promises.
func (c *Client) VerifyAudit(ctx context.Context) (r AuditReport, err error) {
	err = c.post(ctx, path("audit", "verify"), nil, nil, &r)
	return r, err
}

// BackupMade is a finished backup.
type BackupMade struct {
	Name   string `json:"name"`
	Folder string `json:"folder"` // on the server's machine
}

// Backup has the server copy its log and blobs under a name that is not taken yet.
func (c *Client) Backup(ctx context.Context, name string) (b BackupMade, err error) {
	err = c.post(ctx, path("backups"), nil, map[string]string{"name": name}, &b)
	return b, err
}

// Count is how many executions of a workflow have a status.
type Count struct {
	Workflow string `json:"workflow"`
	Status   string `json:"status"`
	Count    int64  `json:"count"`
}

// Counts returns how many executions there are.
func (c *Client) Counts(ctx context.Context) ([]Count, error) {
	var p Page[Count]
	err := c.get(ctx, path("counts"), nil, &p)
	return p.Items, err
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
	defer resp.Body.Close()
	text, err := readAll(resp.Body)
	return string(text), err
}
