package sqlite

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// workload is what one caller appends: it opens a stream, appends ten times, and opens the next; two events an append
// on average, 130 B of envelope, 300 B an event (the shape that store.md was measured with).
type workload struct {
	p        events.Partition
	caller   int
	streams  int
	version  events.Version
	stream   events.Stream
	sequence uint64
}

var benchEnvelope, benchEvents = make([]byte, 130), make([]byte, 900)

func (l *workload) next() *events.Append {
	if l.version == 0 {
		l.streams++
		l.stream = events.Stream(fmt.Sprintf("execution/acme/%08d-%08d", l.caller, l.streams))
	}
	l.sequence++
	n := int(l.sequence%3) + 1
	a := &events.Append{
		Stream: l.stream, Partition: l.p, Expected: l.version, N: n, Envelope: benchEnvelope, Events: benchEvents[:300*n],
		Head: events.HeadUpdate{Open: true},
	}
	binary.LittleEndian.PutUint64(a.Command[:], l.sequence)
	binary.LittleEndian.PutUint64(a.Command[8:], uint64(l.caller)+1)
	l.version += events.Version(n)
	if l.version > 20 {
		a.Head.Open = false
		l.version = 0
	}
	return a
}

// BenchmarkAppend is appends through the group commit, and the same bytes written and synced with nothing decided. With
// batches an operation is still one append.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("raw/callers=%d", callers), func(b *testing.B) { benchRaw(b, callers) })
		for _, parts := range []int{1, 4} {
			b.Run(fmt.Sprintf("store/callers=%d/partitions=%d", callers, parts), func(b *testing.B) {
				benchStore(b, callers, parts, 1)
			})
		}
	}
	for _, batch := range []int{8, 64} {
		b.Run(fmt.Sprintf("store/callers=4/partitions=4/batch=%d", batch), func(b *testing.B) { benchStore(b, 4, 4, batch) })
	}
}

func benchStore(b *testing.B, callers, parts, batch int) {
	dir := b.TempDir()
	s, err := Open(dir, Options{Partitions: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	drive(b, callers, func(caller int) func() int {
		l := workload{p: events.Partition(caller % parts), caller: caller}
		appends, out := make([]*events.Append, batch), make([]events.Verdict, batch)
		return func() int {
			for i := range appends {
				appends[i] = l.next()
			}
			if err := s.Append(b.Context(), l.p, appends, out); err != nil || out[batch-1].Kind != events.Appended {
				b.Error(err, out[batch-1])
			}
			return batch
		}
	})
	if st, err := os.Stat(filepath.Join(dir, "log.db")); err == nil && b.N > 10_000 {
		b.ReportMetric(float64(st.Size())/float64(b.N), "fileB/op")
	}
}

// benchRaw is the ceiling: one goroutine writes whatever queued to a file and syncs it.
func benchRaw(b *testing.B, callers int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	type job struct {
		a    *events.Append
		done chan struct{}
	}
	queue := make(chan job, 4096)
	var wg sync.WaitGroup
	wg.Go(func() {
		var buf []byte
		var waiting []job
		at := int64(0)
		for j := range queue {
			buf, waiting = buf[:0], waiting[:0]
			for more := true; more; {
				waiting = append(waiting, j)
				buf = append(append(buf, j.a.Envelope...), j.a.Events...)
				select {
				case j, more = <-queue:
				default:
					more = false
				}
			}
			if _, err := f.WriteAt(buf, at); err != nil {
				b.Error(err)
			}
			at += int64(len(buf))
			if err := syscall.Fdatasync(int(f.Fd())); err != nil {
				b.Error(err)
			}
			for _, w := range waiting {
				w.done <- struct{}{}
			}
		}
	})
	drive(b, callers, func(caller int) func() int {
		l := workload{caller: caller}
		done := make(chan struct{}, 1)
		return func() int {
			queue <- job{l.next(), done}
			<-done
			return 1
		}
	})
	close(queue)
	wg.Wait()
}

// drive has callers do their work until b.N appends are done, and reports latency and processor time of an append.
func drive(b *testing.B, callers int, caller func(int) func() int) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	waits := make([][]time.Duration, callers)
	cpu := processorTime()
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		do := caller(i)
		wg.Go(func() {
			for left.Load() > 0 {
				begun := time.Now()
				n := do()
				waits[i] = append(waits[i], time.Since(begun))
				left.Add(-int64(n))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "app/s")
	b.ReportMetric(float64(processorTime()-cpu)/float64(time.Microsecond)/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(all[len(all)*99/100])/float64(time.Millisecond), "p99-ms")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTail reads partitions from their start, page by page, each with a reader of its own, as a rebuild does; an
// operation is an event.
func BenchmarkTail(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Partitions: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ends := make([]events.Position, 4)
	for p := range ends {
		for caller := 0; ends[p] < 50_000; caller++ {
			l := workload{p: events.Partition(p), caller: 1000*p + caller}
			appends, out := make([]*events.Append, 1000), make([]events.Verdict, 1000)
			for i := range appends {
				appends[i] = l.next()
			}
			if err := s.Append(b.Context(), l.p, appends, out); err != nil {
				b.Fatal(err)
			}
			ends[p] = out[999].Position
		}
	}
	for _, readers := range []int{1, 4} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			b.ReportAllocs()
			var read atomic.Int64
			var wg sync.WaitGroup
			for p := range readers {
				wg.Go(func() {
					for read.Load() < int64(b.N) {
						for at := events.Position(0); at < ends[p]; {
							page, err := s.Tail(b.Context(), events.Partition(p), at, 1000)
							if err != nil {
								b.Error(err)
								return
							}
							read.Add(int64(page[len(page)-1].Position - at))
							at = page[len(page)-1].Position
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(read.Load())/b.Elapsed().Seconds(), "events/s")
		})
	}
}
