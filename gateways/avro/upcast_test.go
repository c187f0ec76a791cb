package avro

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	hamba "github.com/hamba/avro/v2"

	"github.com/sluice-platform/sluice/events"
)

// paid exists in tests only: no event of ours has a second schema yet.
type paid struct {
	Amount struct {
		Value    string `avro:"value"`
		Currency string `avro:"currency"`
	} `avro:"amount"`
	At   events.Time `avro:"at"`
	Note string      `avro:"note"`
}

func (paid) EventType() events.Type { return "test.paid" }

const (
	paidAt = `{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"},"default":0}`
	paidV1 = `{"type":"record","namespace":"test","name":"Paid","fields":[{"name":"amount_cents","type":"long"},` +
		paidAt + `]}`
	amount = `{"name":"amount","type":{"type":"record","name":"Amount","fields":[{"name":"value","type":"string"},` +
		`{"name":"currency","type":"string","default":"USD"}]},"default":{"value":"0","currency":"USD"}}`
	paidV2 = `{"type":"record","namespace":"test","name":"Paid","fields":[` + amount + `,` + paidAt + `]}`
	paidV3 = `{"type":"record","namespace":"test","name":"Paid","fields":[` + amount + `,` + paidAt +
		`,{"name":"note","type":"string","default":"none"}]}`
)

func centsToAmount(fields map[string]any) {
	cents := fields["amount_cents"].(int64)
	delete(fields, "amount_cents")
	fields["amount"] = map[string]any{"value": fmt.Sprintf("%d.%02d", cents/100, cents%100), "currency": "USD"}
}

func bodyOf(t *testing.T, schema string, fields map[string]any) []byte {
	t.Helper()
	s, err := hamba.ParseBytesWithCache([]byte(schema), "", &hamba.SchemaCache{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := hamba.Marshal(s, fields)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func paidCodec(t *testing.T, upcasts map[int]func(map[string]any)) *Codec {
	t.Helper()
	regs, files := planted[paid](paidV1, paidV2, paidV3)
	regs[0].Upcast = upcasts
	c, err := New(regs, files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestES26UpcastInTheCodec(t *testing.T) {
	const at = events.Time(1_700_000_000_000_001)
	want := paid{At: at, Note: "none"}
	want.Amount.Value, want.Amount.Currency = "1.50", "USD"
	v1 := bodyOf(t, paidV1, map[string]any{"amount_cents": int64(150), "at": int64(at)})
	v2 := bodyOf(t, paidV2, map[string]any{"amount": map[string]any{"value": "1.50", "currency": "USD"}, "at": int64(at)})

	t.Run("ES-26 a stored v1 body decodes as today's struct, and its bytes do not change", func(t *testing.T) {
		c, before := paidCodec(t, map[int]func(map[string]any){1: centsToAmount}), string(v1)
		for range 3 {
			got, err := c.Decode("test.paid", 1, v1)
			if err != nil || !reflect.DeepEqual(got, want) || string(v1) != before {
				t.Fatalf("got %+v, want %+v (%v)", got, want, err)
			}
		}
	})
	t.Run("ES-26 a v2 body passes no function of v1 and gets v3's default", func(t *testing.T) {
		c := paidCodec(t, map[int]func(map[string]any){1: func(map[string]any) { t.Error("called") }})
		if got, err := c.Decode("test.paid", 2, v2); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v (%v)", got, want, err)
		}
	})
	t.Run("functions are called in order, each with its version's fields, times in microseconds", func(t *testing.T) {
		c := paidCodec(t, map[int]func(map[string]any){1: centsToAmount, 2: func(fields map[string]any) {
			fields["note"] = fmt.Sprintf("%v at %d", fields["amount"].(map[string]any)["value"], fields["at"].(int64))
		}})
		got, err := c.Decode("test.paid", 1, v1)
		if err != nil || got.(paid).Note != "1.50 at 1700000000000001" || got.(paid).At != at {
			t.Fatalf("got %+v (%v)", got, err)
		}
	})
	t.Run("ES-26 a commit of v1 events reads as v2 through events.Decode", func(t *testing.T) {
		c := paidCodec(t, map[int]func(map[string]any){1: centsToAmount})
		commit := &events.Commit{Stream: "order/default/1", First: 1, Position: 3}
		for range 3 {
			commit.Events = append(commit.Events, frameOf("test.paid", 1, v1)...)
			commit.N++
		}
		rs, err := events.Decode(commit, c)
		if err != nil || len(rs) != 3 {
			t.Fatal(rs, err)
		}
		for _, r := range rs {
			if !reflect.DeepEqual(r.Event, want) || r.Schema != 1 || string(r.Body) != string(v1) {
				t.Errorf("%+v", r)
			}
		}
	})
	for name, up := range map[string]func(map[string]any){
		"panics":                      func(map[string]any) { panic("what now") },
		"leaves a field out":          func(f map[string]any) { delete(f, "amount_cents"); f["amount"] = map[string]any{} },
		"makes a field of a bad kind": func(f map[string]any) { f["amount"] = 7 },
	} {
		t.Run("a function that "+name+" is an error that names the step", func(t *testing.T) {
			e, err := paidCodec(t, map[int]func(map[string]any){1: up}).Decode("test.paid", 1, v1)
			if e != nil || err == nil || !strings.Contains(err.Error(), "upcast from schema 1") ||
				errors.Is(err, events.ErrUnknownEvent) {
				t.Fatalf("%v, %v", e, err)
			}
		})
	}
}

// frameOf is a frame as a build wrote it whose current schema was the given one.
func frameOf(typ events.Type, schema byte, body []byte) []byte {
	b := append([]byte{byte(len(typ))}, typ...)
	return append(append(b, schema, 0, byte(len(body)), byte(len(body)>>8), byte(len(body)>>16)), body...)
}
