package handle

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// sealCheck holds a partition's seals against its commits as they are read. A seal that does not hold is reported
// with the positions it covers; where its signature is good the check goes on from its digest, so that each stretch
// of the log is judged by itself.
type sealCheck struct {
	*audit
	waiting []events.Seal // read, not reached yet
	dry     bool          // none was left when last asked, before the last read of the log
	after   events.Position
	sealed  events.Position // To of the last one that holds
	last    events.Seal     // the last one reached
	digest  events.Hash     // as far as the commits were read
	commits int64
}

// fill reads the next seals once the last page is used up. What ends where the log was already read was put after
// that by an owner beside us: it is judged by itself, and the next audit looks at what it covers.
func (s *sealCheck) fill(ctx context.Context) error {
	for len(s.waiting) == 0 && !s.dry {
		page, err := s.Seals.SealsOf(ctx, s.p, s.after, auditPage)
		if err != nil {
			return fmt.Errorf("read seals after position %d: %w", s.after, err)
		}
		n := len(page)
		if s.dry = n == 0; s.dry {
			return nil
		}
		s.after = max(s.after+1, page[n-1].To) // a damaged one must not lead back
		for s.waiting = page; len(s.waiting) > 0 && s.waiting[0].To <= s.audit.last; s.waiting = s.waiting[1:] {
			s.late(&s.waiting[0])
		}
	}
	return nil
}

func (s *sealCheck) late(seal *events.Seal) {
	s.report.Counts.Seals++
	if why := s.judge(seal); why != "" {
		s.bad(seal, why)
	}
	s.last = *seal
}

// commit runs the digest on. Seals that end before the commit does were left out by the commits.
func (s *sealCheck) commit(ctx context.Context, c *events.Commit) error {
	for {
		if err := s.fill(ctx); err != nil {
			return err
		}
		if len(s.waiting) == 0 || s.waiting[0].To >= c.Position {
			break
		}
		s.bad(&s.waiting[0], "no commit ends at its last position")
		s.next(false)
	}
	s.digest = events.SealDigest(s.digest, c)
	s.commits++
	if len(s.waiting) == 0 || s.waiting[0].To != c.Position {
		return nil
	}
	seal := &s.waiting[0]
	why := s.judge(seal)
	switch {
	case why != "":
	case seal.Digest != s.digest:
		why = "its digest is not that of the commits it covers"
	case seal.Commits != s.commits:
		why = fmt.Sprintf("it counts %d commits, the log holds %d", seal.Commits, s.commits)
	case seal.At != c.At:
		why = fmt.Sprintf("it says that its last commit was recorded at %s, the log says %s", seal.At, c.At)
	}
	if why != "" {
		s.bad(seal, why)
	}
	s.next(why == "")
	return nil
}

// beyond reports the seals that the log ends before, and says whether there may be more to read.
func (s *sealCheck) beyond() bool {
	more := len(s.waiting) > 0
	for len(s.waiting) > 0 {
		seal := &s.waiting[0]
		if why := s.judge(seal); why != "" {
			s.bad(seal, why)
		} else {
			s.add(Finding{Position: s.audit.last + 1, LastPosition: seal.To}, FoundTail,
				"a seal covers positions %d to %d, the log ends at %d", seal.From, seal.To, s.audit.last)
		}
		s.next(false)
	}
	return more
}

func (s *sealCheck) bad(seal *events.Seal, why string) {
	s.add(Finding{Position: seal.From, LastPosition: seal.To}, FoundSeal,
		"the seal over positions %d to %d does not hold: %s", seal.From, seal.To, why)
}

// next goes on to the seal behind the first one waiting.
func (s *sealCheck) next(holds bool) {
	seal := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.report.Counts.Seals++
	if holds {
		s.sealed = seal.To
	} else if s.signed(&seal) == "" {
		s.digest, s.commits = seal.Digest, seal.Commits
	}
	s.last = seal
}

// judge says what is wrong with a seal in itself and after the one before it; empty: nothing. From may lie below the
// last To: an owner that was replaced may still have sealed what its successor seals again.
func (s *sealCheck) judge(seal *events.Seal) string {
	switch {
	case seal.Partition != s.p:
		return fmt.Sprintf("it is of partition %d", seal.Partition)
	case seal.From < 1 || seal.From > seal.To || seal.To <= s.last.To:
		return fmt.Sprintf("it follows a seal up to position %d", s.last.To)
	case seal.From > s.last.To+1:
		return fmt.Sprintf("the seal over positions %d to %d before it is missing", s.last.To+1, seal.From-1)
	case seal.Incarnation > s.info.Incarnation || seal.Incarnation < s.last.Incarnation:
		return fmt.Sprintf("it is of incarnation %d", seal.Incarnation)
	}
	return s.signed(seal)
}

// signed says what is wrong with a seal's signature; empty: nothing, or there are no keys to judge by.
func (s *sealCheck) signed(seal *events.Seal) string {
	if s.Public == nil {
		return ""
	}
	key, ok := s.Public(seal.Key)
	if !ok {
		return fmt.Sprintf("no trusted key has the name %.16s…", seal.Key)
	}
	if !ed25519.Verify(key, events.SealBytes(s.info.ID, seal), seal.Signature) {
		return "its signature is not that of its key"
	}
	return ""
}
