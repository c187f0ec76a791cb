package events

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckBatch(t *testing.T) {
	good := func() *Append {
		return &Append{Stream: "order/acme/1", Partition: 1, Command: ID{1}, N: 1, Events: []byte{1}}
	}
	t.Run("what is well formed passes, also without an envelope", func(t *testing.T) {
		if err := CheckBatch(1, 4, []*Append{good(), good()}, make([]Verdict, 2)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the one append that is not is named", func(t *testing.T) {
		bad := good()
		bad.Stream, bad.N = "order/acme/bad", 0
		err := CheckBatch(1, 4, []*Append{good(), bad, good()}, make([]Verdict, 3))
		if !errors.Is(err, ErrInvalidAppend) || !strings.Contains(err.Error(), "append 2 of 3 to \"order/acme/bad\"") {
			t.Errorf("got %v", err)
		}
	})
	for mistake, c := range map[string]struct {
		change func(*Append)
		want   error
	}{
		"too many events":       {func(a *Append) { a.N = CommitEventsMax + 1 }, ErrTooLarge},
		"too many bytes":        {func(a *Append) { a.Events = make([]byte, CommitBytesMax+1) }, ErrTooLarge},
		"too large an envelope": {func(a *Append) { a.Envelope = make([]byte, CommitBytesMax) }, ErrTooLarge},
		"no events":             {func(a *Append) { a.N = 0 }, ErrInvalidAppend},
		"no bytes":              {func(a *Append) { a.Events = nil }, ErrInvalidAppend},
		"another partition":     {func(a *Append) { a.Partition = 2 }, ErrInvalidAppend},
		"a bad name":            {func(a *Append) { a.Stream = "order" }, ErrBadStream},
		"no command":            {func(a *Append) { a.Command = ID{} }, ErrInvalidAppend},
		"a version below none":  {func(a *Append) { a.Expected = -1 }, ErrInvalidAppend},
		"a fence below none":    {func(a *Append) { a.Fence = -1 }, ErrInvalidAppend},
	} {
		t.Run(mistake+" is refused", func(t *testing.T) {
			a := good()
			c.change(a)
			err := CheckBatch(1, 4, []*Append{a}, make([]Verdict, 1))
			if !errors.Is(err, c.want) || errors.Is(err, ErrInvalidAppend) == errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
