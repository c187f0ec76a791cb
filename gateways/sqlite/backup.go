package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// A backup is a folder: the database, the blobs below blobs/, SHA256SUMS over all of them (as sha256sum -c reads it),
// and the manifest, written last.
const (
	backupLog      = "log.db"
	backupBlobs    = "blobs"
	backupSums     = "SHA256SUMS"
	backupManifest = "manifest.json"
	backupFormat   = 1
)

// Manifest says what a backup is of.
type Manifest struct {
	Format      int                `json:"format"`
	Log         events.ID          `json:"log"`
	Incarnation events.Incarnation `json:"incarnation"`
	Positions   []events.Position  `json:"positions"` // the last of each partition
	TakenAt     time.Time          `json:"takenAt"`
	Files       int                `json:"files"` // listed in SHA256SUMS
	Bytes       int64              `json:"bytes"` // of those files
	Sums        events.Hash        `json:"sums"`  // SHA-256 of SHA256SUMS
}

// BackupOptions says what is backed up, and to where.
type BackupOptions struct {
	To    string // a folder that is not there yet
	Blobs string // the folder of the blobs, copied as it is; empty: none
}

// Backup copies the log as it is at one moment, while appends go on, and then the blobs: they are never changed or
// deleted, and stored before what names them, so that all that the copied log names is among them. The folder appears
// under its name when it is complete. Repeating it into another folder is safe.
func (s *Store) Backup(ctx context.Context, o BackupOptions) (m Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up to %s: %w", o.To, err)
		}
	}()
	if err := s.usable(ctx); err != nil {
		return m, err
	}
	if there, err := exists(o.To); err != nil || there {
		return m, errors.Join(err, fmt.Errorf("%w: a backup never replaces anything", fs.ErrExist))
	}
	parent := filepath.Dir(o.To)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return m, err
	}
	tmp, err := os.MkdirTemp(parent, filepath.Base(o.To)+".partial-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(tmp) // after the rename it is not there; else the first error counts
	if m, err = s.backup(ctx, tmp, o.Blobs); err != nil {
		return m, err
	}
	if err := os.Rename(tmp, o.To); err != nil {
		return m, err
	}
	return m, syncDir(parent)
}

// backup fills the folder to.
func (s *Store) backup(ctx context.Context, to, blobs string) (Manifest, error) {
	m := Manifest{Format: backupFormat, TakenAt: time.Now().UTC()}
	sums := sumList{root: to}
	if err := s.snapshot(ctx, filepath.Join(to, backupLog)); err != nil {
		return m, s.files.fault("copy the log", err)
	}
	if err := sums.add(backupLog); err != nil {
		return m, err
	}
	if err := m.read(filepath.Join(to, backupLog), s.opt.Driver); err != nil {
		return m, err
	}
	if blobs != "" {
		if err := sums.copyTree(ctx, blobs, backupBlobs); err != nil {
			return m, fmt.Errorf("copy blobs: %w", err)
		}
	}
	m.Files, m.Bytes, m.Sums = len(sums.lines), sums.bytes, sums.hash()
	if err := writeSynced(filepath.Join(to, backupSums), sums.text()); err != nil {
		return m, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := writeSynced(filepath.Join(to, backupManifest), append(text, '\n')); err != nil {
		return m, err
	}
	return m, syncTree(to)
}

// snapshot writes the log as it is at one moment into a new file, without the room that is not used. SQLite does not
// sync that file; whoever lists it does.
func (s *Store) snapshot(ctx context.Context, to string) (err error) {
	c, err := s.opt.Driver.Open(s.files.log(), driver.Options{ReadOnly: true, Pragmas: []string{"temp_store=MEMORY"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.Interrupt(ctx)
	q, err := c.Prepare("VACUUM INTO ?")
	if err != nil {
		return err
	}
	q.BindText(1, to)
	return stmt{q}.run()
}

// read takes identity and positions from the copy, since the log itself has moved on.
func (m *Manifest) read(log string, d driver.Driver) error {
	c, err := d.Open(log, driver.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	info, err := readInfo(c)
	m.Log, m.Incarnation = info.ID, info.Incarnation
	if err == nil {
		err = rows(c, "SELECT position FROM partitions ORDER BY part", func(s driver.Stmt) error {
			m.Positions = append(m.Positions, events.Position(s.ColumnInt(0)))
			return nil
		})
	}
	return errors.Join(err, c.Close())
}
