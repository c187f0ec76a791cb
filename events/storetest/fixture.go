package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
)

// partitions of every store under test.
const partitions = 4

// start is what the store's clock says at first: 2026-12-01T00:00:00Z.
const start events.Time = 1_796_083_200_000_000

// guard ends a test that waits for what never comes. It is no part of any promise.
const guard = 30 * time.Second

// fixture is one store under test, and what the suite knows of it.
type fixture struct {
	*testing.T
	Harness
	rounds int
	others sync.WaitGroup // goroutines of the test: the store is closed behind them
	again  func() Harness // opens another store like the first one
	clock  *clock
	faults *faults

	mu     sync.Mutex
	hashes map[place]events.Hash
	kind   events.Type
}

// place is a version of a stream.
type place struct {
	s events.Stream
	v events.Version
}

func open(t *testing.T, cfg Config) *fixture {
	t.Helper()
	f := &fixture{
		T: t, rounds: cfg.Rounds, clock: &clock{now: start}, faults: newFaults(), hashes: map[place]events.Hash{},
	}
	all := events.Registered()
	if len(all) == 0 {
		t.Fatal("no event type is registered: a frame needs one to name")
	}
	f.kind = all[0].Type
	f.again = func() Harness {
		return cfg.Open(t, Options{
			Partitions: partitions, Clock: f.clock.read, BeforeCommit: f.faults.before, AfterCommit: f.faults.after,
		})
	}
	f.Harness = f.again()
	t.Cleanup(func() { // runs before the store is closed, also when the test has failed
		f.faults.heal()
		f.others.Wait()
	})
	info, err := f.Store.Log(t.Context())
	f.must(err)
	if want := (events.Features{PositionAtAppend: true, FenceScope: "partition"}); info.Features != want {
		t.Fatalf("the suite has no promise for %+v yet", info.Features)
	}
	if f.Features.Forgets != (f.Reopen == nil) {
		t.Fatal("Reopen is missing, or Features.Forgets is wrong")
	}
	return f
}

// note is the suite's event: any registered name, and any bytes.
type note struct {
	kind events.Type
	body []byte
}

func (n note) EventType() events.Type { return n.kind }

// codec writes a note's bytes as they are.
type codec struct{}

func (codec) Encode(dst []byte, e events.Event) ([]byte, error) {
	return append(dst, e.(note).body...), nil
}

func (codec) Decode(t events.Type, _ int, body []byte) (events.Event, error) {
	return note{t, body}, nil
}

// commandOf is the id that a command of a case has.
func commandOf(c string) events.ID { return events.Derive("storetest", c) }

// frames encodes k events whose bodies say which command and how many-eth they are.
func (f *fixture) frames(c string, k int) []byte {
	var b []byte
	for i := range k {
		b = f.frame(b, fmt.Appendf(nil, `{"%s":%d}`, c, i+1), events.Origin{})
	}
	return b
}

func (f *fixture) frame(dst, body []byte, o events.Origin) []byte {
	f.Helper()
	dst, err := events.AppendFrame(dst, events.Fact{Event: note{f.kind, body}, Origin: o}, codec{})
	f.must(err)
	return dst
}

// append0 is append(s, exp, c, fence, k) of the cases, for a stream of partition 0.
func (f *fixture) append0(s events.Stream, exp events.Version, c string, fence events.Fence, k int) *events.Append {
	f.Helper()
	return f.appendTo(0, s, exp, c, fence, k)
}

func (f *fixture) appendTo(p events.Partition, s events.Stream, exp events.Version, c string, fence events.Fence,
	k int,
) *events.Append {
	f.Helper()
	env := events.Envelope{Actor: "suite", Correlation: c, OccurredAt: start}
	a := &events.Append{
		Stream: s, Partition: p, Expected: exp, Command: commandOf(c), Fence: fence, N: k,
		Envelope: env.Append(nil), Events: f.frames(c, k),
	}
	f.chain(a)
	return a
}

// chain gives a its hash, as handle does, from what the suite knows of the version before.
func (f *fixture) chain(a *events.Append) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.Hash = events.Chain(f.hashes[place{a.Stream, a.Expected}], a.Stream, a.Expected+1, a.N, a.Envelope, a.Events)
	at := place{a.Stream, a.Expected + events.Version(a.N)}
	if f.hashes[at] == (events.Hash{}) {
		f.hashes[at] = a.Hash
	}
}

// learn remembers the hash of what was appended.
func (f *fixture) learn(batch []*events.Append, out []events.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, a := range batch {
		if out[i].Kind == events.Appended || out[i].Kind == events.Duplicate {
			f.hashes[place{a.Stream, a.Expected + events.Version(a.N)}] = a.Hash
		}
	}
}

// try appends a batch and returns the verdicts.
func (f *fixture) try(batch ...*events.Append) ([]events.Verdict, error) {
	out := make([]events.Verdict, len(batch))
	err := f.Store.Append(f.Context(), batch[0].Partition, batch, out)
	if err == nil {
		f.learn(batch, out)
	}
	return out, err
}

// do appends a batch, which must be answered.
func (f *fixture) do(batch ...*events.Append) []events.Verdict {
	f.Helper()
	out, err := f.try(batch...)
	f.must(err)
	return out
}

// settle submits a batch until it is answered, as the write path does.
func (f *fixture) settle(batch ...*events.Append) []events.Verdict {
	f.Helper()
	for range 100 {
		out, err := f.try(batch...)
		if !errors.Is(err, events.ErrUnknown) {
			f.must(err)
			return out
		}
	}
	f.Fatal("unknown after 100 tries")
	return nil
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) wantErr(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("got error %v, want %v", err, want)
	}
}

// want compares verdicts. The fields that a kind does not have are zero; where the store has a clock of its own, At is
// only required to be there.
func (f *fixture) want(got []events.Verdict, want ...events.Verdict) {
	f.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	for i := range min(len(got), len(want)) {
		if f.Features.OwnClock && got[i].At != 0 && want[i].At != 0 {
			got[i].At = want[i].At
		}
	}
	if !slices.Equal(got, want) {
		f.Fatalf("verdicts\n got %s\nwant %s", show(got), show(want))
	}
}

func show(vs []events.Verdict) (all []string) {
	for _, v := range vs {
		switch v.Kind {
		case events.Appended, events.Duplicate:
			all = append(all, fmt.Sprintf("%s(%d, position %d, %s)", v.Kind, v.Version, v.Position, v.At))
		case events.Fenced:
			all = append(all, fmt.Sprintf("%s(%d)", v.Kind, v.Fence))
		default:
			all = append(all, fmt.Sprintf("%s(%d)", v.Kind, v.Version))
		}
		if bare := (events.Verdict{Kind: v.Kind, Version: v.Version}); v.Kind == events.Conflict && v != bare {
			all = append(all, fmt.Sprintf("with more in it: %+v", v))
		}
	}
	return all
}

func appended(v events.Version, p events.Position) events.Verdict {
	return events.Verdict{Kind: events.Appended, Version: v, Position: p, At: start}
}

func duplicate(v events.Version, p events.Position) events.Verdict {
	return events.Verdict{Kind: events.Duplicate, Version: v, Position: p, At: start}
}

func conflict(v events.Version) events.Verdict {
	return events.Verdict{Kind: events.Conflict, Version: v}
}

func fenced(highest events.Fence) events.Verdict {
	return events.Verdict{Kind: events.Fenced, Fence: highest}
}

// head reads a stream's head.
func (f *fixture) head(s events.Stream) events.Head {
	f.Helper()
	h, err := f.Store.Head(f.Context(), s)
	f.must(err)
	return h
}

// wantEnd compares a partition's last position.
func (f *fixture) wantEnd(p events.Partition, want events.Position) {
	f.Helper()
	got, _, err := f.Store.End(f.Context(), p)
	f.must(err)
	if got != want {
		f.Fatalf("partition %d ends at position %d, want %d", p, got, want)
	}
}

// token takes a partition over until its token is n, and returns the last tenure, which has not ended.
func (f *fixture) token(p events.Partition, n events.Fence) (t events.Tenure) {
	f.Helper()
	for t.Fence < n {
		next, err := f.Store.Acquire(f.Context(), p, "owner", time.Minute)
		f.must(err)
		if next.Fence <= t.Fence {
			f.Fatalf("token %d follows %d", next.Fence, t.Fence)
		}
		t = next
	}
	return t
}

// clock is moved by hand. It may be set back.
type clock struct {
	mu    sync.Mutex
	now   events.Time
	reads int
}

func (c *clock) read() events.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return c.now
}

func (c *clock) set(t events.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) readsSoFar() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}
