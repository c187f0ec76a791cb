// Package keys keeps the Ed25519 key that seals are signed with, in a folder of files.
// It never replaces a key that is there, and never gives the private key out.
package keys

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
)

const (
	privateFile  = "seal.key"
	privateBlock = "PRIVATE KEY" // PKCS #8
	publicBlock  = "PUBLIC KEY"  // PKIX
	// fileBytesMax is far above either file's size (about 120 bytes): a larger one is something else.
	fileBytesMax = 4 << 10
)

// ErrBadKey says that a key file cannot be used as it is; the text says why, and what to do.
var ErrBadKey = errors.New("key file cannot be used")

// Pair signs. It is immutable and safe for concurrent use.
type Pair struct {
	private ed25519.PrivateKey
	key     events.Hash
}

var _ kernel.Signer = (*Pair)(nil)

// Name is what seals call a public key: its SHA-256.
func Name(public ed25519.PublicKey) events.Hash { return sha256.Sum256(public) }

// Key names the public key.
func (p *Pair) Key() events.Hash { return p.key }

// Sign returns the signature of message.
func (p *Pair) Sign(message []byte) []byte { return ed25519.Sign(p.private, message) }

// Open reads the key of folder dir, or makes folder and key when there is none. The private key's file is readable
// by its owner only, the public key stands beside it under its name. Several processes may open at once: all get the
// same key. ErrBadKey, wrapped with the file, when one is there that others may read, or that is no key.
func Open(dir string) (*Pair, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make key folder: %w", err)
	}
	file := filepath.Join(dir, privateFile)
	private, err := readPrivate(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makePrivate(dir, file); err == nil {
			private, err = readPrivate(file)
		}
	}
	if err != nil {
		return nil, err
	}
	public := private.Public().(ed25519.PublicKey)
	p := &Pair{private: private, key: Name(public)}
	return p, writePublic(dir, public)
}

func readPrivate(file string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	// Windows has no such bits; the folder's own access list is what counts there.
	if open := info.Mode().Perm() & 0o077; open != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%w: %s may be read or written by others (mode %04o); run: chmod 600 %s",
			ErrBadKey, file, info.Mode().Perm(), file)
	}
	der, err := readBlock(file, info, privateBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadKey, file, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s holds a %T, not an Ed25519 key", ErrBadKey, file, key)
	}
	return private, nil
}

func readBlock(file string, info fs.FileInfo, kind string) ([]byte, error) {
	if !info.Mode().IsRegular() || info.Size() > fileBytesMax || info.Size() == 0 {
		return nil, fmt.Errorf("%w: %s is not a file of 1 to %d bytes (%v, %d bytes); move it away or restore it",
			ErrBadKey, file, fileBytesMax, info.Mode(), info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%w: %s is not one PEM block of type %s", ErrBadKey, file, kind)
	}
	return block.Bytes, nil
}

func makePrivate(dir, file string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("draw a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return writeOnce(dir, file, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), 0o600)
}

func writePublic(dir string, public ed25519.PublicKey) error {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return fmt.Errorf("write public key: %w", err)
	}
	file := filepath.Join(dir, publicFile(Name(public)))
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	return writeOnce(dir, file, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}), 0o644)
}

// writeOnce makes a file that is whole or not there, and leaves one alone that somebody else has made meanwhile.
func writeOnce(dir, file string, content []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(tmp.Name()) // a leftover has a name that nobody reads
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Link(tmp.Name(), file)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return syncDir(dir)
}

// syncDir makes a new name in dir outlive a crash.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be synced there; its journal keeps names
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync key folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync key folder: %w", err)
	}
	return nil
}
