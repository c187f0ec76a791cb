package avro

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/schemas"
)

func TestRoundTrip(t *testing.T) {
	c := ours(t)
	for _, r := range events.Registered() {
		t.Run(string(r.Type), rapid.MakeCheck(func(rt *rapid.T) {
			want := randomOf(rt, t, r)
			kept := []byte("before")
			body, err := c.Encode(kept, want)
			if err != nil || string(body[:len(kept)]) != "before" {
				rt.Fatalf("encode: %v", err)
			}
			got, err := c.Decode(r.Type, r.Schema, body[len(kept):])
			if err != nil || !reflect.DeepEqual(got, want) {
				rt.Fatalf("got %#v, want %#v (%v)", got, want, err)
			}
		}))
	}
}

func TestEncode(t *testing.T) {
	c := attempts(t)
	t.Run("nil and empty lists are one thing", func(t *testing.T) {
		empty, err := c.Encode(nil, attempt{Task: 1, Refs: []int64{}, Output: events.Payload{Inline: []byte{}}})
		none, err2 := c.Encode(nil, attempt{Task: 1})
		if err != nil || err2 != nil || string(empty) != string(none) {
			t.Fatalf("%x and %x (%v, %v)", empty, none, err, err2)
		}
		got, err := c.Decode("test.attempt", 1, empty)
		if err != nil || !reflect.DeepEqual(got, attempt{Task: 1}) {
			t.Fatalf("%#v, %v", got, err)
		}
	})
	t.Run("another type than the registered struct is refused", func(t *testing.T) {
		kept := []byte("kept")
		for name, e := range map[string]events.Event{
			"a pointer": &attempt{}, "a stranger of the same name": impostor{}, "none": nil,
			"a type the codec was not built with": stranger{},
		} {
			if got, err := c.Encode(kept, e); err == nil || string(got) != "kept" {
				t.Errorf("%s is encoded as %x", name, got)
			}
		}
		if _, err := c.Encode(nil, stranger{}); !errors.Is(err, events.ErrUnknownEvent) {
			t.Errorf("%v is not ErrUnknownEvent", err)
		}
	})
}

func TestDecode(t *testing.T) {
	c := ours(t)
	t.Run("a type or version of a newer build is ErrUnknownEvent", func(t *testing.T) {
		c := attempts(t)
		body, _ := c.Encode(nil, completed)
		for _, bad := range []struct {
			t events.Type
			v int
		}{{"test.attempt", 2}, {"test.attempt", 0}, {"test.from_tomorrow", 1}, {"", 1}} {
			if _, err := c.Decode(bad.t, bad.v, body); !errors.Is(err, events.ErrUnknownEvent) {
				t.Errorf("%s v%d: %v", bad.t, bad.v, err)
			}
		}
	})
	t.Run("a body that is cut or goes on is damaged", func(t *testing.T) {
		for _, r := range events.Registered() {
			body, err := c.Encode(nil, sampleOf(t, r))
			if err != nil {
				t.Fatal(err)
			}
			for cut := range body {
				if _, err := c.Decode(r.Type, r.Schema, body[:cut]); !errors.Is(err, events.ErrDamagedCommit) {
					t.Errorf("%s cut to %d of %d bytes: %v", r.Type, cut, len(body), err)
				}
			}
			if _, err := c.Decode(r.Type, r.Schema, append(body, 0)); !errors.Is(err, events.ErrDamagedCommit) {
				t.Errorf("%s and one byte more: %v", r.Type, err)
			}
		}
	})
	t.Run("appending to a decoded list writes over nothing", func(t *testing.T) {
		c := attempts(t)
		body, _ := c.Encode(nil, attempt{Worker: "w-1", Output: events.InlinePayload([]byte(`"out"`))})
		first, _ := c.Decode("test.attempt", 1, body)
		second, _ := c.Decode("test.attempt", 1, body)
		_ = append(first.(attempt).Output.Inline, "XXXXXXXXXXXXXXXX"...)
		if got := second.(attempt); got.Worker != "w-1" || string(got.Output.Inline) != `"out"` {
			t.Fatalf("the next event became %+v", got)
		}
	})
	t.Run("the event shares nothing with the body", func(t *testing.T) {
		c := attempts(t)
		body, _ := c.Encode(nil, attempt{Worker: "w-1", Output: events.InlinePayload([]byte(`"out"`))})
		e, _ := c.Decode("test.attempt", 1, body)
		clear(body)
		if got := e.(attempt); got.Worker != "w-1" || string(got.Output.Inline) != `"out"` {
			t.Fatalf("the event became %+v", got)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	c := ours(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, r := range events.Registered() {
					want := sampleOf(t, r)
					body, err := c.Encode(nil, want)
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := c.Decode(r.Type, r.Schema, body); err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("got %#v, want %#v (%v)", got, want, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

type odd struct {
	At    events.Time `avro:"at"`
	Count int32       `avro:"count"`
}

func (odd) EventType() events.Type { return "test.odd" }

func TestNew(t *testing.T) {
	const (
		at    = `{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}}`
		count = `{"name":"count","type":"int"}`
		long  = `{"name":"count","type":"long"}`
		other = `{"name":"more","type":"int","default":0}`
		dict  = `{"name":"count","type":{"type":"map","values":"int"}}`
	)
	rec := func(fields ...string) string {
		return `{"type":"record","name":"Odd","namespace":"test","fields":[` + strings.Join(fields, ",") + `]}`
	}
	for name, c := range map[string]struct {
		wants   string
		schemas []string
	}{
		"a field the schema lacks":          {"has no field for avro.odd.Count", []string{rec(at)}},
		"a field the struct lacks":          {"has no field for more", []string{rec(at, count, other)}},
		"a field of another type":           {"a Go int32 is not what", []string{rec(at, long)}},
		"a time that is a plain long":       {"belong together", []string{rec(`{"name":"at","type":"long"}`, count)}},
		"a map":                             {"has no place", []string{rec(at, dict)}},
		"a text that is no schema":          {"test/odd.v1.avsc", []string{`{"type":`}},
		"an earlier version it cannot read": {"schema 1: to schema 2", []string{rec(at), rec(at, count)}},
	} {
		t.Run(name+" is refused at start", func(t *testing.T) {
			_, err := New(planted[odd](c.schemas...))
			if err == nil || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), "test.odd") {
				t.Fatalf("%v does not say %q", err, c.wants)
			}
		})
	}
	t.Run("a missing schema file is refused at start", func(t *testing.T) {
		regs, files := planted[odd](rec(at, count))
		delete(files.(fstest.MapFS), "test/odd.v1.avsc")
		if _, err := New(regs, files); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	})
	t.Run("every schema file belongs to a registered type and version", func(t *testing.T) {
		known := map[string]bool{}
		for _, r := range events.Registered() {
			for v := 1; v <= r.Schema; v++ {
				known[File(r.Type, v)] = true
			}
		}
		if err := fs.WalkDir(schemas.Avro(), ".", func(path string, d fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".avsc") && !known[path] {
				t.Errorf("%s belongs to no registered event", path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
