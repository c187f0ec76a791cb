package http

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// pointers turns huma's locations (body.retry.items[0]) into RFC 6901 pointers into the body. A location does not tell
// a dot in a name from one between names, so it is read along the schema; where that does not know a name with a dot in
// it, the pointer ends at what holds it.
type pointers struct{ registry huma.Registry }

func (p pointers) of(op *huma.Operation, location string) string {
	rest, ok := strings.CutPrefix(location, "body")
	if !ok || op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return location
	}
	var b strings.Builder
	s := p.resolved(op.RequestBody.Content["application/json"].Schema)
	for rest != "" {
		name, left := p.step(s, rest)
		if name == "" {
			break
		}
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
		s, rest = p.below(s, name), left
	}
	return b.String()
}

// step takes the first name or index off a location; "" when it cannot be told.
func (p pointers) step(s *huma.Schema, rest string) (name, left string) {
	if inside, ok := strings.CutPrefix(rest, "["); ok {
		name, left, _ = strings.Cut(inside, "]")
		return name, left
	}
	rest = strings.TrimPrefix(rest, ".")
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		return rest, ""
	}
	if s != nil && s.Properties[rest[:end]] != nil {
		return rest[:end], rest[end:]
	}
	return "", rest
}

func (p pointers) below(s *huma.Schema, name string) *huma.Schema {
	if s == nil {
		return nil
	}
	if s.Items != nil {
		return p.resolved(s.Items)
	}
	return p.resolved(s.Properties[name])
}

func (p pointers) resolved(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = p.registry.SchemaFromRef(s.Ref)
	}
	return s
}
