package avro

import (
	"testing"

	"github.com/sluice-platform/sluice/events"
)

func BenchmarkEncode(b *testing.B) {
	c, dst, e := attempts(b), make([]byte, 0, 512), events.Event(completed)
	b.ReportAllocs()
	for b.Loop() {
		if out, err := c.Encode(dst, e); err != nil || len(out) == 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	c := attempts(b)
	body, err := c.Encode(nil, completed)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Decode("test.attempt", 1, body); err != nil {
			b.Fatal(err)
		}
	}
}
