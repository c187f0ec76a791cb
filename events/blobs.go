package events

import (
	"context"
	"errors"
)

// BlobBytesMax is the largest payload that is kept: case WF-18.
const BlobBytesMax = 32 << 20

// InlineMax is the largest payload that stands in an event; a larger one is a blob (DESIGN §4).
const InlineMax = 4 << 10

// ErrNoBlob says that no blob has that name.
var ErrNoBlob = errors.New("no such blob")

// ErrDamagedBlob says that what is stored under a name does not hash to it.
var ErrDamagedBlob = errors.New("blob is damaged")

// Blobs keeps payloads that are too large for an event, named by their SHA-256, apart by tenant.
type Blobs interface {
	// Put keeps data durably and returns its name; ErrTooLarge above BlobBytesMax. Repeating is free.
	Put(ctx context.Context, tenant string, data []byte) (Hash, error)
	// Get returns ErrNoBlob, or ErrDamagedBlob when the bytes do not hash to the name.
	Get(ctx context.Context, tenant string, name Hash) ([]byte, error)
}

// Payload is a JSON text, in place or as the name of a blob. The zero Payload is no value at all.
type Payload struct {
	Inline []byte `avro:"inline"`
	Blob   []byte `avro:"blob"` // 32 bytes, or none
	Size   int64  `avro:"size"` // bytes of the text
}

// Empty says that there is no value.
func (p Payload) Empty() bool { return p.Size == 0 }

// InlinePayload wraps a text that the caller knows to be at most InlineMax long.
func InlinePayload(text []byte) Payload { return Payload{Inline: text, Size: int64(len(text))} }

// BlobPayload names a blob of the given size.
func BlobPayload(name Hash, size int) Payload { return Payload{Blob: name[:], Size: int64(size)} }

// Name returns the blob's name; ok is false for an inline or empty payload.
func (p Payload) Name() (h Hash, ok bool) {
	if len(p.Blob) != len(h) {
		return h, false
	}
	copy(h[:], p.Blob)
	return h, true
}

// Carrier is an event that carries one payload. A decider may give a payload of up to BlobBytesMax in place;
// whoever appends moves what is larger than InlineMax to a blob first.
type Carrier interface {
	Event
	Carried() Payload
	Carry(Payload) Event // the same event with another payload
}

// Namer is an event that names a blob beside any payload: audits look for it.
type Namer interface {
	Event
	Named() Hash
}
