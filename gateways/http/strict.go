package http

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/commands"
)

// nestingMax bounds how deep a request's JSON may nest.
const nestingMax = 64

// strictJSON is huma's JSON with what the standard library lets pass refused: duplicate members, bad UTF-8, lone
// surrogates, deep nesting, NUL.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, v any) error {
		if err := check(data); err != nil {
			return err
		}
		return huma.DefaultJSONFormat.Unmarshal(data, v)
	},
}

func check(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		t, err := d.ReadToken()
		if err == io.EOF { //nolint:errorlint // ReadToken returns it as it is
			return nil
		}
		if err != nil {
			return fmt.Errorf("at %q: %w", d.StackPointer(), err)
		}
		if d.StackDepth() > nestingMax {
			return fmt.Errorf("at %q: nested more than %d deep", d.StackPointer(), nestingMax)
		}
		if t.Kind() == '"' && strings.ContainsRune(t.String(), 0) {
			return fmt.Errorf("at %q: NUL is not kept", d.StackPointer())
		}
	}
}

// pointer turns huma's location (body.retry.items[0]) into an RFC 6901 pointer into the body. Names with dots in them
// are told with what stands before the dot only; none of ours has one.
func pointer(location string) string {
	rest, ok := strings.CutPrefix(location, "body")
	if !ok {
		return location
	}
	return strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(rest)
}

// onlyKnownQuery refuses query parameters that the operation does not have.
func onlyKnownQuery(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		known := map[string]bool{}
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" {
				known[p.Name] = true
			}
		}
		u := ctx.URL()
		for name := range u.Query() {
			if !known[name] {
				p := problem(400, "unknown_parameter", "there is no query parameter "+name)
				p.Errors = []commands.Violation{{Code: "unknown_parameter", Pointer: "query." + name, Detail: "remove it"}}
				writeProblem(api, ctx, p)
				return
			}
		}
		next(ctx)
	}
}

func writeProblem(api huma.API, ctx huma.Context, p *Problem) {
	ctx.SetHeader("Content-Type", "application/problem+json")
	ctx.SetStatus(p.Status)
	_ = api.Marshal(ctx.BodyWriter(), "application/json", p) // whoever does not read it is gone
}
