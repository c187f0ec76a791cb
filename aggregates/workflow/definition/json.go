package definition

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// fromJSON reads strict JSON: unique names, no lone surrogates, UTF-8 only. What does not keep the rest from being
// read is told with all else; nil stands for a text that is not JSON.
func fromJSON(raw []byte, ps *problems) *node {
	r := jsonReader{
		raw: raw, problems: ps,
		d: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)),
	}
	n, err := r.value("", 0)
	if err == nil {
		at := r.start()
		if _, err = r.d.ReadToken(); errors.Is(err, io.EOF) {
			return n
		}
		if err == nil {
			line, column := r.place(at)
			ps.add(Problem{
				Code: "bad_json", Line: line, Column: column, Detail: "there is more behind the definition; send one JSON object",
			})
			return n
		}
	}
	p := Problem{Code: "bad_json", Pointer: string(r.d.StackPointer()), Detail: strings.TrimPrefix(err.Error(),
		"jsontext: ")}
	at := r.start()
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		at, p.Pointer, p.Detail = syntax.ByteOffset, string(syntax.JSONPointer), syntax.Err.Error()
	}
	if errors.Is(err, errDeep) {
		p.Code = "too_deep"
	}
	p.Line, p.Column = r.place(at)
	ps.add(p)
	return nil
}

var errDeep = errors.New(tooDeep)

type jsonReader struct {
	raw      []byte
	d        *jsontext.Decoder
	problems *problems
	// The place of an offset is counted on from the last one asked for.
	at           int64
	line, column int
}

// place counts lines and columns from 1, a character beyond ASCII as one.
func (r *jsonReader) place(offset int64) (line, column int) {
	if offset < r.at {
		r.at, r.line, r.column = 0, 0, 0
	}
	for ; r.at < min(offset, int64(len(r.raw))); r.at++ {
		switch c := r.raw[r.at]; {
		case c == '\n':
			r.line, r.column = r.line+1, 0
		case c&0xc0 != 0x80:
			r.column++
		}
	}
	return r.line + 1, r.column + 1
}

// start is where the next token begins.
func (r *jsonReader) start() int64 {
	at := r.d.InputOffset()
	for at < int64(len(r.raw)) && strings.IndexByte(" \t\r\n,:", r.raw[at]) >= 0 {
		at++
	}
	return at
}

func (r *jsonReader) value(pointer string, depth int) (n *node, err error) {
	if depth > depthMax {
		return nil, errDeep
	}
	n = &node{}
	n.line, n.column = r.place(r.start())
	t, err := r.d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		n.kind = object
		return n, r.object(n, pointer, depth)
	case '[':
		n.kind = array
		for r.d.PeekKind() != ']' {
			item, err := r.value(pointer+"/"+itoa(len(n.items)), depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = r.d.ReadToken()
	case '"':
		n.kind, n.text = text, t.String()
		if why := badText(n.text); why != "" {
			r.problems.at(n, pointer, "bad_text", why)
			n.kind = broken
		}
	case '0':
		n.kind, n.text = number, t.String()
	case 't', 'f':
		n.kind, n.text = boolean, t.String()
	default:
		n.kind = null
	}
	return n, err
}

func (r *jsonReader) object(n *node, pointer string, depth int) error {
	seen := map[string]bool{}
	for r.d.PeekKind() != '}' {
		m := member{}
		m.line, m.column = r.place(r.start())
		name, err := r.d.ReadToken()
		if err != nil {
			return err
		}
		m.name = name.String()
		at := pointer + "/" + escape(m.name)
		if m.value, err = r.value(at, depth+1); err != nil {
			return err
		}
		switch why := badText(m.name); {
		case why != "":
			r.problems.at(m.place(), at, "bad_text", why)
		case seen[m.name]:
			r.problems.at(m.place(), at, "duplicate_key", "this key stands twice; keep one")
		default:
			seen[m.name] = true
			n.members = append(n.members, m)
		}
	}
	_, err := r.d.ReadToken()
	return err
}
