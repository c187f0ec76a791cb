package sqlite_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/viewstest"
)

// opened remembers where a store of views lies.
type opened struct {
	*sqlite.Views
	path string
}

func openViews(t *testing.T, path string) *opened {
	t.Helper()
	v, err := sqlite.OpenViews(driver.Default, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return &opened{v, path}
}

func newViews(t *testing.T) *opened {
	t.Helper()
	return openViews(t, filepath.Join(t.TempDir(), "views.db"))
}

func TestViews(t *testing.T) {
	viewstest.Run(t, viewstest.Harness{
		New: func(t *testing.T) projections.Views { return newViews(t) },
		Reopen: func(t *testing.T, v projections.Views) projections.Views {
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			return openViews(t, v.(*opened).path)
		},
	})
}

// filled is a store with a live view of n rows.
func filled(t *testing.T, v projections.Views, n int) projections.View {
	t.Helper()
	w, err := v.Begin(t.Context(), viewstest.Things(1))
	var rows []projections.Change
	for i := range int64(n) {
		rows = append(rows, projections.Change{Table: "things", Row: projections.Row{
			"acme", fmt.Sprintf("t%06d", i), "red", i, i%2 == 0, i, []byte(strings.Repeat("x", 100)),
		}})
	}
	for _, step := range []func() error{
		func() error { return err },
		func() error { return v.Load(t.Context(), w, rows) },
		func() error { return v.Loaded(t.Context(), w, nil, nil) },
		func() error { return v.Swap(t.Context(), w) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func isNew(t *testing.T, v projections.Views) {
	t.Helper()
	all, err := v.Builds(t.Context(), "things")
	if err != nil || len(all) != 0 {
		t.Fatalf("not a new file: %v %v", all, err)
	}
	filled(t, v, 3)
}

func TestAViewsFileThatCannotBeUsedIsMadeAnew(t *testing.T) {
	spoil := map[string]func(t *testing.T, path string){
		"no database at all": func(t *testing.T, path string) { overwrite(t, path, 0, 4096) },
		"an empty file":      func(t *testing.T, path string) { truncate(t, path, 0) },
		"another layout": func(t *testing.T, path string) {
			c, err := driver.Open(path)
			if err == nil {
				err = c.Exec("PRAGMA user_version=99")
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		},
		"the file is gone and its journal is not": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+"-wal", []byte("left over"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			v := newViews(t)
			filled(t, v, 100)
			_ = v.Close()
			f(t, v.path)
			isNew(t, openViews(t, v.path))
		})
	}
}

func TestDamageThatIsMetLaterThrowsTheFileAwayAndNoNumberIsUsedAgain(t *testing.T) {
	v := newViews(t)
	old := filled(t, v, 5_000)
	_ = v.Close()
	info, err := os.Stat(v.path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, v.path, 20*4096, int(info.Size())-20*4096)
	v = openViews(t, v.path)
	again, err := v.Begin(t.Context(), viewstest.Things(1))
	if err != nil {
		t.Fatal(err)
	}
	var keys []projections.Key
	for i := range 5_000 {
		keys = append(keys, projections.Key{Table: "things", Key: projections.Row{"acme", fmt.Sprintf("t%06d", i)}})
	}
	if _, err = v.Rows(t.Context(), old, keys); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("the damage was not met: %v", err)
	}
	isNew(t, v)
	all, err := v.Builds(context.WithoutCancel(t.Context()), "things")
	if err != nil || all[0].Number <= again.Build {
		t.Fatalf("number %d was used before: %v", all[0].Number, err)
	}
	if err := v.Apply(t.Context(), old, &projections.Batch{To: events.Checkpoint{Position: 1}}); err == nil {
		t.Fatal("a view of the file that was thrown away takes a batch")
	}
}

func overwrite(t *testing.T, path string, from, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("\xa5", n)), int64(from))
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

func truncate(t *testing.T, path string, n int64) {
	t.Helper()
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
}

func TestClosedViewsRefuse(t *testing.T) {
	v := newViews(t)
	w := filled(t, v, 1)
	for range 2 {
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Checkpoints(t.Context(), w); err == nil {
		t.Fatal("read")
	}
	if err := v.Swap(t.Context(), w); err == nil {
		t.Fatal("wrote")
	}
}
