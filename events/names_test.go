package events

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestStream(t *testing.T) {
	t.Run("a name has three parts", func(t *testing.T) {
		s := StreamOf("execution", "acme", "e-1")
		if s != "execution/acme/e-1" || s.Category() != "execution" || s.Tenant() != "acme" || s.ID() != "e-1" {
			t.Errorf("%s is %s, %s, %s", s, s.Category(), s.Tenant(), s.ID())
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []Stream{
		"", "/", "//", "a", "a/b", "a/b/", "/b/c", "a//c", "a/b/c/d", "a/b/c/",
		Stream("a/b/" + strings.Repeat("x", StreamMax)),
	} {
		t.Run(fmt.Sprintf("%.20q is none", s), func(t *testing.T) {
			if err := s.Check(); !errors.Is(err, ErrBadStream) || len(err.Error()) > 200 {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("the longest name is one", func(t *testing.T) {
		if err := Stream("a/b/" + strings.Repeat("x", StreamMax-4)).Check(); err != nil {
			t.Error(err)
		}
	})
	t.Run("parts that hold no slash come back", rapid.MakeCheck(func(t *rapid.T) {
		part := rapid.StringMatching(`[^/]{1,20}`)
		c, tenant, id := part.Draw(t, "c"), part.Draw(t, "t"), part.Draw(t, "id")
		s := StreamOf(c, tenant, id)
		if s.Check() != nil || s.Category() != c || s.Tenant() != tenant || s.ID() != id {
			t.Fatalf("%q: %q %q %q", s, s.Category(), s.Tenant(), s.ID())
		}
	}))
}

func TestPartitionOf(t *testing.T) {
	t.Run("it is FNV-1a, 32 bit", rapid.MakeCheck(func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(1, 1000).Draw(t, "n")
		h := fnv.New32a()
		h.Write([]byte(s))
		if got, want := PartitionOf(Stream(s), n), Partition(h.Sum32()%uint32(n)); got != want {
			t.Fatalf("%q lies in %d of %d, want %d", s, got, n, want)
		}
	}))
	t.Run("a stream's place is for ever", func(t *testing.T) {
		for s, want := range map[Stream]Partition{"execution/acme/1": 20, "definition/acme/onboarding": 25, "a/b/c": 11} {
			if got := PartitionOf(s, 32); got != want {
				t.Errorf("%s lies in %d of 32, want %d", s, got, want)
			}
		}
	})
}

func TestDerive(t *testing.T) {
	t.Run("an id is for ever", func(t *testing.T) {
		for want, got := range map[string]ID{
			"b7bdb518-df3d-5820-96d4-2238e21a1091": Derive("execution"),
			"f501ff9a-2fbf-51d7-a599-146e37f2c9fc": Derive("execution", "acme", "onboarding", "key-1"),
		} {
			if got.String() != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	t.Run("it is RFC 9562 §5.5 over length-prefixed parts, says another library", rapid.MakeCheck(func(t *rapid.T) {
		kind, parts := rapid.String().Draw(t, "kind"), rapid.SliceOf(rapid.String()).Draw(t, "parts")
		data := appendPart(nil, kind)
		for _, p := range parts {
			data = appendPart(data, p)
		}
		want := uuid.NewSHA1(uuid.UUID(namespace), data)
		got := Derive(kind, parts...)
		if uuid.UUID(got) != want || want.Version() != 5 || want.Variant() != uuid.RFC4122 || got.String() != want.String() {
			t.Fatalf("got %s, want %s", got, want)
		}
	}))
	t.Run("where one part ends and the next begins makes a difference", func(t *testing.T) {
		seen := map[ID]int{}
		for i, id := range []ID{
			Derive("k", "a", "bc"), Derive("k", "ab", "c"), Derive("k", "abc"), Derive("k", "", "abc"), Derive("k", "abc", ""),
			Derive("ka", "bc"), Derive("kabc"), Derive("k", "a", "b", "c"), Derive("k", "\x01a", "bc"),
		} {
			if other, twice := seen[id]; twice {
				t.Errorf("%d and %d give one id", i, other)
			}
			seen[id] = i
		}
	})
}

func TestTexts(t *testing.T) {
	t.Run("an id is read as it is written", rapid.MakeCheck(func(t *rapid.T) {
		var id, again ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		b, err := id.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != id || string(b) != uuid.UUID(id).String() {
			t.Fatalf("%s became %s, %v", id, again, err)
		}
	}))
	t.Run("a hash is read as it is written", rapid.MakeCheck(func(t *rapid.T) {
		var h, again Hash
		copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
		b, err := h.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != h {
			t.Fatalf("%s became %s, %v", h, again, err)
		}
	}))
	t.Run("a time is read as it is written, to the microsecond", rapid.MakeCheck(func(t *rapid.T) {
		at := Time(rapid.Int64Range(-62_135_596_800_000_000, 253_402_300_799_999_999).Draw(t, "time")) // years 1 to 9999
		var again Time
		b, err := at.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != at {
			t.Fatalf("%d became %d by %s, %v", at, again, b, err)
		}
	}))
	t.Run("no time is an empty text", func(t *testing.T) {
		again := Time(5)
		if b, err := Time(0).MarshalText(); err != nil || len(b) != 0 || again.UnmarshalText(b) != nil || again != 0 {
			t.Errorf("got %q, %v, %d", b, err, again)
		}
	})
	t.Run("what is no id, hash or time is refused and leaves none behind", func(t *testing.T) {
		for _, text := range []string{
			"", "x", "00000000-0000-0000-0000-00000000000", "00000000-0000-0000-0000-00000000000g",
			"000000000000000000000000000000000000", "{0000000-0000-0000-0000-00000000000}",
			"00000000-0000-0000-0000-0000000000000",
		} {
			if id, err := ParseID(text); err == nil || id != (ID{}) {
				t.Errorf("%q became the id %s", text, id)
			}
		}
		for _, text := range []string{"", "ab", strings.Repeat("ab", 31) + "ag", strings.Repeat("ab", 33)} {
			if h, err := ParseHash(text); err == nil || h != (Hash{}) {
				t.Errorf("%q became the hash %s", text, h)
			}
		}
		at := Time(5)
		if err := at.UnmarshalText([]byte("yesterday")); err == nil || at != 5 {
			t.Errorf("yesterday became %d", at)
		}
	})
}

func TestTime(t *testing.T) {
	t.Run("nothing finer than a microsecond is kept", func(t *testing.T) {
		std := time.Date(2026, 12, 1, 2, 3, 4, 5_999, time.FixedZone("far", 3600))
		at := TimeOf(std)
		if at.Std() != std.Truncate(time.Microsecond).UTC() || at.String() != "2026-12-01T01:03:04.000005Z" {
			t.Errorf("got %s", at)
		}
		if at.Add(1_999*time.Nanosecond) != at+1 || at.Add(time.Second).Sub(at) != time.Second {
			t.Error("sums are wrong")
		}
	})
}

// FuzzNames: whatever is read from a text is written as a text that reads the same.
func FuzzNames(f *testing.F) {
	f.Add(Derive("k").String())
	f.Add(strings.Repeat("ab", 32))
	f.Add("2026-12-01T00:00:00.000001Z")
	f.Add("order/acme/1")
	f.Add("order//1")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseID(text); err == nil {
			if again, err := ParseID(id.String()); err != nil || again != id {
				t.Errorf("the id %s became %s", id, again)
			}
		}
		if h, err := ParseHash(text); err == nil && !strings.EqualFold(h.String(), text) {
			t.Errorf("%q became the hash %s", text, h)
		}
		if s := Stream(text); s.Check() == nil && StreamOf(s.Category(), s.Tenant(), s.ID()) != s {
			t.Errorf("%q falls apart into %q, %q, %q", s, s.Category(), s.Tenant(), s.ID())
		}
	})
}
