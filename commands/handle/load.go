package handle

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// KeysMax is how many Idempotency-Keys a stream remembers for its life.
const KeysMax = 1000

// Key is what a stream remembers of a caller's command: what it stood for, and the first version of its commit.
type Key struct {
	Digest commands.Digest
	First  events.Version
	Last   events.Version
}

// Loaded is one stream as it stands at Version. Whoever holds it holds its State alone.
type Loaded struct {
	Stream    events.Stream
	Partition events.Partition
	Version   events.Version // 0: nothing was ever appended
	Hash      events.Hash
	At        events.Time // the time the last commit was decided with
	State     aggregates.State
	Keys      map[commands.ID]Key
	// Correlation is that of the commit which started the stream.
	Correlation string
	Tail        int  // bytes of events and envelopes since the last snapshot
	SnapLen     int  // bytes of the last snapshot
	Newer       bool // it holds an event that this build does not know: readable, not writable

	read bool // as the log has it, not as somebody has moved it
}

// loadPage is how many commits one read of a stream asks for.
const loadPage = 512

// load reads a stream the way every reader must: snapshot, then tail. A snapshot of another reducer, or one that does
// not decode, is ignored; the whole stream is folded instead.
func load(ctx context.Context, r events.Reader, c events.Codec, a aggregates.Aggregate, s events.Stream,
	place func(events.Stream) events.Partition,
) (Loaded, error) {
	head, err := r.Head(ctx, s)
	if errors.Is(err, events.ErrNoStream) {
		return Loaded{Stream: s, Partition: place(s), State: a.Initial(), read: true}, nil
	}
	if err != nil {
		return Loaded{}, fmt.Errorf("read head of %s: %w", s, err)
	}
	l := Loaded{Stream: s, Partition: head.Partition, State: a.Initial()}
	if err := l.restore(a, head); err != nil {
		l = Loaded{Stream: s, Partition: head.Partition, State: a.Initial()}
	}
	for {
		page, err := r.Commits(ctx, s, l.Version, loadPage)
		if err != nil {
			return Loaded{}, fmt.Errorf("read %s after version %d: %w", s, l.Version, err)
		}
		for i := range page {
			if err := l.fold(&page[i], c, a); err != nil {
				return Loaded{}, err
			}
		}
		if len(page) < loadPage {
			l.read = true
			return l, nil
		}
	}
}

func (l *Loaded) fold(c *events.Commit, codec events.Codec, a aggregates.Aggregate) error {
	recorded, err := events.Decode(c, codec)
	if err != nil {
		return err
	}
	for i := range recorded {
		if recorded[i].Event == nil {
			l.Newer = true
			continue
		}
		l.State = a.Evolve(l.State, recorded[i].Event, recorded[i].Version)
	}
	env := recorded[0].Commit
	if c.First == 1 {
		l.Correlation = env.Correlation
	}
	if env.KeyDigest != (events.Hash{}) {
		l.remember(c.Command, Key{Digest: env.KeyDigest, First: c.First, Last: c.Last()})
	}
	l.Version, l.Hash, l.At = c.Last(), c.Hash, env.OccurredAt
	l.Tail += len(c.Envelope) + len(c.Events)
	return nil
}

func (l *Loaded) remember(id commands.ID, k Key) {
	if l.Keys == nil {
		l.Keys = map[commands.ID]Key{}
	}
	l.Keys[id] = k
}

// errSnapshot says that a snapshot is of another reducer or not whole; the stream is folded from its start.
var errSnapshot = errors.New("snapshot is not of this build")

// snapshot is: CRC-32C of what follows, reducer, time, correlation, number of keys, keys by first version, the
// aggregate's own bytes.
func (l *Loaded) snapshot(a aggregates.Aggregate) []byte {
	b := binary.AppendUvarint(make([]byte, crcBytes, 256), uint64(a.Reducer()))
	b = binary.AppendVarint(b, int64(l.At))
	b = binary.AppendUvarint(b, uint64(len(l.Correlation)))
	b = append(b, l.Correlation...)
	b = binary.AppendUvarint(b, uint64(len(l.Keys)))
	for _, id := range l.keyOrder() {
		k := l.Keys[id]
		b = append(append(b, id[:]...), k.Digest[:]...)
		b = binary.AppendUvarint(b, uint64(k.First))
		b = binary.AppendUvarint(b, uint64(k.Last-k.First))
	}
	b = a.Encode(l.State, b)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[crcBytes:], castagnoli))
	return b
}

// A snapshot is not covered by the hash chain: a damaged one must not be taken for another reducer's.
const crcBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshotBody checks a stored snapshot and returns what its checksum covers.
func snapshotBody(b []byte) ([]byte, error) {
	if len(b) < crcBytes || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[crcBytes:], castagnoli) {
		return nil, fmt.Errorf("%w: its checksum does not hold", errSnapshot)
	}
	return b[crcBytes:], nil
}

func (l *Loaded) keyOrder() []commands.ID {
	ids := make([]commands.ID, 0, len(l.Keys))
	for id := range l.Keys {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y commands.ID) int { return cmp.Compare(l.Keys[x].First, l.Keys[y].First) })
	return ids
}

func (l *Loaded) restore(a aggregates.Aggregate, head events.Head) error {
	if len(head.Snapshot) == 0 {
		return nil
	}
	b, err := snapshotBody(head.Snapshot)
	if err != nil {
		return err
	}
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return 0
		}
		b = b[n:]
		return v
	}
	if uvarint() != uint64(a.Reducer()) {
		return errSnapshot
	}
	at, n := binary.Varint(b)
	if n <= 0 {
		return errSnapshot
	}
	b = b[n:]
	text := uvarint()
	if text > uint64(len(b)) {
		return errSnapshot
	}
	l.Correlation, b = string(b[:text]), b[text:]
	for range min(uvarint(), KeysMax) {
		var id commands.ID
		var k Key
		if len(b) < len(id)+len(k.Digest)+2 {
			return errSnapshot
		}
		b = b[copy(id[:], b):]
		b = b[copy(k.Digest[:], b):]
		k.First = events.Version(uvarint())
		k.Last = k.First + events.Version(uvarint())
		l.remember(id, k)
	}
	state, err := a.Decode(b)
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	l.State, l.Version, l.Hash, l.At = state, head.SnapshotAt, head.Hash, events.Time(at)
	l.SnapLen = len(head.Snapshot)
	return nil
}
