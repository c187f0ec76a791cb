package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sluice-platform/sluice/commands"
	edge "github.com/sluice-platform/sluice/gateways/http"
	"github.com/sluice-platform/sluice/projections"
)

// progressEvery is how often whoever asked for events hears how far a rebuild is.
const progressEvery = 200 * time.Millisecond

type rebuildInput struct {
	View   string    `path:"view" maxLength:"128"`
	Accept string    `header:"Accept" doc:"With text/event-stream the answer is messages progress, then done or problem."`
	Body   *struct{} `required:"false"`
}

type rebuilt struct {
	View string `json:"view"`
}

func rebuilds(api huma.API, e Engine) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[rebuilt](), true, "Rebuilt")
	huma.Register(api, huma.Operation{
		OperationID: "rebuild-view", Method: http.MethodPost, Path: "/v1/views/{view}/rebuild",
		Tags: []string{"operations"}, Summary: "Build a view anew from the log and swap it in",
		Responses: map[string]*huma.Response{"200": {
			Description: "The new view answers.",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}, "text/event-stream": {}},
		}},
	}, func(_ context.Context, in *rebuildInput) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(c huma.Context) {
			_, w := humago.Unwrap(c)
			if strings.Contains(in.Accept, "text/event-stream") {
				told(c.Context(), w, e, in.View)
				return
			}
			if err := refusal(e.Rebuild(c.Context(), in.View, func(int64, int64) {})); err != nil {
				edge.WriteRefusal(c.Context(), w, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(rebuilt{in.View}) // whoever does not read it is gone
		}}, nil
	})
}

func refusal(err error) error {
	if errors.Is(err, projections.ErrNoView) {
		return commands.Refuse(commands.NotFound, commands.CodeNotFound, "there is no view of that name")
	}
	return err
}

// told rebuilds and says how far it is. What is refused before anything was said is an ordinary problem.
func told(ctx context.Context, w http.ResponseWriter, e Engine, view string) {
	var done, total atomic.Int64
	ended := make(chan error, 1)
	go func() {
		ended <- e.Rebuild(ctx, view, func(d, t int64) {
			done.Store(d)
			total.Store(t)
		})
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	begun := false
	say := func(event string, data any) {
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
			begun = true
		}
		text, _ := json.Marshal(data)                                 // numbers and texts
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text) // ctx ends with the client, and the rebuild with ctx
		_ = http.NewResponseController(w).Flush()
	}
	for {
		select {
		case <-tick.C:
			say("progress", map[string]int64{"done": done.Load(), "total": total.Load()})
		case err := <-ended:
			switch err = refusal(err); {
			case err == nil:
				say("progress", map[string]int64{"done": max(done.Load(), total.Load()), "total": total.Load()})
				say("done", rebuilt{view})
			case !begun:
				edge.WriteRefusal(ctx, w, err)
			default:
				var p *edge.Problem
				errors.As(edge.Refusal(ctx, err), &p)
				say("problem", p)
			}
			return
		}
	}
}
