package handle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

func verify(t *testing.T, a handle.Audit) handle.Report {
	t.Helper()
	r, err := handle.Verify(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// short is a finding as the cases speak of it: kind, place.
func short(f handle.Finding) string {
	if f.Stream != "" {
		return fmt.Sprintf("%s %s %d-%d", f.Kind, f.Stream, f.Version, f.LastVersion)
	}
	return fmt.Sprintf("%s partition %d %d-%d", f.Kind, f.Partition, f.Position, f.LastPosition)
}

func shorts(r handle.Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, short(f))
	}
	return all
}

func TestVerify(t *testing.T) {
	t.Run("a good log has no findings, and the report says what was looked at", func(t *testing.T) {
		var told []handle.AuditProgress
		a := filled(t).audit(t)
		a.Progress = func(p handle.AuditProgress) { told = append(told, p) }
		r := verify(t, a)
		want := handle.AuditCounts{Commits: 11, Events: 14, Streams: 4, Seals: 3, Blobs: 28, Refolded: 4, Snapshots: 2}
		if !r.OK() || r.Counts != want || len(r.NotChecked) != 0 {
			t.Fatalf("%+v", r)
		}
		ends := []handle.AuditedPartition{{Partition: 0, End: 12, SealedTo: 12}, {Partition: 1, End: 2, SealedTo: 2}}
		if !slices.Equal(r.Partitions, ends) {
			t.Fatalf("%+v", r.Partitions)
		}
		if n := len(told); n < 6 || told[0].Position != 4 || told[0].End != 12 || told[n-1].Heads != 2 {
			t.Fatalf("%+v", told)
		}
	})
	t.Run("passes and shared-out partitions find the same and count alike", func(t *testing.T) {
		s := filled(t)
		s.commits[0][3].Events[20] ^= 1
		s.seals[1][0].Digest[0] ^= 1
		whole := verify(t, s.audit(t))
		a := s.audit(t)
		a.Passes = 3
		if r := verify(t, a); !slices.Equal(shorts(r), shorts(whole)) || r.Counts != whole.Counts {
			t.Fatalf("%+v\n%+v", r, whole)
		}
		a = s.audit(t)
		a.Partitions = []events.Partition{1}
		if r := verify(t, a); !slices.Equal(shorts(r), []string{"seal partition 1 1-2"}) || len(r.Partitions) != 1 {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("what cannot be checked is said", func(t *testing.T) {
		s := filled(t)
		r := verify(t, handle.Audit{Log: s, Codec: today(t)})
		if !r.OK() || !slices.Equal(r.NotChecked, []string{"seals", "signatures", "states", "blobs"}) {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("events of a newer build are counted and their streams not folded", func(t *testing.T) {
		a := filled(t).audit(t)
		a.Codec = codecOf[paidV1](t, nil, paidSchemaV1)
		a.Aggregates = nil
		if r := verify(t, a); !r.OK() || r.Counts.NewerEvents != 0 {
			t.Fatalf("%+v", r)
		}
		s := filled(t)
		s.append(t, 1, "order/acme/e", 1, body(t, 1))
		c := &s.commits[1][2]
		c.Events[len("test.paid")+1] = 9 // its schema
		c.Hash = events.Chain(events.Hash{}, c.Stream, 1, 1, c.Envelope, c.Events)
		h := s.heads[c.Stream]
		h.Hash = c.Hash
		s.heads[c.Stream] = h
		if r := verify(t, s.audit(t)); !r.OK() || r.Counts.NewerEvents != 1 || r.Counts.Refolded != 4 {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("a report is JSON with stable names", func(t *testing.T) {
		s := filled(t)
		s.commits[0][0].Events[20] ^= 1
		text, err := json.Marshal(verify(t, s.audit(t)))
		const want = `"kind":"hash_chain","partition":0,"stream":"order/acme/a","version":1`
		if err != nil || !bytes.Contains(text, []byte(want)) {
			t.Fatalf("%s, %v", text, err)
		}
	})
	t.Run("a store that fails ends the audit with what was found until then", func(t *testing.T) {
		s := filled(t)
		s.commits[0][0].Events[20] ^= 1
		broken := errors.New("disk on fire")
		a := s.audit(t)
		a.Blobs = failing{s, broken}
		r, err := handle.Verify(context.Background(), a)
		if !errors.Is(err, broken) || len(r.Findings) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("a store that gives the same rows for ever does not keep the audit for ever", func(t *testing.T) {
		s := filled(t)
		a := s.audit(t)
		a.Log, a.Partitions = stuck{s}, []events.Partition{0}
		if r := verify(t, a); r.OK() || r.Counts.Commits != 6 {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("a report has a bound", func(t *testing.T) {
		s := filled(t)
		one := body(t, 1)
		for range handle.FindingsMax {
			s.append(t, 1, "order/acme/c", 1, one)
		}
		for i := range s.commits[1] {
			s.commits[1][i].At = start - events.Time(i)
		}
		a := s.audit(t)
		a.Seals, a.Aggregates, a.Blobs = nil, nil, nil
		if r := verify(t, a); len(r.Findings) != handle.FindingsMax || r.More != 1 || r.OK() {
			t.Fatalf("%d findings and %d more", len(r.Findings), r.More)
		}
	})
}

// stuck reads the partition's first page whatever it is asked for.
type stuck struct{ *shelf }

func (s stuck) Tail(ctx context.Context, p events.Partition, _ events.Position, most int) ([]events.Commit, error) {
	return s.shelf.Tail(ctx, p, 0, most)
}

type failing struct {
	*shelf
	err error
}

func (f failing) Get(context.Context, string, events.Hash) ([]byte, error) { return nil, f.err }

// harms is what can be wrong with a log, and what must be said of it.
var harms = map[string]struct {
	harm  func(s *shelf)
	wants []string
}{
	"an event's byte": {
		func(s *shelf) { s.commits[0][2].Events[30] ^= 4 }, // version 2 of a
		[]string{"hash_chain order/acme/a 2-2"},
	},
	"an envelope's byte": {
		func(s *shelf) { s.commits[0][3].Envelope[3] ^= 4 }, // versions 3 and 4 of b
		[]string{"hash_chain order/acme/b 3-4"},
	},
	"a commit's hash": {
		func(s *shelf) { s.commits[0][2].Hash[5] ^= 4 },
		[]string{"seal partition 0 1-9", "hash_chain order/acme/a 2-2"},
	},
	"a commit's command": {
		func(s *shelf) { s.commits[0][2].Command[5] ^= 4 }, []string{"seal partition 0 1-9"},
	},
	"a commit's fence": {
		func(s *shelf) { s.commits[0][8].Fence = 4 }, []string{"seal partition 0 10-12"},
	},
	"a commit's time": {
		func(s *shelf) { s.commits[0][2].At++ }, []string{"seal partition 0 1-9"},
	},
	"a commit's time, far back": {
		func(s *shelf) { s.commits[0][2].At -= 1e9 }, []string{"seal partition 0 1-9", "time_order order/acme/a 2-2"},
	},
	"a commit's stream": {
		func(s *shelf) { s.commits[0][8].Stream = "order/acme/x" }, // the last of b
		[]string{"tail_missing order/acme/b 7-7", "head order/acme/x 7-7", "version_gap order/acme/x 7-7"},
	},
	"a commit's position": {
		func(s *shelf) { s.commits[0][2].Position-- },
		[]string{"position_gap partition 0 3-3", "position_gap partition 0 4-4", "seal partition 0 1-9"},
	},
	"a commit's number of events": {
		func(s *shelf) { s.commits[0][3].N = 3 }, // of b at versions 3 and 4
		[]string{"hash_chain order/acme/b 3-5", "position_gap partition 0 4-6"},
	},
	"a head's hash": {
		func(s *shelf) { h := s.heads["order/acme/b"]; h.Hash[1] ^= 1; s.heads["order/acme/b"] = h },
		[]string{"head order/acme/b 7-7"},
	},
	"a head's version, up": {
		func(s *shelf) { h := s.heads["order/acme/b"]; h.Version = 9; s.heads["order/acme/b"] = h },
		[]string{"tail_missing order/acme/b 8-9"},
	},
	"a head's version, down": {
		func(s *shelf) { h := s.heads["order/acme/b"]; h.Version = 6; s.heads["order/acme/b"] = h },
		[]string{"head order/acme/b 7-7"},
	},
	"a head's partition": {
		func(s *shelf) { h := s.heads["order/acme/b"]; h.Partition = 1; s.heads["order/acme/b"] = h },
		[]string{"partition order/acme/b 7-7"},
	},
	"a head's open mark": {
		func(s *shelf) { h := s.heads["order/acme/a"]; h.Open = false; s.heads["order/acme/a"] = h },
		[]string{"head order/acme/a 5-5"},
	},
	"a head's due": {
		func(s *shelf) { h := s.heads["order/acme/a"]; h.Due = 0; s.heads["order/acme/a"] = h },
		[]string{"head order/acme/a 5-5"},
	},
	"a head that is gone": {
		func(s *shelf) { delete(s.heads, "order/acme/a") }, []string{"head order/acme/a 5-5"},
	},
	"a snapshot's byte": {
		func(s *shelf) { s.heads["order/acme/a"].Snapshot[12] ^= 1 }, []string{"snapshot order/acme/a 1-4"},
	},
	"a snapshot's version": {
		func(s *shelf) { h := s.heads["order/acme/a"]; h.SnapshotAt = 3; s.heads["order/acme/a"] = h },
		[]string{"snapshot order/acme/a 1-3"},
	},
	"a snapshot's version, beyond the end": {
		func(s *shelf) { h := s.heads["order/acme/a"]; h.SnapshotAt = 30; s.heads["order/acme/a"] = h },
		[]string{"snapshot order/acme/a 1-30"},
	},
	"a seal's digest": {
		func(s *shelf) { s.seals[0][0].Digest[1] ^= 1 }, []string{"seal partition 0 1-9"},
	},
	"a seal's signature": {
		func(s *shelf) { s.seals[0][1].Signature[1] ^= 1 }, []string{"seal partition 0 10-12"},
	},
	"a seal's count": {
		func(s *shelf) { s.seals[0][1].Commits++ }, []string{"seal partition 0 10-12"},
	},
	"a seal's time": {
		func(s *shelf) { s.seals[0][1].At++ }, []string{"seal partition 0 10-12"},
	},
	"a seal's incarnation": {
		func(s *shelf) { s.seals[0][1].Incarnation = 9 }, []string{"seal partition 0 10-12"},
	},
	"a seal's key": {
		func(s *shelf) { s.seals[0][1].Key[1] ^= 1 }, []string{"seal partition 0 10-12"},
	},
	"a seal's end, where no commit ends": {
		func(s *shelf) { s.seals[0][0].To = 8 }, []string{"seal partition 0 1-8", "seal partition 0 10-12"},
	},
	"a seal that is gone": {
		func(s *shelf) { s.seals[0] = s.seals[0][1:] }, []string{"seal partition 0 10-12"},
	},
	"a commit that is gone from the middle": {
		func(s *shelf) { s.commits[0] = slices.Delete(s.commits[0], 4, 5) }, // version 3 of a
		[]string{"position_gap partition 0 7-7", "seal partition 0 1-9", "version_gap order/acme/a 4-4"},
	},
	"a commit that stands twice": {
		func(s *shelf) { s.commits[0] = slices.Insert(s.commits[0], 1, s.commits[0][0]) },
		[]string{"position_gap partition 0 1-1", "seal partition 0 1-9", "version_gap order/acme/a 1-1"},
	},
}

func TestVerifyFindsHarm(t *testing.T) {
	for name, c := range harms {
		t.Run("one changed thing is named: "+name, func(t *testing.T) {
			s := filled(t)
			c.harm(s)
			r := verify(t, s.audit(t))
			got := slices.Sorted(slices.Values(shorts(r)))
			if !slices.Equal(got, slices.Sorted(slices.Values(c.wants))) {
				t.Fatalf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.wants, "\n"))
			}
		})
	}
	t.Run("a blob that is gone, and one of another size, are named by stream and version", func(t *testing.T) {
		s := filled(t)
		delete(s.blobs, events.Hash{0xbb})
		if r := verify(t, s.audit(t)); len(r.Findings) != 14 || short(r.Findings[0]) != "blob order/acme/a 1-1" {
			t.Fatalf("%v", shorts(r))
		}
		s.blobs[events.Hash{0xbb}] = []byte("short")
		if r := verify(t, s.audit(t)); len(r.Findings) != 14 || short(r.Findings[13]) != "blob order/zeta/d 1-1" {
			t.Fatalf("%v", shorts(r))
		}
	})
	t.Run("every flipped bit of an event, envelope, hash, head, snapshot or seal is found", func(t *testing.T) {
		s := filled(t)
		a := s.audit(t)
		targets := map[string][]byte{}
		for i := range s.commits[0] {
			c := &s.commits[0][i]
			targets[fmt.Sprintf("events at %d", c.Position)] = c.Events
			targets[fmt.Sprintf("envelope at %d", c.Position)] = c.Envelope
			targets[fmt.Sprintf("hash at %d", c.Position)] = c.Hash[:]
			targets[fmt.Sprintf("command at %d", c.Position)] = c.Command[:]
		}
		for i := range s.seals[0] {
			l := &s.seals[0][i]
			targets[fmt.Sprintf("seal to %d: digest", l.To)] = l.Digest[:]
			targets[fmt.Sprintf("seal to %d: key", l.To)] = l.Key[:]
			targets[fmt.Sprintf("seal to %d: signature", l.To)] = l.Signature
		}
		targets["snapshot of a"] = s.heads["order/acme/a"].Snapshot
		targets["snapshot of b"] = s.heads["order/acme/b"].Snapshot
		for name, b := range targets {
			for i := range b {
				b[i] ^= 1 << (i % 8)
				if r := verify(t, a); r.OK() {
					t.Errorf("%s: byte %d is flipped and nothing is found", name, i)
				}
				b[i] ^= 1 << (i % 8)
			}
		}
		if r := verify(t, a); !r.OK() {
			t.Fatalf("the flips were not undone: %v", shorts(r))
		}
	})
}
