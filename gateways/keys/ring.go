package keys

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-platform/sluice/events"
)

// Ring is a set of public keys that seals are trusted under. A key that was replaced keeps its file, so that what it
// has signed still verifies.
type Ring map[events.Hash]ed25519.PublicKey

// Public finds a key by the name that a seal gives.
func (r Ring) Public(name events.Hash) (ed25519.PublicKey, bool) {
	k, ok := r[name]
	return k, ok
}

func publicFile(name events.Hash) string { return "seal-" + name.String()[:16] + ".pub" }

// Load reads every public key of folder dir (seal-*.pub). An auditor who keeps a copy of these files elsewhere is
// safe from whoever can replace both log and keys. ErrBadKey, wrapped with the file, when one is no key.
func Load(dir string) (Ring, error) {
	files, err := filepath.Glob(filepath.Join(dir, "seal-*.pub"))
	if err != nil {
		return nil, fmt.Errorf("list public keys: %w", err)
	}
	r := Ring{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
		der, err := readBlock(file, info, publicBlock)
		if err != nil {
			return nil, err
		}
		key, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBadKey, file, err)
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("%w: %s holds a %T, not an Ed25519 key", ErrBadKey, file, key)
		}
		r[Name(public)] = public
	}
	return r, nil
}
