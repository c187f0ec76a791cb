package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

// sumList collects the files of a backup with their sums.
type sumList struct {
	root  string
	lines []string
	bytes int64
}

// add syncs a file below root and lists it.
func (l *sumList) add(name string) error {
	f, err := os.OpenFile(filepath.Join(l.root, name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	l.note(name, h.Sum(nil), n)
	return nil
}

func (l *sumList) note(name string, sum []byte, size int64) {
	l.lines = append(l.lines, hex.EncodeToString(sum)+"  "+filepath.ToSlash(name)+"\n")
	l.bytes += size
}

func (l *sumList) text() []byte { return []byte(strings.Join(l.lines, "")) }

func (l *sumList) hash() events.Hash { return sha256.Sum256(l.text()) }

// copyTree copies the regular files below from to the folder name below root, and lists them. What is being written
// under a name that begins with a dot is not there yet.
func (l *sumList) copyTree(ctx context.Context, from, name string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a file that was renamed while we walked, or no blob yet
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(name, below)
		sum, n, err := copySynced(filepath.Join(l.root, to), path)
		if err == nil {
			l.note(to, sum, n)
		}
		return err
	})
}

// copySynced copies a file to a path that is not there yet, with its folders, and returns its SHA-256 and size.
func copySynced(to, from string) (sum []byte, n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, 0, err
	}
	defer in.Close() // it was only read
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, 0, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, 0, err
	}
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(out, h), in)
	return h.Sum(nil), n, errors.Join(err, out.Sync(), out.Close())
}

// readSums calls each for every line of a sum file whose own sum is want. Names lead nowhere but below the backup.
func readSums(path string, want events.Hash, each func(name string, sum []byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if events.Hash(sha256.Sum256(text)) != want {
		return fmt.Errorf("%w: %s is not the one that the manifest names", ErrDamaged, path)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		digits, name, _ := strings.Cut(lines.Text(), "  ")
		sum, err := hex.DecodeString(digits)
		name = filepath.FromSlash(name)
		if err != nil || len(sum) != sha256.Size || !filepath.IsLocal(name) {
			return fmt.Errorf("%w: %s has a line %.100q", ErrDamaged, path, lines.Text())
		}
		if err := each(name, sum); err != nil {
			return err
		}
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncTree makes the names in all folders below root durable.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
}
