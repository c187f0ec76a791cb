package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/aggregates/kernel/duration"
	names "github.com/sluice-platform/sluice/aggregates/kernel/tenant"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

const (
	waitMax   = 60 * time.Second // of a request that waits for the end
	labelsMax = 32
	inputMax  = 1 << 20
)

type submitBody struct {
	Input       json.RawMessage   `json:"input,omitempty"`
	Version     int64             `json:"version,omitempty" minimum:"0" doc:"0: the latest."`
	Class       string            `json:"class,omitempty" enum:"high,standard,bulk,longrunning"`
	Labels      map[string]string `json:"labels,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
}

type submitInput struct {
	Name string `path:"name" maxLength:"128"`
	Key  string `header:"Idempotency-Key"`
	Wait string `query:"wait" doc:"How long to wait for the end, such as 30s; at most 60s."`
	Body submitBody
}

type executionOutput struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Token    string `header:"Sluice-Token"`
	Body     Execution
}

// Submissions registers the route that starts executions.
func Submissions(api huma.API, e Engine) {
	huma.Register(api, huma.Operation{
		OperationID: "submit-execution", Method: http.MethodPost, Path: "/v1/workflows/{name}/executions",
		Summary: "Start an execution", MaxBodyBytes: inputMax, DefaultStatus: http.StatusAccepted,
		Tags:        []string{"executions"},
		Description: "With an Idempotency-Key the same request is the same execution, for as long as the log lasts.",
	}, func(ctx context.Context, in *submitInput) (*executionOutput, error) { return submit(ctx, e, in) })
}

func submit(ctx context.Context, e Engine, in *submitInput) (*executionOutput, error) {
	wait, err := waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	labels, err := freeTexts(in.Body)
	if err != nil {
		return nil, err
	}
	m := commands.Meta{Tenant: tenant, Actor: actor, Correlation: in.Body.Correlation, Trace: edge.Trace(ctx)}
	s := events.StreamOf(execution.Category, tenant, e.NewID().String())
	do := e.Start
	if in.Key == "" {
		m.Command = e.NewID()
	} else {
		if m.Digest, err = keyed(in.Key, in.Name, in.Body); err != nil {
			return nil, err
		}
		s = events.StreamOf(execution.Category, tenant, events.Derive("execution", tenant, in.Name, in.Key).String())
		m.Command, do = commands.KeyedID(s, in.Key), e.Do
		if out, ok, err := known(ctx, e, s, m); err != nil || ok && wait == 0 {
			return out, err
		} else if ok {
			return awaited(ctx, e, s, wait, out)
		}
	}
	n, v, err := bound(ctx, e, in.Name, in.Body.Version)
	if err != nil {
		return nil, err
	}
	out, err := do(ctx, s, commands.SubmitExecution{
		Workflow: in.Name, Version: n, Definition: v.Hash, Input: events.InlinePayload(in.Body.Input),
		Class: in.Body.Class, Labels: labels,
	}, m)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	answer := &executionOutput{
		Status: http.StatusAccepted, ETag: edge.ETag(out.Version, e.Incarnation()), Location: "/v1/executions/" + s.ID(),
		Token: e.Token(out), Body: Execution{ID: s.ID(), Workflow: in.Name, Version: n, Status: "RUNNING"},
	}
	if out.Nothing && in.Key != "" { // somebody was faster with the same key, and may have bound another version
		if answer, _, err = known(ctx, e, s, m); err != nil {
			return nil, err
		}
	}
	if wait == 0 {
		return answer, nil
	}
	return awaited(ctx, e, s, wait, answer)
}

// known answers a key that has started an execution already, whatever its workflow's latest version is by now.
func known(ctx context.Context, e Engine, s events.Stream, m commands.Meta) (*executionOutput, bool, error) {
	l, err := e.Load(ctx, s)
	if err != nil {
		return nil, false, edge.Refusal(ctx, err)
	}
	k, ok := l.Keys[m.Command]
	if !ok {
		return nil, false, nil
	}
	if k.Digest != m.Digest {
		return nil, false, edge.Refuse(commands.Invalid, commands.CodeKeyReused,
			"this Idempotency-Key was used for another request; use a new key")
	}
	x := l.State.(*execution.State)
	return &executionOutput{
		Status: http.StatusAccepted, ETag: edge.ETag(k.Last, e.Incarnation()), Location: "/v1/executions/" + s.ID(),
		Body: Execution{ID: s.ID(), Workflow: x.Workflow(), Version: x.Version(), Status: "RUNNING"},
	}, true, nil
}

func awaited(ctx context.Context, e Engine, s events.Stream, wait time.Duration,
	answer *executionOutput,
) (*executionOutput, error) {
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l, err := e.Await(within, s)
	if err != nil && within.Err() == nil && !errors.Is(err, context.Canceled) {
		return nil, edge.Refusal(ctx, err)
	}
	if err != nil || l.State == nil {
		return answer, nil
	}
	x, err := whole(ctx, e, l, true, 0)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	answer.Status, answer.Body, answer.ETag = http.StatusOK, *x, edge.ETag(l.Version, e.Incarnation())
	return answer, nil
}

func waitOf(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := duration.Parse(s)
	if err != nil {
		return 0, edge.Refuse(commands.Malformed, "bad_duration", "wait: "+err.Error())
	}
	return min(d, waitMax), nil
}

// freeTexts checks what callers may choose freely (case WF-19: by bytes, not characters) and sorts the labels.
func freeTexts(b submitBody) (ls []events.Label, err error) {
	var vs []commands.Violation
	bad := func(pointer, detail string) {
		vs = append(vs, commands.Violation{Code: "bad_key", Pointer: pointer, Detail: detail})
	}
	if b.Correlation != "" {
		if err := names.Key(b.Correlation); err != nil {
			bad("/correlation", err.Error())
		}
	}
	if len(b.Labels) > labelsMax {
		bad("/labels", fmt.Sprintf("there may be at most %d", labelsMax))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Labels)) {
		if err := names.Key(name); err != nil {
			bad("/labels", "name: "+err.Error())
		}
		if value := b.Labels[name]; value != "" {
			if err := names.Key(value); err != nil {
				bad("/labels/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), err.Error())
			}
		}
		ls = append(ls, events.Label{Name: name, Value: b.Labels[name]})
	}
	if len(vs) > 0 {
		return nil, edge.Refuse(commands.Invalid, commands.CodeInvalid,
			"the request has free texts that are too long or none", vs...)
	}
	return ls, nil
}

// keyed checks an Idempotency-Key and makes the digest of what it stands for: the request as canonical JSON, so that
// white space, escapes and the order of members do not make a difference. Numbers keep their digits: two that one
// float64 would hold are two.
func keyed(key string, parts ...any) (commands.Digest, error) {
	if err := names.HeaderKey(key); err != nil {
		return commands.Digest{}, edge.Refuse(commands.Invalid, "bad_idempotency_key", "Idempotency-Key: "+err.Error())
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return commands.Digest{}, edge.Refuse(commands.Malformed, "malformed", err.Error())
	}
	canonical := jsontext.Value(text)
	err = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return commands.Digest{}, edge.Refuse(commands.Malformed, "malformed", err.Error())
	}
	return sha256.Sum256(canonical), nil
}
