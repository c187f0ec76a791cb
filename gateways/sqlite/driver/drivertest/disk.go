package drivertest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// Disk is a disk that fails on demand. The files are real ones and hold what every process sees; Disk remembers what of
// it would outlive a loss of power: what was written before a file's last sync, and any part of what was written since.
type Disk struct {
	name string
	base vfs.VFS

	mu       sync.Mutex
	rand     *rand.Rand
	nodes    map[string]*node
	dead     bool
	steps    int   // writes and syncs so far
	dieAt    int   // the step at which power is lost; 0: none
	liar     bool  // syncs are confirmed and not done
	failSync int   // so many syncs fail from now on
	space    int64 // bytes that files may grow by; negative: no limit
}

// node is a file that does not forget.
type node struct {
	durable []byte
	pending []change // since the last sync, in order
}

// change is a write, or a cut to a length.
type change struct {
	at   int64
	data []byte // nil: the file was cut at at
}

var disks atomic.Int64

// NewDisk makes a disk whose accidents follow from the seed.
func NewDisk(seed uint64) *Disk {
	d := &Disk{
		name: fmt.Sprintf("disk%d", disks.Add(1)), base: vfs.Find(""), nodes: map[string]*node{}, space: -1,
		rand: rand.New(rand.NewPCG(seed, 1)),
	}
	vfs.Register(d.name, d)
	return d
}

// Remove forgets the disk, not its files.
func (d *Disk) Remove() { vfs.Unregister(d.name) }

// Driver opens databases on the disk.
func (d *Disk) Driver() driver.Driver {
	return driver.Driver{
		Name:   "ncruces on " + d.name,
		Open:   func(path string, o driver.Options) (driver.Conn, error) { return openNcruces(path, d.name, o) },
		Harden: d.harden,
	}
}

// Steps is how many writes and syncs there were.
func (d *Disk) Steps() int { return locked(d, func() int { return d.steps }) }

// DieAt loses power at the n-th write or sync from now on, 1 being the next.
func (d *Disk) DieAt(n int) { locked(d, func() int { d.dieAt = d.steps + n; return 0 }) }

// Dead says whether power was lost.
func (d *Disk) Dead() bool { return locked(d, func() bool { return d.dead }) }

// Kill loses power now.
func (d *Disk) Kill() { locked(d, func() int { d.dead = true; return 0 }) }

// Lie has syncs confirmed and not done.
func (d *Disk) Lie(on bool) { locked(d, func() int { d.liar = on; return 0 }) }

// FailSyncs has the next n syncs fail. As Linux does, the disk then believes the pages to be clean: what they held is
// read back, and is never written.
func (d *Disk) FailSyncs(n int) { locked(d, func() int { d.failSync = n; return 0 }) }

// Space says by how many bytes files may grow from now on; negative: as they like.
func (d *Disk) Space(bytes int64) { locked(d, func() int { d.space = bytes; return 0 }) }

func locked[T any](d *Disk, do func() T) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return do()
}

// Restart brings power back: each file holds what was synced, and of each change since then all, nothing, or some
// sectors. Every connection must have been closed.
func (d *Disk) Restart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := make([]string, 0, len(d.nodes))
	for path := range d.nodes {
		paths = append(paths, path)
	}
	slices.Sort(paths) // the seed decides, not the map
	keep := d.rand.Float64()
	for _, path := range paths {
		n := d.nodes[path]
		for _, c := range n.pending {
			if d.rand.Float64() < keep {
				n.durable = c.tear(d.rand).apply(n.durable)
			}
		}
		n.pending = nil
		if err := os.WriteFile(path, n.durable, 0o600); err != nil {
			return err
		}
	}
	d.dead, d.dieAt, d.liar, d.failSync, d.space = false, 0, false, 0, -1
	return nil
}

// tear drops sectors from one change in four.
func (c change) tear(r *rand.Rand) change {
	if c.data == nil || r.IntN(4) > 0 {
		return c
	}
	first := r.IntN(len(c.data))
	from, to := first/sector*sector, len(c.data)
	if r.IntN(2) == 0 {
		from, to = 0, from
	}
	return change{c.at + int64(from), c.data[from:to]}
}

func (c change) apply(to []byte) []byte {
	if c.data == nil {
		return slices.Grow(to, int(max(0, c.at-int64(len(to)))))[:c.at]
	}
	if end := int(c.at) + len(c.data); end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// step counts a write or sync; when it is the last one, it still may have happened.
func (d *Disk) step() error {
	if d.dead {
		return sqlite3.IOERR
	}
	d.steps++
	if d.steps == d.dieAt {
		d.dead = true
	}
	return nil
}

func (d *Disk) harden(path string) error {
	if err := driver.Harden(path); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[path]
	if n == nil || d.liar {
		return nil
	}
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.durable, n.pending = now, nil
	return nil
}

// Open is part of vfs.VFS.
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := vfsutil.WrapOpen(d.base, name, flags)
	return d.wrap(name, f, flags, err)
}

// OpenFilename is part of vfs.VFSFilename.
func (d *Disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := vfsutil.WrapOpenFilename(d.base, name, flags)
	return d.wrap(name.String(), f, flags, err)
}

func (d *Disk) wrap(name string, f vfs.File, flags vfs.OpenFlag, err error) (vfs.File, vfs.OpenFlag, error) {
	if err != nil || flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) == 0 {
		return f, flags, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[name]
	if n == nil {
		now, err := os.ReadFile(name)
		if err != nil {
			return nil, flags, errors.Join(err, f.Close())
		}
		n = &node{durable: now}
		d.nodes[name] = n
	}
	return &file{File: f, d: d, n: n}, flags, nil
}

// Delete is part of vfs.VFS.
func (d *Disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return sqlite3.IOERR_DELETE
	}
	delete(d.nodes, name)
	return d.base.Delete(name, syncDir)
}

// Access is part of vfs.VFS.
func (d *Disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.base.Access(name, flags)
}

// FullPathname is part of vfs.VFS.
func (d *Disk) FullPathname(name string) (string, error) { return d.base.FullPathname(name) }

// file is an open file of the disk.
type file struct {
	vfs.File
	d *Disk
	n *node
}

func (f *file) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f *file) LockState() vfs.LockLevel       { return vfsutil.WrapLockState(f.File) }
func (f *file) Unwrap() vfs.File               { return f.File }

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.grow(off + int64(len(p))); err != nil {
		return 0, err
	}
	if err := f.d.step(); err != nil {
		return 0, err
	}
	f.n.pending = append(f.n.pending, change{off, slices.Clone(p)})
	if f.d.dead {
		return 0, sqlite3.IOERR_WRITE
	}
	return f.File.WriteAt(p, off)
}

// grow takes space for a file that becomes so long.
func (f *file) grow(to int64) error {
	size, err := f.Size()
	if err != nil || f.d.space < 0 || to <= size {
		return err
	}
	if to-size > f.d.space {
		return sqlite3.FULL
	}
	f.d.space -= to - size
	return nil
}

func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step(); err != nil {
		return err
	}
	f.n.pending = append(f.n.pending, change{at: size})
	if f.d.dead {
		return sqlite3.IOERR_TRUNCATE
	}
	return f.File.Truncate(size)
}

func (f *file) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step(); err != nil {
		return err
	}
	switch {
	case f.d.dead: // in the middle of it
		return sqlite3.IOERR_FSYNC
	case f.d.failSync > 0:
		f.d.failSync--
		f.n.pending = nil
		return sqlite3.IOERR_FSYNC
	case f.d.liar:
		return nil
	}
	for _, c := range f.n.pending {
		f.n.durable = c.apply(f.n.durable)
	}
	f.n.pending = nil
	return nil
}
