package storetest

import (
	"errors"
	"sync"
	"time"
)

// errFault is what a planted fault fails with.
var errFault = errors.New("planted fault")

// faults is what the hooks of the store under test are told to do.
type faults struct {
	mu      sync.Mutex
	commits int
	next    *held  // the next commit waits here
	fail    error  // the next commit fails
	lose    bool   // the next answers are lost
	each    func() // called before every commit
	open    map[*held]bool
}

// held is a commit that waits, or will, just before it is done.
type held struct {
	reached chan struct{} // closed when a commit waits
	answer  chan error
}

func newFaults() *faults { return &faults{open: map[*held]bool{}} }

func (x *faults) before() error {
	x.mu.Lock()
	x.commits++
	h, fail, each := x.next, x.fail, x.each
	x.next, x.fail = nil, nil
	x.mu.Unlock()
	if each != nil {
		each()
	}
	if h != nil {
		close(h.reached)
		return <-h.answer
	}
	return fail
}

func (x *faults) after() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lose {
		x.lose = false
		return errFault
	}
	return nil
}

// holdNext has the next commit wait until it is let go.
func (x *faults) holdNext() *held {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := &held{reached: make(chan struct{}), answer: make(chan error, 1)}
	x.next = h
	x.open[h] = true
	return h
}

// letGo ends the wait: the commit is done, or fails with err. Repeating it changes nothing.
func (x *faults) letGo(h *held, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open[h] {
		delete(x.open, h)
		h.answer <- err
	}
}

func (x *faults) failNext() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fail = errFault
}

func (x *faults) loseNext() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lose = true
}

// beforeEach has do called before every commit.
func (x *faults) beforeEach(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.each = do
}

func (x *faults) commitsSoFar() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.commits
}

// heal lets everything go that waits, so that the store can be closed.
func (x *faults) heal() {
	x.mu.Lock()
	x.next, x.fail, x.lose, x.each = nil, nil, false, nil
	var all []*held
	for h := range x.open {
		all = append(all, h)
	}
	x.mu.Unlock()
	for _, h := range all {
		x.letGo(h, nil)
	}
}

// await waits for a signal.
func (f *fixture) await(what string, signal <-chan struct{}) {
	f.Helper()
	select {
	case <-signal:
	case <-time.After(guard):
		f.Fatalf("%s: nothing after %s", what, guard)
	}
}
