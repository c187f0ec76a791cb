package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"

	hamba "github.com/hamba/avro/v2"

	"github.com/sluice-platform/sluice/events"
)

// hostile are bodies of a batch whose counts and lengths lie.
func hostile() map[string][]byte {
	count := func(n int64, rest ...byte) []byte { return append(binary.AppendVarint(nil, n), rest...) }
	return map[string][]byte{
		"a list of 2^62":                    count(1<<62, 0, 0, 0),
		"a list of -2^63, then its end":     append(count(math.MinInt64, 0), 0, 0, 0),
		"a list of 5, then one of -2^63":    append(append(count(5, 2, 2, 2, 2, 2), count(math.MinInt64, 0)...), 0, 0, 0),
		"a block whose size is not its own": append(count(-2, 20, 2, 2), 0, 0, 0),
		"a block of negative size":          append(count(-2, 3, 2, 2), 0, 0, 0),
		"a text of 2^40 bytes":              append([]byte{0, 0}, count(1<<40)...),
		"a text of -1 bytes":                append([]byte{0, 0}, count(-1)...),
		"an int of 2^40":                    append(count(0), append(count(1<<40), 0)...),
		"a number without an end":           bytes.Repeat([]byte{0xff}, 40),
		"nothing":                           {},
	}
}

func TestHostileBodies(t *testing.T) {
	c, err := New(planted[batch](batchV1))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range hostile() {
		t.Run(name+" is damage, found before anything is allocated", func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			e, err := c.Decode("test.batch", 1, body)
			runtime.ReadMemStats(&after)
			if e != nil || !errors.Is(err, events.ErrDamagedCommit) {
				t.Fatalf("%+v, %v", e, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}

func TestShape(t *testing.T) {
	t.Run("a schema without bounds is refused", func(t *testing.T) {
		for _, text := range []string{
			`{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}`,
			`{"type":"array","items":{"type":"record","name":"Nothing","fields":[]}}`,
		} {
			s, err := hamba.ParseBytesWithCache([]byte(text), "", &hamba.SchemaCache{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := shapeOf(s); err == nil {
				t.Errorf("%s is taken", text)
			}
		}
	})
	t.Run("every form of Avro is walked to its last byte, blocks with and without sizes", func(t *testing.T) {
		const text = `{"type":"record","name":"All","fields":[{"name":"n","type":"null"},{"name":"b","type":"boolean"},` +
			`{"name":"f","type":"float"},{"name":"d","type":"double"},` +
			`{"name":"x","type":{"type":"fixed","name":"X","size":3}},` +
			`{"name":"u","type":["null","string"]},{"name":"m","type":{"type":"map","values":"long"}},` +
			`{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},` +
			`{"name":"l","type":{"type":"array","items":"int"}}]}`
		s, err := hamba.ParseBytesWithCache([]byte(text), "", &hamba.SchemaCache{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := shapeOf(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, cfg := range []hamba.Config{{BlockLength: 2}, {DisableBlockSizeHeader: true}} {
			body, err := cfg.Freeze().Marshal(s, map[string]any{
				"n": nil, "b": true, "f": float32(1), "d": 2.0, "x": [3]byte{1, 2, 3}, "u": map[string]any{"string": "s"},
				"m": map[string]any{"k": int64(1), "l": int64(2), "o": int64(3)}, "e": "B", "l": []any{1, 2, 3},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.check(body); err != nil {
				t.Errorf("%x: %v", body, err)
			}
			for cut := range body {
				if h.check(body[:cut]) == nil {
					t.Errorf("%x: cut at %d it passes", body, cut)
				}
			}
		}
	})
}

// FuzzDecode: no body of any type panics, allocates far more than its own size, or reads as an event that does not
// come back the same.
func FuzzDecode(f *testing.F) {
	c, all := ours(f), events.Registered()
	for i, r := range all {
		body, err := c.Encode(nil, sampleOf(f, r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), body)
		f.Add(uint8(i), body[:len(body)/2])
	}
	for i := range all {
		for _, body := range hostile() {
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := all[int(which)%len(all)]
		e, err := c.Decode(r.Type, r.Schema, body)
		if err != nil {
			if !errors.Is(err, events.ErrDamagedCommit) {
				t.Fatalf("%s: %x: %v is no damage", r.Type, body, err)
			}
			return
		}
		again, err := c.Encode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := c.Decode(r.Type, r.Schema, again); err != nil || !reflect.DeepEqual(same, e) {
			t.Fatalf("%#v came back as %#v (%v)", e, same, err)
		}
	})
}
