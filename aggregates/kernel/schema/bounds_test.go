package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
)

func compiled(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocumentsOutOfBoundsAreOneViolation(t *testing.T) {
	s := compiled(t, `{"properties":{"n":{"maximum":5}}}`)
	for doc, code := range map[string]string{
		`{"n":1e5000000}`:                         schema.CodeRange,
		`{"n":1e-5000000}`:                        schema.CodeRange,
		`{"n":1e99999999999999999999}`:            schema.CodeRange,
		`{"n":` + strings.Repeat("9", 2000) + `}`: schema.CodeRange,
		`{"a":1,"a":2}`:                           schema.CodeJSON,
		`{} {}`:                                   schema.CodeJSON,
		``:                                        schema.CodeJSON,
		"\"\xff\"":                                schema.CodeJSON,
		strings.Repeat("[", 20_000):               schema.CodeDepth,
	} {
		if vs := s.Validate([]byte(doc)); len(vs) != 1 || vs[0].Code != code {
			t.Errorf("%.40q: got %v, want one %s", doc, vs, code)
		}
	}
	if vs := s.Validate([]byte(`{"n":1e400}`)); len(vs) != 1 || vs[0].Code != "maximum" || vs[0].Pointer != "/n" {
		t.Errorf("a number beyond every double is compared exactly: %v", vs)
	}
}

func TestSchemasThatGrowWithoutBoundAreRefused(t *testing.T) {
	doubling := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, raw := range map[string]string{
		"each definition names the next one twice": doubling + `"d40":{}}}`,
		"a bound with an exponent of millions":     `{"maximum":1e5000000}`,
		"a reference written as its own name":      `{"$ref":"$ref"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schema.Compile([]byte(raw)); err == nil {
				t.Fatal("want an error")
			}
		})
	}
	t.Run("a tree that refers to itself deeper down is fine", func(t *testing.T) {
		s := compiled(t, `{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`)
		if vs := s.Validate([]byte(`{"left":{"right":{"left":7}}}`)); len(vs) != 1 || vs[0].Pointer != "/left/right/left" {
			t.Fatal(vs)
		}
	})
	t.Run("one that refers to itself in place never ends in a loop", func(t *testing.T) {
		if vs := compiled(t, `{"allOf":[{"$ref":"#"}]}`).Validate([]byte(`1`)); len(vs) != 1 || vs[0].Code != "$ref" {
			t.Fatal(vs)
		}
	})
}

func TestACheckThatNeverEndsIsGivenUp(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n))
	}
	for name, raw := range map[string]string{
		"two ways to the same place": `{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}]}`,
		"the same by dynamic references": `{"$dynamicAnchor":"n","allOf":[{"properties":{"x":{"$dynamicRef":"#n"}}},` +
			`{"properties":{"x":{"$dynamicRef":"#n"}}}]}`,
		"a pattern beside the properties": `{"properties":{"x":{"$ref":"#"}},"patternProperties":{"^x":{"$ref":"#"}}}`,
		"under a negation": `{"not":{"not":{"allOf":[{"properties":{"x":{"$ref":"#"}}},` +
			`{"properties":{"x":{"$ref":"#"}}}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, raw)
			if vs := s.Validate(nested(60)); len(vs) != 1 || vs[0].Code != schema.CodeUnchecked {
				t.Fatal(vs)
			}
			if vs := s.Validate(nested(4)); len(vs) != 0 {
				t.Fatal("the schema is good for what comes after: ", vs)
			}
		})
	}
	t.Run("a pattern that takes the product of itself and the text", func(t *testing.T) {
		s := compiled(t, `{"items":{"pattern":"(x?y?z?[a-z]{0,20}){40}1"}}`)
		doc := `["` + strings.Repeat("xyz", 100_000) + `"]`
		if vs := s.Validate([]byte(doc)); len(vs) != 1 || vs[0].Code != schema.CodeUnchecked {
			t.Fatal(vs)
		}
		if vs := s.Validate([]byte(`["1","abc"]`)); len(vs) != 1 || vs[0].Code != "pattern" || vs[0].Pointer != "/1" {
			t.Fatal(vs)
		}
		if _, err := schema.Compile([]byte(`{"pattern":"` + strings.Repeat("a", schema.PatternMax+1) + `"}`)); err == nil {
			t.Fatal("want a refusal")
		}
	})
	t.Run("a large document that is checked as it should be is not given up", func(t *testing.T) {
		s := compiled(t, `{"items":{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},`+
			`"b":{"enum":[1,2,3]},"c":{"type":"string"}}}}`)
		doc := "[" + strings.Repeat(`{"a":1,"b":2,"c":"x"},`, 50_000) + `{"a":1}]`
		if vs := s.Validate([]byte(doc)); len(vs) != 0 {
			t.Fatal(vs[0])
		}
	})
	t.Run("a schema of many small parts compiles in bounded time or is refused", func(t *testing.T) {
		if _, err := schema.Compile([]byte(`{"anyOf":[` + strings.Repeat(`{"a":1},`, schema.ObjectsMax) +
			`{}]}`)); err == nil {
			t.Fatal("want a refusal")
		}
	})
}

func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","maximum":3}}}`, `{"$ref":"#"}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"enum":[1e400]}}}`, `{"anyOf":[{"const":1},{"pattern":"a+"}]}`, `true`,
		`{"items":{"format":"date-time"},"uniqueItems":true,"unevaluatedItems":false}`, `{"multipleOf":0.1}`,
	} {
		f.Add(s, `{"a":4}`)
		f.Add(s, `["2026-01-01T00:00:00Z",1e900,0.3]`)
	}
	f.Fuzz(func(t *testing.T, raw, doc string) {
		s, err := schema.Compile([]byte(raw))
		if err != nil {
			return
		}
		if vs := s.Validate([]byte(doc)); len(vs) > schema.ViolationsMax {
			t.Fatalf("%d violations", len(vs))
		}
	})
}
