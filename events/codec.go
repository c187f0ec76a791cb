package events

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Codec turns one event's body into bytes and back. It never needs a schema registry.
type Codec interface {
	// Encode appends e's body in the schema that SchemaOf names.
	Encode(dst []byte, e Event) ([]byte, error)
	// Decode reads a body written in any schema version of this build, upcast to today's struct.
	// ErrUnknownEvent for a type or version that this build does not know. The event may share body's bytes.
	Decode(t Type, schema int, body []byte) (Event, error)
}

// Origin is what an event carries of its own when the events of one commit answer different commands.
type Origin struct {
	Command ID
	Actor   string
	Cause   string
}

// Fact is an event on its way into the log. A zero Origin means the envelope's.
type Fact struct {
	Event  Event
	Origin Origin
}

// Frame is one stored event before its body is decoded.
type Frame struct {
	Type   Type
	Schema int
	Origin Origin
	Body   []byte
}

// Recorded is one event with all that the log says of it.
type Recorded struct {
	Stream    Stream
	Version   Version
	Partition Partition
	Position  Position
	At        Time // recorded_at
	Command   ID   // its own, else the commit's
	Actor     string
	Cause     string
	Commit    *Envelope
	Type      Type
	Schema    int
	Event     Event  // nil when this build does not know it
	Body      []byte // as stored
}

// ErrDamagedCommit says that stored bytes are not a commit: they were changed, or cut.
var ErrDamagedCommit = errors.New("commit is damaged")

const flagOrigin = 1

// AppendFrame adds one event to a commit's bytes:
// type, schema, flags, origin if the flag says so, body; texts length-prefixed by uvarints, the body by three bytes.
// With an error, ErrUnknownEvent or ErrTooLarge or the codec's, it returns dst as it was.
func AppendFrame(dst []byte, f Fact, c Codec) ([]byte, error) {
	was := dst
	t := f.Event.EventType()
	schema := SchemaOf(t)
	if schema == 0 {
		return was, fmt.Errorf("encode %s: %w", t, ErrUnknownEvent)
	}
	dst = appendText(dst, string(t))
	dst = binary.AppendUvarint(dst, uint64(schema))
	if f.Origin == (Origin{}) {
		dst = append(dst, 0)
	} else {
		dst = append(dst, flagOrigin)
		dst = append(dst, f.Origin.Command[:]...)
		dst = appendText(dst, f.Origin.Actor)
		dst = appendText(dst, f.Origin.Cause)
	}
	// The body's length stands before it and is not known yet: three bytes are kept, enough for EventsBytesMax.
	at := len(dst)
	dst, err := c.Encode(append(dst, 0, 0, 0), f.Event)
	if err != nil {
		return was, fmt.Errorf("encode %s: %w", t, err)
	}
	n := len(dst) - at - 3
	if n > EventsBytesMax {
		return was, fmt.Errorf("encode %s: %w: %d bytes, at most %d", t, ErrTooLarge, n, EventsBytesMax)
	}
	dst[at], dst[at+1], dst[at+2] = byte(n), byte(n>>8), byte(n>>16)
	return dst, nil
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// NextFrame reads the first frame of a commit's bytes and returns the rest; ErrDamagedCommit on any bytes that
// AppendFrame cannot have written. The frame shares b's bytes.
func NextFrame(b []byte) (f Frame, rest []byte, err error) {
	r := reader{b: b}
	f.Type = Type(r.text())
	f.Schema = int(r.uvarint())
	switch flags := r.byte(); {
	case flags == flagOrigin:
		copy(f.Origin.Command[:], r.take(len(f.Origin.Command)))
		f.Origin.Actor, f.Origin.Cause = r.text(), r.text()
	case flags != 0:
		r.bad = true
	}
	n := r.take(3)
	if !r.bad {
		f.Body = r.take(int(n[0]) | int(n[1])<<8 | int(n[2])<<16)
	}
	if r.bad || f.Type == "" || f.Schema <= 0 {
		return Frame{}, nil, ErrDamagedCommit
	}
	return f, r.b, nil
}

// Decode reads all events of a commit. An event of a newer build is there with a nil Event; only damage is an error.
func Decode(c *Commit, codec Codec) ([]Recorded, error) {
	env, err := ParseEnvelope(c.Envelope)
	if err != nil {
		return nil, fmt.Errorf("%s at version %d: %w", c.Stream, c.First, err)
	}
	if c.N <= 0 || c.N > CommitEventsMax {
		return nil, fmt.Errorf("%s at version %d: %w: it claims %d events", c.Stream, c.First, ErrDamagedCommit, c.N)
	}
	out := make([]Recorded, 0, c.N)
	rest := c.Events
	for i := range c.N {
		var f Frame
		if f, rest, err = NextFrame(rest); err != nil {
			return nil, fmt.Errorf("%s at version %d: %w", c.Stream, c.First+Version(i), err)
		}
		r := Recorded{
			Stream: c.Stream, Version: c.First + Version(i), Partition: c.Partition,
			Position: c.Before() + Position(i) + 1, At: c.At,
			Command: c.Command, Actor: env.Actor, Cause: env.Cause, Commit: env,
			Type: f.Type, Schema: f.Schema, Body: f.Body,
		}
		if f.Origin != (Origin{}) {
			r.Command, r.Actor, r.Cause = f.Origin.Command, f.Origin.Actor, f.Origin.Cause
		}
		r.Event, err = codec.Decode(f.Type, f.Schema, f.Body)
		if err != nil && !errors.Is(err, ErrUnknownEvent) {
			return nil, fmt.Errorf("%s at version %d: decode %s: %w", c.Stream, r.Version, f.Type, err)
		}
		if err != nil {
			r.Event = nil
		}
		out = append(out, r)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%s at version %d: %w: %d bytes too many", c.Stream, c.Last(), ErrDamagedCommit, len(rest))
	}
	return out, nil
}
