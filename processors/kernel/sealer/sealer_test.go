package sealer

import (
	"errors"
	"reflect"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

var log = events.LogInfo{ID: events.ID{7}, Incarnation: 3, Partitions: 4}

const (
	part   = events.Partition(2)
	start  = events.Time(1_700_000_000_000_000)
	second = events.Time(1_000_000)
)

// mark is a signer whose signature says what was signed.
type mark struct{}

func (mark) Key() events.Hash     { return events.Hash{9} }
func (mark) Sign(m []byte) []byte { return append([]byte("signed "), m...) }

// commits makes n commits of size events each, a second apart, after the position.
func commits(after events.Position, n, size int) []events.Commit {
	cs := make([]events.Commit, n)
	for i := range cs {
		after += events.Position(size)
		cs[i] = events.Commit{
			Stream: "execution/default/1", Partition: part, First: 1, N: size, Position: after,
			At: start + events.Time(after)*second, Hash: events.Hash{byte(after), byte(after >> 8), byte(after >> 16)},
		}
	}
	return cs
}

func digest(cs []events.Commit) (h events.Hash) {
	for i := range cs {
		h = events.SealDigest(h, &cs[i])
	}
	return h
}

func step(t *testing.T, s *Sealer, now events.Time, tail []events.Commit) Effects {
	t.Helper()
	out, err := s.Step(now, tail)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSealer(t *testing.T) {
	t.Run("an idle log seals nothing and asks for no wake-up", func(t *testing.T) {
		s := New(log, part, events.Seal{}, mark{})
		for hour := range events.Time(5) {
			if out := step(t, s, start+hour*3600*second, nil); !reflect.DeepEqual(out, Effects{}) {
				t.Fatalf("%+v", out)
			}
		}
	})
	t.Run("new positions are sealed 60 s after the first of them, once", func(t *testing.T) {
		s, cs := New(log, part, events.Seal{}, mark{}), commits(0, 3, 2)
		first := cs[0].At
		if out := step(t, s, first+second, cs); out.Seals != nil || out.Next != first+60*second {
			t.Fatalf("%+v", out)
		}
		if out := step(t, s, first+60*second-1, nil); out.Seals != nil || out.Next != first+60*second {
			t.Fatalf("%+v", out)
		}
		out := step(t, s, first+60*second, nil)
		want := events.Seal{
			Partition: part, Incarnation: 3, From: 1, To: 6, Commits: 3, At: cs[2].At, Digest: digest(cs), Key: events.Hash{9},
		}
		want.Signature = append([]byte("signed "), events.SealBytes(log.ID, &want)...)
		if len(out.Seals) != 1 || !reflect.DeepEqual(out.Seals[0], want) || out.Next != 0 {
			t.Fatalf("got %+v, want %+v", out, want)
		}
		if out := step(t, s, first+600*second, nil); !reflect.DeepEqual(out, Effects{}) {
			t.Fatalf("sealed again: %+v", out)
		}
	})
	t.Run("10,000 new positions are sealed at once, at a commit's end", func(t *testing.T) {
		s, cs := New(log, part, events.Seal{}, mark{}), commits(0, 8000, 3)
		out := step(t, s, start, cs)
		if len(out.Seals) != 2 || out.Seals[0].To != 10_002 || out.Seals[1].From != 10_003 || out.Seals[1].To != 20_004 {
			t.Fatalf("%+v", out.Seals)
		}
		if out.Seals[1].Digest != digest(cs[:6668]) || out.Seals[1].Commits != 6668 {
			t.Fatal("the second seal's digest does not run from the partition's start")
		}
		if out.Next == 0 || s.After() != 24_000 {
			t.Fatalf("the rest is forgotten: %+v, after %d", out.Next, s.After())
		}
	})
	t.Run("a restart goes on from the last seal and makes the seal that would have been", func(t *testing.T) {
		cs := commits(0, 40, 1)
		one := New(log, part, events.Seal{}, mark{})
		last := step(t, one, cs[0].At+60*second, cs[:20]).Seals[0]
		straight := step(t, one, cs[39].At+60*second, cs[20:]).Seals[0]
		again := New(log, part, last, mark{})
		if again.After() != 20 {
			t.Fatalf("it reads after %d", again.After())
		}
		resumed := step(t, again, cs[39].At+60*second, cs[10:]).Seals[0] // the store gives some twice
		if !reflect.DeepEqual(resumed, straight) || resumed.From != 21 || resumed.Digest != digest(cs) {
			t.Fatalf("got %+v, want %+v", resumed, straight)
		}
	})
	t.Run("restarts do not put a seal off", func(t *testing.T) {
		cs := commits(0, 1, 1)
		out := step(t, New(log, part, events.Seal{}, mark{}), cs[0].At+61*second, cs)
		if len(out.Seals) != 1 {
			t.Fatalf("%+v", out)
		}
	})
	t.Run("a store whose clock runs ahead does not put a seal off", func(t *testing.T) {
		s, cs := New(log, part, events.Seal{}, mark{}), commits(0, 1, 1)
		now := cs[0].At - 3600*second
		if out := step(t, s, now, cs); out.Next != now+60*second {
			t.Fatalf("%+v", out)
		}
	})
	for name, bad := range map[string][]events.Commit{
		"a hole":                              append(commits(0, 2, 1), commits(3, 1, 1)...),
		"a commit that overlaps":              append(commits(0, 2, 1), commits(1, 1, 2)...),
		"a commit of another partition":       {{Partition: part + 1, N: 1, Position: 1}},
		"a tail that begins further on":       commits(5, 2, 1),
		"a first commit with a hole in front": commits(1, 1, 1),
	} {
		t.Run(name+" is never sealed over", func(t *testing.T) {
			out, err := New(log, part, events.Seal{}, mark{}).Step(start+1e6*second, bad)
			if !errors.Is(err, ErrHole) || out.Seals != nil {
				t.Fatalf("%+v, %v", out, err)
			}
		})
	}
}
