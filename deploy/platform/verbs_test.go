package platform

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/gateways/cli"
)

func verb(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var both bytes.Buffer
	a := &cli.App{In: strings.NewReader(""), Out: &both, Err: &both, Output: cli.Table, Server: cli.ServerDefault}
	code = a.Run(t.Context(), args, Verbs)
	return code, both.String()
}

func TestLoopbackOnly(t *testing.T) {
	for listen, fine := range map[string]bool{
		"127.0.0.1:7510": true, "127.0.0.9:0": true, "[::1]:7510": true, "localhost:7510": true,
		":7510": false, "0.0.0.0:7510": false, "[::]:7510": false, "10.0.0.1:7510": false, "example.com:7510": false,
		"127.0.0.1": false, "": false,
	} {
		if err := loopbackOnly(listen); (err == nil) != fine {
			t.Errorf("%q: %v", listen, err)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Run("a folder without a log is unhealthy, and stays as it is", func(t *testing.T) {
		dir := t.TempDir()
		code, out := verb(t, "doctor", "--data", dir)
		if code != 1 || !strings.Contains(out, "holds no log") {
			t.Errorf("code %d: %s", code, out)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("it made %v", left)
		}
	})
	dir := filepath.Join(t.TempDir(), "data")
	cfg := Default()
	cfg.Data = dir
	s, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a folder in use is not looked into", func(t *testing.T) {
		if code, out := verb(t, "doctor", "--data", dir); code != 1 || !strings.Contains(out, "audit verify") {
			t.Errorf("code %d: %s", code, out)
		}
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("a folder of a stopped server is healthy", func(t *testing.T) {
		if code, out := verb(t, "doctor", "--data", dir); code != 0 || !strings.Contains(out, "sluice up --data") {
			t.Errorf("code %d: %s", code, out)
		}
	})
	t.Run("a damaged log is said to be", func(t *testing.T) {
		log := filepath.Join(dir, "log.db")
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[len(b)/2:], bytes.Repeat([]byte{0xff}, 4096))
		if err := os.WriteFile(log, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := verb(t, "doctor", "--data", dir); code != 1 || !strings.Contains(out, "restore") {
			t.Errorf("code %d: %s", code, out)
		}
	})
}

func TestRestoreNamesWhatIsMissing(t *testing.T) {
	if code, _ := verb(t, "restore", "--from", "x"); code != cli.ExitUsage {
		t.Errorf("without --data: code %d", code)
	}
	if code, out := verb(t, "restore", "--from", t.TempDir(), "--data", t.TempDir()); code != 1 ||
		!strings.Contains(out, "this is no backup") {
		t.Errorf("code %d: %s", code, out)
	}
}
