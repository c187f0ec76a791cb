package http

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

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

// onlyKnownQuery refuses query parameters that the operation does not have, and one that is given twice.
func onlyKnownQuery(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		known := map[string]bool{}
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" {
				known[p.Name] = true
			}
		}
		u := ctx.URL()
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			writeProblem(api, ctx, problem(http.StatusBadRequest, "malformed", "the query cannot be read: "+err.Error()))
			return
		}
		var vs []commands.Violation
		for _, name := range slices.Sorted(maps.Keys(query)) {
			switch {
			case !known[name]:
				vs = append(vs, commands.Violation{Code: "unknown_parameter", Pointer: "query." + name, Detail: "remove it"})
			case len(query[name]) > 1:
				vs = append(vs, commands.Violation{Code: "repeated_parameter", Pointer: "query." + name, Detail: "give it once"})
			case !utf8.ValidString(query[name][0]) || strings.ContainsRune(query[name][0], 0):
				vs = append(vs, commands.Violation{Code: "bad_text", Pointer: "query." + name, Detail: "it is UTF-8 without NUL"})
			}
		}
		if len(vs) > 0 {
			p := problem(http.StatusBadRequest, vs[0].Code, "the query has what this address does not take")
			p.Errors = vs
			writeProblem(api, ctx, p)
			return
		}
		next(ctx)
	}
}

func writeProblem(api huma.API, ctx huma.Context, p *Problem) {
	p.TraceID = requestOf(ctx.Context()).trace
	ctx.SetHeader("Content-Type", "application/problem+json")
	ctx.SetStatus(p.Status)
	_ = api.Marshal(ctx.BodyWriter(), "application/json", p) // whoever does not read it is gone
}
