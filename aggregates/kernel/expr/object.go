package expr

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// ordered is CEL's adapter of Go values, but for maps: CEL goes through those in Go's order, which is another one each
// time, and an expression must come to the same on every machine.
type ordered struct{}

func (ordered) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return sorted{types.NewStringInterfaceMap(ordered{}, v)}
	case map[ref.Val]ref.Val:
		return sorted{types.NewRefValMap(ordered{}, v)}
	case []ref.Val:
		return types.NewRefValList(ordered{}, v)
	default:
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
}

// sorted is a map that is gone through by its keys' order. It hides that CEL's own could be folded without one.
type sorted struct{ traits.Mapper }

func (m sorted) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return &walk{keys: keys}
}

// literal is a map that an expression writes out.
type literal struct {
	interpreter.InterpretableConstructor
}

func (l literal) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := l.InterpretableConstructor.Exec(f)
	if m, ok := v.(traits.Mapper); ok {
		return sorted{m}
	}
	return v
}

func (l literal) Eval(a interpreter.Activation) ref.Val { return interpreter.EvalActivation(a, l.Exec) }

// orderLiterals makes the maps that a program makes sorted.
func orderLiterals(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return literal{c}, nil
	}
	return i, nil
}

// compareKeys orders keys by type, then value; the keys of a CEL map are bools, ints, uints and texts.
func compareKeys(a, b ref.Val) int {
	if c := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if a, ok := a.(traits.Comparer); ok {
		if c, ok := a.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}

// walk goes through keys.
type walk struct {
	iterator
	keys []ref.Val
	at   int
}

func (w *walk) HasNext() ref.Val { return types.Bool(w.at < len(w.keys)) }

func (w *walk) Next() ref.Val {
	if w.at == len(w.keys) {
		return nil
	}
	w.at++
	return w.keys[w.at-1]
}

// iterator is what CEL wants of an iterator as a value; nothing asks for it.
type iterator struct{}

func (iterator) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an iterator is no %v", t)
}

func (iterator) ConvertToType(ref.Type) ref.Val { return types.NewErr("an iterator has no other type") }
func (iterator) Equal(ref.Val) ref.Val          { return types.False }
func (iterator) Type() ref.Type                 { return types.IteratorType }
func (iterator) Value() any                     { return nil }

// object is a JSON object that a document holds, as a CEL map.
type object struct{ d *document }

func (o *object) Find(key ref.Val) (ref.Val, bool) {
	if err := o.d.open(); err != nil {
		return types.WrapErr(err), false
	}
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	child := o.d.member(string(name))
	if child == nil {
		return nil, false
	}
	return child.value(), true
}

func (o *object) Get(key ref.Val) ref.Val {
	v, ok := o.Find(key)
	if !ok && v == nil {
		return types.NewErr("no such key: %v", key)
	}
	return v
}

func (o *object) Contains(key ref.Val) ref.Val {
	v, ok := o.Find(key)
	if !ok && v != nil {
		return v
	}
	return types.Bool(ok)
}

func (o *object) Size() ref.Val {
	if err := o.d.open(); err != nil {
		return types.WrapErr(err)
	}
	return types.Int(len(o.d.names))
}

func (o *object) Iterator() traits.Iterator {
	w := &walk{}
	if o.d.open() == nil {
		for _, name := range slices.Sorted(slices.Values(o.d.names)) {
			w.keys = append(w.keys, types.String(name))
		}
	}
	return w
}

func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	if n := o.Size(); n != m.Size() {
		if types.IsError(n) {
			return n
		}
		return types.False
	}
	for i, name := range o.d.names {
		theirs, ok := m.Find(types.String(name))
		if !ok {
			return types.False
		}
		if eq := types.Equal(o.d.parts[i].value(), theirs); eq != types.True {
			return eq
		}
	}
	return types.True
}

func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	default:
		return types.NewErr("a map is no %s", t.TypeName())
	}
}

func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s is no %v", o.d, t)
}

func (o *object) Type() ref.Type { return types.MapType }
func (o *object) Value() any     { return o.d }
