package handle_test

import (
	"errors"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
)

func TestABlobThatNoEventCarriesYetIsReadByItsNameAndWithinItsTenant(t *testing.T) {
	blobs := memory.NewBlobs()
	name, err := blobs.Put(t.Context(), "acme", []byte(`"large"`))
	if err != nil {
		t.Fatal(err)
	}
	cache := handle.NewRefs(nil, nil, blobs, nil)
	ref := aggregates.Ref{Kind: aggregates.RefBlob, Hash: name}
	for _, stream := range []events.Stream{"execution/acme/1", "execution/acme/2"} {
		refs, err := cache.Load(t.Context(), stream, []aggregates.Ref{ref})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := refs.Get(ref); string(text.([]byte)) != `"large"` {
			t.Errorf("%s reads %s", stream, text)
		}
	}
	if _, ok := cache.Get("execution/acme/3", ref); !ok {
		t.Error("it is not kept for the tenant's other streams")
	}
	if _, err := cache.Load(t.Context(), "execution/other/1", []aggregates.Ref{ref}); !errors.Is(err, handle.ErrMissingReference) {
		t.Errorf("another tenant gets %v", err)
	}
}
