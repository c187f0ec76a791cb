package avro

import "reflect"

// tidierOf returns what makes a decoded struct of type t as a decider would have made it: a list without items is
// nil, so that structs compare equal, and a list has no room to grow, because the library cuts short texts and byte
// lists out of shared slabs, where appending to one would write over the next. Nil when t has no lists.
func tidierOf(t reflect.Type) func(reflect.Value) {
	switch t.Kind() {
	case reflect.Slice:
		item := tidierOf(t.Elem())
		return func(v reflect.Value) {
			if v.Len() == 0 {
				v.SetZero()
				return
			}
			v.SetCap(v.Len())
			for i := 0; item != nil && i < v.Len(); i++ {
				item(v.Index(i))
			}
		}
	case reflect.Struct:
		var fields []int
		var tidy []func(reflect.Value)
		for i := range t.NumField() {
			if f := tidierOf(t.Field(i).Type); f != nil {
				fields, tidy = append(fields, i), append(tidy, f)
			}
		}
		if fields == nil {
			return nil
		}
		return func(v reflect.Value) {
			for i, f := range tidy {
				f(v.Field(fields[i]))
			}
		}
	}
	return nil
}
