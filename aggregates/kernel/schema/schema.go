// Package schema checks JSON texts against JSON Schema 2020-12. It never follows a reference out of the schema, opens
// no file and no connection, and keeps every number's digits.
package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	// BytesMax and DepthMax keep a hostile schema from taking minutes to compile: 3,000 nested allOf took 102 s.
	BytesMax = 256 << 10
	// DepthMax is how deep a schema may nest.
	DepthMax = 32
	// ExpandedMax bounds the parts of a schema with its references written out.
	ExpandedMax = 100_000
	// ObjectsMax bounds the objects in a schema: compiling takes the square of them, 50 ms for this many.
	ObjectsMax = 2_000
	// DocumentDepthMax bounds the nesting of what is checked.
	DocumentDepthMax = 128
	// DigitsMax and ExponentMax bound numbers, so that comparing them exactly stays cheap.
	DigitsMax = 1_000
	// ExponentMax bounds the exponent of a number.
	ExponentMax = 1_000
	// ViolationsMax is how many violations of one document are told.
	ViolationsMax = 100
)

// Schema is a compiled schema. It is safe for concurrent use; checks with one schema wait for each other.
type Schema struct {
	s *jsonschema.Schema
	m *meter
}

// Violation is one place where a document does not fit.
type Violation struct {
	Pointer string // RFC 6901, into the document
	Code    string // the keyword that does not hold
	Detail  string
}

// errOutside is what every reference out of the schema meets.
var errOutside = errors.New("only references within the schema, such as #/$defs/name, are followed")

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errOutside }

// root is the name of every schema: relative references resolve to something that no loader knows.
const root = "sluice:schema"

// Compile reads a schema. The error is an *Error that says everything that is wrong with it and where.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > BytesMax {
		return nil, refuse("", "too_large", fmt.Sprintf("a schema has at most %d bytes, not %d", BytesMax, len(raw)))
	}
	if f := look(raw); f != nil {
		return nil, refuse(f.pointer, f.code, f.detail)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, refuse("", CodeJSON, "the schema is not JSON: "+err.Error())
	}
	if err := expand(doc); err != nil {
		return nil, refuse("", "too_large", err.Error())
	}
	m := &meter{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.RegisterVocabulary(m.vocabulary())
	c.AssertVocabs()
	c.UseRegexpEngine(m.compile)
	if err := c.AddResource(root, doc); err != nil {
		return nil, explain(err)
	}
	s := &Schema{m: m}
	ok, err := m.check(len(raw), func() (err error) { s.s, err = c.Compile(root); return err })
	switch {
	case !ok:
		return nil, refuse("", "too_large", "the schema takes too many steps to compile")
	case err != nil:
		return nil, explain(err)
	}
	return s, nil
}

// look refuses what must not reach the compiler: deep nesting, other drafts, numbers without bound, and references that
// lead out.
func look(raw []byte) *fault {
	objects := 0
	return walk(raw, DepthMax, func(d *jsontext.Decoder, member string, t jsontext.Token) *fault {
		if t.Kind() == '{' {
			objects++
		}
		at := string(d.StackPointer())
		switch {
		case objects > ObjectsMax:
			return &fault{at, "too_large", fmt.Sprintf("a schema has at most %d objects", ObjectsMax)}
		case t.Kind() != '"':
		case (member == "$ref" || member == "$dynamicRef") && !strings.HasPrefix(t.String(), "#"):
			return &fault{at, "reference", fmt.Sprintf("%.80q: %v", t.String(), errOutside)}
		case member == "$schema" && strings.TrimSuffix(t.String(), "#") != draft:
			return &fault{at, "draft", "schemas are read as JSON Schema 2020-12; remove $schema, or write " + draft}
		}
		return nil
	})
}

// draft is the only dialect that is read.
const draft = "https://json-schema.org/draft/2020-12/schema"

// Validate returns every place where doc does not fit, sorted by place and ViolationsMax at most; none when
// it fits. A document that is not strict JSON, too deep, or has a number out of bounds is one violation. Repeating it
// gives the same.
func (s *Schema) Validate(doc []byte) []Violation {
	v, fault := read(doc)
	if fault != nil {
		return fault
	}
	return s.validate(v, len(doc))
}

func read(doc []byte) (any, []Violation) {
	if f := walk(doc, DocumentDepthMax, nil); f != nil {
		return nil, []Violation{{Pointer: f.pointer, Code: f.code, Detail: f.detail}}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, []Violation{{Code: CodeJSON, Detail: "this is not JSON"}}
	}
	return v, nil
}

func (s *Schema) validate(v any, size int) []Violation { return s.check(v, size, nil) }

// check returns the violations that count; nil: all do.
func (s *Schema) check(v any, size int, counts func(*jsonschema.ValidationError) bool) []Violation {
	var wrong *jsonschema.ValidationError
	switch ok, err := s.m.check(size, func() error { return s.s.Validate(v) }); {
	case !ok:
		return []Violation{{Code: CodeUnchecked, Detail: "this takes too many steps to check; the schema names the same " +
			"part several times for one place, level by level"}}
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return []Violation{{Code: CodeUnchecked, Detail: "this could not be checked"}}
	}
	return violations(wrong, counts)
}

// violations are in the order of their pointers: the checker's own order is that of a map.
func violations(e *jsonschema.ValidationError, counts func(*jsonschema.ValidationError) bool) (vs []Violation) {
	collect(e, counts, &vs)
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
	})
	vs = slices.Compact(vs)
	return vs[:min(len(vs), ViolationsMax)]
}

// collect takes the leaves: what a group or a reference says is said better by what is inside.
func collect(e *jsonschema.ValidationError, counts func(*jsonschema.ValidationError) bool, vs *[]Violation) {
	_, anyOf := e.ErrorKind.(*kind.AnyOf)
	_, oneOf := e.ErrorKind.(*kind.OneOf)
	if len(e.Causes) > 0 && !anyOf && !oneOf {
		for _, c := range e.Causes {
			collect(c, counts, vs)
		}
		return
	}
	if counts != nil && !counts(e) {
		return
	}
	at := pointer(e.InstanceLocation)
	if r, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range r.Missing {
			*vs = append(*vs, Violation{Pointer: at + "/" + escape(name), Code: "required", Detail: "this member is required"})
		}
		return
	}
	if a, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, name := range a.Properties {
			*vs = append(*vs, Violation{
				Pointer: at + "/" + escape(name), Code: "additionalProperties", Detail: "no such member is allowed here",
			})
		}
		return
	}
	code, detail := words(e.ErrorKind)
	*vs = append(*vs, Violation{Pointer: at, Code: code, Detail: detail})
}

func pointer(path []string) (p string) {
	for _, part := range path {
		p += "/" + escape(part)
	}
	return p
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escape(s string) string { return escaper.Replace(s) }
