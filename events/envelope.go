package events

import (
	"encoding/binary"
	"fmt"
)

// Envelope is what the events of one commit have in common.
type Envelope struct {
	Actor       string // who asked: a person's subject, "worker", "owner"
	Reason      string // why, in the actor's words; required of every operator's act
	Correlation string // the whole story
	Cause       string // the command or event that led here
	Trace       string // W3C traceparent
	OccurredAt  Time   // Meta.At: the time that was decided with
	KeyID       string // of the subject key that fields marked pii are encrypted under
	KeyDigest   Hash   // of a caller's command: digest of what an Idempotency-Key stood for; zero without one
}

// The tags never change; a reader skips those it does not know.
const (
	tagActor = 1 + iota
	tagReason
	tagCorrelation
	tagCause
	tagTrace
	tagOccurredAt
	tagKeyID
	tagKeyDigest
)

// Append writes the envelope as (tag, length, bytes) triples, empty fields left out.
func (e *Envelope) Append(dst []byte) []byte {
	dst = appendField(dst, tagActor, e.Actor)
	dst = appendField(dst, tagReason, e.Reason)
	dst = appendField(dst, tagCorrelation, e.Correlation)
	dst = appendField(dst, tagCause, e.Cause)
	dst = appendField(dst, tagTrace, e.Trace)
	if e.OccurredAt != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagOccurredAt, 8), uint64(e.OccurredAt))
	}
	dst = appendField(dst, tagKeyID, e.KeyID)
	if e.KeyDigest != (Hash{}) {
		dst = append(append(dst, tagKeyDigest, byte(len(e.KeyDigest))), e.KeyDigest[:]...)
	}
	return dst
}

func appendField(dst []byte, tag byte, s string) []byte {
	if s == "" {
		return dst
	}
	return appendText(append(dst, tag), s)
}

// ParseEnvelope reads what Append wrote; ErrDamagedCommit for anything else. Unknown tags are skipped.
func ParseEnvelope(b []byte) (*Envelope, error) {
	e := &Envelope{}
	for r := (reader{b: b}); len(r.b) > 0; {
		tag := r.byte()
		v := r.take(int(min(r.uvarint(), uint64(len(r.b)+1)))) // a length beyond the bytes is damage, whatever its size
		switch tag {
		case tagActor:
			e.Actor = string(v)
		case tagReason:
			e.Reason = string(v)
		case tagCorrelation:
			e.Correlation = string(v)
		case tagCause:
			e.Cause = string(v)
		case tagTrace:
			e.Trace = string(v)
		case tagOccurredAt:
			if len(v) == 8 {
				e.OccurredAt = Time(binary.LittleEndian.Uint64(v))
			} else {
				r.bad = true
			}
		case tagKeyID:
			e.KeyID = string(v)
		case tagKeyDigest:
			r.bad = r.bad || len(v) != len(e.KeyDigest)
			copy(e.KeyDigest[:], v)
		}
		if r.bad || tag == 0 {
			return nil, fmt.Errorf("envelope: %w", ErrDamagedCommit)
		}
	}
	return e, nil
}

// reader takes values off the front of b; after a short read bad is set and everything reads as zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string {
	return string(r.take(int(min(r.uvarint(), uint64(len(r.b)+1)))))
}
