package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/projections"
)

// viewTable is one table of a build, with its statements. Every name in them has passed projections.Model.Check and is
// quoted; values are parameters.
type viewTable struct {
	*projections.Table
	name                string
	create              string
	upsert, get, remove string
	key                 []int             // columns
	updates             map[uint64]string // by columns set
}

func tableOf(v projections.View, t *projections.Table) *viewTable {
	w := &viewTable{Table: t, name: tableName(v.Model.Name, v.Build, t.Name), updates: map[uint64]string{}}
	for _, k := range t.Key {
		w.key = append(w.key, t.Column(k))
	}
	columns, marks, sets := w.columns(), make([]string, len(t.Columns)), []string{}
	for i, c := range t.Columns {
		marks[i] = "?"
		if !slices.Contains(t.Key, c.Name) {
			sets = append(sets, fmt.Sprintf("%q=excluded.%q", c.Name, c.Name))
		}
	}
	conflict := "DO NOTHING"
	if len(sets) > 0 {
		conflict = "DO UPDATE SET " + strings.Join(sets, ",")
	}
	w.upsert = fmt.Sprintf("INSERT INTO %s(%s) VALUES(%s) ON CONFLICT(%s) %s",
		w.name, columns, strings.Join(marks, ","), quoted(t.Key), conflict)
	w.get = fmt.Sprintf("SELECT %s FROM %s WHERE %s", columns, w.name, w.byKey())
	w.remove = fmt.Sprintf("DELETE FROM %s WHERE %s", w.name, w.byKey())
	w.create = w.declare()
	return w
}

func tableName(model string, build int, table string) string {
	return fmt.Sprintf("%q", fmt.Sprintf("v_%s_%d_%s", model, build, table))
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ",")
}

func (t *viewTable) columns() string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return quoted(names)
}

func (t *viewTable) byKey() string {
	terms := make([]string, len(t.Key))
	for i, k := range t.Key {
		terms[i] = fmt.Sprintf("%q=?", k)
	}
	return strings.Join(terms, " AND ")
}

func (t *viewTable) declare() string {
	lines := make([]string, 0, len(t.Columns)+1)
	for _, c := range t.Columns {
		kind := "INTEGER"
		switch c.Kind {
		case projections.Text:
			kind = "TEXT"
		case projections.JSON:
			kind = "BLOB"
		}
		lines = append(lines, fmt.Sprintf("%q %s", c.Name, kind))
	}
	lines = append(lines, "PRIMARY KEY("+quoted(t.Key)+")")
	return fmt.Sprintf("CREATE TABLE %s(%s) WITHOUT ROWID", t.name, strings.Join(lines, ","))
}

// index is the statement that makes the table's nth index. Rows in which a column that it holds equal is null are not
// in it: no filter matches them, so that an index over failures costs nothing while nothing fails.
func (t *viewTable) index(n int) string {
	columns, where := []string{t.Key[0]}, ""
	for i, c := range t.Indexes[n] {
		columns = append(columns, c)
		word := " AND "
		if i == 0 {
			word = " WHERE "
		}
		where += word + fmt.Sprintf("%q IS NOT NULL", c)
	}
	for _, c := range t.Sorted() {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s(%s)%s", t.indexName(n), t.name, quoted(columns), where)
}

func (t *viewTable) indexName(n int) string {
	return fmt.Sprintf("\"%s_i%d\"", strings.Trim(t.name, `"`), n)
}

// update is the statement that sets some columns of a row, given by a bit for each.
func (t *viewTable) update(mask uint64) string {
	if sql := t.updates[mask]; sql != "" {
		return sql
	}
	var sets []string
	for i, c := range t.Columns {
		if mask>>i&1 == 1 {
			sets = append(sets, fmt.Sprintf("%q=?", c.Name))
		}
	}
	t.updates[mask] = fmt.Sprintf("UPDATE %s SET %s WHERE %s", t.name, strings.Join(sets, ","), t.byKey())
	return t.updates[mask]
}

// list is the statement of a page, with its parameters.
func (t *viewTable) list(q *projections.Query) (sql string, args []any) {
	where, args := fmt.Sprintf("%q=?", t.Key[0]), []any{q.Tenant}
	for _, f := range t.Filters {
		v, ok := q.Where[f.Name]
		if !ok {
			continue
		}
		switch f.Op {
		case projections.Equal:
			where += fmt.Sprintf(" AND %q=?", f.Column)
		case projections.From:
			where += fmt.Sprintf(" AND %q>=?", f.Column)
		case projections.Before:
			where += fmt.Sprintf(" AND %q<?", f.Column)
		case projections.Contains:
			where += fmt.Sprintf(" AND instr(lower(%q),lower(?))>0", f.Column) // lower knows ASCII only
		}
		args = append(args, v)
	}
	sorted := t.Sorted()
	way, than := "ASC", ">"
	if t.Desc != q.Reverse {
		way, than = "DESC", "<"
	}
	order := make([]string, len(sorted))
	for i, c := range sorted {
		order[i] = fmt.Sprintf("%q %s", c, way)
	}
	if q.After != nil && len(sorted) > 0 {
		where += fmt.Sprintf(" AND (%s)%s(?%s)", quoted(sorted), than, strings.Repeat(",?", len(sorted)-1))
		for _, c := range sorted {
			args = append(args, q.After[t.Column(c)])
		}
	}
	sql = "SELECT " + t.columns() + " FROM " + t.name
	if n := t.IndexFor(q.Where); n >= 0 {
		sql += " INDEXED BY " + t.indexName(n)
	}
	sql += " WHERE " + where
	if len(order) > 0 {
		sql += " ORDER BY " + strings.Join(order, ",")
	}
	return sql + " LIMIT ?", append(args, q.Limit+1)
}
