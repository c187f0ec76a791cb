package memory

import (
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/events/blobtest"
)

func TestBlobs(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blobtest.Harness {
		b := NewBlobs()
		return blobtest.Harness{Blobs: b, Damage: func(_ *testing.T, tenant string, name events.Hash, data []byte) {
			b.kept[blobKey{tenant, name}] = data
		}}
	})
}
