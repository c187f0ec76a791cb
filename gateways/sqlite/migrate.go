package sqlite

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// The migrations of the log, in order of their names: 0001_what.sql, 0002_what.sql, … One that was released never
// changes; its checksum stands in every database that has it.
//
//go:embed schema/*.sql
var schema embed.FS

// partitionSchema is what each partition has.
//
//go:embed schema/partition.sql
var partitionSchema string

// ofPartition puts a partition's number in place of {p}.
func ofPartition(sql string, p events.Partition) string {
	return strings.ReplaceAll(sql, "{p}", strconv.Itoa(int(p)))
}

// migration is one numbered script.
type migration struct {
	name, script, sum string
}

// migrations reads the embedded scripts; the number of each is its place, from 1.
func migrations(from fs.FS) (all []migration, err error) {
	names, err := fs.Glob(from, "schema/[0-9]*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		script, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(script)
		all = append(all, migration{name, string(script), hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// migrate brings the schema up to date, each step in a transaction of its own. A database that knows more than this
// build is refused with ErrNewerSchema, and one whose history differs from ours with ErrDamaged.
func migrate(c driver.Conn, all []migration, partitions int) error {
	if err := c.Exec(`CREATE TABLE IF NOT EXISTS migrations (
		number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, at INTEGER NOT NULL)`); err != nil {
		return err
	}
	done, err := applied(c)
	if err != nil {
		return err
	}
	if len(done) > len(all) {
		return fmt.Errorf("%w: its schema has number %d, this build knows %d; start the newer one", ErrNewerSchema,
			len(done), len(all))
	}
	for i, m := range all {
		if i >= len(done) {
			if err := apply(c, i+1, m); err != nil {
				return fmt.Errorf("migrate to %s: %w", m.name, err)
			}
		} else if done[i] != m.sum {
			return fmt.Errorf("%w: migration %s has checksum %.16s in the database and %.16s in this build", ErrDamaged,
				m.name, done[i], m.sum)
		}
	}
	return fill(c, partitions)
}

func applied(c driver.Conn) (sums []string, err error) {
	s, err := c.Prepare("SELECT checksum FROM migrations ORDER BY number")
	if err != nil {
		return nil, err
	}
	for {
		row, err := s.Step()
		if err != nil || !row {
			return sums, err
		}
		sums = append(sums, s.ColumnText(0))
	}
}

func apply(c driver.Conn, number int, m migration) error {
	script := fmt.Sprintf("BEGIN IMMEDIATE; %s; INSERT INTO migrations VALUES (%d, '%s', '%s', %d); COMMIT",
		m.script, number, m.name, m.sum, time.Now().UnixMicro())
	if err := c.Exec(script); err != nil {
		_ = c.Exec("ROLLBACK") // the first error counts
		return err
	}
	return nil
}

// fill gives a new log its identity, and its partitions; later it can have more of them, never fewer.
func fill(c driver.Conn, partitions int) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	var script strings.Builder
	fmt.Fprintf(&script, "BEGIN IMMEDIATE; INSERT OR IGNORE INTO log VALUES (1, x'%x', 1);\n", id)
	for p := range events.Partition(partitions) {
		fmt.Fprintf(&script, "INSERT OR IGNORE INTO partitions (part) VALUES (%d);\n", p)
		script.WriteString(ofPartition(partitionSchema, p))
	}
	script.WriteString("COMMIT")
	if err := c.Exec(script.String()); err != nil {
		_ = c.Exec("ROLLBACK") // the first error counts
		return err
	}
	return nil
}
