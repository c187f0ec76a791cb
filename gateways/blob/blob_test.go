package blob

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/events/blobtest"
)

func open(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestBlobs(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		dir := filepath.Join(t.TempDir(), "not", "there", "yet")
		return blobtest.Harness{
			Blobs:  open(t, dir),
			Reopen: func(t *testing.T) events.Blobs { return open(t, dir) },
			Damage: func(t *testing.T, tenant string, name events.Hash, data []byte) {
				if err := os.WriteFile(filepath.Join(dir, tenant, name.String()[:2], name.String()), data, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// files lists what lies below a folder.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPlaces(t *testing.T) {
	t.Run("a blob lies under its tenant and the first digits of its name, and nothing else is left", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		for range 2 {
			if _, err := f.Put(t.Context(), "acme", []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		name := events.Hash(sha256.Sum256([]byte("x"))).String()
		if got := files(t, dir); !slices.Equal(got, []string{"acme/" + name[:2] + "/" + name}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("no tenant's name leads out of the folder", func(t *testing.T) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "blobs")
		f := open(t, dir)
		for _, tenant := range []string{"..", ".", `..\..`, "../x", "/x", "", "a/../../x", "%2e%2e", "COM1", "nul"} {
			_, _ = f.Put(t.Context(), tenant, []byte("x"))
		}
		for _, p := range files(t, outer) {
			if !strings.HasPrefix(p, "blobs/") || strings.Count(p, "/") != 3 {
				t.Errorf("%s was written", p)
			}
		}
	})
	t.Run("tenants that differ in case lie apart on a file system that knows none", func(t *testing.T) {
		seen := map[string]string{}
		for _, tenant := range []string{"acme", "Acme", "ACME", "%41cme", "a.c", "a%2ec"} {
			p, err := place(tenant, events.Hash{})
			if other := seen[strings.ToLower(p)]; err != nil || other != "" {
				t.Errorf("%q lies where %q does, %v", tenant, other, err)
			}
			seen[strings.ToLower(p)] = tenant
		}
	})
	t.Run("a tenant's name that no file system takes is refused", func(t *testing.T) {
		if _, err := open(t, t.TempDir()).Put(t.Context(), strings.Repeat("a", 256), nil); err == nil {
			t.Error("it was taken")
		}
	})
	t.Run("a link that leads out of the folder is not followed", func(t *testing.T) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "blobs")
		f := open(t, dir)
		if err := os.Symlink(outer, filepath.Join(dir, "acme")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Put(t.Context(), "acme", []byte("x")); err == nil {
			t.Error("it was written")
		}
	})
}

func TestOpen(t *testing.T) {
	t.Run("what a kill left half written is removed, and blobs are kept", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		name, err := f.Put(t.Context(), "acme", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := f.create(name.String())
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		if n := len(files(t, dir)); n != 2 {
			t.Fatalf("%d files", n)
		}
		again := open(t, dir)
		if got := files(t, dir); len(got) != 1 || strings.Contains(got[0], partial) {
			t.Errorf("left: %q", got)
		}
		if _, err := again.Get(t.Context(), "acme", name); err != nil {
			t.Error(err)
		}
	})
	t.Run("a file in the folder's place is an error", func(t *testing.T) {
		at := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(at); err == nil {
			t.Error("it was opened")
		}
	})
	t.Run("a file larger than any blob is damage, and is not read", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		name, err := f.Put(t.Context(), "acme", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "acme", name.String()[:2], name.String()), events.BlobBytesMax+1); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(t.Context(), "acme", name); !errors.Is(err, events.ErrDamagedBlob) {
			t.Errorf("got %v", err)
		}
	})
}
