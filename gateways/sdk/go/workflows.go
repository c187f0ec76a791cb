package sluice

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// Published is a definition that the server keeps.
type Published struct {
	Workflow string `json:"workflow"`
	Version  int64  `json:"version"`
	Hash     string `json:"hash"` // SHA-256 of the content, in hex
	Tasks    int    `json:"tasks"`
}

// Publish sends a definition as it stands in a file; yaml says which of the two forms it has. The same content again
// gives the version that is there, so repeating is safe. A *Problem lists every mistake with its line.
func (c *Client) Publish(ctx context.Context, workflow string, content []byte, yaml bool) (p Published, err error) {
	kind := "application/json"
	if yaml {
		kind = "application/yaml"
	}
	err = c.call(ctx, request{
		method: http.MethodPost, path: path("workflows", workflow, "versions"), body: content, kind: kind,
	}, &p)
	return p, err
}

// Definition is a version of a workflow with its content.
type Definition struct {
	Published
	Definition json.RawMessage `json:"definition"`
}

// Definition returns a version of a workflow; 0 is the latest.
func (c *Client) Definition(ctx context.Context, workflow string, version int64) (d Definition, err error) {
	v := "latest"
	if version > 0 {
		v = strconv.FormatInt(version, 10)
	}
	err = c.get(ctx, path("workflows", workflow, "versions", v), nil, &d)
	return d, err
}
