package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/events"
)

// Blobs keeps blobs in this process and forgets them when the process ends.
type Blobs struct {
	mu   sync.RWMutex
	kept map[blobKey][]byte
}

type blobKey struct {
	tenant string
	name   events.Hash
}

var _ events.Blobs = (*Blobs)(nil)

// NewBlobs makes an empty one.
func NewBlobs() *Blobs { return &Blobs{kept: map[blobKey][]byte{}} }

// Put implements events.Blobs.
func (b *Blobs) Put(ctx context.Context, tenant string, data []byte) (events.Hash, error) {
	if err := blobCall(ctx, tenant); err != nil {
		return events.Hash{}, err
	}
	if len(data) > events.BlobBytesMax {
		return events.Hash{}, fmt.Errorf("put a blob: %w: %d bytes, at most %d",
			events.ErrTooLarge, len(data), events.BlobBytesMax)
	}
	name := events.Hash(sha256.Sum256(data))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[blobKey{tenant, name}] = bytes.Clone(data)
	return name, nil
}

// Get implements events.Blobs.
func (b *Blobs) Get(ctx context.Context, tenant string, name events.Hash) ([]byte, error) {
	if err := blobCall(ctx, tenant); err != nil {
		return nil, err
	}
	b.mu.RLock()
	data, ok := b.kept[blobKey{tenant, name}]
	b.mu.RUnlock()
	switch {
	case !ok:
		return nil, fmt.Errorf("blob %s: %w", name, events.ErrNoBlob)
	case name != sha256.Sum256(data):
		return nil, fmt.Errorf("blob %s: %w", name, events.ErrDamagedBlob)
	}
	return bytes.Clone(data), nil
}

func blobCall(ctx context.Context, tenant string) error {
	if tenant == "" || strings.ContainsAny(tenant, "/\x00") {
		return fmt.Errorf("%q is not a tenant's name", tenant)
	}
	return ctx.Err()
}
