package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	hamba "github.com/hamba/avro/v2"

	"github.com/sluice-platform/sluice/events"
)

// shape is a schema reduced to what decides how many bytes a value takes. Walking a body by it allocates nothing.
// The decoder believes lengths and counts: it would make a list of a claimed length before it reads the first item,
// and a negative count leaves a slice of negative length behind. So it is only given bodies that were walked.
type shape struct {
	form  form
	size  int      // of fixed-width values
	least int      // bytes that the shortest value takes
	parts []*shape // fields of a record, branches of a union, the item of an array or map
}

type form uint8

const (
	fixedWidth form = iota
	boolean
	int32s
	int64s
	sized // string, bytes
	record
	union
	array
	mapping
)

var errRecursive = errors.New("a schema that refers to itself has no bounded depth")

// shapeOf reduces s. open holds the records that s stands in.
func shapeOf(s hamba.Schema, open ...string) (*shape, error) {
	switch s := s.(type) {
	case *hamba.RefSchema:
		return shapeOf(s.Schema(), open...)
	case *hamba.NullSchema:
		return &shape{form: fixedWidth}, nil
	case *hamba.FixedSchema:
		return &shape{form: fixedWidth, size: s.Size(), least: s.Size()}, nil
	case *hamba.EnumSchema:
		return &shape{form: int32s, least: 1}, nil
	case *hamba.PrimitiveSchema:
		return primitiveShape(s.Type())
	case *hamba.ArraySchema:
		return listShape(array, s.Items(), open)
	case *hamba.MapSchema:
		return listShape(mapping, s.Values(), open)
	case *hamba.UnionSchema:
		u := &shape{form: union, least: 1}
		return u, u.add(open, s.Types()...)
	case *hamba.RecordSchema:
		for _, name := range open {
			if name == s.FullName() {
				return nil, fmt.Errorf("%s: %w", name, errRecursive)
			}
		}
		r := &shape{form: record}
		for _, f := range s.Fields() {
			if err := r.add(append(open[:len(open):len(open)], s.FullName()), f.Type()); err != nil {
				return nil, err
			}
		}
		for _, p := range r.parts {
			r.least += p.least
		}
		return r, nil
	}
	return nil, fmt.Errorf("an Avro %s has no known length", s.Type())
}

func (h *shape) add(open []string, schemas ...hamba.Schema) error {
	for _, s := range schemas {
		p, err := shapeOf(s, open...)
		if err != nil {
			return err
		}
		h.parts = append(h.parts, p)
	}
	return nil
}

func primitiveShape(t hamba.Type) (*shape, error) {
	switch t {
	case hamba.Boolean:
		return &shape{form: boolean, least: 1}, nil
	case hamba.Int:
		return &shape{form: int32s, least: 1}, nil
	case hamba.Long:
		return &shape{form: int64s, least: 1}, nil
	case hamba.Float:
		return &shape{form: fixedWidth, size: 4, least: 4}, nil
	case hamba.Double:
		return &shape{form: fixedWidth, size: 8, least: 8}, nil
	case hamba.String, hamba.Bytes:
		return &shape{form: sized, least: 1}, nil
	}
	return nil, fmt.Errorf("an Avro %s has no known length", t)
}

func listShape(f form, item hamba.Schema, open []string) (*shape, error) {
	l := &shape{form: f, least: 1}
	if err := l.add(open, item); err != nil {
		return nil, err
	}
	if l.parts[0].least == 0 && f == array {
		return nil, errors.New("a list of items that take no bytes has no bounded length")
	}
	return l, nil
}

// check returns events.ErrDamagedCommit, wrapped with the place, unless body is one whole value of the shape.
func (h *shape) check(body []byte) error {
	if len(body) > bodyMax {
		return fmt.Errorf("%w: a body of %d bytes", events.ErrDamagedCommit, len(body))
	}
	w := walk{b: body}
	w.value(h)
	if !w.bad && w.at < len(body) {
		return fmt.Errorf("%w: its body goes on after byte %d of %d", events.ErrDamagedCommit, w.at, len(body))
	}
	if w.bad {
		return fmt.Errorf("%w: its body breaks off at byte %d of %d", events.ErrDamagedCommit, w.at, len(body))
	}
	return nil
}

// walk is a place in a body; once bad it stays there.
type walk struct {
	b   []byte
	at  int
	bad bool
}

func (w *walk) left() int { return len(w.b) - w.at }

func (w *walk) value(h *shape) {
	switch h.form {
	case fixedWidth:
		w.skip(int64(h.size))
	case boolean:
		if w.skip(1); !w.bad && w.b[w.at-1] > 1 {
			w.bad = true
		}
	case int32s:
		if n := w.long(); n < math.MinInt32 || n > math.MaxInt32 {
			w.bad = true
		}
	case int64s:
		w.long()
	case sized:
		w.skip(w.long())
	case record:
		for _, p := range h.parts {
			if w.value(p); w.bad {
				return
			}
		}
	case union:
		if i := w.long(); i >= 0 && i < int64(len(h.parts)) {
			w.value(h.parts[i])
		} else {
			w.bad = true
		}
	case array, mapping:
		for w.block(h) {
		}
	}
}

// block walks one block of a list and says whether another may follow.
func (w *walk) block(h *shape) bool {
	n, size, end := w.long(), int64(-1), 0
	if n < 0 { // the count is negated and the block's bytes follow
		size = w.long()
		n, end = -n, w.at+int(min(max(size, 0), bodyMax+1))
	}
	least := h.parts[0].least
	if h.form == mapping {
		least++ // its key
	}
	if w.bad || n < 0 || n > int64(w.left()/least) {
		w.bad = true
		return false
	}
	for range n {
		if h.form == mapping {
			w.skip(w.long())
		}
		if w.value(h.parts[0]); w.bad {
			return false
		}
	}
	w.bad = size != -1 && w.at != end
	return n > 0 && !w.bad
}

func (w *walk) skip(n int64) {
	if w.bad || n < 0 || n > int64(w.left()) {
		w.bad = true
		return
	}
	w.at += int(n)
}

// long reads a zigzag varint; 0 when there is none.
func (w *walk) long() int64 {
	if w.bad {
		return 0
	}
	v, n := binary.Varint(w.b[w.at:])
	if n <= 0 {
		w.bad = true
		return 0
	}
	w.at += n
	return v
}
