package avro

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	hamba "github.com/hamba/avro/v2"
	"github.com/modern-go/reflect2"

	"github.com/sluice-platform/sluice/events"
)

// upcast is one step that Avro's own resolution cannot make: bytes of one schema, to fields, to bytes of the next.
// Steps without a function need no entry: the next decoder resolves over them, with the defaults of the schemas.
type upcast struct {
	from int
	up   func(fields map[string]any)
	in   func(body []byte, into *map[string]any) error
	out  func(fields map[string]any) ([]byte, error)
	next *shape
}

// newVersion prepares reading schema v of all: through the registered functions where there are any, each given
// exactly the fields of the version it starts from and held to those of the next.
func newVersion(api hamba.API, r events.Registration, all []hamba.Schema, v int, into reflect.Type) (version, error) {
	written := all[v-1]
	shape, err := shapeOf(written)
	if err != nil {
		return version{}, err
	}
	one := version{shape: shape}
	for from := v; from < len(all); from++ {
		up := r.Upcast[from]
		if up == nil {
			continue
		}
		in, err := resolve(all[from-1], written)
		if err != nil {
			return version{}, fmt.Errorf("to schema %d: %w", from, err)
		}
		written = all[from]
		next, err := shapeOf(written)
		if err != nil {
			return version{}, fmt.Errorf("to schema %d: %w", from+1, err)
		}
		one.ups = append(one.ups, upcast{
			from: from, up: up, next: next,
			in:  func(body []byte, into *map[string]any) error { return unmarshal(api, in, body, into) },
			out: func(fields map[string]any) ([]byte, error) { return api.Marshal(all[from], fields) },
		})
	}
	resolved, err := resolve(all[len(all)-1], written)
	if err != nil {
		return version{}, fmt.Errorf("to schema %d: %w", len(all), err)
	}
	one.decode = api.DecoderOf(resolved, reflect2.Type2(into))
	return one, nil
}

func resolve(reader, writer hamba.Schema) (hamba.Schema, error) {
	if reader.Fingerprint() == writer.Fingerprint() {
		return reader, nil // resolution would only lose the reader's logical types
	}
	return hamba.NewSchemaCompatibility().Resolve(reader, writer)
}

// raise carries a walked body over the steps. A function that fails, by panic too, is an error of this body only:
// functions are ours, the values they meet are history's.
func raise(steps []upcast, body []byte) (out []byte, err error) {
	if len(steps) == 0 {
		return body, nil
	}
	var at int
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("upcast from schema %d: panic: %v", at, p)
		}
	}()
	for _, s := range steps {
		at = s.from
		var fields map[string]any
		if err := s.in(body, &fields); err != nil {
			return nil, fmt.Errorf("upcast from schema %d: %w", s.from, err)
		}
		s.up(fields)
		if body, err = s.out(fields); err == nil {
			err = s.next.check(body)
		}
		if err != nil {
			return nil, fmt.Errorf("upcast from schema %d does not yield schema %d: %w", s.from, s.from+1, err)
		}
	}
	return body, nil
}

func unmarshal(api hamba.API, s hamba.Schema, body []byte, into *map[string]any) error {
	r := hamba.NewReader(nil, 0, hamba.WithReaderConfig(api)).Reset(body)
	r.ReadVal(s, into)
	if r.Error != nil {
		return fmt.Errorf("%w: %w", events.ErrDamagedCommit, r.Error)
	}
	return nil
}

// plainTime gives upcasters the microseconds that events.Time counts, where the library would give a time.Time.
var plainTime = hamba.TypeConversionFuncs{
	AvroType: hamba.Long, AvroLogicalType: hamba.TimestampMicros,
	DecoderTypeConversion: func(in any, _ hamba.Schema) (any, error) {
		t, ok := in.(time.Time)
		if !ok {
			return nil, errors.New("timestamp-micros without a time")
		}
		return t.UnixMicro(), nil
	},
}
