package owner

import (
	"container/heap"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

// timers is a heap of streams by their earliest deadline: one entry a stream.
type timers []*handle.Hot

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].Due < t[j].Due }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].Index, t[j].Index = i, j
}

// Push and Pop are container/heap's.
func (t *timers) Push(x any) {
	h := x.(*handle.Hot)
	h.Index = len(*t)
	*t = append(*t, h)
}

func (t *timers) Pop() any {
	n := len(*t) - 1
	h := (*t)[n]
	(*t)[n] = nil
	*t = (*t)[:n]
	h.Index = -1
	return h
}

// arm sets a stream's deadline unless it has an earlier one.
func (t *timers) arm(h *handle.Hot, at events.Time) {
	switch {
	case h.Index < 0:
		h.Due = at
		heap.Push(t, h)
	case at < h.Due:
		h.Due = at
		heap.Fix(t, h.Index)
	}
}

func (t *timers) drop(h *handle.Hot) {
	if h.Index >= 0 {
		heap.Remove(t, h.Index)
	}
}

// due takes the stream whose deadline has passed first, or nil.
func (t *timers) due(now events.Time) *handle.Hot {
	if len(*t) == 0 || (*t)[0].Due > now {
		return nil
	}
	return heap.Pop(t).(*handle.Hot)
}
