package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
)

func TestValidate(t *testing.T) {
	s, err := schema.Compile([]byte(`{"type":"object","required":["email","a/b"],"additionalProperties":false,
		"properties":{"email":{"type":"string","format":"email"},"a/b":{},"n":{"type":"integer","maximum":9007199254740993},
		"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"enum":["u","v"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a document that fits", func(t *testing.T) {
		if vs := s.Validate([]byte(`{"email":"a@b.example","a/b":1,"n":9007199254740993}`)); len(vs) > 0 {
			t.Fatal(vs)
		}
	})
	t.Run("every violation at once, each with its pointer", func(t *testing.T) {
		got := map[string]string{}
		for _, v := range s.Validate([]byte(`{"email":"nobody","n":9007199254740994,"x":"w","more":1}`)) {
			got[v.Pointer] = v.Code
		}
		want := map[string]string{
			"/email": "format", "/a~1b": "required", "/n": "maximum", "/x": "enum", "/more": "additionalProperties",
		}
		for p, code := range want {
			if got[p] != code {
				t.Errorf("%s: got %q, want %q (%v)", p, got[p], code, got)
			}
		}
	})
	t.Run("numbers keep their digits in the text", func(t *testing.T) {
		vs := s.Validate([]byte(`{"email":"a@b.example","a/b":1,"n":9007199254740994}`))
		if len(vs) != 1 || !strings.Contains(vs[0].Detail, "9007199254740993") {
			t.Fatal(vs)
		}
	})
	t.Run("violations come in the same order every time", func(t *testing.T) {
		for range 50 {
			vs := s.Validate([]byte(`{"z":1,"y":1,"x":"w","more":1,"n":"a"}`))
			if len(vs) != 7 || !slices.IsSortedFunc(vs, func(a, b schema.Violation) int {
				return strings.Compare(a.Pointer, b.Pointer)
			}) {
				t.Fatal(vs)
			}
		}
	})
	t.Run("what is not JSON is one violation", func(t *testing.T) {
		if vs := s.Validate([]byte(`{"email":`)); len(vs) != 1 || vs[0].Code != "bad_json" {
			t.Fatal(vs)
		}
	})
}

func TestCompileRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"a reference to a file":           `{"$ref":"file:///etc/passwd"}`,
		"a reference to another document": `{"properties":{"a":{"$ref":"other.json"}}}`,
		"deep nesting":                    strings.Repeat(`{"allOf":[`, 40) + `{}` + strings.Repeat(`]}`, 40),
		"too many bytes":                  `{"description":"` + strings.Repeat("a", schema.BytesMax) + `"}`,
		"an unknown type":                 `{"type":"text"}`,
		"what is not JSON":                `{"type":`,
		"a duplicate member":              `{"type":"string","type":"number"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schema.Compile([]byte(raw)); err == nil {
				t.Fatal("want an error")
			}
		})
	}
}
