package events

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 §5.5 names SHA-1 for version 5; it is a name, not a proof
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Derive makes a version-5 UUID (RFC 9562 §5.5) of kind and parts. Each part is length-prefixed,
// so ("a","bc") and ("ab","c") never give one id. The same parts give the same id for ever: what starts a stream
// or answers an event uses it to be safe to repeat.
func Derive(kind string, parts ...string) (id ID) {
	b := make([]byte, 0, 128)
	b = append(b, namespace[:]...)
	b = appendPart(b, kind)
	for _, p := range parts {
		b = appendPart(b, p)
	}
	sum := sha1.Sum(b) //nolint:gosec // see the import
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return id
}

// namespace is Sluice's own, drawn once at random.
var namespace = ID{0x5e, 0x1d, 0x6f, 0x0a, 0x4c, 0x3b, 0x4e, 0x6a, 0x9c, 0x51, 0x2b, 0x7e, 0x88, 0x04, 0x6d, 0x93}

func appendPart(b []byte, p string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

// ParseID reads the 36-character form.
func ParseID(s string) (id ID, err error) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, fmt.Errorf("%.40q is not a UUID of the form 8-4-4-4-12", s)
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("%.40q is not a UUID: %w", s, err)
	}
	return id, nil
}

// MarshalText writes the 36-character form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the 36-character form.
func (id *ID) UnmarshalText(b []byte) error {
	got, err := ParseID(string(b))
	*id = got
	return err
}
