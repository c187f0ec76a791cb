package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// textMax bounds what one function on texts may come to. CEL's own string extension makes the result before it counts
// the cost, and replace alone can make the square of what it is given.
const textMax = 1 << 20

var errTextMax = &Error{Code: CodeTooLarge, Detail: fmt.Sprintf("a text comes to more than %d bytes", textMax)}

// textFunctions are the functions on texts, with the names and meanings of CEL's string extension (positions count
// code points), what they come to bounded, and a cost that follows what they read and make.
func textFunctions() []cel.EnvOption {
	text, number, texts := cel.StringType, cel.IntType, cel.ListType(cel.StringType)
	scan := cost.EvalCost(cost.Sum(
		cost.Const(cost.CallCost), cost.StringScan(cost.Length(cost.Target())), cost.Length(cost.Result())))
	var options []cel.EnvOption
	member := func(name, id string, args []*cel.Type, result *cel.Type, f func(args ...ref.Val) ref.Val) {
		options = append(options,
			cel.Function(name, cel.MemberOverload(id, args, result, cel.FunctionBinding(f))),
			cel.CostModel(cost.MemberOverload(id, scan)))
	}
	of := func(ts ...*cel.Type) []*cel.Type { return ts }
	onText := func(f func(string) string) func(...ref.Val) ref.Val {
		return func(args ...ref.Val) ref.Val { return types.String(f(str(args[0]))) }
	}
	member("trim", "text_trim", of(text), text, onText(strings.TrimSpace))
	member("lowerAscii", "text_lower_ascii", of(text), text, onText(func(s string) string { return ascii(s, 'A', 'Z') }))
	member("upperAscii", "text_upper_ascii", of(text), text, onText(func(s string) string { return ascii(s, 'a', 'z') }))
	member("charAt", "text_char_at", of(text, number), text, func(args ...ref.Val) ref.Val {
		at := args[1].(types.Int)
		if int(at) == utf8.RuneCountInString(str(args[0])) {
			return types.String("")
		}
		return part(str(args[0]), at, at+1)
	})
	member("substring", "text_substring", of(text, number), text, func(args ...ref.Val) ref.Val {
		return part(str(args[0]), args[1].(types.Int), types.Int(utf8.RuneCountInString(str(args[0]))))
	})
	member("substring", "text_substring_range", of(text, number, number), text, func(args ...ref.Val) ref.Val {
		return part(str(args[0]), args[1].(types.Int), args[2].(types.Int))
	})
	member("indexOf", "text_index_of", of(text, text), number, func(args ...ref.Val) ref.Val {
		return position(str(args[0]), strings.Index(str(args[0]), str(args[1])))
	})
	member("lastIndexOf", "text_last_index_of", of(text, text), number, func(args ...ref.Val) ref.Val {
		return position(str(args[0]), strings.LastIndex(str(args[0]), str(args[1])))
	})
	member("split", "text_split", of(text, text), texts, func(args ...ref.Val) ref.Val {
		return splitText(str(args[0]), str(args[1]))
	})
	member("replace", "text_replace", of(text, text, text), text, func(args ...ref.Val) ref.Val {
		return replace(str(args[0]), str(args[1]), str(args[2]))
	})
	member("join", "text_join", of(texts), text, func(args ...ref.Val) ref.Val { return join(args[0], "") })
	member("join", "text_join_with", of(texts, text), text, func(args ...ref.Val) ref.Val {
		return join(args[0], str(args[1]))
	})
	return options
}

func str(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// ascii changes the case of the letters between first and last.
func ascii(s string, first, last rune) string {
	return strings.Map(func(r rune) rune {
		if r >= first && r <= last {
			return r ^ 0x20
		}
		return r
	}, s)
}

// part is s from one code point to before another.
func part(s string, from, to types.Int) ref.Val {
	if from < 0 || from > to {
		return types.NewErr("index out of bounds: %d", from)
	}
	start, at := -1, types.Int(0)
	for i := range s {
		if at == from {
			start = i
		}
		if at == to {
			return types.String(s[start:i])
		}
		at++
	}
	switch {
	case to != at:
		return types.NewErr("index out of bounds: %d", to)
	case start < 0: // from is the end
		return types.String("")
	default:
		return types.String(s[start:])
	}
}

// position counts the code points before a byte; −1 stays.
func position(s string, at int) ref.Val {
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:at]))
}

func splitText(s, by string) ref.Val {
	if strings.Count(s, by) > textMax/16 { // an element takes 16 bytes beside its text
		return types.WrapErr(errTextMax)
	}
	return types.DefaultTypeAdapter.NativeToValue(strings.Split(s, by))
}

func replace(s, old, with string) ref.Val {
	if n := strings.Count(s, old); len(s)+n*(len(with)-len(old)) > textMax {
		return types.WrapErr(errTextMax)
	}
	return types.String(strings.ReplaceAll(s, old, with))
}

func join(list ref.Val, between string) ref.Val {
	l, ok := list.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var b strings.Builder
	n, _ := l.Size().(types.Int)
	for i := range n {
		if i > 0 {
			b.WriteString(between)
		}
		switch v := l.Get(i).(type) {
		case types.String:
			if b.Len()+len(v)+len(between) > textMax {
				return types.WrapErr(errTextMax)
			}
			b.WriteString(string(v))
		case *types.Err:
			return v
		default:
			return types.MaybeNoSuchOverloadErr(v)
		}
	}
	return types.String(b.String())
}
