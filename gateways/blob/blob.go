// Package blob keeps blobs as files of one folder, each named by its SHA-256.
// It never hands out bytes that do not hash to their name, and never leaves the folder.
package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/sluice-platform/sluice/events"
)

// partial is how the name of a file begins that is being written. Such a file is never read; one that a kill left
// behind is removed when the folder is opened.
const partial = ".partial-"

// nameMax is what a file system takes as one name, in bytes (ext4, XFS, NTFS, APFS).
const nameMax = 255

// Folder keeps blobs as <dir>/<tenant>/<first two digits>/<hash>. It is safe for concurrent use, by several processes
// too: what stands under a name is always whole, and always the same.
type Folder struct {
	root *os.Root
	made sync.Map // folders whose entry in their parent this process has synced
}

var _ events.Blobs = (*Folder)(nil)

// Open makes the folder if it is not there, and removes what a kill left half written. No other process may be
// writing to it at that moment.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the blob folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the blob folder: %w", err)
	}
	f := &Folder{root: root}
	if err := f.sweep(); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("sweep the blob folder: %w", err)
	}
	return f, nil
}

// sweep removes partial files. They lie beside the tenants' folders, so that it need not look at every blob.
func (f *Folder) sweep() error {
	top, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	entries, err := top.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partial) {
			if err := f.root.Remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Put implements events.Blobs: the blob is on disk, whole, when it returns.
func (f *Folder) Put(ctx context.Context, tenant string, data []byte) (events.Hash, error) {
	name := events.Hash(sha256.Sum256(data))
	dir, err := place(tenant, name)
	if err != nil {
		return events.Hash{}, err
	}
	if len(data) > events.BlobBytesMax {
		return events.Hash{}, fmt.Errorf("put a blob: %w: %d bytes, at most %d",
			events.ErrTooLarge, len(data), events.BlobBytesMax)
	}
	if err := ctx.Err(); err != nil {
		return events.Hash{}, err
	}
	at := path.Join(dir, name.String())
	if _, err := f.read(at, name); err == nil {
		// It is there and whole; whoever wrote it may not have come to its syncs yet, or have been killed before them.
		return name, f.settle(at, dir)
	}
	if err := f.write(dir, at, data); err != nil {
		return events.Hash{}, fmt.Errorf("put blob %s: %w", name, err)
	}
	return name, nil
}

// write puts data on disk under another name, renames it, and syncs every folder whose entries have changed.
func (f *Folder) write(dir, at string, data []byte) error {
	if err := f.makeDir(dir); err != nil {
		return err
	}
	file, temp, err := f.create(path.Base(at))
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = f.root.Rename(temp, at)
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	return f.sync(dir)
}

// create opens a file that nobody else writes to.
func (f *Folder) create(hash string) (file *os.File, name string, err error) {
	for i := range 10_000 {
		name = fmt.Sprintf("%s%s-%d-%d", partial, hash, os.Getpid(), i)
		file, err = f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return file, name, err
}

// makeDir makes <tenant>/<aa>. Each level's entry is synced in its parent, once in a process, also when somebody else
// has made it: it may not be on disk yet.
func (f *Folder) makeDir(dir string) error {
	for _, d := range []string{path.Dir(dir), dir} {
		if _, done := f.made.Load(d); done {
			continue
		}
		if err := f.root.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := f.sync(path.Dir(d)); err != nil {
			return err
		}
		f.made.Store(d, true)
	}
	return nil
}

// settle syncs a blob that somebody else has written, and the folders on the way to it.
func (f *Folder) settle(at, dir string) error {
	if err := f.makeDir(dir); err != nil {
		return err
	}
	if err := f.sync(at); err != nil {
		return err
	}
	return f.sync(dir)
}

// sync has a file, or a folder's entries, on disk when it returns.
func (f *Folder) sync(p string) error {
	d, err := f.root.Open(p)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncEntry(d)
}

// Get implements events.Blobs.
func (f *Folder) Get(ctx context.Context, tenant string, name events.Hash) ([]byte, error) {
	dir, err := place(tenant, name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := f.read(path.Join(dir, name.String()), name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("blob %s: %w", name, events.ErrNoBlob)
	case err != nil:
		return nil, fmt.Errorf("blob %s: %w", name, err)
	}
	return data, nil
}

// read returns what lies at a place if it hashes to the name. It reads no more than a blob can have.
func (f *Folder) read(at string, name events.Hash) ([]byte, error) {
	file, err := f.root.Open(at)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > events.BlobBytesMax {
		return nil, events.ErrDamagedBlob
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	if name != sha256.Sum256(data) {
		return nil, events.ErrDamagedBlob
	}
	return data, nil
}

// place is the folder of a blob: <tenant>/<first two digits of its hash>. What could mean something to a file system
// stands in the tenant's name as %xx, upper case too, since some file systems do not tell cases apart; so two tenants
// never share a folder, and none has a folder that is not its own.
func place(tenant string, name events.Hash) (string, error) {
	if tenant == "" || strings.ContainsAny(tenant, "/\x00") {
		return "", fmt.Errorf("%q is not a tenant's name", tenant)
	}
	var b strings.Builder
	for i := range len(tenant) {
		c := tenant[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > nameMax {
		return "", fmt.Errorf("the tenant's name %.40q… is too long for a folder", tenant)
	}
	return path.Join(b.String(), name.String()[:2]), nil
}
