package events

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// sample is a registered event whose body is its own text; its schema has a past.
type sample struct{ text string }

func (sample) EventType() Type { return "test.sample" }

// stranger is of no build.
type stranger struct{}

func (stranger) EventType() Type { return "test.stranger" }

// mute is registered and cannot be encoded.
type mute struct{}

func (mute) EventType() Type { return "test.mute" }

func init() {
	register[sample](3)
	register[mute](1)
}

var errNoBody = errors.New("no body")

// plain writes a sample's text as it stands.
type plain struct{}

func (plain) Encode(dst []byte, e Event) ([]byte, error) {
	s, ok := e.(sample)
	if !ok {
		return nil, errNoBody
	}
	return append(dst, s.text...), nil
}

func (plain) Decode(t Type, schema int, body []byte) (Event, error) {
	switch {
	case t != "test.sample" || schema > 3:
		return nil, ErrUnknownEvent
	case string(body) == "unreadable":
		return nil, errNoBody
	}
	return sample{string(body)}, nil
}

// framed encodes events of which each has an origin of its own, but the first.
func framed(t testing.TB, texts ...string) []byte {
	t.Helper()
	var b []byte
	for i, text := range texts {
		f := Fact{Event: sample{text}}
		if i > 0 {
			f.Origin = Origin{Command: ID{byte(i)}, Actor: "worker", Cause: "cause"}
		}
		var err error
		if b, err = AppendFrame(b, f, plain{}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func commitOf(events []byte, n int) *Commit {
	env := Envelope{Actor: "ann", Cause: "asked"}
	return &Commit{
		Stream: "order/acme/1", Partition: 2, First: 5, N: n, Position: 40, Command: ID{9}, At: 7,
		Envelope: env.Append(nil), Events: events,
	}
}

func TestAppendFrame(t *testing.T) {
	t.Run("the bytes are for ever", func(t *testing.T) {
		const want = "0b746573742e73616d706c65" + "03" + "00" + "030000" + "6f6e65" + // type, schema, flags, length, body
			"0b746573742e73616d706c65" + "03" + "01" + "01000000000000000000000000000000" + "06776f726b6572" +
			"056361757365" + "000000"
		if got := hex.EncodeToString(framed(t, "one", "")); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("what cannot be written leaves the bytes as they were", func(t *testing.T) {
		before := framed(t, "one")
		for e, want := range map[Event]error{
			stranger{}: ErrUnknownEvent,
			mute{}:     errNoBody,
			sample{strings.Repeat("x", EventsBytesMax+1)}: ErrTooLarge,
		} {
			got, err := AppendFrame(before, Fact{Event: e}, plain{})
			if !errors.Is(err, want) || !bytes.Equal(got, before) {
				t.Errorf("%s: got %d bytes and %v, want %d and %v", e.EventType(), len(got), err, len(before), want)
			}
		}
	})
	t.Run("the largest body fits", func(t *testing.T) {
		f, rest, err := NextFrame(framed(t, strings.Repeat("x", EventsBytesMax)))
		if err != nil || len(f.Body) != EventsBytesMax || len(rest) != 0 {
			t.Errorf("got %d bytes, %d left, %v", len(f.Body), len(rest), err)
		}
	})
}

func TestNextFrame(t *testing.T) {
	whole := framed(t, "one", "two")
	t.Run("no part of a frame is taken for a frame", func(t *testing.T) {
		one, rest, err := NextFrame(whole)
		if err != nil || string(one.Body) != "one" {
			t.Fatal(one, err)
		}
		for n := range len(whole) - len(rest) {
			if f, _, err := NextFrame(whole[:n]); !errors.Is(err, ErrDamagedCommit) {
				t.Errorf("%d bytes: got %+v, %v", n, f, err)
			}
		}
	})
	for damage, b := range map[string][]byte{
		"no type":                    {0, 1, 0, 0, 0, 0},
		"schema 0":                   {1, 'a', 0, 0, 0, 0, 0},
		"a schema beyond any number": {1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0},
		"a length that never ends":   {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
		"a type longer than all":     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'a'},
		"flags of another build":     {1, 'a', 1, 2, 0, 0, 0},
		"a body longer than all":     {1, 'a', 1, 0, 1, 0, 0},
	} {
		t.Run(damage+" is damage", func(t *testing.T) {
			if f, rest, err := NextFrame(b); !errors.Is(err, ErrDamagedCommit) || rest != nil || !reflect.DeepEqual(f, Frame{}) {
				t.Errorf("got %+v, %v, %v", f, rest, err)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Run("each event stands at its place, and answers its own command", func(t *testing.T) {
		rs, err := Decode(commitOf(framed(t, "one", "two", "three"), 3), plain{})
		if err != nil || len(rs) != 3 {
			t.Fatal(len(rs), err)
		}
		for i, r := range rs {
			wantActor, wantCause, wantCommand := "worker", "cause", ID{byte(i)}
			if i == 0 {
				wantActor, wantCause, wantCommand = "ann", "asked", ID{9}
			}
			if r.Version != Version(5+i) || r.Position != Position(38+i) || r.Partition != 2 || r.At != 7 ||
				r.Stream != "order/acme/1" || r.Actor != wantActor || r.Cause != wantCause || r.Command != wantCommand ||
				r.Schema != 3 || r.Commit.Actor != "ann" {
				t.Errorf("event %d: %+v", i, r)
			}
		}
		if rs[1].Event != (sample{"two"}) || string(rs[1].Body) != "two" {
			t.Errorf("the second event is %+v", rs[1])
		}
	})
	t.Run("an event of a newer build is there, undecoded, between those that are known", func(t *testing.T) {
		b := framed(t, "one")
		b = append(b, 3, 'n', 'e', 'w', 1, 0, 2, 0, 0, 'h', 'i')
		b = append(b, framed(t, "two")...)
		rs, err := Decode(commitOf(b, 3), plain{})
		if err != nil || len(rs) != 3 || rs[1].Event != nil || rs[1].Type != "new" || string(rs[1].Body) != "hi" ||
			rs[2].Event != (sample{"two"}) {
			t.Errorf("got %+v, %v", rs, err)
		}
	})
	for damage, c := range map[string]*Commit{
		"fewer events than it claims":   commitOf(framed(t, "one"), 2),
		"more events than it claims":    commitOf(framed(t, "one", "two"), 1),
		"no events":                     commitOf(nil, 0),
		"a count below none":            commitOf(framed(t, "one"), -1),
		"a count above what there is":   commitOf(framed(t, "one"), 1<<40),
		"an envelope that is damaged":   {Stream: "a/b/c", First: 1, N: 1, Envelope: []byte{0}, Events: framed(t, "one")},
		"no bytes although it claims 1": commitOf(nil, 1),
	} {
		t.Run(damage+" is damage, and the stream is named", func(t *testing.T) {
			_, err := Decode(c, plain{})
			if !errors.Is(err, ErrDamagedCommit) || !strings.Contains(err.Error(), string(c.Stream)) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a body that cannot be read names stream, version and type", func(t *testing.T) {
		_, err := Decode(commitOf(framed(t, "one", "unreadable"), 2), plain{})
		if !errors.Is(err, errNoBody) || errors.Is(err, ErrUnknownEvent) {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"order/acme/1", "version 6", "test.sample"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %s", err, part)
			}
		}
	})
}

// FuzzDecodeCommit feeds a commit's stored bytes to the decoder. Nothing may panic, no more may come out than is said,
// and what is taken for a commit reads the same when it is written again.
func FuzzDecodeCommit(f *testing.F) {
	env := Envelope{
		Actor: "ann", Reason: "r", Correlation: "c", Cause: "k", Trace: "t", OccurredAt: 5, KeyID: "i", KeyDigest: Hash{1},
	}
	whole := framed(f, "one", "", "three")
	f.Add(env.Append(nil), whole, 3)
	f.Add([]byte{}, framed(f, "one"), 1)
	f.Add(env.Append(nil), whole, 2)
	f.Add(env.Append(nil)[:20], whole[:len(whole)-1], 3)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{3, 'n', 'e', 'w', 1, 0, 0, 0, 0}, 1)
	f.Add([]byte{200, 1, 7}, append(whole, 0), CommitEventsMax+1)
	f.Fuzz(func(t *testing.T, envelope, frames []byte, n int) {
		c := commitOf(frames, n)
		c.Envelope = envelope
		rs, err := Decode(c, plain{})
		if err != nil {
			if !errors.Is(err, ErrDamagedCommit) && !errors.Is(err, errNoBody) {
				t.Fatalf("an error that no reader expects: %v", err)
			}
			return
		}
		if len(rs) != n {
			t.Fatalf("%d events of %d", len(rs), n)
		}
		again := *c
		again.Envelope, again.Events = rs[0].Commit.Append(nil), nil
		for _, r := range rs {
			if r.Event == nil || len(r.Body) > EventsBytesMax || r.Schema != 3 {
				return // written by another build
			}
			fact := Fact{Event: r.Event, Origin: Origin{Command: r.Command, Actor: r.Actor, Cause: r.Cause}}
			if again.Events, err = AppendFrame(again.Events, fact, plain{}); err != nil {
				t.Fatal(err)
			}
		}
		twice, err := Decode(&again, plain{})
		if err != nil || !reflect.DeepEqual(bare(twice), bare(rs)) {
			t.Fatalf("read again:\n%+v, %v\nfirst:\n%+v", bare(twice), err, bare(rs))
		}
	})
}

// bare drops what tells two copies apart, and body slices that are nil or empty.
func bare(rs []Recorded) []Recorded {
	out := make([]Recorded, len(rs))
	for i, r := range rs {
		r.Body = append([]byte{}, r.Body...)
		out[i] = r
	}
	return out
}
