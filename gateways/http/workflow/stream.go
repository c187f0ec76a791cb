package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

const (
	// heartbeatEvery keeps proxies and clients from taking a quiet stream for a dead one (case WF-21).
	heartbeatEvery = 15 * time.Second
	// resumeMax is how many events a reconnect is sent; who is further behind gets a resync instead.
	resumeMax = 10_000
	// writeMax is how long a client may take nothing of what is sent to it.
	writeMax = 30 * time.Second
)

type streamInput struct {
	ID   string `path:"id" maxLength:"128"`
	Last string `header:"Last-Event-ID"`
}

// Streams registers the live stream of one execution.
func Streams(api huma.API, e Engine) {
	huma.Register(api, huma.Operation{
		OperationID: "stream-execution", Method: http.MethodGet, Path: "/v1/executions/{id}/stream",
		Summary: "Follow an execution's facts as server-sent events", Tags: []string{"executions"},
		Metadata: edge.Unbounded,
		Responses: map[string]*huma.Response{"200": {
			Description: "Messages fact, resync and end.", Content: map[string]*huma.MediaType{"text/event-stream": {}},
		}, "204": {Description: "The execution has ended, and all of it was sent."}},
	}, func(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) { return stream(ctx, e, in) })
}

func stream(ctx context.Context, e Engine, in *streamInput) (*huma.StreamResponse, error) {
	l, err := loaded(ctx, e, in.ID)
	if err != nil {
		return nil, err
	}
	f := follower{e: e, stream: l.Stream, correlation: l.Correlation}
	if in.Last != "" {
		v, ok := ParseEventID(in.Last, e.Incarnation())
		f.resync = !ok || v > l.Version || l.Version-v > resumeMax
		f.after = v
	}
	if in.Last != "" && !f.resync && f.after == l.Version && ended(l) {
		return &huma.StreamResponse{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}, nil
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		f.w, f.connection = w, http.NewResponseController(w)
		f.run(c.Context())
	}}, nil
}

func ended(l handle.Loaded) bool { return !l.State.(*execution.State).Open() }

// EventID is what a client sends back to go on: incarnation and version.
func EventID(v events.Version, i events.Incarnation) string { return fmt.Sprintf("%d-%d", i, v) }

// ParseEventID reads EventID; ok is false for any other text and for another incarnation's, and v
// then means nothing.
func ParseEventID(s string, now events.Incarnation) (v events.Version, ok bool) {
	_, right, _ := strings.Cut(s, "-")
	n, err := strconv.ParseInt(right, 10, 64)
	v = events.Version(n)
	return v, err == nil && n >= 0 && EventID(v, now) == s
}

// follower sends one execution's facts until it ends or the client goes.
type follower struct {
	e           Engine
	stream      events.Stream
	correlation string
	after       events.Version
	resync      bool
	w           http.ResponseWriter
	connection  *http.ResponseController
}

func (f *follower) run(ctx context.Context) {
	grown, end, ok := f.e.Watch(f.stream)
	if !ok {
		edge.WriteRefusal(ctx, f.w, commands.Refuse(commands.TooMany, "too_many_watchers",
			"too many follow executions already; ask again in a moment"))
		return
	}
	defer end()
	f.w.Header().Set("Content-Type", "text/event-stream")
	f.w.Header().Set("Cache-Control", "no-store")
	f.w.Header().Set("X-Accel-Buffering", "no")
	// The connection's next request must not find this one's deadline.
	defer func() { _ = f.connection.SetWriteDeadline(time.Time{}) }()
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		done, err := f.catchUp(ctx)
		if err != nil || done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.e.Stopping():
			return
		case <-grown:
		case <-beat.C:
			if f.write(": heartbeat\n\n") != nil {
				return
			}
		}
	}
}

// catchUp sends what there is. Whoever is too far behind, or of another log, gets the state and goes on from there.
func (f *follower) catchUp(ctx context.Context) (done bool, err error) {
	l, err := f.e.Load(ctx, f.stream)
	if err != nil {
		return false, err
	}
	version, over := l.Version, ended(l)
	if f.resync {
		f.resync = false
		x, err := whole(ctx, f.e, l, false, 0)
		if err != nil {
			return false, err
		}
		if err := f.send("resync", EventID(version, f.e.Incarnation()), x); err != nil {
			return false, err
		}
		f.after = version
	}
	for f.after < version {
		rs, err := f.e.Recorded(ctx, f.stream, f.after, historyPage)
		if err != nil {
			return false, err
		}
		if len(rs) == 0 {
			break
		}
		for i := range rs {
			id := EventID(rs[i].Version, f.e.Incarnation())
			if err := f.send("fact", id, fact(&rs[i], f.correlation)); err != nil {
				return false, err
			}
			f.after = rs[i].Version
		}
	}
	if !over {
		return false, nil
	}
	return true, f.send("end", EventID(f.after, f.e.Incarnation()),
		map[string]any{"status": l.State.(*execution.State).Status().String()})
}

func (f *follower) send(event, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return f.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, event, text))
}

// write sends a text now. A client that takes nothing for writeMax is gone.
func (f *follower) write(text string) error {
	// What cannot have a deadline has none: it is no connection.
	err := f.connection.SetWriteDeadline(time.Now().Add(writeMax))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(f.w, text); err != nil {
		return err
	}
	return f.connection.Flush()
}
