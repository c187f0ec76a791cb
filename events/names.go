package events

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Stream names one aggregate's log: category/tenant/id. Each part is non-empty and free of '/'.
type Stream string

// StreamOf builds a stream's name. The caller has checked the parts (see aggregates/kernel/tenant).
func StreamOf(category, tenant, id string) Stream {
	return Stream(category + "/" + tenant + "/" + id)
}

// ErrBadStream says that a text is not category/tenant/id.
var ErrBadStream = errors.New("a stream's name has the form category/tenant/id")

// StreamMax bounds a stream's name in bytes: it is part of every commit, header and index entry.
const StreamMax = 400

// Check returns ErrBadStream, wrapped with the text, unless s has three non-empty parts.
func (s Stream) Check() error {
	c, t, id := s.parts()
	if c == "" || t == "" || id == "" || strings.Contains(id, "/") || len(s) > StreamMax {
		return fmt.Errorf("%w: %.80q", ErrBadStream, string(s))
	}
	return nil
}

func (s Stream) parts() (category, tenant, id string) {
	category, rest, _ := strings.Cut(string(s), "/")
	tenant, id, _ = strings.Cut(rest, "/")
	return category, tenant, id
}

// Category is the kind of aggregate, such as "execution".
func (s Stream) Category() string { c, _, _ := s.parts(); return c }

// Tenant is who owns the stream.
func (s Stream) Tenant() string { _, t, _ := s.parts(); return t }

// ID is the aggregate's own name within category and tenant.
func (s Stream) ID() string { _, _, id := s.parts(); return id }

// Version counts the events of a stream; the first event has version 1. It is the ETag.
type Version int64

// NoStream is the expected version of an append that starts a stream.
const NoStream Version = 0

// Partition is a log partition; a stream belongs to one from birth.
type Partition int32

// PartitionOf places a new stream among n partitions (FNV-1a, 32 bit).
// A stream that exists keeps the partition of its head, also after n has grown.
func PartitionOf(s Stream, n int) Partition {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return Partition(h % uint32(n))
}

// Position is the gapless number of an event in its partition; the first has position 1.
type Position int64

// Fence is the token of a partition's ownership: monotonic per partition, 0 for people's commands, which carry none.
type Fence int64

// Incarnation of the log: 1 at first, one more after each restore, promotion or import.
type Incarnation int64

// Hash is a SHA-256.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes 64 hex digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 hex digits.
func (h *Hash) UnmarshalText(b []byte) error {
	got, err := ParseHash(string(b))
	*h = got
	return err
}

// ParseHash reads 64 hex digits.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("a hash has %d hex digits, not %d", 2*len(h), len(s))
	}
	if _, err = hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("%.80q is not a hash: %w", s, err)
	}
	return h, nil
}

// ID is a UUID: of a command, and of what a derived id names.
type ID [16]byte

func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Time is a point in time: microseconds since 1970-01-01T00:00:00Z. The log keeps no finer and no other times.
type Time int64

// TimeOf converts from the standard library's, cutting below the microsecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std converts to the standard library's, in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add returns t + d, cut below the microsecond.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Microsecond) }

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

func (t Time) String() string { return t.Std().Format(time.RFC3339Nano) }

// MarshalText writes RFC 3339 in UTC; the zero Time is an empty text.
func (t Time) MarshalText() ([]byte, error) {
	if t == 0 {
		return nil, nil
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (t *Time) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*t = 0
		return nil
	}
	std, err := time.Parse(time.RFC3339Nano, string(b))
	if err == nil {
		*t = TimeOf(std)
	}
	return err
}
