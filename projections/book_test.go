package projections_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/projections"
)

// added is an event of these tests. It borrows the name of some type of this build: only a codec knows what is in it.
type added int64

var borrowed = events.Registered()[0].Type

func (added) EventType() events.Type { return borrowed }

// numbers is a codec of added: today's schema is a number in words, schema 7 one in digits of hundredths.
type numbers struct{ broken map[string]bool }

func (numbers) Encode(dst []byte, e events.Event) ([]byte, error) {
	return strconv.AppendInt(dst, int64(e.(added)), 10), nil
}

var errBroken = errors.New("cannot be decoded")

func (c numbers) Decode(t events.Type, schema int, body []byte) (events.Event, error) {
	n, err := strconv.ParseInt(string(body), 10, 64)
	switch {
	case c.broken[string(body)]:
		return nil, errBroken
	case t != borrowed || schema > 7:
		return nil, fmt.Errorf("%s of schema %d: %w", t, schema, events.ErrUnknownEvent)
	case schema == 7:
		n /= 100
	}
	return added(n), err
}

func frame(t events.Type, schema int, n int64) []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(t))), t...)
	b = append(binary.AppendUvarint(b, uint64(schema)), 0)
	body := strconv.FormatInt(n, 10)
	return append(append(b, byte(len(body)), 0, 0), body...)
}

func known(ns ...int64) (fs [][]byte) {
	for _, n := range ns {
		fs = append(fs, frame(borrowed, 1, n))
	}
	return fs
}

// book is a log that tests write as they like.
type book struct {
	commits     []events.Commit // of partition 0
	versions    map[events.Stream]events.Version
	incarnation events.Incarnation
	salt        byte // of hashes: another history has another
	hidden      map[events.Position]bool
	away        error
}

func newBook() *book { return &book{versions: map[events.Stream]events.Version{}, incarnation: 1} }

func (b *book) write(s events.Stream, frames ...[]byte) {
	var at events.Position
	if n := len(b.commits); n > 0 {
		at = b.commits[n-1].Position
	}
	at += events.Position(len(frames))
	b.commits = append(b.commits, events.Commit{
		Stream: s, First: b.versions[s] + 1, N: len(frames), Position: at, At: events.Time(at) * 1000,
		Envelope: (&events.Envelope{Actor: "test"}).Append(nil), Events: bytes.Join(frames, nil),
		Hash: events.Hash{b.salt, byte(at), byte(at >> 8)},
	})
	b.versions[s] += events.Version(len(frames))
}

// ones writes commits of one event up to a position, to one stream.
func (b *book) ones(upTo events.Position) {
	for len(b.commits) == 0 || b.commits[len(b.commits)-1].Position < upTo {
		b.write("thing/acme/ones", known(1)...)
	}
}

func (b *book) Tail(_ context.Context, _ events.Partition, after events.Position, most int) (out []events.Commit, _ error) {
	for _, c := range b.commits {
		if c.Position > after && !b.hidden[c.Position] && len(out) < most {
			out = append(out, c)
		}
	}
	return out, b.away
}

func (b *book) Commits(_ context.Context, s events.Stream, after events.Version, most int) (out []events.Commit, _ error) {
	for _, c := range b.commits {
		if c.Stream == s && c.First > after && len(out) < most {
			out = append(out, c)
		}
	}
	return out, b.away
}

func (b *book) CommitAt(_ context.Context, s events.Stream, v events.Version) (events.Commit, error) {
	for _, c := range b.commits {
		if c.Stream == s && c.First <= v && v <= c.Last() {
			return c, b.away
		}
	}
	return events.Commit{}, events.ErrNoStream
}

func (b *book) Log(context.Context) (events.LogInfo, error) {
	return events.LogInfo{Incarnation: b.incarnation, Partitions: 1}, b.away
}

func (b *book) Head(context.Context, events.Stream) (events.Head, error) {
	return events.Head{}, events.ErrNoStream
}

func (b *book) OpenHeads(context.Context, events.Partition, events.Stream, int) ([]events.Head, error) {
	return nil, nil
}

func (b *book) End(context.Context, events.Partition) (events.Position, events.Fence, error) {
	return b.commits[len(b.commits)-1].Position, 0, nil
}

// topic is a feed that holds what tests put into it.
type topic struct{ records []events.Commit }

func (f *topic) Read(_ context.Context, _ events.Partition, after events.Position, most int) ([]events.Commit, error) {
	for i, c := range f.records {
		if c.Position > after {
			return f.records[i:min(len(f.records), i+most)], nil
		}
	}
	return nil, nil
}

func (*topic) Wait(context.Context, events.Partition, events.Position) error { return nil }

// sums is a model that adds up, per stream and for all streams together.
func sums(apply func(n int64)) projections.Model {
	text, number := projections.Text, projections.Int
	table := func(name string) projections.Table {
		return projections.Table{Name: name, Key: []string{"tenant", "id"}, Columns: []projections.Column{
			{Name: "tenant", Kind: text}, {Name: "id", Kind: text}, {Name: "total", Kind: number}, {Name: "n", Kind: number},
		}}
	}
	return projections.Model{
		Name: "sums", Version: 1, Categories: []string{"thing"},
		Tables: []projections.Table{table("each"), table("all")},
		Apply: func(e events.Recorded, get projections.Get) (cs []projections.Change) {
			n := int64(e.Event.(added))
			if apply != nil {
				apply(n)
			}
			for _, key := range []projections.Row{{"each", e.Stream.ID()}, {"all", "all"}} {
				row := projections.Row{"acme", key[1], n, int64(1)}
				if old, ok := get(key[0].(string), row[:2]...); ok {
					row[2], row[3] = row[2].(int64)+old[2].(int64), row[3].(int64)+old[3].(int64)
				}
				cs = append(cs, projections.Change{Table: key[0].(string), Row: row})
			}
			return cs
		},
	}
}

// feeding is one runner with its world.
type feeding struct {
	*testing.T
	book  *book
	ports projections.Ports
	view  projections.View
	codec numbers
	r     *projections.Runner
	in    projections.In
	out   *projections.Out
	did   []projections.Do
}

func newFeeding(t *testing.T, m projections.Model) *feeding {
	t.Helper()
	b := newBook()
	f := &feeding{T: t, book: b, ports: projections.Ports{Log: b, Views: memory.NewViews()}}
	f.build(m)
	return f
}

// build makes an empty live view and a runner of it.
func (f *feeding) build(m projections.Model) {
	f.Helper()
	v, err := f.ports.Views.Begin(f.Context(), m)
	for _, step := range []func() error{
		func() error { return err },
		func() error { return f.ports.Views.Loaded(f.Context(), v, nil, nil) },
		func() error { return f.ports.Views.Swap(f.Context(), v) },
	} {
		if err := step(); err != nil {
			f.Fatal(err)
		}
	}
	f.view = v
	f.restart()
}

// restart makes a runner that knows nothing, as a process would.
func (f *feeding) restart() {
	f.r = projections.NewRunner(&f.view.Model, 0, f.codec)
	f.in, f.out = projections.In{}, nil
}

func (f *feeding) step() *projections.Out {
	now := f.in.Now
	f.out = f.r.Step(&f.in)
	f.did = append(f.did, f.out.Do)
	if f.out.Do == projections.DoRebuild {
		return f.out
	}
	f.in = f.ports.Perform(f.Context(), f.view, 0, f.out)
	f.in.Now = now
	return f.out
}

// until steps until the runner wants one of the given things, and performs that.
func (f *feeding) until(want ...projections.Do) *projections.Out {
	f.Helper()
	for range 10_000 {
		o := f.step()
		for _, d := range append(want, projections.DoRebuild) {
			if o.Do == d {
				return o
			}
		}
	}
	f.Fatalf("it never wanted %v", want)
	return nil
}

// settle runs until there is nothing to do.
func (f *feeding) settle() *projections.Out { f.Helper(); return f.until(projections.DoWait) }

func (f *feeding) want(id string, total, n int64) {
	f.Helper()
	table := "each"
	if id == "all" {
		table = "all"
	}
	rows, err := f.ports.Views.Rows(f.Context(), f.view, []projections.Key{{Table: table, Key: projections.Row{"acme", id}}})
	if err != nil {
		f.Fatal(err)
	}
	if rows[0] == nil {
		rows[0] = projections.Row{"acme", id, int64(0), int64(0)}
	}
	if rows[0][2] != total || rows[0][3] != n {
		f.Errorf("%s: %d of %d events, want %d of %d", id, rows[0][2], rows[0][3], total, n)
	}
}

func (f *feeding) page() projections.Page {
	f.Helper()
	p, err := f.ports.Views.List(f.Context(), f.view.Model, "each", projections.Query{Tenant: "acme", Limit: 500})
	if err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *feeding) at(want events.Position) {
	f.Helper()
	if got := f.page().AsOf[0].Position; got != want || f.r.Stats().Seen.Position != want {
		f.Errorf("the view stands at %d, the runner at %d, want %d", got, f.r.Stats().Seen.Position, want)
	}
}

func (f *feeding) parked() []projections.Parked {
	f.Helper()
	ps, err := f.ports.Views.ParkedStreams(f.Context(), f.view)
	if err != nil {
		f.Fatal(err)
	}
	return ps
}

// sameAsRebuild compares the live view with a build of the whole log, and goes on with that.
func (f *feeding) sameAsRebuild() {
	f.Helper()
	v, err := f.ports.Views.Begin(f.Context(), f.view.Model)
	if err != nil {
		f.Fatal(err)
	}
	end, _, _ := f.book.End(f.Context(), 0)
	folded, err := f.ports.Fold(f.Context(), v, 0, f.codec, end, func(int64) {})
	if err != nil {
		f.Fatal(err)
	}
	live := f.page()
	if err := f.ports.Views.Loaded(f.Context(), v, map[events.Partition]events.Checkpoint{0: folded.At}, folded.Parked); err != nil {
		f.Fatal(err)
	}
	if err := f.ports.Views.Swap(f.Context(), v); err != nil {
		f.Fatal(err)
	}
	fresh := f.page()
	live.Build, fresh.Build = 0, 0
	if fmt.Sprint(live) != fmt.Sprint(fresh) {
		f.Errorf("fed:     %v\nrebuilt: %v", live, fresh)
	}
	f.view = v
	f.restart()
}
