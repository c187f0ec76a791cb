package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver/drivertest"
)

func TestStoreOverNcruces(t *testing.T) { contract(t, drivertest.Ncruces, 50) }

func TestStoreOverDisk(t *testing.T) {
	d := drivertest.NewDisk(1)
	t.Cleanup(d.Remove)
	contract(t, d.Driver(), 20)
}

// faulty is a store on a disk that fails on demand.
type faulty struct {
	*testing.T
	disk  *drivertest.Disk
	dir   string
	store *Store
	model *model
	rand  *rand.Rand
}

func newFaulty(t *testing.T, seed uint64) *faulty {
	f := &faulty{
		T: t, disk: drivertest.NewDisk(seed), dir: t.TempDir(), model: newModel(), rand: rand.New(rand.NewPCG(seed, 2)),
	}
	t.Cleanup(f.disk.Remove)
	f.open()
	t.Cleanup(func() { f.store.Close() })
	return f
}

func (f *faulty) open() {
	f.Helper()
	var err error
	if f.store, err = Open(f.dir, Options{Driver: f.disk.Driver()}); err != nil {
		f.Fatal(err)
	}
}

// callers appends from so many goroutines, n times each, and gives the first error that is not the loss of power.
func (f *faulty) callers(callers, n int) {
	f.Helper()
	var wg sync.WaitGroup
	for i := range callers {
		r := rand.New(rand.NewPCG(f.rand.Uint64(), 3))
		wg.Go(func() {
			if err := f.model.run(f.Context(), f.store, r, i, n); err != nil && !f.disk.Dead() {
				f.Error(err)
			}
		})
	}
	wg.Wait()
}

// restart loses power, if it is not lost, and opens what is left.
func (f *faulty) restart() error {
	f.disk.Kill()
	_ = f.store.Close() // it cannot say anything that counts
	if err := f.disk.Restart(); err != nil {
		f.Fatal(err)
	}
	s, err := Open(f.dir, Options{Driver: f.disk.Driver()})
	if err == nil {
		f.store = s
	}
	return err
}

func (f *faulty) check() {
	f.Helper()
	if err := f.model.check(f.Context(), f.store); err != nil {
		f.Fatal(err)
	}
}

func (f *faulty) one(s events.Stream) (*events.Append, []events.Verdict, error) {
	h, err := f.store.Head(f.Context(), s)
	if err != nil && !errors.Is(err, events.ErrNoStream) {
		f.Fatal(err)
	}
	a := f.model.append(f.rand, s, 0, h.Version, h.Hash)
	out := make([]events.Verdict, 1)
	err = f.store.Append(f.Context(), 0, []*events.Append{a}, out)
	if err == nil {
		f.model.ack(a, out[0])
	}
	return a, out, err
}

func TestPowerLoss(t *testing.T) {
	for seed := range uint64(rounds(t, 12)) {
		t.Run(fmt.Sprintf("no acknowledged append is lost and no half is shown (seed %d)", seed), func(t *testing.T) {
			f := newFaulty(t, seed)
			lost := 0
			for range 4 {
				f.disk.DieAt(1 + f.rand.IntN(400))
				f.callers(4, 15)
				if f.disk.Dead() {
					lost++
				}
				if err := f.restart(); err != nil {
					t.Fatal(err)
				}
				f.check()
			}
			t.Logf("power was lost %d times in the middle of writes; %d appends were acknowledged of %d", lost,
				len(f.model.acked), len(f.model.asked))
		})
	}
}

func TestPowerLossWhileOpening(t *testing.T) {
	f := newFaulty(t, 1)
	f.callers(4, 10)
	if err := f.restart(); err != nil {
		t.Fatal(err)
	}
	for step := 1; step < 40; step += 3 {
		f.callers(2, 2)
		f.disk.Kill()
		f.store.Close()
		if err := f.disk.Restart(); err != nil {
			t.Fatal(err)
		}
		f.disk.DieAt(step)
		if s, err := Open(f.dir, Options{Driver: f.disk.Driver()}); err == nil {
			f.disk.Kill()
			s.Close()
		}
		if err := f.disk.Restart(); err != nil {
			t.Fatal(err)
		}
		f.open()
		f.check()
	}
}

func TestFailedSync(t *testing.T) {
	t.Run("ES-05 (f) a commit whose sync fails is unknown; what is acknowledged after it is on disk", func(t *testing.T) {
		for seed := range uint64(rounds(t, 10)) {
			f := newFaulty(t, seed)
			f.callers(2, 3)
			f.disk.FailSyncs(1)
			a, out, err := f.one("order/acme/s")
			if !errors.Is(err, events.ErrUnknown) {
				t.Fatal(err)
			}
			if err := f.store.Append(t.Context(), 0, []*events.Append{a}, out); err != nil {
				t.Fatal(err)
			}
			f.model.ack(a, out[0])
			if f.rand.IntN(2) == 0 {
				f.callers(2, 2)
			}
			if err := f.restart(); err != nil {
				t.Fatal(err)
			}
			f.check()
		}
	})
	t.Run("nor is it lost when the process ends before the repeat, and power while it starts again", func(t *testing.T) {
		for seed := range uint64(rounds(t, 40)) {
			f := newFaulty(t, seed)
			f.callers(2, 3)
			f.disk.FailSyncs(1)
			a, out, err := f.one("order/acme/s")
			if !errors.Is(err, events.ErrUnknown) {
				t.Fatal(err)
			}
			f.disk.FailSyncs(3) // the process ends as by kill: nothing is put in order, and the kernel keeps its pages
			f.store.Close()
			f.disk.FailSyncs(0)
			f.disk.DieAt(1 + f.rand.IntN(30))
			s, err := Open(f.dir, Options{Driver: f.disk.Driver()})
			if err == nil {
				f.store = s
				if err := s.Append(t.Context(), 0, []*events.Append{a}, out); err == nil {
					f.model.ack(a, out[0])
				}
			}
			if err := f.restart(); err != nil {
				t.Fatal(err)
			}
			f.check()
		}
	})
	t.Run("a disk that fails for long answers every append, and the store comes back with it", func(t *testing.T) {
		f := newFaulty(t, 1)
		f.callers(2, 3)
		f.disk.FailSyncs(5)
		for range 5 {
			if _, _, err := f.one("order/acme/s"); err == nil {
				t.Fatal("an append was acknowledged although its sync failed")
			}
		}
		f.callers(2, 3)
		f.check()
	})
}

func TestDiskFull(t *testing.T) {
	f := newFaulty(t, 1)
	f.callers(4, 10)
	f.disk.Space(10_000)
	refused := 0
	for range 20 {
		_, _, err := f.one("order/acme/full")
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrDiskFull) || errors.Is(err, events.ErrUnknown) {
			t.Fatal(err)
		}
		refused++
	}
	if refused == 0 {
		t.Fatal("the disk was never full")
	}
	t.Run("what was acknowledged can be read from a full disk", func(*testing.T) { f.check() })
	t.Run("appends go on when there is space", func(*testing.T) {
		f.disk.Space(-1)
		f.callers(4, 10)
		f.check()
	})
	t.Run("and all of it outlives a loss of power", func(t *testing.T) {
		if err := f.restart(); err != nil {
			t.Fatal(err)
		}
		f.check()
	})
}

func TestLyingDisk(t *testing.T) {
	noticed := 0
	for seed := range uint64(10) {
		f := newFaulty(t, seed)
		f.callers(2, 5)
		f.disk.Lie(true)
		f.callers(2, 5)
		err := f.restart()
		if err == nil {
			f.check() // all of it happened to reach the disk
			continue
		}
		if !errors.Is(err, ErrOldCopy) && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		noticed++
	}
	if noticed == 0 {
		t.Fatal("the disk never lost anything")
	}
	t.Logf("a disk that confirms what it does not do was noticed %d times of 10", noticed)
}
