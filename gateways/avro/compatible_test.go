package avro

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	hamba "github.com/hamba/avro/v2"
	twmb "github.com/twmb/avro"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/schemas"
)

// backwardTransitive holds each of one type's schemas, in order of version, against every earlier one: by the
// library that reads the log, and by a second one, because each lets through what the other refuses.
func backwardTransitive(versions []string) error {
	for reader := range versions {
		for writer := range reader {
			if err := readable(versions[reader], versions[writer]); err != nil {
				return fmt.Errorf("version %d cannot read version %d: %w", reader+1, writer+1, err)
			}
		}
	}
	return nil
}

func readable(reader, writer string) error {
	r, err := hamba.ParseBytesWithCache([]byte(reader), "", &hamba.SchemaCache{})
	if err != nil {
		return err
	}
	w, err := hamba.ParseBytesWithCache([]byte(writer), "", &hamba.SchemaCache{})
	if err != nil {
		return err
	}
	if err := hamba.NewSchemaCompatibility().Compatible(r, w); err != nil {
		return err
	}
	r2, err := twmb.Parse(reader)
	if err != nil {
		return err
	}
	w2, err := twmb.Parse(writer)
	if err != nil {
		return err
	}
	return twmb.CheckCompatibility(w2, r2)
}

func TestBackwardTransitive(t *testing.T) {
	for _, r := range events.Registered() {
		var versions []string
		for v := 1; v <= r.Schema; v++ {
			text, err := fs.ReadFile(schemas.Avro(), File(r.Type, v))
			if err != nil {
				t.Fatal(err)
			}
			versions = append(versions, string(text))
		}
		if err := backwardTransitive(versions); err != nil {
			t.Errorf("%s: %v", r.Type, err)
		}
	}
}

func TestBackwardTransitiveOfPlanted(t *testing.T) {
	rec := func(name string, fields ...string) string {
		return fmt.Sprintf(`{"type":"record","namespace":"test","name":%q,"fields":[%s]}`, name, strings.Join(fields, ","))
	}
	const (
		second = "version 2 cannot read version 1"
		a      = `{"name":"a","type":"int"}`
		aLong  = `{"name":"a","type":"long"}`
		aText  = `{"name":"a","type":"string"}`
		b      = `{"name":"b","type":"int"}`
		bOr    = `{"name":"b","type":"int","default":0}`
		hash   = `{"name":"h","type":{"type":"fixed","name":"Hash","size":32}}`
		short  = `{"name":"h","type":{"type":"fixed","name":"Hash","size":16}}`
		list   = `{"name":"l","type":{"type":"array","items":"long"}}`
		narrow = `{"name":"l","type":{"type":"array","items":"int"}}`
	)
	for name, c := range map[string]struct {
		wants    string // in the error; empty: compatible
		versions []string
	}{
		"a field with a default is added":    {"", []string{rec("E", a), rec("E", a, bOr)}},
		"a field is removed":                 {"", []string{rec("E", a, b), rec("E", a)}},
		"an int becomes a long":              {"", []string{rec("E", a), rec("E", aLong)}},
		"a field without a default is added": {second, []string{rec("E", a), rec("E", a, b)}},
		"an int becomes a string":            {second, []string{rec("E", a), rec("E", aText)}},
		"a long becomes an int":              {second, []string{rec("E", aLong), rec("E", a)}},
		"a hash becomes shorter":             {second, []string{rec("E", hash), rec("E", short)}},
		"a list's items become narrower":     {second, []string{rec("E", list), rec("E", narrow)}},
		"the record is renamed":              {second, []string{rec("E", a), rec("F", a)}},
		"a removed field returns, undefaulted": {"version 3 cannot read version 2", []string{
			rec("E", a, b), rec("E", a), rec("E", a, b),
		}},
		"each step holds and the first and last do not": {"version 3 cannot read version 1", []string{
			rec("E", a), rec("E", a, bOr), rec("E", a, b),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := backwardTransitive(c.versions)
			if (err == nil) != (c.wants == "") || err != nil && !strings.Contains(err.Error(), c.wants) {
				t.Fatalf("got %v, want %q", err, c.wants)
			}
		})
	}
}
