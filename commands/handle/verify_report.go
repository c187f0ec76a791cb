package handle

import (
	"cmp"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// Report is what an audit of the log has found. It is whole when Verify returns no error.
type Report struct {
	Log         events.ID          `json:"log"`
	Incarnation events.Incarnation `json:"incarnation"`
	Partitions  []AuditedPartition `json:"partitions"`
	Counts      AuditCounts        `json:"counts"`
	Findings    []Finding          `json:"findings"` // by partition, position, stream, version
	More        int64              `json:"more"`     // findings left out above the maximum
	NotChecked  []string           `json:"notChecked"`
}

// OK says that nothing was found. What is in NotChecked was not looked for.
func (r *Report) OK() bool { return len(r.Findings) == 0 && r.More == 0 }

// AuditedPartition says how far one partition was read, and how much of it seals cover.
type AuditedPartition struct {
	Partition events.Partition `json:"partition"`
	End       events.Position  `json:"end"`
	SealedTo  events.Position  `json:"sealedTo"` // what lies above is held by hash chains alone
}

// AuditCounts is what was looked at.
type AuditCounts struct {
	Commits      int64 `json:"commits"`
	Events       int64 `json:"events"`
	Streams      int64 `json:"streams"`
	Seals        int64 `json:"seals"`
	Blobs        int64 `json:"blobs"`
	Refolded     int64 `json:"refolded"`     // streams whose state was folded anew
	Snapshots    int64 `json:"snapshots"`    // of them with a snapshot that was compared
	NewerEvents  int64 `json:"newerEvents"`  // of a newer build: their streams cannot be folded by this one
	OldSnapshots int64 `json:"oldSnapshots"` // of another reducer: nobody reads them
}

// Finding is one thing that does not hold.
type Finding struct {
	Kind         FindingKind      `json:"kind"`
	Partition    events.Partition `json:"partition"`
	Stream       events.Stream    `json:"stream,omitempty"`
	Version      events.Version   `json:"version,omitempty"` // the first bad one
	LastVersion  events.Version   `json:"lastVersion,omitempty"`
	Position     events.Position  `json:"position,omitempty"` // the first bad one
	LastPosition events.Position  `json:"lastPosition,omitempty"`
	Detail       string           `json:"detail"`
}

// FindingKind says which promise of the log does not hold.
type FindingKind string

// The kinds of Finding.
const (
	FoundHole      FindingKind = "position_gap" // events are missing from the partition, or stand twice
	FoundTail      FindingKind = "tail_missing" // the log ends before what a seal, a counter or a head knows of
	FoundVersion   FindingKind = "version_gap"  // events are missing from the stream, or stand twice
	FoundChain     FindingKind = "hash_chain"   // stored bytes are not those that were hashed
	FoundDamage    FindingKind = "damaged"      // stored bytes hash right and cannot be read
	FoundOrder     FindingKind = "time_order"   // recorded_at decreases
	FoundPartition FindingKind = "partition"    // a commit or head is not where its stream lives
	FoundHead      FindingKind = "head"         // a head does not say what the log says
	FoundSnapshot  FindingKind = "snapshot"     // a snapshot is not the fold of its events
	FoundBlob      FindingKind = "blob"         // a payload that an event names is gone or damaged
	FoundSeal      FindingKind = "seal"         // a seal does not hold over what it covers, or is no seal
)

// FindingsMax is how many findings a report carries: a log of which more is wrong is not repaired one by one.
const FindingsMax = 1000

func (r *Report) found(f Finding) {
	if len(r.Findings) >= FindingsMax {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Position, b.Position),
			cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Version, b.Version))
	})
}
