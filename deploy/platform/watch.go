package platform

import (
	"sync"

	"github.com/sluice-platform/sluice/events"
)

// watches tells whoever looks at a stream that it has grown. A telling is a hint: the watcher reads what there is.
type watches struct {
	mu   sync.RWMutex
	by   map[events.Stream]map[chan struct{}]bool // true: wants to know of the end only
	many int
}

// watchersMax bounds how many look at once; each holds a connection or a request.
const watchersMax = 20_000

func newWatches() *watches { return &watches{by: map[events.Stream]map[chan struct{}]bool{}} }

// watch returns a channel that gets something after each growth of the stream, or only after one behind which no owner
// has work with it; and what ends the watch. ok is false when too many look already.
func (w *watches) watch(s events.Stream, endOnly bool) (grown <-chan struct{}, end func(), ok bool) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.many >= watchersMax {
		return nil, nil, false
	}
	if w.by[s] == nil {
		w.by[s] = map[chan struct{}]bool{}
	}
	w.by[s][c] = endOnly
	w.many++
	return c, func() { w.forget(s, c) }, true
}

func (w *watches) forget(s events.Stream, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.by[s][c]; !ok {
		return
	}
	w.many--
	if delete(w.by[s], c); len(w.by[s]) == 0 {
		delete(w.by, s)
	}
}

func (w *watches) changed(s events.Stream, open bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for c, endOnly := range w.by[s] {
		if endOnly && open {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
