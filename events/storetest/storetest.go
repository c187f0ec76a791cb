// Package storetest is the contract of events.Store, runnable against any adapter.
// It never asks how an adapter keeps its promises: it appends, reads, and breaks what the adapter lets it break.
package storetest

import (
	"testing"

	"github.com/sluice-platform/sluice/events"
)

// Config says how the adapter under test is opened.
type Config struct {
	// Open returns an empty store made with o, closed when t ends.
	Open func(t *testing.T, o Options) Harness
	// Rounds of each race; 0 means 1,000, or 100 with -short.
	Rounds int
}

// Options is what the suite wants built into the store. An adapter that cannot do it says so in its Features.
type Options struct {
	Partitions int
	// Clock is the store's only clock: recorded_at and ownership are judged by it. It is safe for concurrent use.
	Clock func() events.Time
	// BeforeCommit is called once for each commit of one or more appends to disk (or to whatever stands for it), after
	// the last look at heads and fence and before anybody can see anything: no other append to the partition can come
	// between. It may block. With an error the commit fails: nothing is stored and the calls get ErrUnknown.
	BeforeCommit func() error
	// AfterCommit is called when the commit is durable and nobody was answered yet. It may block. With an error the
	// answers are lost: the calls get ErrUnknown.
	AfterCommit func() error
}

// Harness is one store under test.
type Harness struct {
	Store events.Store
	// Reopen closes the store, if it is open, and opens the same data with the same options. nil: Features.Forgets.
	Reopen func(t *testing.T) events.Store
	// Peer opens the same data as another process does, while Store is open; nil or an error: Features.OneProcess.
	Peer     func(t *testing.T) (events.Store, error)
	Features Features
}

// Features is what an adapter cannot do, beside what its events.Features say. For each there is another promise that
// the suite holds it to instead. The zero value can everything.
type Features struct {
	OwnClock   bool // Options.Clock is ignored (a server's clock is used): tenures are short and truly run out
	NoHooks    bool // BeforeCommit and AfterCommit are not called: calls are cancelled at any moment instead
	Forgets    bool // what was closed is gone: a store that is opened is empty
	OneProcess bool // a second process is refused while the first has the data open
}

// rule is one promise and what shows it.
type rule struct {
	policy string
	hold   func(*fixture)
}

// Run holds an adapter to the contract of events.Store.
func Run(t *testing.T, cfg Config) {
	if cfg.Rounds == 0 {
		cfg.Rounds = 1000
		if testing.Short() {
			cfg.Rounds = 100
		}
	}
	for _, group := range []struct {
		about string
		rules []rule
	}{
		{"verdicts", verdicts},
		{"limits", limits},
		{"unknown", unknown},
		{"reads", reads},
		{"heads", heads},
		{"time", times},
		{"ownership", ownership},
		{"races", races},
		{"tenants", tenants},
		{"seals", seals},
		{"life", life},
	} {
		t.Run(group.about, func(t *testing.T) {
			for _, r := range group.rules {
				t.Run(r.policy, func(t *testing.T) {
					f := open(t, cfg)
					r.hold(f)
					f.audit()
				})
			}
		})
	}
}
