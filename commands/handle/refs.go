package handle

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/events"
)

// refsBytesMax bounds what the cache of references keeps, as counted by size.
const refsBytesMax = 64 << 20

// Compile turns the content of a definition into what deciders use, and says how many bytes it takes in memory.
type Compile func(content []byte) (value any, size int, err error)

// Refs is the read-through cache of immutable references. It is safe for concurrent use.
type Refs struct {
	reader  events.Reader
	codec   events.Codec
	blobs   events.Blobs
	compile Compile

	mu         sync.Mutex
	young, old map[refKey]refValue
	size       int // of young
}

type refKey struct {
	stream events.Stream // of a payload; "/tenant" for content by hash
	ref    aggregates.Ref
}

type refValue struct {
	value any
	size  int
}

// NewRefs makes an empty cache over the log and the blobs.
func NewRefs(r events.Reader, c events.Codec, b events.Blobs, compile Compile) *Refs {
	return &Refs{reader: r, codec: c, blobs: b, compile: compile, young: map[refKey]refValue{}}
}

func keyOf(s events.Stream, r aggregates.Ref) refKey {
	if r.Kind != aggregates.RefPayload {
		return refKey{stream: events.Stream(s.Tenant()), ref: r}
	}
	return refKey{stream: s, ref: r}
}

// Get answers from the cache alone.
func (c *Refs) Get(s events.Stream, r aggregates.Ref) (any, bool) {
	k := keyOf(s, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[k]; ok {
		return v.value, true
	}
	v, ok := c.old[k]
	if ok {
		c.put(k, v)
	}
	return v.value, ok
}

// PutPayload remembers a payload that was just appended, so that nobody needs to read it.
func (c *Refs) PutPayload(s events.Stream, v events.Version, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := aggregates.Ref{Kind: aggregates.RefPayload, Version: v}
	c.put(refKey{s, r}, refValue{text, len(text) + refOverhead})
}

// refOverhead is about what an entry takes beside its value.
const refOverhead = 200

// put keeps two generations: when the young one is half of the bound, it becomes the old one and the old one goes.
func (c *Refs) put(k refKey, v refValue) {
	if c.size += v.size; c.size > refsBytesMax/2 {
		c.old, c.young, c.size = c.young, map[refKey]refValue{}, v.size
	}
	c.young[k] = v
}

// Load returns the references of a stream, read where the cache has none. A reference that the log or a definition
// names and that cannot be found or read is an error wrapping ErrMissingReference. Repeating is free.
func (c *Refs) Load(ctx context.Context, s events.Stream, refs []aggregates.Ref) (aggregates.Refs, error) {
	set := make(Pinned, 0, len(refs))
	for _, r := range refs {
		value, ok := c.Get(s, r)
		if !ok {
			v, err := c.read(ctx, s, r)
			if err != nil {
				return nil, err
			}
			c.mu.Lock()
			c.put(keyOf(s, r), v)
			c.mu.Unlock()
			value = v.value
		}
		set = append(set, PinnedRef{r, value})
	}
	return set, nil
}

// ErrMissingReference says that immutable data which the log names cannot be read.
var ErrMissingReference = errors.New("reference cannot be read")

func (c *Refs) read(ctx context.Context, s events.Stream, r aggregates.Ref) (refValue, error) {
	switch r.Kind {
	case aggregates.RefPlan:
		content, err := c.blobs.Get(ctx, s.Tenant(), r.Hash)
		if err != nil {
			return refValue{}, fmt.Errorf("content %s: %w", r.Hash, forGood(err))
		}
		value, size, err := c.compile(content)
		if err != nil {
			return refValue{}, fmt.Errorf("%w: compile %s: %w", ErrMissingReference, r.Hash, err)
		}
		return refValue{value, size + refOverhead}, nil
	case aggregates.RefPayload:
		text, err := c.payload(ctx, s, r.Version)
		if err != nil {
			return refValue{}, fmt.Errorf("payload of %s at version %d: %w", s, r.Version, forGood(err))
		}
		return refValue{text, len(text) + refOverhead}, nil
	case aggregates.RefBlob:
		text, err := c.blobs.Get(ctx, s.Tenant(), r.Hash)
		if err != nil {
			return refValue{}, fmt.Errorf("%w: payload %s: %w", ErrMissingReference, r.Hash, err)
		}
		return refValue{text, len(text) + refOverhead}, nil
	default:
		return refValue{}, fmt.Errorf("%w: kind %d", ErrMissingReference, r.Kind)
	}
}

// forGood marks an error as ErrMissingReference when trying again cannot help: it is not there, or not whole.
func forGood(err error) error {
	for _, e := range []error{
		events.ErrNoBlob, events.ErrDamagedBlob, events.ErrNoStream, events.ErrDamagedCommit,
		errNoPayload,
	} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", ErrMissingReference, err)
		}
	}
	return err
}

var errNoPayload = errors.New("event carries no payload")

// payload reads the JSON text that one event carries.
func (c *Refs) payload(ctx context.Context, s events.Stream, v events.Version) ([]byte, error) {
	commit, err := c.reader.CommitAt(ctx, s, v)
	if err != nil {
		return nil, err
	}
	recorded, err := events.Decode(&commit, c.codec)
	if err != nil {
		return nil, err
	}
	carrier, ok := recorded[v-commit.First].Event.(events.Carrier)
	if !ok {
		return nil, fmt.Errorf("%s: %w", recorded[v-commit.First].Type, errNoPayload)
	}
	return c.Text(ctx, s.Tenant(), carrier.Carried())
}

// Text returns a payload's JSON text, from its blob if need be; nil for an empty one.
func (c *Refs) Text(ctx context.Context, tenant string, p events.Payload) ([]byte, error) {
	if name, ok := p.Name(); ok {
		return c.blobs.Get(ctx, tenant, name)
	}
	return p.Inline, nil
}

// Pinned holds the references of one decision: what the cache drops meanwhile stays.
type Pinned []PinnedRef

// PinnedRef is one reference with its value.
type PinnedRef struct {
	Ref   aggregates.Ref
	Value any
}

// Get searches from the front: a decision has few references.
func (p Pinned) Get(r aggregates.Ref) (any, bool) {
	for i := range p {
		if p[i].Ref == r {
			return p[i].Value, true
		}
	}
	return nil, false
}

// view is what a decision on s sees: the cache, then what is pinned for it. What both know is the same value.
type view struct {
	pinned Pinned
	cache  *Refs
	stream events.Stream
}

func (v view) Get(r aggregates.Ref) (any, bool) {
	if value, ok := v.cache.Get(v.stream, r); ok {
		return value, true
	}
	return v.pinned.Get(r)
}
