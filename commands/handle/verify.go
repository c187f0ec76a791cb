package handle

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"hash/fnv"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/events"
)

// Audit is what Verify looks at. Log and Codec are required; what else is nil is not checked, and the report says so.
type Audit struct {
	Log        events.Reader
	Codec      events.Codec
	Seals      events.Seals
	Public     func(events.Hash) (ed25519.PublicKey, bool) // finds a key that seals are trusted under
	Aggregates []aggregates.Aggregate                      // to fold streams anew
	Blobs      events.Blobs                                // read whole
	Partitions []events.Partition                          // none: all of the log. Several calls may share them out
	// Passes bounds memory: the partition is read that often, each time keeping some 150 bytes a stream for its share
	// of the streams. 0 and 1 keep all of them.
	Passes   int
	Progress func(AuditProgress) // told after every page; must not block
}

// AuditProgress says how far an audit is within one partition.
type AuditProgress struct {
	Partition events.Partition
	Pass      int             // from 0
	Position  events.Position // read so far in this pass
	End       events.Position // when the audit began
	Heads     int             // streams checked since the pass has read the log
	Streams   int             // of this pass
}

// auditPage is how many rows one read asks for.
const auditPage = 1000

// Verify reads the log and holds it to its promises: positions and versions gapless, hashes chained over the stored
// bytes, heads and snapshots as the events say, blobs there, seals right and none beyond the end. It changes nothing,
// may run beside writers, and takes the bytes as stored: what today's encoder would write does not matter.
// An error means that the audit could not be finished; the report then holds what was found until then.
func Verify(ctx context.Context, a Audit) (r Report, err error) {
	info, err := a.Log.Log(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	r = Report{Log: info.ID, Incarnation: info.Incarnation, Findings: []Finding{}, NotChecked: a.notChecked()}
	defer func() { r.sort() }()
	parts := a.Partitions
	for p := events.Partition(0); a.Partitions == nil && p < events.Partition(info.Partitions); p++ {
		parts = append(parts, p)
	}
	aggs := map[string]aggregates.Aggregate{}
	for _, agg := range a.Aggregates {
		aggs[agg.Category()] = agg
	}
	for _, p := range parts {
		v := &audit{Audit: a, info: info, p: p, report: &r, aggs: aggs}
		if err := v.partition(ctx); err != nil {
			return r, fmt.Errorf("verify partition %d: %w", p, err)
		}
	}
	return r, nil
}

func (a *Audit) notChecked() []string {
	not := []string{}
	for _, c := range []struct {
		absent bool
		what   string
	}{
		{a.Seals == nil, "seals"},
		{a.Public == nil, "signatures"},
		{len(a.Aggregates) == 0, "states"},
		{a.Blobs == nil, "blobs"},
	} {
		if c.absent {
			not = append(not, c.what)
		}
	}
	return not
}

// audit is one partition's.
type audit struct {
	Audit
	info   events.LogInfo
	p      events.Partition
	report *Report
	aggs   map[string]aggregates.Aggregate

	pass    int
	end     events.Position // by the counter, before the first read
	last    events.Position // of the last commit read
	at      events.Time
	seals   *sealCheck
	streams map[events.Stream]*chained
}

// chained is where the commits read so far leave a stream.
type chained struct {
	version events.Version
	hash    events.Hash
	bad     bool // its chain is broken: reported once, and it is not folded
	newer   bool // it holds an event that this build does not know
}

func (v *audit) partition(ctx context.Context) error {
	var err error
	if v.end, _, err = v.Log.End(ctx, v.p); err != nil {
		return err
	}
	for v.pass = range max(v.Passes, 1) {
		v.streams, v.last, v.at = map[events.Stream]*chained{}, 0, 0
		v.seals = nil
		if v.pass == 0 && v.Seals != nil {
			v.seals = &sealCheck{audit: v}
		}
		if err := v.tail(ctx); err != nil {
			return err
		}
		if v.pass == 0 {
			v.ends()
		}
		if err := v.heads(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mine says that this pass looks at the stream.
func (v *audit) mine(s events.Stream) bool {
	if v.Passes <= 1 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // cannot fail
	return int(h.Sum32()>>8)%v.Passes == v.pass
}
