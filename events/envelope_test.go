package events

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var fullEnvelope = Envelope{
	Actor: "ann", Reason: "why", Correlation: "story", Cause: "c", Trace: "t", OccurredAt: 258, KeyID: "k",
	KeyDigest: Hash{0: 1, 31: 2},
}

func TestEnvelope(t *testing.T) {
	t.Run("the bytes are for ever", func(t *testing.T) {
		const want = "0103616e6e" + "0203776879" + "030573746f7279" + "040163" + "050174" + "06080201000000000000" +
			"07016b" + "0820" + "01000000000000000000000000000000000000000000000000000000000000" + "02"
		if got := hex.EncodeToString(fullEnvelope.Append(nil)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("no field is lost, whatever it holds", rapid.MakeCheck(func(t *rapid.T) {
		text := rapid.String()
		e := Envelope{
			Actor: text.Draw(t, "actor"), Reason: text.Draw(t, "reason"), Correlation: text.Draw(t, "correlation"),
			Cause: text.Draw(t, "cause"), Trace: text.Draw(t, "trace"), KeyID: text.Draw(t, "key"),
			OccurredAt: Time(rapid.Int64().Draw(t, "at")),
		}
		copy(e.KeyDigest[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "digest"))
		got, err := ParseEnvelope(e.Append(nil))
		if err != nil || *got != e {
			t.Fatalf("got %+v, %v; want %+v", got, err, e)
		}
	}))
	t.Run("every field is written", func(t *testing.T) {
		v := reflect.ValueOf(fullEnvelope)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the sample lacks %s", v.Type().Field(i).Name)
			}
		}
		if got, err := ParseEnvelope(fullEnvelope.Append(nil)); err != nil || *got != fullEnvelope {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("empty fields take no room", func(t *testing.T) {
		if b := (&Envelope{}).Append(nil); len(b) != 0 {
			t.Errorf("got %x", b)
		}
	})
	t.Run("a field of a newer build is skipped", func(t *testing.T) {
		b := append((&Envelope{Actor: "ann"}).Append(nil), 99, 3, 1, 2, 3)
		b = (&Envelope{Reason: "why"}).Append(b)
		if got, err := ParseEnvelope(b); err != nil || got.Actor != "ann" || got.Reason != "why" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	for damage, b := range map[string][]byte{
		"a cut value":                  {tagActor, 3, 'a', 'n'},
		"a tag without a length":       {tagActor},
		"a length beyond all":          {tagActor, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"tag 0":                        {0, 1, 'a'},
		"a time of 7 bytes":            append([]byte{tagOccurredAt, 7}, make([]byte, 7)...),
		"a time of 9 bytes":            append([]byte{tagOccurredAt, 9}, make([]byte, 9)...),
		"a digest of 31 bytes":         append([]byte{tagKeyDigest, 31}, make([]byte, 31)...),
		"a digest of 33 bytes":         append([]byte{tagKeyDigest, 33}, make([]byte, 33)...),
		"damage behind what was right": append(fullEnvelope.Append(nil), tagReason, 9),
	} {
		t.Run(damage+" is damage", func(t *testing.T) {
			if got, err := ParseEnvelope(b); !errors.Is(err, ErrDamagedCommit) || got != nil {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// FuzzParseEnvelope: nothing panics, and what is read is read the same when it is written again.
func FuzzParseEnvelope(f *testing.F) {
	f.Add(fullEnvelope.Append(nil))
	f.Add([]byte{})
	f.Add([]byte{99, 2, 1, 2, tagActor, 1, 'a'})
	f.Add([]byte{tagActor, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEnvelope(b)
		if err != nil {
			return
		}
		once := e.Append(nil)
		again, err := ParseEnvelope(once)
		if err != nil || *again != *e || !bytes.Equal(again.Append(nil), once) {
			t.Fatalf("got %+v, %v; want %+v", again, err, e)
		}
	})
}
