package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// files is the data folder: what stands where.
type files string

func (f files) log() string       { return filepath.Join(string(f), "log.db") }
func (f files) wal() string       { return f.log() + "-wal" }
func (f files) shm() string       { return f.log() + "-shm" }
func (f files) highWater() string { return filepath.Join(string(f), "high-water") }
func (f files) lockFile() string  { return filepath.Join(string(f), "lock") }

// lock takes the folder for this process; ErrInUse names the one that has it. It ends with Unlock or with the process.
func (f files) lock() (*flock.Flock, error) {
	l := flock.New(f.lockFile(), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.lockFile(), err)
	}
	if !got {
		pid, _ := os.ReadFile(f.lockFile()) // without it the message says less
		return nil, fmt.Errorf("%w: process %s has locked %s; stop it, or use another folder", ErrInUse,
			strings.TrimSpace(string(pid)), f.lockFile())
	}
	if err := os.WriteFile(f.lockFile(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write the process id: %w", err), l.Unlock())
	}
	return l, nil
}

// exists says whether there is such a file.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
