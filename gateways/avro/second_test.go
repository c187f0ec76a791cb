package avro

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/events"
)

// Other languages read our topics, so what we write is read back by an implementation that is not ours, and what it
// writes is read by us.
func TestSecondReader(t *testing.T) {
	c := ours(t)
	for _, r := range events.Registered() {
		s, typ := secondReader(t, r.Type, r.Schema), typeOf(t, r)
		t.Run(string(r.Type), rapid.MakeCheck(func(rt *rapid.T) {
			want := randomOf(rt, t, r)
			body, err := c.Encode(nil, want)
			if err != nil {
				rt.Fatal(err)
			}
			into := reflect.New(typ)
			rest, err := s.Decode(body, into.Interface())
			if err != nil || len(rest) > 0 {
				rt.Fatalf("it cannot read %x: %v, %d bytes left", body, err, len(rest))
			}
			if tidy := tidierOf(typ); tidy != nil {
				tidy(into.Elem())
			}
			if got := into.Elem().Interface(); !reflect.DeepEqual(got, want) {
				rt.Fatalf("it reads %#v, want %#v", got, want)
			}
			theirs, err := s.Encode(want)
			if err != nil {
				rt.Fatalf("it cannot write %#v: %v", want, err)
			}
			if got, err := c.Decode(r.Type, r.Schema, theirs); err != nil || !reflect.DeepEqual(got, want) {
				rt.Fatalf("we read %#v from %x, want %#v (%v)", got, theirs, want, err)
			}
		}))
	}
}
