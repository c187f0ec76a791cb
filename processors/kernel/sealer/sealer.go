// Package sealer runs a digest over one partition's commits and seals it with a signature now and then, so that what
// the hash chains do not cover (positions, times, whole streams, the log's end) cannot be changed without notice.
// It never reads the log or stores a seal itself: it is stepped, and says what is to be stored.
package sealer

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
)

const (
	// EveryPositions is how many new positions make a seal due (DESIGN §3): it bounds what a forger of the tail can
	// take away unseen in a busy partition.
	EveryPositions = 10_000
	// EveryWait is how long new positions wait for a seal in a quiet one. A partition without any writes nothing.
	EveryWait = 60 * time.Second
)

// ErrHole says that the commits given do not follow the last one digested. The store's own tail has no holes: one is
// damage, and a seal over it would declare it right.
var ErrHole = errors.New("hole in the log")

// Sealer is the state machine of one partition. It is not safe for concurrent use.
type Sealer struct {
	log    events.LogInfo
	signer kernel.Signer
	last   events.Seal // the last one made or stored; To is 0 before the first
	run    events.Seal // From, To, Commits, At and Digest as if sealed now
	since  events.Time // of the first commit not sealed
}

// Effects is what a step asks for. Seals are to be put in order; putting one again is safe.
type Effects struct {
	Seals []events.Seal
	// Next is when to step again although no commits have come; 0: not before some do.
	Next events.Time
}

// New resumes partition p from its last stored seal, the zero Seal when it has none. The digest goes on from that
// seal's: only commits after its To are needed.
func New(log events.LogInfo, p events.Partition, last events.Seal, s kernel.Signer) *Sealer {
	run := last
	run.Partition, run.Incarnation, run.From = p, log.Incarnation, last.To+1
	return &Sealer{log: log, signer: s, last: last, run: run}
}

// After is the position of the last commit digested: where the next tail begins.
func (s *Sealer) After() events.Position { return s.run.To }

// Step takes the next commits of the partition's tail, as the store reads them, and the time. Commits already
// digested are dropped. ErrHole stops the sealer for good: nothing of this step is to be stored.
func (s *Sealer) Step(now events.Time, tail []events.Commit) (Effects, error) {
	var out Effects
	for i := range tail {
		c := &tail[i]
		if c.Position <= s.run.To {
			continue
		}
		if c.Before() != s.run.To || c.Partition != s.run.Partition {
			return Effects{}, fmt.Errorf("partition %d after position %d: %w: next is partition %d, positions %d to %d",
				s.run.Partition, s.run.To, ErrHole, c.Partition, c.Before()+1, c.Position)
		}
		s.digest(c, now)
		if s.run.To-s.last.To >= EveryPositions {
			out.Seals = append(out.Seals, s.seal())
		}
	}
	if s.run.To == s.last.To {
		return out, nil
	}
	due := s.since.Add(EveryWait)
	if now < due {
		out.Next = due
		return out, nil
	}
	out.Seals = append(out.Seals, s.seal())
	return out, nil
}

func (s *Sealer) digest(c *events.Commit, now events.Time) {
	if s.run.To == s.last.To {
		// The commit's own time, so that restarts do not put the seal off; ours when the store's clock runs ahead.
		s.since = min(c.At, now)
	}
	s.run.Digest = events.SealDigest(s.run.Digest, c)
	s.run.To, s.run.At = c.Position, c.At
	s.run.Commits++
}

func (s *Sealer) seal() events.Seal {
	made := s.run
	made.Key = s.signer.Key()
	made.Signature = s.signer.Sign(events.SealBytes(s.log.ID, &made))
	s.last = made
	s.run.From = made.To + 1
	return made
}
