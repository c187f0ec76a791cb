package workflow

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

type published struct {
	Workflow string `json:"workflow"`
	Version  int64  `json:"version"`
	Hash     string `json:"hash" doc:"SHA-256 of the canonical content."`
	Tasks    int    `json:"tasks"`
}

type publishInput struct {
	Name        string `path:"name" maxLength:"128"`
	ContentType string `header:"Content-Type"`
	RawBody     []byte `contentType:"application/yaml"`
}

type publishOutput struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Token    string `header:"Sluice-Token"`
	Body     published
}

type definitionInput struct {
	Name    string `path:"name" maxLength:"128"`
	Version string `path:"version" doc:"A number, or latest."`
}

type definitionOutput struct {
	Body struct {
		published
		Definition json.RawMessage `json:"definition"`
	}
}

// Definitions registers the routes of definitions.
func Definitions(api huma.API, e Engine) {
	huma.Register(api, huma.Operation{
		OperationID: "publish-version", Method: http.MethodPost, Path: "/v1/workflows/{name}/versions",
		Summary: "Publish a version of a workflow", Description: "The same content is the version that it already is: 200.",
		MaxBodyBytes: definition.BytesMax + 1, DefaultStatus: http.StatusCreated, Tags: []string{"definitions"},
	}, func(ctx context.Context, in *publishInput) (*publishOutput, error) { return publish(ctx, e, in) })
	huma.Register(api, huma.Operation{
		OperationID: "get-version", Method: http.MethodGet, Path: "/v1/workflows/{name}/versions/{version}",
		Summary: "Read a version of a workflow", Tags: []string{"definitions"},
	}, func(ctx context.Context, in *definitionInput) (*definitionOutput, error) { return version(ctx, e, in) })
}

var definitionTypes = map[string]bool{
	"application/json": true, "application/yaml": true, "application/x-yaml": true, "text/yaml": true, "text/x-yaml": true,
}

func publish(ctx context.Context, e Engine, in *publishInput) (*publishOutput, error) {
	if kind, _, err := mime.ParseMediaType(in.ContentType); err != nil || !definitionTypes[kind] {
		return nil, huma.Error415UnsupportedMediaType("a definition is application/yaml or application/json")
	}
	d, problems := definition.Parse(in.RawBody)
	if d != nil {
		problems = e.Check(d)
		if d.Workflow != "" && d.Workflow != in.Name {
			problems = append(problems, definition.Problem{
				Code: "other_name", Pointer: "/workflow", Detail: "the definition names " + d.Workflow + ", the address " + in.Name,
			})
		}
	}
	if len(problems) > 0 {
		vs := make([]commands.Violation, len(problems))
		for i, p := range problems {
			vs[i] = commands.Violation{Code: p.Code, Pointer: p.Pointer, Detail: p.Detail, Line: p.Line, Column: p.Column}
		}
		return nil, edge.Refuse(commands.Invalid, "invalid_definition",
			"the definition cannot be run; mend every place named", vs...)
	}
	m := commands.Meta{Command: e.NewID(), Tenant: tenant, Actor: actor, Trace: edge.Trace(ctx)}
	n, out, err := e.Publish(ctx, d, m)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	code := http.StatusCreated
	if out.Nothing {
		code = http.StatusOK
	}
	return &publishOutput{
		Status: code, Location: "/v1/workflows/" + d.Workflow + "/versions/" + strconv.FormatInt(n, 10),
		ETag: edge.ETag(out.Version, e.Incarnation()), Token: e.Token(out),
		Body: published{Workflow: d.Workflow, Version: n, Hash: d.Hash().String(), Tasks: len(d.Tasks)},
	}, nil
}

// actor is everybody's until identities come.
const actor = "developer"

// bound finds a version of a definition; 0 is the latest.
func bound(ctx context.Context, e Engine, name string, n int64) (int64, definition.Version, error) {
	s := events.StreamOf(definition.Category, tenant, name)
	if s.Check() != nil {
		return 0, definition.Version{}, edge.Refuse(commands.NotFound, commands.CodeNotFound, "there is no such workflow")
	}
	l, err := e.Load(ctx, s)
	if err != nil {
		return 0, definition.Version{}, edge.Refusal(ctx, err)
	}
	d := l.State.(*definition.State)
	if d.Latest() == 0 {
		return 0, definition.Version{}, edge.Refuse(commands.NotFound, commands.CodeNotFound,
			"there is no workflow "+strconv.Quote(name)+"; publish it first")
	}
	if n == 0 {
		n = d.Latest()
	}
	if n < 0 || n > d.Latest() {
		return 0, definition.Version{}, edge.Refuse(commands.NotFound, commands.CodeUnknownVersion,
			"the workflow has the versions 1 to "+strconv.FormatInt(d.Latest(), 10))
	}
	return n, d.Versions[n-1], nil
}

func version(ctx context.Context, e Engine, in *definitionInput) (*definitionOutput, error) {
	n, err := strconv.ParseInt(in.Version, 10, 64)
	if in.Version == "latest" {
		n, err = 0, nil
	}
	if err != nil || n == 0 && in.Version != "latest" {
		return nil, edge.Refuse(commands.NotFound, commands.CodeUnknownVersion, "a version is a number from 1, or latest")
	}
	n, v, err := bound(ctx, e, in.Name, n)
	if err != nil {
		return nil, err
	}
	content, err := e.Content(ctx, tenant, v.Hash)
	if err != nil {
		return nil, edge.Refusal(ctx, err)
	}
	out := &definitionOutput{}
	out.Body.published = published{Workflow: in.Name, Version: n, Hash: v.Hash.String(), Tasks: int(v.Tasks)}
	out.Body.Definition = content
	return out, nil
}
