// Package avro is events.Codec over Avro: bodies are the binary encoding of the schemas embedded in the build.
// It never asks a registry, and never lets bytes it has not walked reach the decoder: a damaged body is an error,
// not a panic and not an allocation of whatever size the damage claims.
package avro

import (
	"fmt"
	"io/fs"
	"reflect"
	"sync"

	hamba "github.com/hamba/avro/v2"
	"github.com/modern-go/reflect2"

	"github.com/sluice-platform/sluice/events"
)

const (
	// bodyMax is the longest body that a commit's framing can hold. It is not events.EventsBytesMax: that limit may
	// be lowered, and what was written before must still be read.
	bodyMax = 1<<24 - 1
	// keptMax is the largest buffer that is kept between calls; larger ones are rare and go to the collector.
	keptMax = 64 << 10
	// blockItems is how many items a list's block holds: all of them, so that a decoder allocates once.
	blockItems = 1 << 20
)

// Codec encodes and decodes every event type it was built with. It is immutable and safe for concurrent use.
type Codec struct {
	kinds   map[events.Type]*kind
	writers sync.Pool
	jobs    sync.Pool
}

// kind is one event type: how today's struct is written, and how each version is read.
type kind struct {
	name     events.Type
	rtype    uintptr // of the struct, so that no other memory is ever read as one
	encode   hamba.ValEncoder
	read     func(fill func(into any) error) (events.Event, error)
	tidy     func(reflect.Value) // nil: the struct has no lists
	versions []version           // of schema 1, 2, …
}

// version reads bodies of one schema into today's struct.
type version struct {
	shape  *shape   // of the bytes as written
	ups    []upcast // none for most
	decode hamba.ValDecoder
}

var _ events.Codec = (*Codec)(nil)

// New builds a codec for the given types from a tree of schemas as schemas.Avro describes it. An error names the
// type and the file that is missing, unreadable, unlike the Go struct, or incompatible with an earlier version.
func New(types []events.Registration, schemas fs.FS) (*Codec, error) {
	api := hamba.Config{
		MaxByteSliceSize:       bodyMax,
		MaxSliceAllocSize:      bodyMax,
		BlockLength:            blockItems,
		DisableBlockSizeHeader: true,
	}.Freeze()
	api.RegisterTypeConverters(plainTime)
	c := &Codec{kinds: make(map[events.Type]*kind, len(types))}
	for _, r := range types {
		if c.kinds[r.Type] != nil {
			return nil, fmt.Errorf("event type %s is given twice", r.Type)
		}
		k, err := newKind(api, r, schemas)
		if err != nil {
			return nil, fmt.Errorf("event type %s: %w", r.Type, err)
		}
		c.kinds[r.Type] = k
	}
	c.writers.New = func() any { return hamba.NewWriter(nil, 512, hamba.WithWriterConfig(api)) }
	c.jobs.New = func() any { return newJob(hamba.NewReader(nil, 0, hamba.WithReaderConfig(api))) }
	return c, nil
}

func newKind(api hamba.API, r events.Registration, schemas fs.FS) (*kind, error) {
	parsed := make([]hamba.Schema, r.Schema)
	for i := range parsed {
		var err error
		if parsed[i], err = parse(schemas, r.Type, i+1); err != nil {
			return nil, err
		}
	}
	into, err := structOf(r)
	if err != nil {
		return nil, err
	}
	today := parsed[len(parsed)-1]
	if err := fits(today, into.Elem()); err != nil {
		return nil, fmt.Errorf("schema %d: %w", r.Schema, err)
	}
	typ := reflect2.Type2(into.Elem())
	k := &kind{
		name: r.Type, rtype: typ.RType(), read: r.Read,
		encode:   api.EncoderOf(today, typ),
		tidy:     tidierOf(into.Elem()),
		versions: make([]version, len(parsed)),
	}
	for i := range parsed {
		if k.versions[i], err = newVersion(api, r, parsed, i+1, into); err != nil {
			return nil, fmt.Errorf("schema %d: %w", i+1, err)
		}
	}
	return k, nil
}

// structOf asks a registration what it reads into.
func structOf(r events.Registration) (pointer reflect.Type, err error) {
	if r.Read == nil || r.Schema < 1 {
		return nil, fmt.Errorf("the registration has no reader, or no schema (version %d)", r.Schema)
	}
	if _, err := r.Read(func(into any) error { pointer = reflect.TypeOf(into); return nil }); err != nil {
		return nil, fmt.Errorf("the registration cannot make its event: %w", err)
	}
	if pointer == nil || pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("the registration reads into %v, not a pointer to a struct", pointer)
	}
	return pointer, nil
}

// Encode appends e's body in today's schema. events.ErrUnknownEvent, wrapped, for a type that the codec was not
// built with. The same event gives the same bytes for as long as its schema is today's.
func (c *Codec) Encode(dst []byte, e events.Event) ([]byte, error) {
	if e == nil {
		return dst, fmt.Errorf("encode nothing: %w", events.ErrUnknownEvent)
	}
	k := c.kinds[e.EventType()]
	if k == nil {
		return dst, fmt.Errorf("%s: %w", e.EventType(), events.ErrUnknownEvent)
	}
	if reflect2.RTypeOf(e) != k.rtype {
		return dst, fmt.Errorf("%s is given as %T, which is not the struct it was registered with", k.name, e)
	}
	w := c.writers.Get().(*hamba.Writer)
	w.Reset(nil)
	w.Error = nil
	k.encode.Encode(reflect2.PtrOf(e), w)
	err := w.Error
	if err == nil {
		dst = append(dst, w.Buffer()...)
	} else {
		err = fmt.Errorf("%s: %w", k.name, err)
	}
	if cap(w.Buffer()) <= keptMax {
		c.writers.Put(w)
	}
	return dst, err
}

// Decode reads a body of any schema version of this build into today's struct. events.ErrUnknownEvent, wrapped, for
// another type or version; events.ErrDamagedCommit, wrapped, for bytes that are not a body of that schema, to the
// last byte. Empty lists are nil. The event shares nothing with body.
func (c *Codec) Decode(t events.Type, schema int, body []byte) (events.Event, error) {
	k := c.kinds[t]
	if k == nil || schema < 1 || schema > len(k.versions) {
		return nil, fmt.Errorf("%s of schema %d: %w", t, schema, events.ErrUnknownEvent)
	}
	v := &k.versions[schema-1]
	if err := v.shape.check(body); err != nil {
		return nil, fmt.Errorf("%s of schema %d: %w", t, schema, err)
	}
	body, err := raise(v.ups, body)
	if err != nil {
		return nil, fmt.Errorf("%s of schema %d: %w", t, schema, err)
	}
	j := c.jobs.Get().(*job)
	e, err := j.run(k, v, body)
	c.jobs.Put(j)
	if err != nil {
		return nil, fmt.Errorf("%s of schema %d: %w", t, schema, err)
	}
	return e, nil
}

// job is one decoding. It is kept between calls because its method value would else be an allocation each.
type job struct {
	r    *hamba.Reader
	fill func(into any) error
	k    *kind
	v    *version
}

func newJob(r *hamba.Reader) *job {
	j := &job{r: r}
	j.fill = j.into
	return j
}

func (j *job) run(k *kind, v *version, body []byte) (events.Event, error) {
	j.k, j.v = k, v
	j.r.Reset(body)
	j.r.Error = nil
	e, err := k.read(j.fill)
	j.r.Reset(nil)
	return e, err
}

func (j *job) into(into any) error {
	j.v.decode.Decode(reflect2.PtrOf(into), j.r)
	// Every error counts, io.EOF too: hamba's own Unmarshal takes a body that ends early for a whole one.
	if j.r.Error != nil {
		return fmt.Errorf("%w: %w", events.ErrDamagedCommit, j.r.Error)
	}
	if j.k.tidy != nil {
		j.k.tidy(reflect.ValueOf(into).Elem())
	}
	return nil
}
