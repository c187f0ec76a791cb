package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// ErrNotEmpty says that there is a log where one is to be restored, and nobody said that it may be replaced.
var ErrNotEmpty = errors.New("there is a log already")

// RestoreOptions says which backup goes where.
type RestoreOptions struct {
	From    string // a folder that Backup made
	To      string // a data folder that no process has open
	Blobs   string // the folder that the blobs go to; empty: the backup must have none
	Replace bool   // replace the log that is there; it is moved aside, not deleted
	Driver  driver.Driver
}

// Restored says what a restore has done.
type Restored struct {
	Manifest    Manifest
	Incarnation events.Incarnation // of the log from now on
	Aside       string             // the folder that the replaced log was moved to; empty: there was none
}

// Restore puts a backup in place, offline, in a new incarnation of the log: one above that of the backup and of what it
// replaces, so that nobody takes the positions of one for those of the other. Everything is verified and copied before
// anything is touched. Cut short at any point it leaves a folder that Open refuses, or the old log, or the new one;
// repeating it with Replace is safe. The errors are ErrNotEmpty, ErrInUse, ErrDamaged and faults of the disk.
func Restore(ctx context.Context, o RestoreOptions) (r Restored, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s to %s: %w", o.From, o.To, err)
		}
	}()
	if o.Driver.Open == nil {
		o.Driver = driver.Default
	}
	if r.Manifest, err = readManifest(o.From); err != nil {
		return r, err
	}
	if err := os.MkdirAll(o.To, 0o700); err != nil {
		return r, err
	}
	to := files(o.To)
	lock, err := to.lock()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	there, before, err := to.incarnation(o.Driver)
	if err != nil {
		return r, err
	}
	if there && !o.Replace {
		return r, fmt.Errorf("%w; it is moved aside if you say that it may be replaced", ErrNotEmpty)
	}
	r.Incarnation = max(r.Manifest.Incarnation, before) + 1
	tmp, err := os.MkdirTemp(o.To, ".restore-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(tmp) // what is left in it is a copy
	if err := r.Manifest.copy(ctx, o, tmp); err != nil {
		return r, err
	}
	log := filepath.Join(tmp, backupLog)
	if err := begin(log, o.Driver, r.Manifest, r.Incarnation); err != nil {
		return r, err
	}
	if there {
		r.Aside, err = to.setAside(before)
	}
	if err == nil {
		err = to.install(log, r)
	}
	return r, err
}

func readManifest(from string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(from, backupManifest))
	if err != nil {
		return m, fmt.Errorf("this is no backup: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrDamaged, backupManifest, err)
	}
	if m.Format != backupFormat {
		return m, fmt.Errorf("%w: the backup's format is %d, this build reads %d", ErrNewerSchema, m.Format, backupFormat)
	}
	return m, nil
}

// incarnation says whether there is a log or was one, and of which incarnation: the highest that database and
// high-water file name. A file that cannot be read does not hinder its being replaced.
func (f files) incarnation(d driver.Driver) (there bool, i events.Incarnation, err error) {
	for _, path := range []string{f.log(), f.wal(), f.highWater()} {
		one, err := exists(path)
		if err != nil {
			return false, 0, err
		}
		there = there || one
	}
	if !there {
		return false, 0, nil
	}
	if h, err := os.Open(f.highWater()); err == nil {
		m, _ := readMark(h) // unreadable: the zero mark
		i = m.incarnation
		_ = h.Close() // it was only read
	}
	if ok, _ := exists(f.log()); ok {
		if c, err := d.Open(f.log(), driver.Options{}); err == nil {
			info, _ := readInfo(c) // unreadable: 0
			i = max(i, info.Incarnation)
			_ = c.Close() // it is to be moved aside
		}
	}
	return true, i, nil
}

// copy verifies every file of the backup on its way to tmp, or for a blob to its place, where one may be already.
func (m *Manifest) copy(ctx context.Context, o RestoreOptions, tmp string) error {
	n := 0
	err := readSums(filepath.Join(o.From, backupSums), m.Sums, func(name string, sum []byte) error {
		n++
		if err := ctx.Err(); err != nil {
			return err
		}
		to := filepath.Join(tmp, name)
		blob, isBlob := strings.CutPrefix(name, backupBlobs+string(filepath.Separator))
		if isBlob && o.Blobs == "" {
			return errors.New("the backup has blobs: name the folder that they go to")
		}
		got, _, err := copySynced(to, filepath.Join(o.From, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, sum) {
			return fmt.Errorf("%w: %s in the backup is not what was written", ErrDamaged, name)
		}
		if isBlob {
			return putBlob(to, filepath.Join(o.Blobs, blob))
		}
		return nil
	})
	if err == nil && n != m.Files {
		err = fmt.Errorf("%w: the manifest names %d files, there are %d", ErrDamaged, m.Files, n)
	}
	if err == nil && o.Blobs != "" {
		if err = syncTree(o.Blobs); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// putBlob moves a blob to its place. One that is there has the same name and so the same bytes; it is replaced, since
// it may be what was damaged.
func putBlob(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	tmp := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)) // another file system
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, _, err := copySynced(tmp, from); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}

// begin holds the copied log against the manifest and gives it its new incarnation. Tenures of the old one end.
func begin(log string, d driver.Driver, m Manifest, i events.Incarnation) error {
	var now Manifest
	if err := now.read(log, d); err != nil {
		return fmt.Errorf("read the copied log: %w", err)
	}
	if now.Log != m.Log || now.Incarnation != m.Incarnation || fmt.Sprint(now.Positions) != fmt.Sprint(m.Positions) {
		return fmt.Errorf("%w: the backup's log is not the one that its manifest names", ErrDamaged)
	}
	c, err := d.Open(log, driver.Options{Pragmas: []string{"synchronous=FULL"}})
	if err != nil {
		return err
	}
	err = c.Exec(fmt.Sprintf(`BEGIN IMMEDIATE; UPDATE log SET incarnation = %d;
		UPDATE partitions SET until = 0; COMMIT`, i))
	if err := errors.Join(err, c.Close()); err != nil {
		return fmt.Errorf("begin incarnation %d: %w", i, err)
	}
	return d.Harden(log)
}

// setAside moves the log that is there into a folder of its own. The high-water file stays until the new log is in
// place: until then it has Open refuse the folder.
func (f files) setAside(i events.Incarnation) (dir string, err error) {
	if dir, err = os.MkdirTemp(string(f), fmt.Sprintf("replaced-%d-", i)); err != nil {
		return "", err
	}
	for _, path := range []string{f.log(), f.wal(), f.shm()} {
		if err := os.Rename(path, filepath.Join(dir, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
	}
	return dir, errors.Join(syncDir(dir), syncDir(string(f)))
}

// install puts the new log in place, and then the mark that goes with it.
func (f files) install(log string, r Restored) error {
	if err := os.Rename(log, f.log()); err != nil {
		return err
	}
	if err := syncDir(string(f)); err != nil {
		return err
	}
	if err := os.Remove(f.highWater()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := openHighWater(f.highWater())
	if err != nil {
		return err
	}
	var parts []partition
	for _, p := range r.Manifest.Positions {
		parts = append(parts, partition{position: p})
	}
	return errors.Join(h.write(r.Incarnation, parts), h.close(), syncDir(string(f)))
}
