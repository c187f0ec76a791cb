package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// mark is how far the log was acknowledged.
type mark struct {
	seq         uint64 // rises with every write
	incarnation events.Incarnation
	positions   []events.Position // by partition
}

// highWater keeps a mark beside the database, so that an older copy put in its place is noticed. It is written behind
// every commit, never before, and synced behind every seal only: a mark that is lost notices less, one that is too high
// would refuse a good log. Two slots are written in turn, so that a torn write leaves the other.
type highWater struct {
	f    *os.File
	mark mark
	buf  []byte
}

// slotBytes is a slot's room, a page.
const slotBytes = 4096

// PartitionsMax is how many partitions one folder can have: what a slot of the high-water file has room for.
const PartitionsMax = (slotBytes - 32) / 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const slotMagic = "SLUICEHW"

func openHighWater(path string) (*highWater, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	h := &highWater{f: f}
	if h.mark, err = readMark(f); err != nil {
		err = fmt.Errorf("%w: %s: %w; verify the log with `sluice audit verify`, then delete that file", ErrDamaged, path,
			err)
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

// readMark returns the newer of the slots that are whole; the zero mark for an empty file.
func readMark(r io.ReaderAt) (m mark, err error) {
	empty := true
	for i := range int64(2) {
		b := make([]byte, slotBytes)
		n, err := r.ReadAt(b, i*slotBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return m, err
		}
		if n == 0 {
			continue
		}
		if !slices.Equal(b[:8], make([]byte, 8)) { // a hole before the second slot is no slot
			empty = false
		}
		if got, ok := decodeMark(b[:n]); ok && got.seq > m.seq {
			m = got
		}
	}
	if m.seq == 0 && !empty {
		return m, errors.New("neither of its slots is whole")
	}
	return m, nil
}

func decodeMark(b []byte) (m mark, ok bool) {
	if len(b) < 32 || string(b[:8]) != slotMagic {
		return m, false
	}
	n := int(binary.LittleEndian.Uint32(b[24:]))
	if n > PartitionsMax || len(b) < 32+8*n {
		return m, false
	}
	if crc32.Checksum(b[:28+8*n], castagnoli) != binary.LittleEndian.Uint32(b[28+8*n:]) {
		return m, false
	}
	m.seq = binary.LittleEndian.Uint64(b[8:])
	m.incarnation = events.Incarnation(binary.LittleEndian.Uint64(b[16:]))
	for i := range n {
		m.positions = append(m.positions, events.Position(binary.LittleEndian.Uint64(b[28+8*i:])))
	}
	return m, true
}

// check refuses a database that ends below the mark of its own incarnation, or that is of an older one.
func (m *mark) check(f files, i events.Incarnation, positions []events.Position) error {
	const out = "this is an older copy, or the disk lost what it had confirmed; put a backup back with `sluice restore`"
	if m.incarnation > i {
		return fmt.Errorf("%w: %s is of incarnation %d, %s has seen %d; %s", ErrOldCopy, f.log(), i, f.highWater(),
			m.incarnation, out)
	}
	if m.incarnation < i {
		return nil // restored since
	}
	for p, acknowledged := range m.positions {
		var end events.Position
		if p < len(positions) {
			end = positions[p]
		}
		if end < acknowledged {
			return fmt.Errorf("%w: partition %d of %s ends at position %d, %s has acknowledged %d; %s", ErrOldCopy, p,
				f.log(), end, f.highWater(), acknowledged, out)
		}
	}
	return nil
}

// write notes how far the log is now.
func (h *highWater) write(i events.Incarnation, parts []partition) error {
	h.mark.seq++
	b := append(h.buf[:0], slotMagic...)
	b = binary.LittleEndian.AppendUint64(b, h.mark.seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(i))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(parts)))
	for p := range parts {
		b = binary.LittleEndian.AppendUint64(b, uint64(parts[p].position))
	}
	h.buf = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, err := h.f.WriteAt(h.buf, int64(h.mark.seq%2)*slotBytes)
	return err
}

func (h *highWater) sync() error { return h.f.Sync() }

func (h *highWater) close() error { return errors.Join(h.f.Sync(), h.f.Close()) }
