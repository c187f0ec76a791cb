package events

import (
	"crypto/sha256"
	"encoding/binary"
)

// Chain is the hash of a commit: sha256 over the previous hash of its stream, the stream's name, the first version,
// the number of events, and the envelope and events as stored, each with its length. It is taken over stored bytes,
// never over a re-encoding: what another encoder wrote verifies all the same.
func Chain(prev Hash, s Stream, first Version, n int, envelope, events []byte) (h Hash) {
	var b [24]byte
	d := sha256.New()
	d.Write(prev[:])
	binary.LittleEndian.PutUint64(b[:], uint64(len(s)))
	d.Write(b[:8])
	d.Write([]byte(s))
	binary.LittleEndian.PutUint64(b[:], uint64(first))
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	binary.LittleEndian.PutUint64(b[16:], uint64(len(envelope)))
	d.Write(b[:])
	d.Write(envelope)
	d.Write(events)
	d.Sum(h[:0])
	return h
}

// SealDigest runs a partition's digest over one more commit: everything that Chain covers, through its hash, and
// what Chain does not: partition, position, fence, command and recorded_at.
func SealDigest(running Hash, c *Commit) (h Hash) {
	var b [40]byte
	binary.LittleEndian.PutUint32(b[:], uint32(c.Partition))
	binary.LittleEndian.PutUint64(b[4:], uint64(c.Position))
	binary.LittleEndian.PutUint64(b[12:], uint64(c.Fence))
	binary.LittleEndian.PutUint64(b[20:], uint64(c.At))
	d := sha256.New()
	d.Write(running[:])
	d.Write(c.Hash[:])
	d.Write(c.Command[:])
	d.Write(b[:28])
	d.Sum(h[:0])
	return h
}

// SealBytes is what a seal's signature covers.
func SealBytes(log ID, s *Seal) []byte {
	b := append([]byte("sluice seal 1\n"), log[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Partition))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Incarnation))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.From))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.To))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Commits))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.At))
	b = append(b, s.Digest[:]...)
	return append(b, s.Key[:]...)
}
