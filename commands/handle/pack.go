package handle

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/events"
)

const (
	// snapshotTail is how many bytes a stream grows by before a snapshot is written; a larger last snapshot takes its
	// place, so that what is written per event does not grow with the state.
	snapshotTail = 64 << 10
	// dueAhead is how far away a deadline must be to stand in the head: nearer ones are in the owner's memory only.
	dueAhead = 30 * time.Second
)

// Blob is a payload that must be kept before the append that names it.
type Blob struct {
	Tenant string
	Name   events.Hash
	Data   []byte
}

// Write is an append with the blobs that its events name. The blobs are put first.
type Write struct {
	Append *events.Append
	Blobs  []Blob
}

// pack makes the append that adds facts to l, and moves l to the state behind it: the holder drops l if the append
// is refused. Payloads over events.InlineMax become blobs here, so that no decider needs to know of them.
func pack(l *Loaded, a aggregates.Aggregate, codec events.Codec, facts []events.Fact, env *events.Envelope,
	command events.ID, fence events.Fence,
) (Write, error) {
	var kept Write
	for i := range facts {
		if c, ok := facts[i].Event.(events.Carrier); ok {
			facts[i].Event = kept.keep(c, l.Stream.Tenant())
		}
		l.State = a.Evolve(l.State, facts[i].Event, l.Version+events.Version(i)+1)
	}
	w, err := packEvolved(l, a, codec, facts, env, command, fence)
	w.Blobs = kept.Blobs
	return w, err
}

// packEvolved is pack for a state that the facts were already applied to.
func packEvolved(l *Loaded, a aggregates.Aggregate, codec events.Codec, facts []events.Fact, env *events.Envelope,
	command events.ID, fence events.Fence,
) (Write, error) {
	body := make([]byte, 0, 96*len(facts)+64)
	first := l.Version + 1
	for i := range facts {
		var err error
		if body, err = events.AppendFrame(body, facts[i], codec); err != nil {
			return Write{}, fmt.Errorf("%s at version %d: %w", l.Stream, first+events.Version(i), err)
		}
	}
	envelope := env.Append(make([]byte, 0, 128))
	n := len(facts)
	w := Write{Append: &events.Append{
		Stream: l.Stream, Partition: l.Partition, Expected: l.Version, Command: command, Fence: fence,
		N: n, Envelope: envelope, Events: body,
		Hash: events.Chain(l.Hash, l.Stream, first, n, envelope, body),
		Head: events.HeadUpdate{Open: a.Open(l.State)},
	}}
	w.Append.Head.Due = headDue(a, l.State, env.OccurredAt)
	if env.KeyDigest != (events.Hash{}) {
		l.remember(command, Key{Digest: env.KeyDigest, First: first, Last: first + events.Version(n) - 1})
	}
	if l.Version == events.NoStream {
		l.Correlation = env.Correlation
	}
	l.Version += events.Version(n)
	l.read = false
	l.Hash, l.At = w.Append.Hash, env.OccurredAt
	if l.Tail += len(envelope) + len(body); l.Tail > max(snapshotTail, l.SnapLen) {
		w.Append.Head.Snapshot = l.snapshot(a)
		l.SnapLen, l.Tail = len(w.Append.Head.Snapshot), 0
	}
	return w, nil
}

// keep moves a payload that is too large for an event to a blob.
func (w *Write) keep(c events.Carrier, tenant string) events.Event {
	p := c.Carried()
	if len(p.Inline) <= events.InlineMax {
		return c
	}
	name := events.Hash(sha256.Sum256(p.Inline))
	w.Blobs = append(w.Blobs, Blob{Tenant: tenant, Name: name, Data: p.Inline})
	return c.Carry(events.BlobPayload(name, len(p.Inline)))
}
