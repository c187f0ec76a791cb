package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// putTestBlob stores content as gateways/blob does: dir/tenant/aa/hash.
func putTestBlob(t *testing.T, dir, content string) (below string) {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	name := hex.EncodeToString(sum[:])
	below = filepath.Join("acme", name[:2], name)
	path := filepath.Join(dir, below)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return below
}

// backedUp is a store, a backup of it, and what was acknowledged when the backup began.
type backedUp struct {
	dir, blobs, backup string
	blob               string
	store              *Store
	model              *model
	acked              int
	manifest           Manifest
}

func backUp(t *testing.T) *backedUp {
	t.Helper()
	b := &backedUp{dir: t.TempDir(), blobs: filepath.Join(t.TempDir(), "blobs"), backup: filepath.Join(t.TempDir(), "b")}
	b.store, b.model = openTest(t, b.dir, Options{}), newModel()
	b.blob = putTestBlob(t, b.blobs, "a large payload")
	putTestBlob(t, b.blobs, "another one")
	r := rand.New(rand.NewPCG(1, 1))
	if err := b.model.run(t.Context(), b.store, r, 0, 30); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Acquire(t.Context(), 1, "somebody", time.Hour); err != nil {
		t.Fatal(err)
	}
	b.acked = len(b.model.acked)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 2 { // appends go on meanwhile
		wg.Go(func() {
			if err := b.model.run(ctx, b.store, rand.New(rand.NewPCG(2, uint64(i))), 1+i, 1<<30); ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	var err error
	b.manifest, err = b.store.Backup(t.Context(), BackupOptions{To: b.backup, Blobs: b.blobs})
	cancel()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *backedUp) restore(t *testing.T, to string, replace bool) (Restored, error) {
	t.Helper()
	blobs := filepath.Join(to, "blobs")
	return Restore(t.Context(), RestoreOptions{From: b.backup, To: to, Blobs: blobs, Replace: replace})
}

func TestBackup(t *testing.T) {
	b := backUp(t)
	t.Run("a backup taken under load holds all that was acknowledged before it, and is whole", func(t *testing.T) {
		to := t.TempDir()
		r, err := b.restore(t, to, false)
		if err != nil {
			t.Fatal(err)
		}
		s := openTest(t, to, Options{})
		stored, err := audit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) < b.acked {
			t.Fatalf("%d commits of at least %d", len(stored), b.acked)
		}
		for p, want := range b.manifest.Positions {
			if end, _, err := s.End(t.Context(), events.Partition(p)); err != nil || end != want {
				t.Errorf("partition %d ends at %d, the manifest says %d: %v", p, end, want, err)
			}
		}
		if s.info.ID != b.store.info.ID || s.info.Incarnation != 2 || r.Incarnation != 2 || r.Aside != "" {
			t.Errorf("restored %+v as %+v", b.store.info, s.info)
		}
		if got, err := os.ReadFile(filepath.Join(to, "blobs", b.blob)); err != nil || string(got) != "a large payload" {
			t.Errorf("the blob is %q, %v", got, err)
		}
		if _, err := s.Acquire(t.Context(), 1, "another", time.Minute); err != nil {
			t.Errorf("a tenure outlived the restore: %v", err)
		}
	})
	t.Run("a log that is there is replaced only if that is said, moved aside, and outnumbered", func(t *testing.T) {
		to := t.TempDir()
		for i := range 3 { // incarnations 2, 3, 4
			if _, err := b.restore(t, to, i > 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.restore(t, to, false); !errors.Is(err, ErrNotEmpty) {
			t.Fatal(err)
		}
		r, err := b.restore(t, to, true)
		if err != nil || r.Incarnation != 5 {
			t.Fatal(r, err)
		}
		if there, _ := exists(filepath.Join(r.Aside, "log.db")); !there {
			t.Error("the old log is gone")
		}
		s := openTest(t, to, Options{})
		if err := b.model.run(t.Context(), s, rand.New(rand.NewPCG(3, 3)), 9, 5); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a log that is damaged is replaced, and its high-water file still counts", func(t *testing.T) {
		to := t.TempDir()
		for i := range 2 {
			if _, err := b.restore(t, to, i > 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(to, "log.db"), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := b.restore(t, to, true); err != nil || r.Incarnation != 4 {
			t.Fatal(r, err)
		}
		openTest(t, to, Options{})
	})
	t.Run("a folder in the middle of a restore is refused, and the restore can be repeated", func(t *testing.T) {
		to := t.TempDir()
		if _, err := b.restore(t, to, false); err != nil {
			t.Fatal(err)
		}
		if _, err := files(to).setAside(2); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(to, Options{}); !errors.Is(err, ErrOldCopy) {
			t.Fatal(err)
		}
		if r, err := b.restore(t, to, true); err != nil || r.Incarnation != 3 {
			t.Fatal(r, err)
		}
		openTest(t, to, Options{})
	})
	t.Run("a store that is open is not restored into", func(t *testing.T) {
		if _, err := b.restore(t, b.dir, true); !errors.Is(err, ErrInUse) {
			t.Fatal(err)
		}
	})
	t.Run("nothing is backed up over something", func(t *testing.T) {
		if _, err := b.store.Backup(t.Context(), BackupOptions{To: b.backup}); !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	})
	t.Run("a backup that fails leaves nothing", func(t *testing.T) {
		parent := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.store.Backup(ctx, BackupOptions{To: filepath.Join(parent, "b")}); err == nil {
			t.Fatal("it did not fail")
		}
		if _, err := b.store.Backup(t.Context(), BackupOptions{To: filepath.Join(parent, "b"), Blobs: "\x00"}); err == nil {
			t.Fatal("it did not fail")
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Fatal(left)
		}
	})
}

func TestDamagedBackup(t *testing.T) {
	b := backUp(t)
	flip := func(name string) func(*testing.T, string) {
		return func(t *testing.T, backup string) {
			path := filepath.Join(backup, name)
			c, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c[len(c)/2] ^= 1
			if err := os.WriteFile(path, c, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, spoil := range map[string]func(*testing.T, string){
		"a byte of the log":      flip("log.db"),
		"a byte of a blob":       flip(filepath.Join("blobs", b.blob)),
		"a byte of the sums":     flip("SHA256SUMS"),
		"a byte of the manifest": flip("manifest.json"),
		"a blob that is missing": func(t *testing.T, backup string) {
			if err := os.Remove(filepath.Join(backup, "blobs", b.blob)); err != nil {
				t.Fatal(err)
			}
		},
		"a manifest that is missing": func(t *testing.T, backup string) {
			if err := os.Remove(filepath.Join(backup, "manifest.json")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what+" is noticed before anything is touched", func(t *testing.T) {
			spoilt, to := filepath.Join(t.TempDir(), "b"), t.TempDir()
			if err := os.CopyFS(spoilt, os.DirFS(b.backup)); err != nil {
				t.Fatal(err)
			}
			s := openTest(t, to, Options{})
			s.Close()
			before, _ := os.ReadFile(filepath.Join(to, "log.db"))
			spoil(t, spoilt)
			blobs := filepath.Join(to, "blobs")
			_, err := Restore(t.Context(), RestoreOptions{From: spoilt, To: to, Blobs: blobs, Replace: true})
			if err == nil {
				t.Fatal("it was restored")
			}
			after, err := os.ReadFile(filepath.Join(to, "log.db"))
			if err != nil || !bytes.Equal(before, after) {
				t.Error("the log that was there is another")
			}
			left, _ := os.ReadDir(to)
			for _, e := range left {
				if strings.HasPrefix(e.Name(), ".restore") || strings.HasPrefix(e.Name(), "replaced") {
					t.Errorf("%s is left", e.Name())
				}
			}
		})
	}
}
