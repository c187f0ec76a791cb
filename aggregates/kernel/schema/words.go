package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// words says in our own words which keyword does not hold: the library's round numbers.
func words(k jsonschema.ErrorKind) (code, detail string) {
	path := k.KeywordPath()
	code = "schema"
	if len(path) > 0 {
		code = path[len(path)-1]
	}
	switch k := k.(type) {
	case *kind.Type:
		return "type", fmt.Sprintf("this must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "enum", fmt.Sprintf("this must be one of %s", list(k.Want))
	case *kind.Const:
		return "const", "this must be " + text(k.Want)
	case *kind.Format:
		return "format", fmt.Sprintf("this must be of the format %s", k.Want)
	case *kind.MinLength:
		return "minLength", fmt.Sprintf("this must have at least %d characters, not %d", k.Want, k.Got)
	case *kind.MaxLength:
		return "maxLength", fmt.Sprintf("this must have at most %d characters, not %d", k.Want, k.Got)
	case *kind.Pattern:
		return "pattern", fmt.Sprintf("this must match %s", k.Want)
	case *kind.Minimum:
		return "minimum", "this must be at least " + exact(k.Want)
	case *kind.Maximum:
		return "maximum", "this must be at most " + exact(k.Want)
	case *kind.ExclusiveMinimum:
		return "exclusiveMinimum", "this must be above " + exact(k.Want)
	case *kind.ExclusiveMaximum:
		return "exclusiveMaximum", "this must be below " + exact(k.Want)
	case *kind.MultipleOf:
		return "multipleOf", "this must be a multiple of " + exact(k.Want)
	case *kind.MinItems:
		return "minItems", fmt.Sprintf("this must have at least %d items, not %d", k.Want, k.Got)
	case *kind.MaxItems:
		return "maxItems", fmt.Sprintf("this must have at most %d items, not %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return "uniqueItems", fmt.Sprintf("items %d and %d are the same", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return "minProperties", fmt.Sprintf("this must have at least %d members, not %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return "maxProperties", fmt.Sprintf("this must have at most %d members, not %d", k.Want, k.Got)
	case *kind.AnyOf:
		return "anyOf", "this fits none of the forms that are allowed"
	case *kind.OneOf:
		return "oneOf", "this must fit exactly one of the forms that are allowed"
	case *kind.Not:
		return "not", "this form is not allowed"
	case *kind.RefCycle:
		return "$ref", "the schema refers to itself without going deeper into the document"
	case *kind.FalseSchema:
		return "false", "nothing is allowed here"
	default:
		return code, "this does not fit the schema's " + code
	}
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return strings.Join(texts, ", ")
}

// exact writes a number with all of its digits, as a decimal where it is one.
func exact(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if places, ok := r.FloatPrec(); ok {
		return r.FloatString(places)
	}
	return r.String()
}

// text writes a value of the schema as JSON, its numbers as they stand there.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
