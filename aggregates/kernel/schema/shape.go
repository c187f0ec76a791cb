package schema

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Shape returns the violations that stand whatever the texts that open says yes to turn into: a template's expressions
// have no value yet. It rather tells too little than too much.
func (s *Schema) Shape(doc []byte, open func(text string) bool) []Violation {
	v, fault := read(doc)
	if fault != nil {
		return fault
	}
	var opened []string
	find(v, "", func(text, at string) {
		if open(text) {
			opened = append(opened, at)
		}
	})
	if len(opened) == 0 {
		return s.validate(v, len(doc))
	}
	below := func(at string) bool {
		for _, o := range opened {
			if o == at || strings.HasPrefix(o, at+"/") {
				return true
			}
		}
		return false
	}
	return s.check(v, len(doc), func(e *jsonschema.ValidationError) bool {
		at := pointer(e.InstanceLocation)
		for _, o := range opened {
			if o == at {
				return false
			}
		}
		return !conditional(e.SchemaURL) && (holds[keyword(e)] || !below(at))
	})
}

// holds are the keywords that look at no value below the place that they are told of.
var holds = map[string]bool{
	"type": true, "required": true, "additionalProperties": true, "propertyNames": true, "minProperties": true,
	"maxProperties": true, "minItems": true, "maxItems": true, "dependentRequired": true, "false": true,
}

// conditional says that a part of a schema counts only where another part fits, or does not.
func conditional(url string) bool {
	for _, part := range []string{"if", "then", "else", "not", "anyOf", "oneOf", "contains", "dependentSchemas"} {
		if strings.Contains(url, "/"+part+"/") || strings.HasSuffix(url, "/"+part) {
			return true
		}
	}
	return false
}

func keyword(e *jsonschema.ValidationError) string {
	code, _ := words(e.ErrorKind)
	return code
}

// find shows every text in a value.
func find(v any, at string, see func(text, at string)) {
	switch v := v.(type) {
	case string:
		see(v, at)
	case []any:
		for i, item := range v {
			find(item, at+"/"+strconv.Itoa(i), see)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			find(v[name], at+"/"+escape(name), see)
		}
	}
}

// Error says everything that is wrong with a schema.
type Error struct{ Violations []Violation }

func (e *Error) Error() string {
	first := e.Violations[0]
	if first.Pointer == "" {
		return first.Detail
	}
	return "at " + first.Pointer + ": " + first.Detail
}

func refuse(pointer, code, detail string) error {
	return &Error{[]Violation{{Pointer: pointer, Code: code, Detail: detail}}}
}

// explain turns the compiler's error into ours.
func explain(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var wrong *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &wrong) {
		if vs := violations(wrong, nil); len(vs) > 0 {
			return &Error{vs}
		}
	}
	return refuse("", "schema", strings.ReplaceAll(err.Error(), root, ""))
}
