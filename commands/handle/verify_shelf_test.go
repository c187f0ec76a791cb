package handle_test

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/keys"
	"github.com/sluice-platform/sluice/processors/kernel/sealer"
)

// paid exists in tests only, with a schema of yesterday: {"amount_cents": 150} is {"amount": {"1.50", "USD"}} today.
type paid struct {
	Amount struct {
		Value    string `avro:"value"`
		Currency string `avro:"currency"`
	} `avro:"amount"`
	At    events.Time    `avro:"at"`
	Slip  events.Payload `avro:"slip"`
	Lines []int64        `avro:"lines"`
}

type paidV1 struct {
	Cents int64          `avro:"amount_cents"`
	At    events.Time    `avro:"at"`
	Slip  events.Payload `avro:"slip"`
	Lines []int64        `avro:"lines"`
}

func (paid) EventType() events.Type              { return "test.paid" }
func (paidV1) EventType() events.Type            { return "test.paid" }
func (e paid) Carried() events.Payload           { return e.Slip }
func (e paid) Carry(events.Payload) events.Event { return e }
func (e paid) Named() events.Hash                { return events.Hash{0xee} }

const (
	paidRest = `{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
		{"name":"slip","type":{"type":"record","name":"Payload","fields":[{"name":"inline","type":"bytes"},
		{"name":"blob","type":"bytes"},{"name":"size","type":"long"}]}},
		{"name":"lines","type":{"type":"array","items":"long"}}]}`
	paidSchemaV1 = `{"type":"record","namespace":"test","name":"Paid","fields":[
		{"name":"amount_cents","type":"long"},` + paidRest
	paidSchemaV2 = `{"type":"record","namespace":"test","name":"Paid","fields":[{"name":"amount","type":{"type":"record",
		"name":"Amount","fields":[{"name":"value","type":"string"},{"name":"currency","type":"string"}]},
		"default":{"value":"0","currency":"USD"}},` + paidRest
)

func codecOf[T events.Event](t *testing.T, up map[int]func(map[string]any), schemas ...string) events.Codec {
	t.Helper()
	files := fstest.MapFS{}
	for i, s := range schemas {
		files[avro.File("test.paid", i+1)] = &fstest.MapFile{Data: []byte(s)}
	}
	c, err := avro.New([]events.Registration{{
		Type: "test.paid", Schema: len(schemas), Upcast: up,
		Read: func(fill func(any) error) (events.Event, error) {
			var e T
			err := fill(&e)
			return e, err
		},
	}}, files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func today(t *testing.T) events.Codec {
	return codecOf[paid](t, map[int]func(map[string]any){1: func(f map[string]any) {
		cents := f["amount_cents"].(int64)
		delete(f, "amount_cents")
		f["amount"] = map[string]any{"value": fmt.Sprintf("%d.%02d", cents/100, cents%100), "currency": "USD"}
	}}, paidSchemaV1, paidSchemaV2)
}

// account folds payments: an odd number of them leaves it open, due an hour after the last.
type account struct {
	cents, n int64
	currency string
	due      events.Time
}

func accounts() aggregates.Aggregate {
	return aggregates.Decider[*account, commands.Command, events.Event]{
		Category: "order", Reducer: 3,
		Initial: func() *account { return &account{} },
		Evolve: func(a *account, e events.Event, _ events.Version) *account {
			p := e.(paid)
			whole, cents, _ := strings.Cut(p.Amount.Value, ".")
			n, _ := strconv.ParseInt(whole+cents, 10, 64)
			a.cents, a.n, a.currency, a.due = a.cents+n, a.n+1, p.Amount.Currency, p.At+3600e6
			return a
		},
		Open: func(a *account) bool { return a.n%2 == 1 },
		Due:  func(a *account) events.Time { return a.due },
		Encode: func(a *account, b []byte) []byte {
			return append(binary.AppendVarint(binary.AppendVarint(b, a.cents), a.n), a.currency...)
		},
	}.Untyped()
}

// shelf is a log whose every byte a test can reach. It promises nothing by itself: that is what Verify is for.
type shelf struct {
	info    events.LogInfo
	commits map[events.Partition][]events.Commit
	heads   map[events.Stream]events.Head
	seals   map[events.Partition][]events.Seal
	ends    map[events.Partition]events.Position
	blobs   map[events.Hash][]byte
	folds   map[events.Stream]*handle.FoldForTest
	ring    keys.Ring
	pair    *keys.Pair
	codec   events.Codec
	tailed  func()                           // called before each Tail
	told    func(events.Commit, events.Head) // called after each append
}

const (
	start = events.Time(1_700_000_000_000_000)
	slip  = `{"slip":"large"}`
)

func newShelf(t *testing.T) *shelf {
	t.Helper()
	dir := t.TempDir()
	pair, err := keys.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{
		info: events.LogInfo{ID: events.ID{1}, Incarnation: 2, Partitions: 2}, pair: pair, ring: ring, codec: today(t),
		commits: map[events.Partition][]events.Commit{}, heads: map[events.Stream]events.Head{},
		seals: map[events.Partition][]events.Seal{}, ends: map[events.Partition]events.Position{},
		blobs: map[events.Hash][]byte{{0xee}: nil, {0xbb}: []byte(slip)}, folds: map[events.Stream]*handle.FoldForTest{},
	}
}

// frame is an event as any build may have stored it.
func frame(schema byte, body []byte) []byte {
	b := append([]byte{byte(len("test.paid"))}, "test.paid"...)
	return append(append(b, schema, 0, byte(len(body)), byte(len(body)>>8), byte(len(body)>>16)), body...)
}

// append stores one commit of the given bodies, with head and, at even versions, snapshot as the write path would.
func (s *shelf) append(t *testing.T, p events.Partition, name events.Stream, schema byte, bodies ...[]byte) {
	t.Helper()
	h, codec, agg := s.heads[name], s.codec, accounts()
	c := events.Commit{
		Stream: name, Partition: p, First: h.Version + 1, N: len(bodies), Position: s.ends[p] + events.Position(len(bodies)),
		Command: events.Derive("test", string(name), fmt.Sprint(h.Version)), At: start + events.Time(s.ends[p])*1e6,
	}
	env := events.Envelope{Actor: "tester", OccurredAt: c.At}
	c.Envelope = env.Append(nil)
	for _, b := range bodies {
		c.Events = append(c.Events, frame(schema, b)...)
	}
	c.Hash = events.Chain(h.Hash, name, c.First, c.N, c.Envelope, c.Events)
	if s.folds[name] == nil {
		s.folds[name] = handle.NewFoldForTest(agg)
	}
	columns, err := s.folds[name].Fold(&c, codec, agg)
	if err != nil {
		t.Fatal(err)
	}
	h.Stream, h.Partition, h.Version, h.Hash, h.Open, h.Due = name, p, c.Last(), c.Hash, columns.Open, columns.Due
	if c.Last()%2 == 0 {
		h.Snapshot, h.SnapshotAt = s.folds[name].Snapshot(agg), c.Last()
	}
	s.commits[p], s.heads[name], s.ends[p] = append(s.commits[p], c), h, c.Position
	if s.told != nil {
		s.told(c, h)
	}
}

// seal seals what is new in a partition, as its owner would.
func (s *shelf) seal(t *testing.T, p events.Partition) {
	t.Helper()
	var last events.Seal
	if n := len(s.seals[p]); n > 0 {
		last = s.seals[p][n-1]
	}
	out, err := sealer.New(s.info, p, last, s.pair).Step(start+1e12, s.commits[p])
	if err != nil {
		t.Fatal(err)
	}
	s.seals[p] = append(s.seals[p], out.Seals...)
}

func body(t *testing.T, cents int64) []byte {
	t.Helper()
	e := paidV1{Cents: cents, At: start, Slip: events.BlobPayload(events.Hash{0xbb}, len(slip)), Lines: []int64{1, 2, 3}}
	b, err := codecOf[paidV1](t, nil, paidSchemaV1).Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filled is a good log: stream a of five events and b of seven in partition 0, sealed twice; c and d in partition 1.
func filled(t *testing.T) *shelf {
	t.Helper()
	s := newShelf(t)
	one := body(t, 150)
	for i := range 5 {
		s.append(t, 0, "order/acme/a", 1, one)
		if i < 3 {
			s.append(t, 0, "order/acme/b", 1, one, one)
		}
		if i == 2 {
			s.seal(t, 0)
		}
	}
	s.append(t, 0, "order/acme/b", 1, one)
	s.seal(t, 0)
	s.append(t, 1, "order/acme/c", 1, one)
	s.append(t, 1, "order/zeta/d", 1, one)
	s.seal(t, 1)
	return s
}

func (s *shelf) audit(t *testing.T) handle.Audit {
	return handle.Audit{
		Log: s, Codec: s.codec, Seals: s, Blobs: s, Aggregates: []aggregates.Aggregate{accounts()},
		Public: func(k events.Hash) (ed25519.PublicKey, bool) { return s.ring.Public(k) },
	}
}

func (s *shelf) stream(name events.Stream) (cs []events.Commit) {
	for p := range events.Partition(s.info.Partitions) {
		for _, c := range s.commits[p] {
			if c.Stream == name {
				cs = append(cs, c)
			}
		}
	}
	return cs
}

func first[T any](all []T, most int, keep func(*T) bool) (out []T) {
	for i := range all {
		if len(out) < most && keep(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

func (s *shelf) Head(_ context.Context, name events.Stream) (events.Head, error) {
	h, ok := s.heads[name]
	if !ok {
		return h, events.ErrNoStream
	}
	return h, nil
}

func (s *shelf) Commits(_ context.Context, n events.Stream, after events.Version, most int) ([]events.Commit, error) {
	return first(s.stream(n), most, func(c *events.Commit) bool { return c.First > after }), nil
}

func (s *shelf) CommitAt(context.Context, events.Stream, events.Version) (events.Commit, error) {
	panic("verify reads in order")
}

func (s *shelf) Tail(_ context.Context, p events.Partition, after events.Position, most int) ([]events.Commit, error) {
	if s.tailed != nil {
		s.tailed()
	}
	return first(s.commits[p], min(most, 3), func(c *events.Commit) bool { return c.Position > after }), nil
}

func (s *shelf) OpenHeads(_ context.Context, p events.Partition, after events.Stream, most int) ([]events.Head, error) {
	var hs []events.Head
	for _, h := range s.heads { // sorted below
		if h.Partition == p && h.Open && h.Stream > after {
			hs = append(hs, h)
		}
	}
	slices.SortFunc(hs, func(a, b events.Head) int { return strings.Compare(string(a.Stream), string(b.Stream)) })
	return hs[:min(len(hs), most)], nil
}

func (s *shelf) End(_ context.Context, p events.Partition) (events.Position, events.Fence, error) {
	return s.ends[p], 0, nil
}

func (s *shelf) Log(context.Context) (events.LogInfo, error) { return s.info, nil }

func (s *shelf) PutSeal(context.Context, events.Seal) error { panic("verify changes nothing") }

func (s *shelf) SealsOf(_ context.Context, p events.Partition, after events.Position, most int) ([]events.Seal, error) {
	return first(s.seals[p], min(most, 1), func(l *events.Seal) bool { return l.To > after }), nil
}

func (s *shelf) Put(context.Context, string, []byte) (events.Hash, error) {
	panic("verify changes nothing")
}

func (s *shelf) Get(_ context.Context, tenant string, name events.Hash) ([]byte, error) {
	b, ok := s.blobs[name]
	if !ok || tenant == "" {
		return nil, events.ErrNoBlob
	}
	return b, nil
}
