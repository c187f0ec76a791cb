// Package blobtest is the contract of events.Blobs, runnable against any adapter.
// It never looks at how blobs are kept, but for the one thing that it asks its harness to damage.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

// Harness is one blob store under test.
type Harness struct {
	Blobs events.Blobs
	// Damage changes what is stored under a name, behind the back of Blobs.
	Damage func(t *testing.T, tenant string, name events.Hash, data []byte)
	// Reopen returns the same blobs as a process started later finds them; nil where they end with the process.
	Reopen func(t *testing.T) events.Blobs
}

// Run holds an adapter to the contract of events.Blobs; open returns an empty one.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, r := range []struct {
		policy string
		hold   func(*testing.T, Harness)
	}{
		{"what was put is got, byte by byte, under its SHA-256", roundTrip},
		{"to put it again is free", repeat},
		{"what nobody put is not there", absent},
		{"a tenant has no part in another's blobs", apart},
		{"a tenant's name is no path, and none is an error", names},
		{"the largest blob is taken, a larger one is refused", large},
		{"bytes that do not hash to their name are never handed out", damaged},
		{"who puts a damaged blob again mends it", mended},
		{"many may put the same at once", parallel},
		{"bytes belong to whoever has them", owned},
		{"a context that has ended does nothing", cancelled},
	} {
		t.Run(r.policy, func(t *testing.T) { r.hold(t, open(t)) })
	}
}

func put(t *testing.T, b events.Blobs, tenant string, data []byte) events.Hash {
	t.Helper()
	name, err := b.Put(t.Context(), tenant, data)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func wantGot(t *testing.T, b events.Blobs, tenant string, name events.Hash, want []byte) {
	t.Helper()
	got, err := b.Get(t.Context(), tenant, name)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes and %v, want %d bytes", len(got), err, len(want))
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func roundTrip(t *testing.T, h Harness) {
	names := map[events.Hash][]byte{}
	for _, data := range [][]byte{{}, []byte("a"), []byte(`{"x":1}`), bytes.Repeat([]byte{0, 0xff}, 50_000)} {
		name := put(t, h.Blobs, "acme", data)
		if name != sha256.Sum256(data) {
			t.Fatalf("%d bytes got the name %s", len(data), name)
		}
		names[name] = data
	}
	b := h.Blobs
	for range 2 {
		for name, data := range names {
			wantGot(t, b, "acme", name, data)
		}
		if h.Reopen != nil {
			b = h.Reopen(t)
		}
	}
}

func repeat(t *testing.T, h Harness) {
	for range 3 {
		wantGot(t, h.Blobs, "acme", put(t, h.Blobs, "acme", []byte("same")), []byte("same"))
	}
}

func absent(t *testing.T, h Harness) {
	put(t, h.Blobs, "acme", []byte("here"))
	_, err := h.Blobs.Get(t.Context(), "acme", events.Hash{1})
	wantErr(t, err, events.ErrNoBlob)
	_, err = h.Blobs.Get(t.Context(), "nobody", sha256.Sum256([]byte("here")))
	wantErr(t, err, events.ErrNoBlob)
}

func apart(t *testing.T, h Harness) {
	tenants := []string{"acme", "ACME", "acm", "acme2", "acmé", "ac me", "%", "acme%2e", "ac%me"}
	for _, tenant := range tenants {
		put(t, h.Blobs, tenant, []byte("of "+tenant))
	}
	for _, tenant := range tenants {
		for _, of := range tenants {
			name := events.Hash(sha256.Sum256([]byte("of " + of)))
			if of == tenant {
				wantGot(t, h.Blobs, tenant, name, []byte("of "+of))
				continue
			}
			_, err := h.Blobs.Get(t.Context(), tenant, name)
			wantErr(t, err, events.ErrNoBlob)
		}
	}
}

func names(t *testing.T, h Harness) {
	secret := put(t, h.Blobs, "acme", []byte("secret"))
	for _, tenant := range []string{"", "a/b", "../acme", "acme/..", "/acme", "a\x00b", "acme/"} {
		if _, err := h.Blobs.Put(t.Context(), tenant, []byte("x")); err == nil {
			t.Errorf("the tenant %q was taken", tenant)
		}
		if got, err := h.Blobs.Get(t.Context(), tenant, secret); err == nil {
			t.Errorf("the tenant %q got %q", tenant, got)
		}
	}
	for _, tenant := range []string{".", "..", "...", `..\acme`, "a:b"} { // odd, but names like any other
		name := put(t, h.Blobs, tenant, []byte("of "+tenant))
		wantGot(t, h.Blobs, tenant, name, []byte("of "+tenant))
	}
	wantGot(t, h.Blobs, "acme", secret, []byte("secret"))
}

func large(t *testing.T, h Harness) {
	data := make([]byte, events.BlobBytesMax+1)
	_, err := h.Blobs.Put(t.Context(), "acme", data)
	wantErr(t, err, events.ErrTooLarge)
	_, err = h.Blobs.Get(t.Context(), "acme", sha256.Sum256(data))
	wantErr(t, err, events.ErrNoBlob)
	data = data[:events.BlobBytesMax]
	wantGot(t, h.Blobs, "acme", put(t, h.Blobs, "acme", data), data)
}

func damaged(t *testing.T, h Harness) {
	data := []byte("a payload of some length")
	name := put(t, h.Blobs, "acme", data)
	flipped := bytes.Clone(data)
	flipped[5] ^= 1
	for _, bad := range [][]byte{flipped, data[:10], {}, append(bytes.Clone(data), 0)} {
		h.Damage(t, "acme", name, bad)
		got, err := h.Blobs.Get(t.Context(), "acme", name)
		wantErr(t, err, events.ErrDamagedBlob)
		if len(got) > 0 {
			t.Fatalf("handed out %q", got)
		}
	}
}

func mended(t *testing.T, h Harness) {
	data := []byte("a payload of some length")
	name := put(t, h.Blobs, "acme", data)
	h.Damage(t, "acme", name, []byte("a payload of same length"))
	put(t, h.Blobs, "acme", data)
	wantGot(t, h.Blobs, "acme", name, data)
}

func parallel(t *testing.T, h Harness) {
	data := bytes.Repeat([]byte("x"), 100_000)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			mine := fmt.Append(nil, "only ", i)
			for _, d := range [][]byte{data, mine} {
				name, err := h.Blobs.Put(t.Context(), "acme", d)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := h.Blobs.Get(t.Context(), "acme", name); err != nil || !bytes.Equal(got, d) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

func owned(t *testing.T, h Harness) {
	data := []byte("a payload")
	name := put(t, h.Blobs, "acme", data)
	clear(data)
	got, err := h.Blobs.Get(t.Context(), "acme", name)
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	wantGot(t, h.Blobs, "acme", name, []byte("a payload"))
}

func cancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Blobs.Put(ctx, "acme", []byte("x"))
	wantErr(t, err, context.Canceled)
	_, err = h.Blobs.Get(t.Context(), "acme", sha256.Sum256([]byte("x")))
	wantErr(t, err, events.ErrNoBlob)
}
