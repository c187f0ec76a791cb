package handle_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

func TestVerifyES35(t *testing.T) {
	t.Run("ES-35 bytes that another encoder wrote verify as stored", func(t *testing.T) {
		s := newShelf(t)
		ours := body(t, 150)
		// The list as a block with its byte size (-3 items, 3 bytes), which today's encoder leaves out.
		theirs := append(bytes.TrimSuffix(bytes.Clone(ours), []byte{6, 2, 4, 6, 0}), 5, 6, 2, 4, 6, 0)
		if bytes.Equal(ours, theirs) || len(theirs) != len(ours)+1 {
			t.Fatalf("%x is no other encoding of %x", theirs, ours)
		}
		for range 5 {
			s.append(t, 0, "order/acme/a", 1, theirs)
		}
		s.seal(t, 0)
		if r := verify(t, s.audit(t)); !r.OK() || r.Counts.Events != 5 {
			t.Fatalf("%v", shorts(r))
		}
	})
	five := func(t *testing.T) *shelf {
		s := newShelf(t)
		for i := range int64(5) {
			s.append(t, 0, "order/acme/a", 1, body(t, 100+i))
		}
		s.append(t, 0, "order/acme/b", 1, body(t, 1))
		s.seal(t, 0)
		return s
	}
	t.Run("ES-35 a flipped byte of version 2 is reported with stream and version", func(t *testing.T) {
		s := five(t)
		s.commits[0][1].Events[20] ^= 1
		if got := shorts(verify(t, s.audit(t))); !slices.Equal(got, []string{"hash_chain order/acme/a 2-2"}) {
			t.Fatal(got)
		}
	})
	t.Run("ES-35 swapped bodies of versions 3 and 4 are reported at 3", func(t *testing.T) {
		s := five(t)
		s.commits[0][2].Events, s.commits[0][3].Events = s.commits[0][3].Events, s.commits[0][2].Events
		if got := shorts(verify(t, s.audit(t))); !slices.Equal(got, []string{"hash_chain order/acme/a 3-3"}) {
			t.Fatal(got)
		}
	})
	t.Run("ES-35 a cut tail is reported by the seal over it, its head and its counter made to fit", func(t *testing.T) {
		s := five(t)
		s.commits[0] = s.commits[0][:5]
		delete(s.heads, "order/acme/b")
		s.ends[0] = 5
		if got := shorts(verify(t, s.audit(t))); !slices.Equal(got, []string{"tail_missing partition 0 6-6"}) {
			t.Fatal(got)
		}
	})
	t.Run("ES-35 a cut tail without a seal is reported by the counter and the open head", func(t *testing.T) {
		s := five(t)
		s.seals[0], s.commits[0] = nil, s.commits[0][:5]
		want := []string{"tail_missing order/acme/b 1-1", "tail_missing partition 0 6-6"}
		if got := shorts(verify(t, s.audit(t))); !slices.Equal(got, want) {
			t.Fatal(got)
		}
	})
	t.Run("ES-35 a missing stream leaves every chain valid and is reported by the gap and the seal", func(t *testing.T) {
		s := filled(t)
		s.commits[0] = slices.DeleteFunc(s.commits[0], func(c events.Commit) bool { return c.Stream == "order/acme/b" })
		delete(s.heads, "order/acme/b")
		want := []string{
			"position_gap partition 0 2-3", "position_gap partition 0 5-6", "position_gap partition 0 8-9",
			"seal partition 0 1-9", "tail_missing partition 0 12-12", "tail_missing partition 0 12-12",
		}
		if got := slices.Sorted(slices.Values(shorts(verify(t, s.audit(t))))); !slices.Equal(got, want) {
			t.Fatal(got)
		}
	})
}

func TestVerifyES26(t *testing.T) {
	t.Run("ES-26 verify folds stored v1 events as v2, and the stored bytes do not change", func(t *testing.T) {
		s := newShelf(t)
		for range 3 {
			s.append(t, 0, "order/acme/a", 1, body(t, 150))
		}
		before := fmt.Sprintf("%x", s.commits[0][0].Events)
		h := s.heads["order/acme/a"]
		h.Snapshot, h.SnapshotAt = s.folds[h.Stream].Snapshot(accounts()), 3
		s.heads["order/acme/a"] = h
		if !bytes.HasSuffix(h.Snapshot, []byte("USD")) {
			t.Fatalf("the fold is not of v2: %q", h.Snapshot)
		}
		if r := verify(t, s.audit(t)); !r.OK() || r.Counts.Snapshots != 1 {
			t.Fatalf("%+v", r)
		}
		a := s.audit(t)
		a.Codec = codecOf[paid](t, nil, paidSchemaV1, paidSchemaV2) // the one path that forgets to upcast
		if got := shorts(verify(t, a)); !slices.Equal(got, []string{"snapshot order/acme/a 1-3"}) {
			t.Fatalf("without the upcast it finds %v", got)
		}
		if fmt.Sprintf("%x", s.commits[0][0].Events) != before {
			t.Fatal("the stored bytes changed")
		}
	})
}

func TestVerifyBesideWriters(t *testing.T) {
	t.Run("what is appended and sealed while it reads is no finding", func(t *testing.T) {
		s := filled(t)
		busy := 0
		s.tailed = func() {
			if busy++; busy > 12 {
				return
			}
			s.append(t, 0, "order/acme/a", 1, body(t, 1))
			s.append(t, 0, events.Stream(fmt.Sprintf("order/acme/new-%d", busy)), 1, body(t, 1))
			s.seal(t, 0)
		}
		a := s.audit(t)
		a.Progress = func(p handle.AuditProgress) {
			if p.Heads > 0 && busy < 40 {
				busy = 40
				s.append(t, 0, "order/acme/b", 1, body(t, 1))
			}
		}
		if r := verify(t, a); !r.OK() {
			t.Fatalf("%v", r.Findings)
		}
	})
	t.Run("a head that moves on after the log was read is followed, along the chain", func(t *testing.T) {
		for harmed, want := range map[bool][]string{false: nil, true: {"hash_chain order/acme/b 8-8"}} {
			s := filled(t)
			a, grown := s.audit(t), false
			a.Progress = func(p handle.AuditProgress) {
				if p.Partition == 0 && p.Position == p.End && !grown {
					grown = true
					s.append(t, 1, "order/acme/b", 1, body(t, 1)) // partition 1: this audit's tail never sees it
					h := s.heads["order/acme/b"]
					h.Partition = 0
					s.heads["order/acme/b"] = h
					if harmed {
						s.commits[1][2].Events[20] ^= 1
					}
				}
			}
			a.Partitions = []events.Partition{0}
			if got := shorts(verify(t, a)); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
	t.Run("without keys a seal's digest still holds", func(t *testing.T) {
		s := filled(t)
		a := s.audit(t)
		a.Public = nil
		if r := verify(t, a); !r.OK() {
			t.Fatal(shorts(r))
		}
		s.commits[0][2].At++
		if got := shorts(verify(t, a)); !slices.Equal(got, []string{"seal partition 0 1-9"}) {
			t.Fatal(got)
		}
	})
	t.Run("without keys what a seal says of its stretch still holds", func(t *testing.T) {
		for name, harm := range map[string]func(l *events.Seal){
			"count":       func(l *events.Seal) { l.Commits++ },
			"time":        func(l *events.Seal) { l.At++ },
			"incarnation": func(l *events.Seal) { l.Incarnation-- },
			"partition":   func(l *events.Seal) { l.Partition++ },
			"start":       func(l *events.Seal) { l.From = l.To + 1 },
		} {
			s := filled(t)
			a := s.audit(t)
			a.Public = nil
			harm(&s.seals[0][1])
			if r := verify(t, a); len(r.Findings) != 1 || r.Findings[0].Kind != handle.FoundSeal {
				t.Errorf("%s: %v", name, shorts(r))
			}
		}
	})
	t.Run("a seal under a key that nobody trusts does not hold", func(t *testing.T) {
		a := filled(t).audit(t)
		a.Public = func(events.Hash) (ed25519.PublicKey, bool) { return nil, false }
		if got := shorts(verify(t, a)); len(got) != 3 {
			t.Fatal(got)
		}
	})
}
