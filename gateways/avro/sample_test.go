package avro

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/schemas"
)

// ours is the codec of the product.
func ours(t testing.TB) *Codec {
	t.Helper()
	c, err := New(events.Registered(), schemas.Avro())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// typeOf is the struct of a registered event.
func typeOf(t testing.TB, r events.Registration) reflect.Type {
	t.Helper()
	p, err := structOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return p.Elem()
}

// build makes an event and lets fill set its fields.
func build(t testing.TB, r events.Registration, fill func(reflect.Value)) events.Event {
	t.Helper()
	e, err := r.Read(func(into any) error { fill(reflect.ValueOf(into).Elem()); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// sampleOf is the one sample of a type that its golden file holds: every field differs from its default and from
// the fields beside it, and says its name where it can.
func sampleOf(t testing.TB, r events.Registration) events.Event {
	t.Helper()
	n := int64(0)
	return build(t, r, func(v reflect.Value) { fillSample(t, v, string(r.Type), &n) })
}

func fillSample(t testing.TB, v reflect.Value, name string, n *int64) {
	*n++
	switch {
	case v.Type() == timeType:
		v.SetInt(1_700_000_000_000_000 + *n*1_000_001)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(*n * 1000)
	case v.CanFloat():
		v.SetFloat(float64(*n) + 0.25)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("%s-é-%d", name, *n))
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n) + uint64(i))
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(fmt.Appendf(nil, `{"%s":%d}`, name, *n))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fillSample(t, v.Index(i), name, n)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fillSample(t, v.Field(i), v.Type().Field(i).Tag.Get("avro"), n)
		}
	default:
		t.Fatalf("no sample for a %s: extend fillSample, fillRandom and fits", v.Type())
	}
}

// randomOf is any event of a type, extremes and empty lists included.
func randomOf(rt *rapid.T, t testing.TB, r events.Registration) events.Event {
	return build(t, r, func(v reflect.Value) { fillRandom(rt, v, string(r.Type)) })
}

func fillRandom(rt *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, name))
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32().Draw(rt, name)))
	case reflect.Int64:
		extreme := rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1, 0, 1})
		v.SetInt(rapid.OneOf(rapid.Int64(), extreme).Draw(rt, name))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(rt, name))
	case reflect.String:
		v.SetString(rapid.String().Draw(rt, name))
	case reflect.Array:
		copy(v.Bytes(), rapid.SliceOfN(rapid.Byte(), v.Len(), v.Len()).Draw(rt, name))
	case reflect.Slice:
		n := rapid.OneOf(rapid.IntRange(0, 5), rapid.Just(0), rapid.Just(300)).Draw(rt, name+"#")
		if n == 0 {
			return // a decider's nil
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			copy(v.Bytes(), rapid.SliceOfN(rapid.Byte(), n, n).Draw(rt, name))
			return
		}
		for i := range n {
			fillRandom(rt, v.Index(i), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillRandom(rt, v.Field(i), v.Type().Field(i).Tag.Get("avro"))
		}
	default:
		rt.Fatalf("no random %s: extend fillSample, fillRandom and fits", v.Type())
	}
}
