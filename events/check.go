package events

import "fmt"

// CheckBatch says what is wrong with a call of Appender.Append before anything is touched: nil, or an error that wraps
// ErrInvalidAppend or ErrTooLarge and names the append. Every adapter calls it first, so that all refuse the same.
// What only the store knows, that a stream lives in another partition, it finds itself: ErrInvalidAppend as well.
func CheckBatch(p Partition, partitions int, batch []*Append, out []Verdict) error {
	if p < 0 || int(p) >= partitions {
		return fmt.Errorf("%w: there is no partition %d among %d", ErrInvalidAppend, p, partitions)
	}
	if len(out) < len(batch) {
		return fmt.Errorf("%w: room for %d verdicts, %d appends", ErrInvalidAppend, len(out), len(batch))
	}
	for i, a := range batch {
		if err := a.check(p); err != nil {
			return fmt.Errorf("append %d of %d to %.80q: %w", i+1, len(batch), string(a.Stream), err)
		}
	}
	return nil
}

func (a *Append) check(p Partition) error {
	switch size := len(a.Envelope) + len(a.Events); {
	case a.Partition != p:
		return fmt.Errorf("%w: it belongs to partition %d, the call is for %d", ErrInvalidAppend, a.Partition, p)
	case a.N < 1:
		return fmt.Errorf("%w: it has no events", ErrInvalidAppend)
	case a.N > CommitEventsMax:
		return fmt.Errorf("%w: %d events, at most %d", ErrTooLarge, a.N, CommitEventsMax)
	case size > CommitBytesMax:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, CommitBytesMax)
	case len(a.Events) == 0:
		return fmt.Errorf("%w: %d events of no bytes", ErrInvalidAppend, a.N)
	case a.Expected < NoStream:
		return fmt.Errorf("%w: expected version %d", ErrInvalidAppend, a.Expected)
	case a.Fence < 0:
		return fmt.Errorf("%w: fence %d", ErrInvalidAppend, a.Fence)
	case a.Command == ID{}:
		return fmt.Errorf("%w: it has no command id, so its repeats could not be told from others", ErrInvalidAppend)
	}
	if err := a.Stream.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidAppend, err)
	}
	return nil
}
