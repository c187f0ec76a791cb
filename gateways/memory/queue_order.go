package memory

import "container/heap"

// typeQueue holds the waiting items of one type in the order they were sent: fresh ones as they came, and those that
// came back, which may stand anywhere in line.
type typeQueue struct {
	name  string
	fresh ring
	again orderHeap
}

// first is the item that is next in line, nil when there is none.
func (t *typeQueue) first() *queued {
	e := t.fresh.first()
	if len(t.again) > 0 && (e == nil || t.again[0].order < e.order) {
		return t.again[0]
	}
	return e
}

func (t *typeQueue) pop() *queued {
	if e := t.fresh.first(); len(t.again) == 0 || e != nil && e.order < t.again[0].order {
		return t.fresh.pop()
	}
	return heap.Pop(&t.again).(*queued)
}

// ring is a FIFO that grows by doubling and gives its room back when it is empty and large.
type ring struct {
	items []*queued // the length is a power of two, or zero
	head  int
	n     int
}

const (
	ringMin  = 16
	ringKept = 4_096 // an empty ring of more than this is given back
)

func (r *ring) first() *queued {
	if r.n == 0 {
		return nil
	}
	return r.items[r.head]
}

func (r *ring) push(e *queued) {
	if r.n == len(r.items) {
		grown := make([]*queued, max(ringMin, 2*len(r.items)))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)&(len(r.items)-1)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)&(len(r.items)-1)] = e
	r.n++
}

func (r *ring) pop() *queued {
	e := r.items[r.head]
	r.items[r.head] = nil
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	if r.n == 0 && len(r.items) > ringKept {
		r.items, r.head = nil, 0
	}
	return e
}

// orderHeap has the item that was sent first on top.
type orderHeap []*queued

func (h orderHeap) Len() int           { return len(h) }
func (h orderHeap) Less(i, j int) bool { return h[i].order < h[j].order }
func (h orderHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *orderHeap) Push(x any)        { *h = append(*h, x.(*queued)) }
func (h *orderHeap) Pop() any          { return popLast((*[]*queued)(h)) }

// lockHeap has the lock that ends first on top, and knows where each item stands so that any can be taken out.
// Locks that end together are kept in the order of the deliveries: a run then depends on nothing but its input.
type lockHeap []*queued

func (h lockHeap) Len() int { return len(h) }

func (h lockHeap) Less(i, j int) bool {
	if h[i].until != h[j].until {
		return h[i].until < h[j].until
	}
	return h[i].receipt < h[j].receipt
}

func (h lockHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *lockHeap) Push(x any) {
	e := x.(*queued)
	e.at = len(*h)
	*h = append(*h, e)
}

func (h *lockHeap) Pop() any { return popLast((*[]*queued)(h)) }

func popLast(s *[]*queued) *queued {
	n := len(*s) - 1
	e := (*s)[n]
	(*s)[n] = nil
	*s = (*s)[:n]
	return e
}
