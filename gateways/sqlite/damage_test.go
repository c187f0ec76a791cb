package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// filled makes a folder with a log, and gives what is in it. With live the files are those of a store that is open:
// the write-ahead log is not written back.
func filled(t *testing.T, live bool) (files, *model) {
	t.Helper()
	dir, m := t.TempDir(), newModel()
	s := openTest(t, dir, Options{})
	if err := m.run(t.Context(), s, rand.New(rand.NewPCG(1, 1)), 0, 60); err != nil {
		t.Fatal(err)
	}
	if !live {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return files(dir), m
	}
	return copyOf(t, files(dir)), m
}

// copyOf copies a folder as a kill would leave it.
func copyOf(t *testing.T, from files) files {
	t.Helper()
	to := files(t.TempDir())
	for from, to := range map[string]string{from.log(): to.log(), from.wal(): to.wal(), from.highWater(): to.highWater()} {
		b, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// sound opens a folder and checks what needs no knowledge; it returns what is stored.
func sound(t *testing.T, f files) (map[events.ID]events.Commit, error) {
	t.Helper()
	s, err := Open(string(f), Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return audit(t.Context(), s)
}

func TestFlippedByte(t *testing.T) {
	f, m := filled(t, false)
	whole, err := os.ReadFile(f.log())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	typed, found, harmless := 0, 0, 0
	for range rounds(t, 150) {
		c := copyOf(t, f)
		b := bytes.Clone(whole)
		at := r.IntN(len(b))
		b[at] ^= byte(1 + r.IntN(255))
		if err := os.WriteFile(c.log(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		stored, err := sound(t, c)
		switch {
		case errors.Is(err, ErrDamaged):
			typed++
			if !strings.Contains(err.Error(), c.log()) || !strings.Contains(err.Error(), "sluice restore") {
				t.Errorf("byte %d: the message names no file or no way out: %v", at, err)
			}
		case err != nil:
			found++
		default:
			got := map[string]events.Commit{} // by place: command ids are covered by seals, which are not looked at here
			for _, c := range stored {
				got[fmt.Sprint(c.Stream, c.First)] = c
			}
			for id := range m.acked {
				a := m.asked[id]
				if c := got[fmt.Sprint(a.Stream, a.Expected+1)]; c.Hash != a.Hash || !bytes.Equal(c.Events, a.Events) {
					t.Fatalf("byte %d: %s at version %d is another, and an audit finds nothing", at, a.Stream, a.Expected)
				}
			}
			harmless++
		}
	}
	t.Logf("%d flips were named damage by the store, %d found by an audit, %d touched nothing that is read", typed, found,
		harmless)
}

func TestTornWAL(t *testing.T) {
	f, m := filled(t, true)
	wal, err := os.ReadFile(f.wal())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range rounds(t, 60) {
		c := copyOf(t, f)
		cut := bytes.Clone(wal[:r.IntN(len(wal))])
		if len(cut) > 0 && r.IntN(2) == 0 {
			cut[r.IntN(len(cut))] ^= 0x40
		}
		if err := os.WriteFile(c.wal(), cut, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run("a tail that is gone is noticed by the high-water file", func(t *testing.T) {
			if _, err := sound(t, c); !errors.Is(err, ErrOldCopy) && !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut to %d of %d bytes: %v", len(cut), len(wal), err)
			}
		})
		t.Run("without that file what is left is whole", func(t *testing.T) {
			if err := os.Remove(c.highWater()); err != nil {
				t.Fatal(err)
			}
			stored, err := sound(t, c)
			if err != nil {
				t.Fatal(err)
			}
			for id := range stored {
				if m.asked[id] == nil {
					t.Fatal("there is what nobody asked for")
				}
			}
		})
	}
	t.Run("a tail that is whole is read", func(t *testing.T) {
		stored, err := sound(t, f)
		if err != nil || len(stored) != len(m.acked) {
			t.Fatal(len(stored), err)
		}
	})
}

func TestOldCopy(t *testing.T) {
	dir, m := files(t.TempDir()), newModel()
	s := openTest(t, string(dir), Options{})
	r := rand.New(rand.NewPCG(1, 1))
	if err := m.run(t.Context(), s, r, 0, 20); err != nil {
		t.Fatal(err)
	}
	s.Close()
	old := copyOf(t, dir)
	s = openTest(t, string(dir), Options{})
	if err := m.run(t.Context(), s, r, 0, 20); err != nil {
		t.Fatal(err)
	}
	s.Close()
	replace := func(with []byte) {
		t.Helper()
		if err := os.WriteFile(dir.log(), with, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now, _ := os.ReadFile(dir.log())
	before, _ := os.ReadFile(old.log())
	t.Run("ES-39 an older copy put back by hand is refused, naming both positions and the way out", func(t *testing.T) {
		replace(before)
		_, err := Open(string(dir), Options{})
		if !errors.Is(err, ErrOldCopy) {
			t.Fatal(err)
		}
		for _, word := range []string{dir.log(), dir.highWater(), "ends at position", "has acknowledged", "sluice restore"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q is missing in: %v", word, err)
			}
		}
	})
	t.Run("no new log is begun where one has been", func(t *testing.T) {
		if err := os.Remove(dir.log()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(string(dir), Options{}); !errors.Is(err, ErrOldCopy) {
			t.Fatal(err)
		}
		if there, _ := exists(dir.log()); there {
			t.Fatal("a new log was begun")
		}
	})
	t.Run("the right files are taken again", func(t *testing.T) {
		replace(now)
		s := openTest(t, string(dir), Options{})
		if err := m.check(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.Close()
	})
	t.Run("a high-water file that is damaged is refused, and may be deleted", func(t *testing.T) {
		if err := os.WriteFile(dir.highWater(), bytes.Repeat([]byte("x"), 2*slotBytes), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(string(dir), Options{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "delete") {
			t.Fatal(err)
		}
		if err := os.Remove(dir.highWater()); err != nil {
			t.Fatal(err)
		}
		openTest(t, string(dir), Options{})
	})
	t.Run("a mark survives a torn write of the next one", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "high-water")
		h, err := openHighWater(path)
		if err != nil {
			t.Fatal(err)
		}
		for p := range events.Position(3) {
			if err := h.write(1, []partition{{position: 10 + p}}); err != nil {
				t.Fatal(err)
			}
		}
		at := int64(h.mark.seq % 2 * slotBytes)
		if _, err := h.f.WriteAt([]byte{0xff, 0xff}, at+30); err != nil {
			t.Fatal(err)
		}
		h.close()
		if h, err = openHighWater(path); err != nil || h.mark.positions[0] != 11 {
			t.Fatal(h, err)
		}
		h.close()
	})
}

func TestNotADatabase(t *testing.T) {
	for what, content := range map[string][]byte{
		"a text":                      bytes.Repeat([]byte("this is not a database\n"), 1000),
		"a header and nothing behind": append([]byte("SQLite format 3\x00"), make([]byte, 10_000)...),
	} {
		t.Run(what+" is named damage", func(t *testing.T) {
			f := files(t.TempDir())
			if err := os.WriteFile(f.log(), content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(string(f), Options{})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), f.log()) {
				t.Fatal(err)
			}
		})
	}
}

func TestMigrations(t *testing.T) {
	ours, err := migrations(schema)
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T) driver.Conn {
		c, err := driver.Open(filepath.Join(t.TempDir(), "log.db"), writePragmas...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := migrate(c, ours, 4); err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := func(more ...string) []migration {
		from := fstest.MapFS{}
		for _, m := range ours {
			from[m.name] = &fstest.MapFile{Data: []byte(m.script)}
		}
		for i, script := range more {
			from[fmt.Sprintf("schema/9%03d_more.sql", i)] = &fstest.MapFile{Data: []byte(script)}
		}
		all, err := migrations(from)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	t.Run("a step runs once", func(t *testing.T) {
		c := open(t)
		for range 2 {
			if err := migrate(c, with("CREATE TABLE more (a)"), 4); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a newer schema is refused", func(t *testing.T) {
		c := open(t)
		if err := migrate(c, with("CREATE TABLE more (a)"), 4); err != nil {
			t.Fatal(err)
		}
		if err := migrate(c, ours, 4); !errors.Is(err, ErrNewerSchema) {
			t.Fatal(err)
		}
	})
	t.Run("a step that was changed after its release is refused", func(t *testing.T) {
		c := open(t)
		changed := with()
		changed[0].sum = strings.Repeat("0", 64)
		if err := migrate(c, changed, 4); !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
	t.Run("a step that fails leaves nothing behind", func(t *testing.T) {
		c := open(t)
		if err := migrate(c, with("CREATE TABLE half (a); CREATE TABLE half (a)"), 4); err == nil {
			t.Fatal("it did not fail")
		}
		if err := migrate(c, with("CREATE TABLE half (a)"), 4); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("partitions are added, never taken away", func(t *testing.T) {
		dir := t.TempDir()
		for _, step := range []struct{ asked, want int }{{0, 4}, {7, 7}, {2, 7}, {0, 7}} {
			s := openTest(t, dir, Options{Partitions: step.asked})
			if s.info.Partitions != step.want {
				t.Errorf("asked for %d: %d", step.asked, s.info.Partitions)
			}
			s.Close()
		}
	})
}

func TestOptionsReportEveryMistakeAtOnce(t *testing.T) {
	o := Options{Partitions: PartitionsMax + 1, Readers: -1, QueueMax: -1}
	if err := o.Validate(); err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Fatal(err)
	}
}
