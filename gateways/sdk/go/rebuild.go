package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// Progress is how many events of the log a rebuild has had, of how many.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// Rebuild has the server build a view from the log beside the live one and swap it in; it returns when that is done,
// with the server's answer. Where the server tells how far it is, progress hears it; nil does not. Repeating is safe.
func (c *Client) Rebuild(ctx context.Context, view string, progress func(Progress)) (raw json.RawMessage, err error) {
	resp, err := c.send(ctx, request{
		method: http.MethodPost, path: path("views", view, "rebuild"), body: []byte("{}"), kind: "application/json",
		header: http.Header{"Accept": {"text/event-stream, application/json"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return readAll(resp.Body)
	}
	return rebuildStream(resp.Body, progress)
}

func rebuildStream(body io.Reader, progress func(Progress)) (json.RawMessage, error) {
	for s := newSSEReader(body); ; {
		m, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, &brokenError{io.ErrUnexpectedEOF}
		case err != nil:
			return nil, &brokenError{err}
		}
		switch m.Event {
		case "progress":
			var p Progress
			if err := json.Unmarshal(m.Data, &p); err == nil && progress != nil {
				progress(p)
			}
		case "problem", "error":
			p := &Problem{}
			if err := json.Unmarshal(m.Data, p); err != nil || p.Code == "" {
				p = &Problem{Code: "rebuild_failed", Detail: string(m.Data)}
			}
			return nil, p
		case "done":
			return m.Data, nil
		}
	}
}
