// Package acceptance runs the built program as its users do: by its command line, over its API, with signals.
// It never looks inside.
package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the repository, seen from here.
const root = "../.."

// startMax bounds the start of a program; it takes well under a second.
const startMax = 30 * time.Second

var binary, serviceBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, serviceBinary = filepath.Join(dir, "sluice"), filepath.Join(dir, "service")
	for out, pkg := range map[string]string{binary: ".", serviceBinary: "./examples/onboarding/service"} {
		c := exec.CommandContext(context.Background(), "go", "build", "-o", out, pkg)
		c.Dir = root
		if text, err := c.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, text)
			return 1
		}
	}
	return m.Run()
}

// program is a long-running one.
type program struct {
	cmd    *exec.Cmd
	errs   bytes.Buffer
	exited chan error
}

// launch starts a program and returns the address that it prints when it is ready. It is stopped with the test.
func launch(t *testing.T, name string, args ...string) (*program, string) {
	t.Helper()
	p := &program{cmd: exec.Command(name, args...), exited: make(chan error, 1)}
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at := regexp.MustCompile(`is on http://([0-9.:]+)`).FindStringSubmatch(lines.Text()); at != nil {
				address <- at[1]
			}
		}
		_, _ = io.Copy(io.Discard, out)
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.stop(t, os.Kill) })
	select {
	case at := <-address:
		return p, at
	case err := <-p.exited:
		t.Fatalf("%s ended: %v\n%s", name, err, &p.errs)
	case <-time.After(startMax):
		t.Fatalf("%s says nothing", name)
	}
	return nil, ""
}

// stop signals the program and waits for its end. Repeating it is safe.
func (p *program) stop(t *testing.T, s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	err := <-p.exited
	p.exited <- err
	return err
}

// pair is the platform and the example's service, on free ports.
type pair struct {
	platform *program
	data     string
	server   string // the platform's address, as --server takes it
	service  string // host:port
	workflow string // the example's definition, with the service's port in it
}

func start(t *testing.T) pair {
	t.Helper()
	p := pair{data: filepath.Join(t.TempDir(), "data")}
	_, p.service = launch(t, serviceBinary, "--listen", "127.0.0.1:0")
	var at string
	p.platform, at = launch(t, binary, "up", "--data", p.data, "--listen", "127.0.0.1:0")
	p.server = "http://" + at
	text, err := os.ReadFile(filepath.Join(root, "examples/onboarding/workflow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.workflow = file(t, "workflow.yaml", strings.ReplaceAll(string(text), "127.0.0.1:7511", p.service))
	return p
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// sluice runs a verb to its end.
func sluice(t *testing.T, server string, args ...string) (code int, out, errs string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), binary, args...)
	c.Env = append(os.Environ(), "SLUICE_SERVER="+server)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), o.String(), e.String()
}
