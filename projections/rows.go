package projections

import "encoding/binary"

// CacheRowsMax is how many rows a runner of one partition keeps between batches: about 1 KiB each.
const CacheRowsMax = 8_192

// cell is one row as the runner knows it.
type cell struct {
	table *Table
	key   Row
	row   Row  // after every change so far; nil: not there
	had   Row  // as the view has it
	known bool // had is what the view has, else nobody has looked
	dirty bool
}

// rows is a write-through cache of a view's rows in two generations, with the changes of the batch under way on top.
type rows struct {
	model  *Model
	young  map[string]*cell
	old    map[string]*cell
	dirty  []*cell // in order of first change
	whole  bool    // what is not here is not there: nothing was ever forgotten
	missed []Key   // asked for and not known, each once
	asked  map[string]bool
	bytes  int64 // of rows put, estimated
	miss   bool  // something was asked for and not known since this was last set to false
	buf    []byte
}

func newRows(m *Model) *rows {
	return &rows{model: m, young: map[string]*cell{}, old: map[string]*cell{}, asked: map[string]bool{}}
}

// get is Get over everything that is known; what is not goes to missed.
func (r *rows) get(table string, key ...any) (Row, bool) {
	t := r.model.Table(table)
	if t == nil {
		panic("no table named " + table)
	}
	if err := t.CheckKey(key); err != nil {
		panic(err)
	}
	c := r.find(t, key)
	if c == nil || !c.known && !c.dirty {
		r.miss = r.miss || !r.whole
		if !r.whole && !r.asked[string(r.buf)] {
			r.asked[string(r.buf)] = true
			r.missed = append(r.missed, Key{Table: table, Key: append(Row(nil), key...)})
		}
		return nil, false
	}
	return c.row, c.row != nil
}

func (r *rows) find(t *Table, key []any) *cell {
	r.buf = AppendKey(r.buf[:0], t.Name, key)
	if c := r.young[string(r.buf)]; c != nil {
		return c
	}
	c := r.old[string(r.buf)]
	if c != nil {
		r.young[string(r.buf)] = c
	}
	return c
}

func (r *rows) cell(t *Table, key []any) *cell {
	c := r.find(t, key)
	if c == nil {
		c = &cell{table: t, key: append(Row(nil), key...), known: r.whole}
		r.young[string(r.buf)] = c
	}
	return c
}

// ask takes the keys that were missed.
func (r *rows) ask() []Key {
	keys := r.missed
	r.missed = nil
	clear(r.asked)
	return keys
}

// fill says what the view has under keys.
func (r *rows) fill(keys []Key, got []Row) {
	for i, k := range keys {
		c := r.cell(r.model.Table(k.Table), k.Key)
		if c.had, c.known = got[i], true; !c.dirty {
			c.row = got[i]
		}
	}
}

// put lays checked changes over what is known.
func (r *rows) put(changes []Change) {
	for i := range changes {
		t := r.model.Table(changes[i].Table)
		c := r.cell(t, t.KeyOf(changes[i].Row))
		c.known = c.known || changes[i].New
		r.bytes -= sizeOf(c.row)
		if c.row = changes[i].Row; changes[i].Delete {
			c.row = nil
		}
		r.bytes += sizeOf(c.row)
		if !c.dirty {
			c.dirty = true
			r.dirty = append(r.dirty, c)
		}
	}
}

// changes is what the batch under way comes to, at most one a row, in order of first change.
func (r *rows) changes() []Change {
	out := make([]Change, 0, len(r.dirty))
	for _, c := range r.dirty {
		switch {
		case c.row != nil:
			out = append(out, Change{Table: c.table.Name, Row: c.row, Had: c.had})
		case !c.known || c.had != nil:
			out = append(out, Change{Table: c.table.Name, Row: c.table.keyRow(c.key), Delete: true, Had: c.had})
		}
	}
	return out
}

// keyRow is a row of nothing but its key.
func (t *Table) keyRow(key Row) Row {
	row := make(Row, len(t.Columns))
	for i, name := range t.Key {
		row[t.Column(name)] = key[i]
	}
	return row
}

// committed says that the view now has the changes.
func (r *rows) committed() {
	for _, c := range r.dirty {
		c.had, c.known, c.dirty = c.row, true, false
	}
	r.dirty = r.dirty[:0]
	if len(r.young) > CacheRowsMax/2 {
		r.whole = false
		r.old, r.young = r.young, make(map[string]*cell, CacheRowsMax/2)
	}
}

// forget drops everything, so that no change of a failed batch is ever taken for one that the view has.
func (r *rows) forget() {
	clear(r.young)
	clear(r.old)
	clear(r.asked)
	r.dirty, r.missed, r.miss, r.whole, r.bytes = nil, nil, false, false, 0
}

// sizeOf estimates what a row takes in memory.
func sizeOf(r Row) int64 {
	n := int64(len(r)) * 40
	for _, v := range r {
		switch v := v.(type) {
		case string:
			n += int64(len(v))
		case []byte:
			n += int64(len(v))
		}
	}
	return n
}

// AppendKey appends a key as bytes that no other key of a model has.
func AppendKey(dst []byte, table string, key []any) []byte {
	dst = append(append(dst, table...), 0)
	for _, v := range key {
		switch v := v.(type) {
		case string:
			dst = binary.AppendUvarint(append(dst, 's'), uint64(len(v)))
			dst = append(dst, v...)
		case int64:
			dst = binary.AppendVarint(append(dst, 'i'), v)
		case bool:
			if dst = append(dst, 'f'); v {
				dst[len(dst)-1] = 't'
			}
		}
	}
	return dst
}
