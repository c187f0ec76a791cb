package platform

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/gateways/storetail"
	"github.com/sluice-platform/sluice/projections"
)

// tick is an event of these tests; it borrows the name of some type of this build.
type tick struct{}

func (tick) EventType() events.Type { return events.Registered()[0].Type }

type tickCodec struct{}

func (tickCodec) Encode(dst []byte, _ events.Event) ([]byte, error)     { return dst, nil }
func (tickCodec) Decode(events.Type, int, []byte) (events.Event, error) { return tick{}, nil }

// ticks is a model that counts the events of each stream; sick has it refuse one stream.
func ticks(sick func() bool) projections.Model {
	return projections.Model{
		Name: "ticks", Version: 1, Categories: []string{"clock"},
		Tables: []projections.Table{{
			Name: "ticks", Key: []string{"tenant", "id"},
			Columns: []projections.Column{
				{Name: "tenant", Kind: projections.Text}, {Name: "id", Kind: projections.Text}, {Name: "n", Kind: projections.Int},
			},
		}},
		Apply: func(e events.Recorded, get projections.Get) []projections.Change {
			n := int64(0)
			if old, ok := get("ticks", "acme", e.Stream.ID()); ok {
				n = old[2].(int64)
			}
			if e.Stream.ID() == "s0" && sick() {
				panic("sick")
			}
			return []projections.Change{{Table: "ticks", Row: projections.Row{"acme", e.Stream.ID(), n + 1}}}
		},
	}
}

const tickParts = 3

// ticking is a log that can be exchanged, and the views over it.
type ticking struct {
	*testing.T
	mu    sync.Mutex
	store *memory.Store
	feed  *storetail.Feed
	last  map[events.Stream]events.Version
	ids   uint64
	salt  byte
	views projections.Views
	sick  bool
	r     *viewsRunner
	stop  context.CancelFunc
	ended chan struct{}
}

func newTicking(t *testing.T, v projections.Views) *ticking {
	c := &ticking{T: t, views: v}
	c.exchange()
	return c
}

// exchange puts an empty log in place of the one that is there.
func (c *ticking) exchange() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.salt++
	c.last = map[events.Stream]events.Version{}
	c.store = memory.NewStore(memory.StoreOptions{Partitions: tickParts, Clock: systemClock{}.Now})
	c.feed = storetail.New(c.store)
}

func (c *ticking) now() (*memory.Store, *storetail.Feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store, c.feed
}

// log is the reader and the feed of whatever log is there now.
type tickLog struct {
	events.Reader // of no use but for the methods that are not needed
	c             *ticking
}

func (l tickLog) Tail(ctx context.Context, p events.Partition, after events.Position, most int) ([]events.Commit, error) {
	s, _ := l.c.now()
	return s.Tail(ctx, p, after, most)
}

func (l tickLog) Commits(ctx context.Context, s events.Stream, after events.Version, most int) ([]events.Commit, error) {
	st, _ := l.c.now()
	return st.Commits(ctx, s, after, most)
}

func (l tickLog) CommitAt(ctx context.Context, s events.Stream, v events.Version) (events.Commit, error) {
	st, _ := l.c.now()
	return st.CommitAt(ctx, s, v)
}

func (l tickLog) End(ctx context.Context, p events.Partition) (events.Position, events.Fence, error) {
	s, _ := l.c.now()
	return s.End(ctx, p)
}

func (l tickLog) Log(ctx context.Context) (events.LogInfo, error) {
	s, _ := l.c.now()
	return s.Log(ctx)
}

func (l tickLog) Read(ctx context.Context, p events.Partition, after events.Position, most int) ([]events.Commit, error) {
	return l.Tail(ctx, p, after, most)
}

func (l tickLog) Wait(ctx context.Context, p events.Partition, after events.Position) error {
	_, f := l.c.now()
	return f.Wait(ctx, p, after)
}

// append writes n commits of two events to each of ten streams.
func (c *ticking) append(n int) {
	c.Helper()
	store, feed := c.now()
	for range n {
		for i := range 10 {
			s := events.StreamOf("clock", "acme", fmt.Sprintf("s%d", i))
			var frames []byte
			for range 2 {
				frames, _ = events.AppendFrame(frames, events.Fact{Event: tick{}}, tickCodec{})
			}
			c.ids++
			a := &events.Append{
				Stream: s, Partition: events.PartitionOf(s, tickParts), Expected: c.last[s], N: 2, Events: frames,
				Envelope: (&events.Envelope{Actor: "ann"}).Append(nil),
			}
			binary.LittleEndian.PutUint64(a.Command[:], c.ids)
			binary.LittleEndian.PutUint64(a.Hash[:], c.ids)
			a.Hash[31] = c.salt
			out := make([]events.Verdict, 1)
			if err := store.Append(c.Context(), a.Partition, []*events.Append{a}, out); err != nil || out[0].Kind != events.Appended {
				c.Fatal(err, out)
			}
			c.last[s] = out[0].Version
			feed.Notify(a.Partition)
		}
	}
}

// start runs the views until stopped.
func (c *ticking) start() {
	c.Helper()
	log := tickLog{c: c}
	r, err := newViewsRunner(viewsPorts{
		Ports: projections.Ports{Log: log, Feed: log, Views: c.views}, Codec: tickCodec{}, Clock: systemClock{},
		Models: []projections.Model{ticks(func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.sick })},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		c.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	c.r, c.stop, c.ended = r, stop, make(chan struct{})
	go func() {
		defer close(c.ended)
		if err := r.Run(ctx); err != nil {
			c.Error(err)
		}
	}()
}

func (c *ticking) end() {
	c.stop()
	<-c.ended
}

// caughtUp waits for everything that the log has, and compares every row with it.
func (c *ticking) caughtUp() projections.Page {
	c.Helper()
	store, _ := c.now()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	for p := range events.Partition(tickParts) {
		end, _, err := store.End(ctx, p)
		if err == nil {
			err = c.r.Await(ctx, "ticks", p, end)
		}
		if err != nil {
			c.Fatalf("partition %d to %d: %v", p, end, err)
		}
	}
	page := c.page()
	for _, r := range page.Rows {
		if s := events.StreamOf("clock", "acme", r[1].(string)); r[2].(int64) != int64(c.last[s]) {
			c.Fatalf("%s: %d, want %d", s, r[2], c.last[s])
		}
	}
	if len(page.Rows) != len(c.last) && page.Incomplete == 0 {
		c.Fatalf("%d rows, want %d", len(page.Rows), len(c.last))
	}
	return page
}

func (c *ticking) page() projections.Page {
	c.Helper()
	page, err := c.views.List(c.Context(), ticks(nil), "ticks", projections.Query{Tenant: "acme", Limit: 100})
	if err != nil {
		c.Fatal(err)
	}
	return page
}

func (c *ticking) builds() (all []projections.Build) {
	c.Helper()
	all, err := c.views.Builds(c.Context(), "ticks")
	if err != nil {
		c.Fatal(err)
	}
	return all
}

// within runs f with memory views in a bubble of time, and with SQLite's in real time.
func within(t *testing.T, f func(c *ticking)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(newTicking(t, memory.NewViews())) })
	})
	t.Run("sqlite", func(t *testing.T) { f(newTicking(t, openTicks(t, filepath.Join(t.TempDir(), "views.db")))) })
}

func openTicks(t *testing.T, path string) *sqlite.Views {
	t.Helper()
	v, err := sqlite.OpenViews(driver.Default, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func TestViewsFollowTheLogAndItsRestarts(t *testing.T) {
	within(t, func(c *ticking) {
		c.start()
		c.append(3)
		c.caughtUp()
		waitFor(c, func() bool { return c.r.NotReady() == nil })
		c.append(2_000)
		c.caughtUp()
		c.end()
		c.append(1)
		c.start()
		if names := c.r.NotReady(); len(names) != 1 {
			c.Errorf("ready before anything ran: %v", names)
		}
		if p := c.caughtUp(); p.Build != 1 {
			c.Errorf("it was built anew: %d", p.Build)
		}
		all, err := c.r.Status(c.Context())
		if err != nil || len(all) != tickParts || all[0].Lag != 0 || all[0].Stats.Seen.Position == 0 {
			c.Errorf("%+v %v", all, err)
		}
		c.end()
		c.end()
	})
}

func TestAViewOfAnotherHistoryIsDroppedAndBuiltAnew(t *testing.T) {
	within(t, func(c *ticking) {
		c.start()
		c.append(100)
		c.caughtUp()
		c.exchange()
		c.append(1)
		waitFor(c, func() bool { all := c.builds(); return len(all) == 1 && all[0].Number == 2 && all[0].Live })
		c.caughtUp()
		c.end()
		c.exchange() // and while nobody looked
		c.append(150)
		c.start()
		waitFor(c, func() bool { all := c.builds(); return len(all) == 1 && all[0].Number == 3 && all[0].Live })
		c.caughtUp()
		c.end()
	})
}

// waitFor asks again until it is so.
func waitFor(c *ticking, is func() bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	for !is() {
		if (sleeper{}).Wait(ctx, 10*time.Millisecond) != nil {
			c.Fatalf("it never came: %+v", c.builds())
		}
	}
}

func TestES30AReplayBesideTheLiveViewAndARollBack(t *testing.T) {
	within(t, func(c *ticking) {
		c.start()
		c.append(50)
		before := c.caughtUp()
		var writers sync.WaitGroup
		stop := make(chan struct{})
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					c.append(1)
					_ = (sleeper{}).Wait(c.Context(), time.Millisecond)
				}
			}
		})
		var done, total int64
		var mu sync.Mutex
		for range 2 {
			err := c.r.Replay(c.Context(), "ticks", func(d, n int64) {
				mu.Lock()
				defer mu.Unlock()
				done, total = max(done, d), n
			})
			if err != nil {
				c.Fatal(err)
			}
		}
		close(stop)
		writers.Wait()
		after := c.caughtUp()
		if after.Build != before.Build+2 || done < total || total < 1_000 {
			c.Errorf("build %d after %d, %d of %d", after.Build, before.Build, done, total)
		}
		if err := c.r.RollBack(c.Context(), "ticks"); err != nil {
			c.Fatal(err)
		}
		if back := c.caughtUp(); back.Build != before.Build+1 || fmt.Sprint(back.Rows) != fmt.Sprint(after.Rows) {
			c.Errorf("rolled back to build %d: %v", back.Build, back.Rows)
		}
		c.append(1)
		c.caughtUp()
		c.end()
		if err := c.r.Replay(c.Context(), "ticks", func(int64, int64) {}); err == nil {
			c.Error("a swap without anybody who feeds")
		}
	})
}

func TestES30AReplayThatIsCutShortLeavesTheLiveView(t *testing.T) {
	within(t, func(c *ticking) {
		c.start()
		c.append(50)
		c.caughtUp()
		ctx, cancel := context.WithCancel(c.Context())
		err := c.r.Replay(ctx, "ticks", func(int64, int64) { cancel() })
		if !errors.Is(err, context.Canceled) {
			c.Fatal(err)
		}
		// A process that was killed had no time to tidy up.
		if _, err := c.views.Begin(c.Context(), ticks(nil)); err != nil {
			c.Fatal(err)
		}
		c.end()
		c.append(1)
		c.start()
		if p := c.caughtUp(); p.Build != 1 {
			c.Errorf("build %d answers", p.Build)
		}
		if all := c.builds(); len(all) != 1 {
			c.Errorf("what was left over is still there: %+v", all)
		}
		c.end()
	})
}

func TestParkedStreamsAreRetriedAtAStartAndWhenAsked(t *testing.T) {
	within(t, func(c *ticking) {
		sick := func(is bool) { c.mu.Lock(); c.sick = is; c.mu.Unlock() }
		sick(true)
		c.start()
		c.append(10)
		if p := c.caughtUp(); p.Incomplete != 1 || len(p.Rows) != 9 {
			c.Fatalf("%+v", p)
		}
		sick(false)
		if err := c.r.RetryParked("ticks"); err != nil {
			c.Fatal(err)
		}
		waitFor(c, func() bool { return c.page().Incomplete == 0 })
		c.caughtUp()
		sick(true)
		c.append(1)
		if p := c.caughtUpBut("s0"); p.Incomplete != 1 {
			c.Fatalf("%+v", p)
		}
		c.end()
		sick(false)
		c.start()
		waitFor(c, func() bool { return c.page().Incomplete == 0 })
		c.caughtUp()
		c.end()
	})
}

// caughtUpBut is caughtUp where one stream may be behind.
func (c *ticking) caughtUpBut(id string) projections.Page {
	c.Helper()
	s := events.StreamOf("clock", "acme", id)
	was := c.last[s]
	c.last[s] -= 2
	defer func() { c.last[s] = was }()
	return c.caughtUp()
}

func TestTheViewsFileMayBeDeletedOrSpoilt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "views.db")
	v := openTicks(t, path)
	c := newTicking(t, v)
	c.start()
	c.append(300)
	before := c.caughtUp()
	for _, spoil := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.WriteFile(path, []byte("no database"), 0o600) },
	} {
		c.end()
		if err := errors.Join(v.Close(), spoil()); err != nil {
			t.Fatal(err)
		}
		v = openTicks(t, path)
		c.views = v
		c.start()
		if after := c.caughtUp(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("got\n%v\nwant\n%v", after, before)
		}
	}
	c.end()
}
