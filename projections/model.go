package projections

import (
	"github.com/sluice-platform/sluice/events"
)

// Kind is the type of a column; in Go: string, int64, bool, int64 (Time, µs) or []byte (JSON).
type Kind uint8

// The kinds.
const (
	Text Kind = iota + 1
	Int
	Bool
	Time
	JSON
)

// Column is one column of a table. A value may be nil unless the column belongs to Key or Order.
type Column struct {
	Name string
	Kind Kind
}

// Op is how a filter compares. A nil value never matches.
type Op uint8

// The comparisons.
const (
	Equal    Op = iota + 1
	From        // ≥
	Before      // <
	Contains    // the text holds the given one, case of ASCII letters ignored
)

// Filter is one allowed filter of a list.
type Filter struct {
	Name   string // what a caller says
	Column string
	Op     Op
}

// Table declares one table of a read model as data. Its first key column is the tenant. A changed declaration is a
// new version of the read model and a rebuild; tables are never migrated.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // the tenant first; never JSON
	Order   []string // of lists; the key is appended to make it total. Empty: by key
	Desc    bool     // lists run backwards: newest first
	// Indexes names, for each index, the columns that filters hold equal. The tenant stands before them, the order
	// and the key behind. A list takes the first index all of whose columns it holds equal, else the table's own
	// order of keys: declare the most selective first, and an empty one when Order is not the key's.
	Indexes [][]string
	Filters []Filter
}

// Row holds a value for each column of a table, in its order. Nobody changes a row that was given away.
type Row []any

// Get reads the row of a key as it is after every change so far, those of the same batch included.
type Get func(table string, key ...any) (Row, bool)

// Change puts a row, or removes it. Row always holds the key.
type Change struct {
	Table  string
	Row    Row
	Delete bool
	// New is Apply's word that there was no such row before, because the event starts its stream: nobody need look.
	New bool
	// Had is the row as it stands, when the runner knows it: an adapter may write only the difference.
	Had Row
}

// Model is a read model: tables, and a pure Apply. A Version is one more when declaration or Apply changed.
//
// Partitions are applied side by side, so a row belongs to one: what streams of several partitions would share carries
// the partition in its key, and its reader sums. What streams of one partition share must not depend on the order in
// which streams are taken, since a parked one is applied later.
type Model struct {
	Name       string
	Version    int
	Tables     []Table
	Categories []string      // of streams that it wants; others only move the checkpoint
	Types      []events.Type // that Apply is called with; all of the categories when empty. Others are not decoded
	// Apply answers an event with changes. It may be called again for the same event, and for one whose changes are
	// thrown away: nothing but its answer may tell. A panic parks the stream.
	Apply func(e events.Recorded, get Get) []Change
}

// Table finds a table by name, nil when the model has none.
func (m *Model) Table(name string) *Table {
	for i := range m.Tables {
		if m.Tables[i].Name == name {
			return &m.Tables[i]
		}
	}
	return nil
}

// Column is the place of a column in a row, -1 for none.
func (t *Table) Column(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// KeyOf takes the key out of a row.
func (t *Table) KeyOf(r Row) Row {
	key := make(Row, len(t.Key))
	for i, name := range t.Key {
		key[i] = r[t.Column(name)]
	}
	return key
}

// Sorted is the total order of lists without the tenant: Order, then what of Key it does not name.
func (t *Table) Sorted() []string {
	names := append([]string(nil), t.Order...)
	for _, k := range t.Key[1:] {
		if !contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// IndexFor is the place in Indexes of the one that a list with these filters takes, -1 for the table's own order.
func (t *Table) IndexFor(where map[string]any) int {
	var held []string
	for _, f := range t.Filters {
		if _, ok := where[f.Name]; ok && f.Op == Equal {
			held = append(held, f.Column)
		}
	}
	for i, columns := range t.Indexes {
		all := true
		for _, c := range columns {
			all = all && contains(held, c)
		}
		if all {
			return i
		}
	}
	return -1
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
