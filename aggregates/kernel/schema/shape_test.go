package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
)

func TestShapeTellsOnlyWhatStandsWhateverAnExpressionBecomes(t *testing.T) {
	s := compiled(t, `{"type":"object","additionalProperties":false,"required":["url"],"properties":{
		"method":{"enum":["GET","POST"]},"url":{"type":"string","minLength":8},"n":{"type":"integer"},
		"headers":{"type":"object","additionalProperties":{"type":"string"}},
		"list":{"type":"array","uniqueItems":true,"maxItems":2},"one":{"oneOf":[{"type":"integer"},{"type":"object"}]}},
		"if":{"properties":{"method":{"const":"GET"}}},"then":{"properties":{"n":{"maximum":1}}},
		"else":{"properties":{"n":{"minimum":9}}}}`)
	open := func(text string) bool { return strings.Contains(text, "${{") }
	for doc, want := range map[string]string{
		`{"url":"${{ input.u }}","n":"${{ input.n }}","method":"${{ m }}","one":"${{ o }}","list":"${{ l }}"}`: "",
		`{"url":"x${{ input.u }}","headers":{"a":"${{ input }}"}}`:                                             "",
		`{"n":"${{ input.n }}"}`:                              "/url required",
		`{"url":"${{ u }}","x":1}`:                            "/x additionalProperties",
		`{"url":"${{ u }}","n":"1"}`:                          "/n type",
		`{"url":"${{ u }}","headers":{"a":1,"b":"${{ b }}"}}`: "/headers/a type",
		`{"url":"${{ u }}","list":["${{ a }}","${{ a }}"]}`:   "",
		`{"url":"${{ u }}","list":["${{ a }}",1,1]}`:          "/list maxItems",
		`{"url":"${{ u }}","one":{"x":"${{ a }}"}}`:           "",
		`{"url":"${{ u }}","n":5,"method":"${{ m }}"}`:        "",
		`{"url":"https://x","n":5,"method":"GET"}`:            "/n maximum",
		`{"url":"short","list":[1,1]}`:                        "/list uniqueItems /url minLength",
		`"${{ all }}"`:                                        "",
		`{"url":`:                                             "/url bad_json",
	} {
		var got []string
		for _, v := range s.Shape([]byte(doc), open) {
			got = append(got, v.Pointer+" "+v.Code)
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}

func TestEverythingThatIsWrongWithASchemaIsTold(t *testing.T) {
	_, err := schema.Compile([]byte(`{"type":"text","properties":{"a/b":{"minimum":"x"},"c":{"required":"d"}}}`))
	var wrong *schema.Error
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	var got []string
	for _, v := range wrong.Violations {
		got = append(got, v.Pointer)
	}
	for _, want := range []string{"/type", "/properties/a~1b/minimum", "/properties/c/required"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	_, err = schema.Compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#"}`))
	if !errors.As(err, &wrong) || wrong.Violations[0].Pointer != "/$schema" {
		t.Errorf("another draft: %v", err)
	}
	if _, err := schema.Compile([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`)); err != nil {
		t.Error(err)
	}
}
