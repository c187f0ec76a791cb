package sluice

import (
	"context"
	"encoding/json"
	"net/http"
)

// Act is what an operator can do to an execution.
type Act string

// The acts.
const (
	Cancel    Act = "cancel"
	Pause     Act = "pause"
	Resume    Act = "resume"
	Terminate Act = "terminate"
	Replay    Act = "replay"
)

// Acted is an act that the log has taken.
type Acted struct {
	ID      string `json:"id"`      // of the execution; after Replay, of the new one
	Version int64  `json:"version"` // of the execution's history, from now on
}

type reasoned struct {
	Reason string          `json:"reason"`
	With   json.RawMessage `json:"with,omitempty"`
}

// Do performs an act for a reason, which the log keeps. key makes repeating safe; empty: repeating may act twice where
// the act can.
func (c *Client) Do(ctx context.Context, id string, act Act, reason, key string) (a Acted, err error) {
	err = c.post(ctx, path("executions", id, string(act)), keyHeader(key), reasoned{Reason: reason}, &a)
	return a, err
}

// RetryTask runs a failed task again; with, unless nil, replaces its input.
func (c *Client) RetryTask(
	ctx context.Context, id, task, reason, key string, with json.RawMessage,
) (a Acted, err error) {
	err = c.post(ctx, path("executions", id, "tasks", task, "retry"), keyHeader(key),
		reasoned{Reason: reason, With: with}, &a)
	return a, err
}

func keyHeader(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}
