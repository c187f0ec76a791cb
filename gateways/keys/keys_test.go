package keys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

func open(t *testing.T, dir string) *Pair {
	t.Helper()
	p, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpen(t *testing.T) {
	t.Run("the first start makes a key, the next one finds it", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "keys")
		first, second := open(t, dir), open(t, dir)
		if first.Key() != second.Key() || string(first.Sign([]byte("m"))) != string(second.Sign([]byte("m"))) {
			t.Fatal("another key")
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
		if len(left) != 2 || len(hidden) != 0 {
			t.Fatalf("files %v, left over %v", left, hidden)
		}
		for _, f := range left {
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if private := strings.HasSuffix(f, ".key"); runtime.GOOS != "windows" && private && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %o", f, info.Mode().Perm())
			}
		}
	})
	t.Run("what the key signs verifies under the public key that the ring finds by name", func(t *testing.T) {
		dir := t.TempDir()
		p := open(t, dir)
		ring, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		public, ok := ring.Public(p.Key())
		if !ok || Name(public) != p.Key() {
			t.Fatal("not in the ring")
		}
		sig := p.Sign([]byte("message"))
		if !ed25519.Verify(public, []byte("message"), sig) || ed25519.Verify(public, []byte("massage"), sig) {
			t.Fatal("the signature does not tell")
		}
		if _, ok := ring.Public(events.Hash{1}); ok {
			t.Fatal("a stranger is in the ring")
		}
	})
	t.Run("a key that was replaced keeps its public file", func(t *testing.T) {
		dir := t.TempDir()
		old := open(t, dir)
		if err := os.Remove(filepath.Join(dir, privateFile)); err != nil {
			t.Fatal(err)
		}
		fresh := open(t, dir)
		ring, err := Load(dir)
		if err != nil || old.Key() == fresh.Key() || len(ring) != 2 {
			t.Fatalf("%d keys, %v", len(ring), err)
		}
	})
	t.Run("all who start at once get one key", func(t *testing.T) {
		dir := t.TempDir()
		keys := make([]events.Hash, 16)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() {
				p, err := Open(dir)
				if err != nil {
					t.Error(err)
					return
				}
				keys[i] = p.Key()
			})
		}
		wg.Wait()
		for _, k := range keys {
			if k != keys[0] {
				t.Fatal("two keys")
			}
		}
	})
}

func TestBadFiles(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	type harm struct {
		wants string
		do    func(t *testing.T, file string)
	}
	cases := map[string]harm{
		"is empty": {"0 bytes", func(t *testing.T, f string) { try(t, os.Truncate(f, 0)) }},
		"is cut":   {"PEM block", func(t *testing.T, f string) { try(t, os.Truncate(f, 60)) }},
		"is huge":  {"bytes", func(t *testing.T, f string) { try(t, os.Truncate(f, 1<<20)) }},
		"is a folder": {"not a file", func(t *testing.T, f string) {
			try(t, os.Remove(f))
			try(t, os.Mkdir(f, 0o700))
		}},
		"holds a key of another kind": {"not an Ed25519 key", func(t *testing.T, f string) {
			try(t, os.WriteFile(f, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), 0o600))
		}},
	}
	if runtime.GOOS != "windows" { // it has no mode bits
		cases["others may read"] = harm{"chmod 600", func(t *testing.T, f string) { try(t, os.Chmod(f, 0o640)) }}
	}
	for name, c := range cases {
		t.Run("a private key file that "+name+" is refused with the way out, and left alone", func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir)
			file := filepath.Join(dir, privateFile)
			c.do(t, file)
			before, _ := os.ReadFile(file)
			_, err := Open(dir)
			if !errors.Is(err, ErrBadKey) || !strings.Contains(err.Error(), c.wants) || !strings.Contains(err.Error(), file) {
				t.Fatalf("%v does not say %q", err, c.wants)
			}
			if after, _ := os.ReadFile(file); string(after) != string(before) {
				t.Fatal("it was written over")
			}
		})
	}
	t.Run("a public key file that is no key is refused", func(t *testing.T) {
		dir := t.TempDir()
		try(t, os.WriteFile(filepath.Join(dir, "seal-0.pub"), []byte("no key"), 0o644))
		if _, err := Load(dir); !errors.Is(err, ErrBadKey) {
			t.Fatal(err)
		}
	})
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
