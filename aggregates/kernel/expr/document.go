package expr

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json/jsontext"
)

// document is a JSON text, or a part of one, that is opened level by level and only as far as it is read. Each level
// is opened once an evaluation. Paths copy its text; CEL sees it as a value.
type document struct {
	raw  []byte // without white space around it
	up   *document
	at   int    // in up
	root string // without up: what it is

	opened bool
	err    *Error
	object bool
	parts  []document     // members or items, as they stand in the text
	names  []string       // of members
	index  map[string]int // of members, where there are many
	cel    ref.Val
}

// indexMin is from how many members on they are found by an index; fewer are looked through.
const indexMin = 16

func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// String is the path of the document.
func (d *document) String() string {
	switch {
	case d.up == nil:
		return d.root
	case d.at < len(d.up.names):
		return d.up.String() + byName(d.up.names[d.at])
	default:
		return d.up.String() + "[" + strconv.Itoa(d.at) + "]"
	}
}

func (d *document) level() (n int) {
	for at := d.up; at != nil; at = at.up {
		n++
	}
	return n
}

func (d *document) wrong(format string, args ...any) *Error {
	return &Error{Code: CodeJSON, Detail: d.String() + " is not JSON: " + fmt.Sprintf(format, args...)}
}

// open reads one level. The names of an object are unique and its texts UTF-8, as everywhere in the platform.
func (d *document) open() *Error {
	if d.opened {
		return d.err
	}
	d.opened = true
	switch {
	case len(d.raw) == 0:
		d.err = d.wrong("it is empty")
	case d.level() > depthMax:
		d.err = d.wrong("it is nested more than %d deep", depthMax)
	case d.raw[0] != '{' && d.raw[0] != '[':
		if !jsontext.Value(d.raw).IsValid() {
			d.err = d.wrong("it is no value")
		}
	default:
		if err := d.read(); err != nil {
			d.parts, d.names, d.index, d.err = nil, nil, nil, d.wrong("%v", err)
		}
	}
	return d.err
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

func (d *document) read() error {
	dec := decoders.Get().(*jsontext.Decoder)
	defer func() {
		dec.Reset(bytes.NewBuffer(nil)) // hold on to no document
		decoders.Put(dec)
	}()
	dec.Reset(bytes.NewBuffer(d.raw))
	start, err := dec.ReadToken()
	if err != nil {
		return err
	}
	d.object = start.Kind() == '{'
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		if d.object {
			name, err := dec.ReadToken()
			if err != nil {
				return err
			}
			d.names = append(d.names, name.String())
		}
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := dec.InputOffset()
		d.parts = append(d.parts, document{up: d, at: len(d.parts), raw: d.raw[end-int64(len(v)) : end : end]})
	}
	if _, err = dec.ReadToken(); err != nil {
		return err
	}
	if int(dec.InputOffset()) != len(d.raw) {
		return fmt.Errorf("there is more behind the value")
	}
	if len(d.names) >= indexMin {
		d.index = make(map[string]int, len(d.names))
		for i, name := range d.names {
			d.index[name] = i
		}
	}
	return nil
}

// member finds a member of an open object, nil for none.
func (d *document) member(name string) *document {
	i, ok := d.index[name]
	if d.index == nil {
		i = slices.Index(d.names, name)
		ok = i >= 0
	}
	if !ok {
		return nil
	}
	return &d.parts[i]
}

// item finds an item of an open list, nil for none.
func (d *document) item(i int) *document {
	if d.object || i >= len(d.parts) {
		return nil
	}
	return &d.parts[i]
}

// byName is how an expression takes a member.
func byName(name string) string {
	if plain(name) {
		return "." + name
	}
	return fmt.Sprintf("[%.60q]", name)
}

// value is the document as CEL knows it. What cannot be one, such as a number that is neither int64 nor double, is an
// error value: only an expression that uses it fails.
func (d *document) value() ref.Val {
	if d.cel == nil {
		d.cel = d.celValue()
	}
	return d.cel
}

func (d *document) celValue() ref.Val {
	if len(d.raw) == 0 {
		return types.WrapErr(d.open())
	}
	switch d.raw[0] {
	case '{':
		return &object{d}
	case '[':
		if err := d.open(); err != nil {
			return types.WrapErr(err)
		}
		items := make([]ref.Val, len(d.parts))
		for i := range d.parts {
			items[i] = d.parts[i].value()
		}
		return types.NewRefValList(ordered{}, items)
	case '"':
		if text, err := jsontext.AppendUnquote(nil, d.raw); err == nil {
			return types.String(text)
		}
	}
	switch err := d.open(); {
	case err != nil:
		return types.WrapErr(err)
	case d.raw[0] == 'n':
		return types.NullValue
	case d.raw[0] == 't' || d.raw[0] == 'f':
		return types.Bool(d.raw[0] == 't')
	}
	if n := number(string(d.raw)); n != nil {
		return n
	}
	return types.WrapErr(&Error{Code: CodeRange, Detail: fmt.Sprintf(
		"%s is %.60s, which is neither an int64 nor exactly a double; a path alone copies it as it is", d, d.raw)})
}
