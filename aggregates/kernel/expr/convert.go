package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// number reads an integer that fits as int64; one that does not must be exact as a double. Other numbers are doubles,
// as in every JSON reader, unless they are beyond their range. nil: it is none of these.
func number(s string) ref.Val {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return types.Int(i)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	if strings.ContainsAny(s, ".eE") {
		significand, _, _ := strings.Cut(strings.ToLower(s), "e")
		if f == 0 && strings.ContainsAny(significand, "123456789") { // too small for a double
			return nil
		}
		return types.Double(f)
	}
	exact, _ := new(big.Float).SetFloat64(f).Int(nil)
	if len(s) > 400 || exact.String() != s { // no double has more than 309 digits
		return nil
	}
	return types.Double(f)
}

// write writes a result as JSON, maps with their keys sorted; an optional without a value is absent.
func (f *formula) write(v ref.Val) (text []byte, absent bool, wrong *Error) {
	if o, ok := v.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, true, nil
		}
		v = o.GetValue()
	}
	text, err := appendValue(nil, v, 0)
	if ours := (*Error)(nil); errors.As(err, &ours) {
		return nil, false, &Error{Code: ours.Code, Detail: fmt.Sprintf("expression %.200s: %s", f.text, ours.Detail)}
	}
	if err != nil {
		return nil, false, &Error{Code: CodeType, Detail: fmt.Sprintf("expression %.200s: %v", f.text, err)}
	}
	return text, false, nil
}

func appendValue(b []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > depthMax {
		return nil, &Error{Code: CodeTooLarge, Detail: fmt.Sprintf("the result is nested more than %d deep", depthMax)}
	}
	if len(b) > outputMax {
		return nil, &Error{Code: CodeTooLarge, Detail: fmt.Sprintf("the result has more than %d bytes", outputMax)}
	}
	switch v := v.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(b, uint64(v), 10), nil
	case types.Double:
		return appendDouble(b, float64(v))
	case types.String:
		return jsontext.AppendQuote(b, string(v))
	case types.Timestamp:
		return jsontext.AppendQuote(b, v.Time.UTC().Format(time.RFC3339Nano))
	case *types.Err:
		return nil, v
	case *types.Optional:
		return nil, fmt.Errorf("an optional value stands within an optional value")
	case traits.Mapper:
		return appendMap(b, v, depth)
	case traits.Lister:
		return appendList(b, v, depth)
	default:
		return nil, fmt.Errorf("a %s is no JSON value; write string(…)", v.Type().TypeName())
	}
}

// appendDouble writes the shortest digits that read back as the same number (ECMA-262 §6.1.6.1.20's choice of forms).
func appendDouble(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is no JSON number", f)
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(b, f, form, -1, 64), nil
}

// present takes what is optional out of its wrapping; ok is false for what is not there and is left out.
func present(v ref.Val) (_ ref.Val, ok bool) {
	if o, is := v.(*types.Optional); is {
		if !o.HasValue() {
			return nil, false
		}
		return o.GetValue(), true
	}
	return v, true
}

func appendList(b []byte, l traits.Lister, depth int) (_ []byte, err error) {
	n, ok := l.Size().(types.Int)
	if !ok {
		return nil, fmt.Errorf("the result is a list without a size")
	}
	b = append(b, '[')
	some := false
	for i := range n {
		v, there := present(l.Get(i))
		if !there {
			continue
		}
		if some {
			b = append(b, ',')
		}
		if b, err = appendValue(b, v, depth+1); err != nil {
			return nil, err
		}
		some = true
	}
	return append(b, ']'), nil
}

// appendMap relies on every map's being gone through in the order of its keys.
func appendMap(b []byte, m traits.Mapper, depth int) (_ []byte, err error) {
	if o, ok := m.(*object); ok {
		if err := o.d.open(); err != nil {
			return nil, err
		}
	}
	b = append(b, '{')
	some := false
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the result is a map with keys that are no texts")
		}
		v, there := present(m.Get(key))
		if !there {
			continue
		}
		if some {
			b = append(b, ',')
		}
		if b, err = jsontext.AppendQuote(b, string(name)); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), v, depth+1); err != nil {
			return nil, err
		}
		some = true
	}
	return append(b, '}'), nil
}
