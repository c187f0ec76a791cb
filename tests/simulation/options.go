package simulation

import (
	"math/rand/v2"

	"github.com/sluice-platform/sluice/events"
)

// Bug is a fault of the kind that a careless change would bring, planted in what drives the state machines.
type Bug uint8

// The planted bugs.
const (
	NoBug       Bug = iota
	SkipHole        // a consumer whose feed has a hole goes on behind it
	ForgetFence     // the store takes appends of deposed owners
	StaleCache      // the lane is given an old state as the current one
	SettleEarly     // a result is settled before its append has answered
	WrongDice       // jitter comes from another source than the seed
)

// Bugs names what can be planted.
var Bugs = map[Bug]string{
	SkipHole: "skip a hole", ForgetFence: "forget a fence", StaleCache: "decide on a stale cache",
	SettleEarly: "settle before the append", WrongDice: "jitter from the wrong source",
}

// Options say how large a run is. The zero value is a usual one.
type Options struct {
	Steps      int // with faults; 0: 300 to 2,300, by the seed
	Executions int // 0: up to 10, by the seed
	Bug        Bug
}

// Stats counts what a run has come to, so that a test can see that it was not empty.
type Stats struct {
	Steps, Commits, Events, Executions, Completed, Failed, Cancelled, TimedOut int
	Takeovers, Conflicts, Duplicates, Fenced, Unknown, Ghosts, Settled         int
	Acknowledged, Refused, Holes, Held, Retried, Late, Snapshots               int
	Trace                                                                      uint64
}

// dice are the ports IDs and Rand over a seed.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// NewID draws an id.
func (d dice) NewID() (id events.ID) {
	for i := 0; i < len(id); i += 8 {
		v := d.Uint64()
		for j := range 8 {
			id[i+j] = byte(v >> (8 * j))
		}
	}
	return id
}

// wrongDice is the planted source: what it gives depends on what this process has run before.
type wrongDice struct{}

func (wrongDice) Uint64() uint64 { return rand.Uint64() }

// add sums up; a trace has no sum.
func (a *Stats) add(b *Stats) {
	to, from := a.fields(), b.fields()
	for i := range to {
		*to[i] += *from[i]
	}
}

func (a *Stats) fields() []*int {
	return []*int{
		&a.Steps, &a.Commits, &a.Events, &a.Executions, &a.Completed, &a.Failed, &a.Cancelled, &a.TimedOut,
		&a.Takeovers, &a.Conflicts, &a.Duplicates, &a.Fenced, &a.Unknown, &a.Ghosts, &a.Settled,
		&a.Acknowledged, &a.Refused, &a.Holes, &a.Held, &a.Retried, &a.Late, &a.Snapshots,
	}
}
