package acceptance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const failing = `workflow: failing
tasks:
  a: {type: test, with: {fail: {times: 9, class: permanent, code: card_declined, message: "no money"}}}
`

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q is not in:\n%s", p, got)
		}
	}
}

func TestExitCodes(t *testing.T) {
	p := start(t)
	t.Run("a failed execution is 1, and says which task and why", func(t *testing.T) {
		code, out, errs := sluice(t, p.server, "run", "-f", file(t, "f.yaml", failing), "--wait")
		if code != 1 {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
		wants(t, out, "FAILED", "card_declined")
	})
	t.Run("a definition with mistakes is 1, and each is said with its line", func(t *testing.T) {
		bad := "workflow: bad\ntasks:\n  a: {type: nosuch}\n  b: {type: test, needs: [c]}\n"
		code, _, errs := sluice(t, p.server, "apply", "-f", file(t, "b.yaml", bad))
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		wants(t, errs, "line 3", "line 4", "next:")
	})
	t.Run("an execution that is not there is 1", func(t *testing.T) {
		code, _, errs := sluice(t, p.server, "executions", "show", "nosuch")
		if code != 1 {
			t.Errorf("exit code %d: %s", code, errs)
		}
		wants(t, errs, "next:")
	})
	t.Run("a wrong command line is 2", func(t *testing.T) {
		if code, _, _ := sluice(t, p.server, "run"); code != 2 {
			t.Errorf("exit code %d", code)
		}
		code, _, errs := sluice(t, p.server, "up", "--listen", "0.0.0.0:0", "--data", t.TempDir())
		if code != 2 {
			t.Errorf("a public address: exit code %d", code)
		}
		wants(t, errs, "loopback")
	})
	t.Run("nobody there is 3", func(t *testing.T) {
		if code, _, _ := sluice(t, "http://127.0.0.1:1", "executions", "list"); code != 3 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("a second server on the folder hears which process has it", func(t *testing.T) {
		code, _, errs := sluice(t, p.server, "up", "--listen", "127.0.0.1:0", "--data", p.data)
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		wants(t, errs, fmt.Sprintf("process %d ", p.platform.cmd.Process.Pid))
	})
}

func TestTheSameKeyRunsOnce(t *testing.T) {
	p := start(t)
	if code, _, errs := sluice(t, p.server, "apply", "-f", p.workflow); code != 0 {
		t.Fatal(errs)
	}
	var ids [2]string
	for i := range ids {
		code, out, errs := sluice(t, p.server, "run", "customer-onboarding", "--input", `{"email":"a@b.example"}`,
			"--key", "k1", "--wait", "-o", "json")
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
		}
		ids[i] = r.ID
	}
	if ids[0] != ids[1] {
		t.Errorf("two executions: %q", ids)
	}
	wants(t, fetch(t, "http://"+p.service+"/count"), `"keys":3`)
	t.Run("its history, its watch and its list agree", func(t *testing.T) {
		_, out, errs := sluice(t, p.server, "executions", "events", ids[0])
		wants(t, out+errs, "EVENT")
		code, out, errs := sluice(t, p.server, "executions", "watch", ids[0])
		if code != 0 {
			t.Errorf("watch: exit code %d: %s", code, errs)
		}
		wants(t, out, "COMPLETED")
	})
}

func TestStopBackUpAndRestore(t *testing.T) {
	p := start(t)
	if code, _, errs := sluice(t, p.server, "run", "-f", file(t, "f.yaml", failing), "--wait"); code != 1 {
		t.Fatal(errs)
	}
	code, out, errs := sluice(t, p.server, "backup", "one", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if err := p.platform.stop(t, syscall.SIGTERM); err != nil {
		t.Fatalf("a stop in order is no failure: %v\n%s", err, &p.platform.errs)
	}
	if code, out, errs := sluice(t, "", "doctor", "--data", p.data); code != 0 {
		t.Errorf("doctor: exit code %d: %s%s", code, out, errs)
	}
	backups, err := filepath.Glob(filepath.Join(p.data, "backups", "one"))
	if err != nil || len(backups) != 1 {
		t.Fatalf("no backup in %s: %s", p.data, out)
	}
	to := filepath.Join(t.TempDir(), "restored")
	if code, out, errs = sluice(t, "", "restore", "--from", backups[0], "--data", to); code != 0 {
		t.Fatalf("restore: exit code %d: %s%s", code, out, errs)
	}
	if code, _, errs = sluice(t, "", "restore", "--from", backups[0], "--data", to); code != 1 {
		t.Errorf("a second restore replaces what is there: exit code %d", code)
	}
	wants(t, errs, "--replace")
	code, out, errs = sluice(t, "", "restore", "--from", backups[0], "--data", to, "--replace")
	if code != 0 {
		t.Errorf("restore in place of what is there: exit code %d: %s", code, errs)
	}
	wants(t, out, "the log that was there is in")
	_, at := launch(t, binary, "up", "--data", to, "--listen", "127.0.0.1:0")
	code, out, errs = sluice(t, "http://"+at, "executions", "list", "--status", "failed")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	wants(t, out, "failing", "card_declined")
}
