package projections

import (
	"errors"
	"fmt"
)

// ErrModel says that a model's declaration cannot be kept; every mistake is named.
var ErrModel = errors.New("read model is declared wrongly")

// ErrRow says that a row, key or filter value does not fit its table; nothing was written.
var ErrRow = errors.New("value does not fit its table")

// nameMax bounds the names that become part of identifiers in a database.
const nameMax = 40

// Check returns ErrModel with every mistake of the declaration. Names are made of a–z, 0–9 and _, so that an adapter
// may put them into a statement.
func (m *Model) Check() error {
	var wrong []error
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if !goodName(m.Name) {
		bad("model name %q", m.Name)
	}
	if m.Version < 1 {
		bad("version %d", m.Version)
	}
	if m.Apply == nil || len(m.Tables) == 0 || len(m.Categories) == 0 {
		bad("Apply, Tables and Categories must be given")
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		if m.Table(t.Name) != t {
			bad("two tables are named %s", t.Name)
		}
		t.check(func(format string, args ...any) { bad("table %s: "+format, append([]any{t.Name}, args...)...) })
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s version %d: %w", ErrModel, m.Name, m.Version, errors.Join(wrong...))
	}
	return nil
}

func (t *Table) check(bad func(format string, args ...any)) {
	if !goodName(t.Name) {
		bad("name %q", t.Name)
	}
	for i, c := range t.Columns {
		if !goodName(c.Name) || c.Kind < Text || c.Kind > JSON {
			bad("column %q of kind %d", c.Name, c.Kind)
		}
		if t.Column(c.Name) != i {
			bad("two columns are named %s", c.Name)
		}
	}
	known := func(what string, names []string, json bool) {
		for _, n := range names {
			if i := t.Column(n); i < 0 || !json && t.Columns[i].Kind == JSON {
				bad("%s names %q", what, n)
			}
		}
	}
	if len(t.Key) == 0 {
		bad("it has no key")
	} else if i := t.Column(t.Key[0]); i >= 0 && t.Columns[i].Kind != Text {
		bad("its first key column, the tenant, is no text")
	}
	known("the key", t.Key, false)
	known("the order", t.Order, false)
	for _, columns := range t.Indexes {
		known("an index", columns, false)
	}
	seen := map[string]bool{}
	for _, f := range t.Filters {
		known("filter "+f.Name, []string{f.Column}, false)
		if seen[f.Name] || f.Name == "" || f.Op < Equal || f.Op > Contains {
			bad("filter %q with comparison %d", f.Name, f.Op)
		}
		if i := t.Column(f.Column); f.Op == Contains && i >= 0 && t.Columns[i].Kind != Text {
			bad("filter %s looks for text in %s", f.Name, f.Column)
		}
		seen[f.Name] = true
	}
}

func goodName(s string) bool {
	if s == "" || len(s) > nameMax || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// CheckRow returns ErrRow unless r has a value of the right type for every column, none of key and order being nil.
func (t *Table) CheckRow(r Row) error {
	if len(r) != len(t.Columns) {
		return fmt.Errorf("%w: %s has %d columns, the row %d", ErrRow, t.Name, len(t.Columns), len(r))
	}
	for i, v := range r {
		if c := t.Columns[i]; !c.Kind.holds(v) || v == nil && (contains(t.Key, c.Name) || contains(t.Order, c.Name)) {
			return fmt.Errorf("%w: %s.%s is %T", ErrRow, t.Name, c.Name, v)
		}
	}
	return nil
}

// CheckChanges returns ErrRow unless every change fits its table.
func (m *Model) CheckChanges(changes []Change) error {
	for i := range changes {
		c := &changes[i]
		t := m.Table(c.Table)
		switch {
		case t == nil:
			return fmt.Errorf("%w: no table named %q", ErrRow, c.Table)
		case !c.Delete || len(c.Row) != len(t.Columns):
			if err := t.CheckRow(c.Row); err != nil {
				return err
			}
		default:
			if err := t.CheckKey(t.KeyOf(c.Row)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckKey returns ErrRow unless key has a value of the right type for every key column.
func (t *Table) CheckKey(key []any) error {
	if len(key) != len(t.Key) {
		return fmt.Errorf("%w: the key of %s has %d columns, not %d", ErrRow, t.Name, len(t.Key), len(key))
	}
	for i, v := range key {
		if c := t.Columns[t.Column(t.Key[i])]; v == nil || !c.Kind.holds(v) {
			return fmt.Errorf("%w: %s.%s is %T", ErrRow, t.Name, c.Name, v)
		}
	}
	return nil
}

func (k Kind) holds(v any) bool {
	switch v.(type) {
	case nil:
		return true
	case string:
		return k == Text
	case int64:
		return k == Int || k == Time
	case bool:
		return k == Bool
	case []byte:
		return k == JSON
	}
	return false
}

// PageMax is how many rows a page has at most: what DESIGN §8 gives a caller.
const PageMax = 500

// CheckQuery returns ErrUnknownFilter for a filter that the table does not declare, and ErrRow for a missing tenant, a
// limit outside 1..PageMax, or a value of the wrong type.
func (t *Table) CheckQuery(q *Query) error {
	if q.Tenant == "" {
		return fmt.Errorf("%w: a list of %s names no tenant", ErrRow, t.Name)
	}
	if q.Limit < 1 || q.Limit > PageMax {
		return fmt.Errorf("%w: a page of %s has %d rows, not 1 to %d", ErrRow, t.Name, q.Limit, PageMax)
	}
	declared := 0
	for _, f := range t.Filters {
		v, ok := q.Where[f.Name]
		if !ok {
			continue
		}
		declared++
		if c := t.Columns[t.Column(f.Column)]; v == nil || !c.Kind.holds(v) {
			return fmt.Errorf("%w: filter %s is %T", ErrRow, f.Name, v)
		}
	}
	if declared < len(q.Where) {
		return fmt.Errorf("%w: of %s", ErrUnknownFilter, t.Name)
	}
	if q.After != nil {
		return t.CheckRow(q.After)
	}
	return nil
}
