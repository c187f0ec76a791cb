package platform

import "sync"

// box hands things over between goroutines: anybody puts in, one takes all that has gathered. It never blocks whoever
// puts in, so what goes in must be bounded elsewhere.
type box[T any] struct {
	mu   sync.Mutex
	in   T
	full chan struct{} // of capacity 1: something was put in since the last take
}

func newBox[T any](first T) *box[T] { return &box[T]{in: first, full: make(chan struct{}, 1)} }

func (b *box[T]) put(f func(in *T)) {
	b.mu.Lock()
	f(&b.in)
	b.mu.Unlock()
	select {
	case b.full <- struct{}{}:
	default:
	}
}

// take returns what has gathered and leaves empty in its place.
func (b *box[T]) take(empty T) T {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.in
	b.in = empty
	return out
}
