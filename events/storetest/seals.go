package storetest

import (
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

var seals = []rule{
	{"a seal is kept as it is, and once", func(f *fixture) {
		s := sealAt(1, 1, 40)
		f.must(f.Store.PutSeal(f.Context(), s))
		f.must(f.Store.PutSeal(f.Context(), s))
		f.wantSeals(1, 0, 10, s)
	}},
	{"another seal at the same place is refused", func(f *fixture) {
		s := sealAt(1, 1, 40)
		f.must(f.Store.PutSeal(f.Context(), s))
		for what, change := range map[string]func(*events.Seal){
			"incarnation": func(s *events.Seal) { s.Incarnation++ },
			"start":       func(s *events.Seal) { s.From++ },
			"count":       func(s *events.Seal) { s.Commits++ },
			"time":        func(s *events.Seal) { s.At++ },
			"digest":      func(s *events.Seal) { s.Digest[31]++ },
			"key":         func(s *events.Seal) { s.Key[0]++ },
			"signature":   func(s *events.Seal) { s.Signature = []byte("another") },
		} {
			other := s
			change(&other)
			if f.Store.PutSeal(f.Context(), other) == nil {
				f.Errorf("a seal with another %s was taken", what)
			}
		}
		f.wantSeals(1, 0, 10, s)
	}},
	{"seals are listed in order, in pages, each partition's own", func(f *fixture) {
		one, two, three := sealAt(0, 1, 10), sealAt(0, 11, 10_010), sealAt(0, 10_011, 10_012)
		elsewhere := sealAt(2, 1, 10)
		for _, s := range []events.Seal{one, three, elsewhere, two} {
			f.must(f.Store.PutSeal(f.Context(), s))
		}
		f.wantSeals(0, 0, 10, one, two, three)
		f.wantSeals(0, 0, 2, one, two)
		f.wantSeals(0, 9, 1, one)
		f.wantSeals(0, 10, 10, two, three)
		f.wantSeals(0, 10_012, 10)
		f.wantSeals(1, 0, 10)
		f.wantSeals(2, 0, 10, elsewhere)
		f.reopenKept()
		if f.Features.Forgets {
			return
		}
		f.wantSeals(0, 0, 10, one, two, three)
	}},
	{"a seal that was read is the reader's", func(f *fixture) {
		s := sealAt(0, 1, 10)
		f.must(f.Store.PutSeal(f.Context(), s))
		got, err := f.Store.SealsOf(f.Context(), 0, 0, 1)
		f.must(err)
		clear(got[0].Signature)
		f.wantSeals(0, 0, 1, sealAt(0, 1, 10))
	}},
}

func sealAt(p events.Partition, from, to events.Position) events.Seal {
	return events.Seal{
		Partition: p, Incarnation: 1, From: from, To: to, Commits: int64(to) / 2, At: start + events.Time(to),
		Digest: events.Hash{1, 31: byte(to)}, Key: events.Hash{2, 31: 3}, Signature: fmt.Appendf(nil, "signed %d", to),
	}
}

func (f *fixture) wantSeals(p events.Partition, after events.Position, most int, want ...events.Seal) {
	f.Helper()
	got, err := f.Store.SealsOf(f.Context(), p, after, most)
	f.must(err)
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w && len(got)+len(want) > 0 {
		f.Fatalf("seals of partition %d after %d, at most %d:\n got %s\nwant %s", p, after, most, g, w)
	}
}
