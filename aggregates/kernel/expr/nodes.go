package expr

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a part of a template: it appends its value to b, or says that it is absent.
type node interface {
	eval(e *evaluation, b []byte) (out []byte, absent bool, err *Error)
}

type constant []byte

func (c constant) eval(_ *evaluation, b []byte) ([]byte, bool, *Error) {
	return append(b, c...), false, nil
}

type objectNode []memberNode

type memberNode struct {
	name  []byte // quoted, with the colon
	value node
}

func (o objectNode) eval(e *evaluation, b []byte) ([]byte, bool, *Error) {
	b = append(b, '{')
	some := false
	for i := range o {
		before := len(b)
		if some {
			b = append(b, ',')
		}
		out, absent, err := o[i].value.eval(e, append(b, o[i].name...))
		if err != nil {
			return nil, false, err
		}
		if absent {
			b = b[:before]
			continue
		}
		b, some = out, true
	}
	return append(b, '}'), false, nil
}

type arrayNode []node

func (a arrayNode) eval(e *evaluation, b []byte) ([]byte, bool, *Error) {
	b = append(b, '[')
	some := false
	for _, n := range a {
		before := len(b)
		if some {
			b = append(b, ',')
		}
		out, absent, err := n.eval(e, b)
		if err != nil {
			return nil, false, err
		}
		if absent {
			b = b[:before]
			continue
		}
		b, some = out, true
	}
	return append(b, ']'), false, nil
}

// exprNode is a text that is one whole expression: its value keeps its type.
type exprNode struct {
	expr  int
	place string
}

func (n exprNode) eval(e *evaluation, b []byte) ([]byte, bool, *Error) {
	o, err := e.run(n.expr, n.place)
	if err != nil || o.absent {
		return b, err == nil, err
	}
	if len(b)+len(o.text) > outputMax {
		return nil, false, tooLarge(n.place)
	}
	return append(b, o.text...), false, nil
}

func tooLarge(place string) *Error {
	return &Error{CodeTooLarge, place, fmt.Sprintf("the mapping comes to more than %d bytes", outputMax)}
}

// textNode is a text with expressions in it.
type textNode struct {
	parts []textPart
	place string
}

type textPart struct {
	literal string
	expr    int // -1: the literal
}

func (n textNode) eval(e *evaluation, b []byte) ([]byte, bool, *Error) {
	var text []byte
	for _, p := range n.parts {
		if p.expr < 0 {
			text = append(text, p.literal...)
			continue
		}
		o, err := e.run(p.expr, n.place)
		if err != nil {
			return nil, false, err
		}
		if len(b)+len(text)+len(o.text) > outputMax {
			return nil, false, tooLarge(n.place)
		}
		switch {
		case o.absent:
		case len(o.text) > 0 && o.text[0] == '"':
			var bad error
			if text, bad = jsontext.AppendUnquote(text, o.text); bad != nil {
				return nil, false, &Error{CodeJSON, n.place, bad.Error()}
			}
		default:
			text = append(text, o.text...)
		}
	}
	out, err := jsontext.AppendQuote(b, text)
	if err != nil {
		return nil, false, &Error{CodeFailed, n.place, "the text is not UTF-8"}
	}
	return out, false, nil
}
