package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Codes of violations that are no keywords.
const (
	CodeJSON      = "bad_json"
	CodeRange     = "number_out_of_range"
	CodeDepth     = "too_deep"
	CodeUnchecked = "unchecked"
)

// fault is why a text is not looked at any further.
type fault struct{ pointer, code, detail string }

// walk reads a JSON text strictly (unique names, UTF-8, one value) and shows each token to see, with the name of the
// member whose value it is. Numbers out of bounds are refused here: the checker panics on an exponent it cannot keep.
func walk(raw []byte, depthMax int, see func(d *jsontext.Decoder, member string, t jsontext.Token) *fault) *fault {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		t, err := d.ReadToken()
		at := string(d.StackPointer())
		switch {
		case errors.Is(err, io.EOF) && d.InputOffset() > 0:
			return nil
		case err != nil:
			return &fault{at, CodeJSON, err.Error()}
		case d.StackDepth() > depthMax:
			return &fault{at, CodeDepth, fmt.Sprintf("this is nested more than %d deep", depthMax)}
		case t.Kind() == '0' && !bounded(t.String()):
			return &fault{at, CodeRange, fmt.Sprintf(
				"a number has at most %d digits and an exponent of at most %d", DigitsMax, ExponentMax)}
		}
		if see == nil {
			continue
		}
		member := ""
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 0 && t.Kind() != '}' {
			member = at[strings.LastIndexByte(at, '/')+1:]
		}
		if f := see(d, member, t); f != nil {
			return f
		}
	}
}

// bounded says that a number can be compared exactly at little cost.
func bounded(number string) bool {
	mantissa, exponent, has := strings.Cut(strings.ToLower(number), "e")
	if len(mantissa) > DigitsMax+len("-.") {
		return false
	}
	if !has {
		return true
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && -ExponentMax <= n && n <= ExponentMax
}
