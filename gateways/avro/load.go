package avro

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	hamba "github.com/hamba/avro/v2"

	"github.com/sluice-platform/sluice/events"
)

// File is where the schema of one version of an event type stands: <domain>/<name>.v<version>.avsc.
func File(t events.Type, schema int) string {
	domain, name, _ := strings.Cut(string(t), ".")
	return fmt.Sprintf("%s/%s.v%d.avsc", domain, name, schema)
}

func parse(schemas fs.FS, t events.Type, version int) (hamba.Schema, error) {
	text, err := fs.ReadFile(schemas, File(t, version))
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", version, err)
	}
	// A cache of its own: files share names such as Payload, which may differ between versions.
	s, err := hamba.ParseBytesWithCache(text, "", &hamba.SchemaCache{})
	if err != nil {
		return nil, fmt.Errorf("schema %d: %s: %w", version, File(t, version), err)
	}
	return s, nil
}

var timeType = reflect.TypeFor[events.Time]()

// fits says that a schema and a Go type are the same thing, field by field, in both directions. The library would
// leave out a field that the schema lacks, and fill in one that the struct lacks, without a word.
func fits(s hamba.Schema, t reflect.Type) error {
	want := func(ok bool) error {
		if !ok {
			return fmt.Errorf("a Go %[2]s is not what Avro %[1]s holds", s.Type(), t)
		}
		return nil
	}
	switch s := s.(type) {
	case *hamba.RefSchema:
		return fits(s.Schema(), t)
	case *hamba.PrimitiveSchema:
		micros := s.Logical() != nil && s.Logical().Type() == hamba.TimestampMicros
		if micros != (t == timeType) {
			return fmt.Errorf("timestamp-micros and events.Time belong together, not Avro %s with a Go %s", s, t)
		}
		if s.Type() == hamba.Bytes {
			return want(t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8)
		}
		return want(t.Kind() == primitives[s.Type()])
	case *hamba.FixedSchema:
		return want(t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8 && t.Len() == s.Size())
	case *hamba.ArraySchema:
		if err := want(t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8); err != nil {
			return err
		}
		return fits(s.Items(), t.Elem())
	case *hamba.RecordSchema:
		if err := want(t.Kind() == reflect.Struct); err != nil {
			return err
		}
		return fitFields(s, t)
	}
	// Maps are written in random order, unions need pointers, and a closed set of symbols cannot grow without
	// breaking the readers of yesterday's build: an event needs none of them.
	return fmt.Errorf("an Avro %s has no place in an event", s.Type())
}

var primitives = map[hamba.Type]reflect.Kind{
	hamba.Boolean: reflect.Bool, hamba.Int: reflect.Int32, hamba.Long: reflect.Int64,
	hamba.Double: reflect.Float64, hamba.String: reflect.String,
}

func fitFields(s *hamba.RecordSchema, t reflect.Type) error {
	fields := map[string]reflect.StructField{}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("avro")
		if name == "" || !f.IsExported() || f.Anonymous {
			return fmt.Errorf("%s.%s: a field of an event is exported and tagged with its avro name", t, f.Name)
		}
		fields[name] = f
	}
	for _, sf := range s.Fields() {
		f, ok := fields[sf.Name()]
		if !ok {
			return fmt.Errorf("%s has no field for %s", t, sf.Name())
		}
		if err := fits(sf.Type(), f.Type); err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		delete(fields, sf.Name())
	}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("avro"); fields[name].Name != "" {
			return fmt.Errorf("%s has no field for %s.%s", s.FullName(), t, fields[name].Name)
		}
	}
	return nil
}
