package sqlite

import (
	"github.com/sluice-platform/sluice/events"
)

// headsMax bounds the heads that the writer keeps in memory, about 200 B each: half of them at least are the last used.
const headsMax = 1 << 16

// head is what the writer knows of a stream. It is the only writer, so what it knows is true.
type head struct {
	name    events.Stream
	sid     int64
	part    events.Partition
	version events.Version
	open    bool
	due     events.Time
	apart   bool // the snapshot stands in a table of its own

	// What the commit at hand has done to it; flush writes it and clears it.
	last   *events.Append // the last append
	snap   *events.Append // the last one with a snapshot
	snapAt events.Version
	born   bool
}

// heads keeps the heads that were used last, in two generations: when the young one is full it becomes the old one,
// and what the old one still held is forgotten.
type heads struct {
	young, old map[events.Stream]*head
}

func newHeads() heads { return heads{young: map[events.Stream]*head{}} }

// get returns nil for a stream that is not known here.
func (c *heads) get(s events.Stream) *head {
	if h := c.young[s]; h != nil {
		return h
	}
	h := c.old[s]
	if h != nil {
		c.young[s] = h
	}
	return h
}

func (c *heads) put(h *head) { c.young[h.name] = h }

// age forgets what was not used for long. Not to be called while a commit is being made: its heads must stay.
func (c *heads) age() {
	if len(c.young) >= headsMax/2 {
		c.young, c.old = make(map[events.Stream]*head, headsMax/2), c.young
	}
}
