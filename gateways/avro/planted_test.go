package avro

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/sluice-platform/sluice/events"
)

// planted is a registration of T and the schemas of its versions, as no product has them.
func planted[T events.Event](schemas ...string) ([]events.Registration, fs.FS) {
	var zero T
	files := fstest.MapFS{}
	for i, s := range schemas {
		files[File(zero.EventType(), i+1)] = &fstest.MapFile{Data: []byte(s)}
	}
	return []events.Registration{{
		Type: zero.EventType(), Schema: len(schemas),
		Read: func(fill func(any) error) (events.Event, error) {
			var e T
			err := fill(&e)
			return e, err
		},
	}}, files
}

// attempt has what most events have: it stands for the end of a task. Domains come and go, the codec stays.
type attempt struct {
	Task      int32          `avro:"task"`
	Attempt   int32          `avro:"attempt"`
	Worker    string         `avro:"worker"`
	SentAt    events.Time    `avro:"sent_at"`
	SlotWait  int64          `avro:"slot_wait"`
	StartedAt events.Time    `avro:"started_at"`
	EndedAt   events.Time    `avro:"ended_at"`
	Output    events.Payload `avro:"output"`
	Refs      []int64        `avro:"refs"`
}

func (attempt) EventType() events.Type { return "test.attempt" }

const attemptV1 = `{"type":"record","namespace":"test","name":"Attempt","fields":[{"name":"task","type":"int"},
	{"name":"attempt","type":"int"},{"name":"worker","type":"string"},
	{"name":"sent_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"slot_wait","type":"long"},
	{"name":"started_at","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"ended_at","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"output","type":{"type":"record","name":"Payload","fields":[{"name":"inline","type":"bytes"},
		{"name":"blob","type":"bytes"},{"name":"size","type":"long"}]}},
	{"name":"refs","type":{"type":"array","items":"long"}}]}`

var completed = attempt{
	Task: 17, Attempt: 1, Worker: "worker-7f3a", SentAt: 1_700_000_000_000_000, SlotWait: 250,
	StartedAt: 1_700_000_000_000_100, EndedAt: 1_700_000_000_031_000,
	Output: events.InlinePayload([]byte(`{"status":200,"body":{"id":"c-1093","state":"verified"}}`)), Refs: []int64{3, 5},
}

func attempts(t testing.TB) *Codec {
	t.Helper()
	c, err := New(planted[attempt](attemptV1))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// batch begins with a list, so that a hostile count stands first.
type batch struct {
	Items []int32 `avro:"items"`
	From  int32   `avro:"from"`
	Class string  `avro:"class"`
}

func (batch) EventType() events.Type { return "test.batch" }

const batchV1 = `{"type":"record","namespace":"test","name":"Batch","fields":[
	{"name":"items","type":{"type":"array","items":"int"}},{"name":"from","type":"int"},{"name":"class","type":"string"}]}`

type stranger struct{}

func (stranger) EventType() events.Type { return "test.never_registered" }

type impostor struct {
	Task int32 `avro:"task"`
}

func (impostor) EventType() events.Type { return "test.attempt" }
