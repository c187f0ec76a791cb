package avro

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	twmb "github.com/twmb/avro"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/schemas"
)

var update = flag.Bool("update", false, "write golden samples that are missing; never changes one")

const golden = "../../events/testdata/golden"

// TestGolden holds today's build to every byte ever released. Samples are only ever added: a change that would edit
// one breaks old logs, and wants a new schema version instead.
func TestGolden(t *testing.T) {
	c := ours(t)
	for _, r := range events.Registered() {
		for v := 1; v <= r.Schema; v++ {
			t.Run(fmt.Sprintf("%s.v%d", r.Type, v), func(t *testing.T) {
				sample, body := sampleOf(t, r), []byte(nil)
				file := filepath.Join(golden, fmt.Sprintf("%s.v%d", r.Type, v))
				if v == r.Schema {
					var err error
					if body, err = c.Encode(nil, sample); err != nil {
						t.Fatal(err)
					}
					writeMissing(t, file+".avro", body)
					writeMissing(t, file+".json", twin(t, r.Type, v, body))
				}
				stored, err := os.ReadFile(file + ".avro")
				if err != nil {
					t.Fatalf("every version needs a sample (-update writes today's): %v", err)
				}
				if v == r.Schema && !bytes.Equal(stored, body) {
					t.Errorf("today's build writes\n%s\nfor the sample that was released as\n%s\n"+
						"A change of an event is a new schema version.", twin(t, r.Type, v, body), twin(t, r.Type, v, stored))
				}
				got, err := c.Decode(r.Type, v, stored)
				if err != nil {
					t.Fatalf("today's build cannot read it: %v", err)
				}
				if v == r.Schema && !reflect.DeepEqual(got, sample) {
					t.Errorf("reads as %+v, want %+v", got, sample)
				}
				readable, err := os.ReadFile(file + ".json")
				if err != nil || !bytes.Equal(readable, twin(t, r.Type, v, stored)) {
					t.Errorf("its readable twin says something else: %v\n%s", err, twin(t, r.Type, v, stored))
				}
			})
		}
	}
}

// TestGoldenOfAll finds samples of types and versions that this build has forgotten.
func TestGoldenOfAll(t *testing.T) {
	current := map[string]int{}
	for _, r := range events.Registered() {
		current[string(r.Type)] = r.Schema
	}
	files, err := filepath.Glob(filepath.Join(golden, "*.avro"))
	if err != nil || len(files) < len(current) {
		t.Fatalf("%d samples for %d types (%v)", len(files), len(current), err)
	}
	for _, f := range files {
		name, v, ok := cutVersion(strings.TrimSuffix(filepath.Base(f), ".avro"))
		if !ok || v < 1 || v > current[name] {
			t.Errorf("%s was released once, and no registered event reads it", filepath.Base(f))
		}
	}
}

func cutVersion(s string) (name string, version int, ok bool) {
	i := strings.LastIndex(s, ".v")
	if i < 0 {
		return "", 0, false
	}
	_, err := fmt.Sscanf(s[i+2:], "%d", &version)
	return s[:i], version, err == nil
}

func writeMissing(t *testing.T, file string, content []byte) {
	t.Helper()
	if _, err := os.Stat(file); *update && os.IsNotExist(err) {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// secondReader is the schema as an implementation reads it that shares no code with the codec's.
func secondReader(t testing.TB, typ events.Type, version int) *twmb.Schema {
	t.Helper()
	text, err := fs.ReadFile(schemas.Avro(), File(typ, version))
	if err != nil {
		t.Fatal(err)
	}
	s, err := twmb.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", File(typ, version), err)
	}
	return s
}

// twin is a body as Avro's JSON encoding, indented, by the second reader.
func twin(t testing.TB, typ events.Type, version int, body []byte) []byte {
	t.Helper()
	s := secondReader(t, typ, version)
	var v any
	rest, err := s.Decode(body, &v)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%s v%d: the second reader: %v, %d bytes left", typ, version, err, len(rest))
	}
	text, err := s.EncodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}
