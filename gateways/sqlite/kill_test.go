package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/events"
)

// childDir, when set, makes the test binary a process that appends in that folder until it is killed.
const childDir = "SLUICE_TEST_APPEND_IN"

// told is a line that the child writes: what it is about to append, then that it was acknowledged.
type told struct {
	Asked *events.Append
	Acked *events.Verdict
	ID    events.ID
}

// appendForever is the child's work; false in any other process.
func appendForever() bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(line told) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(line) // the parent is gone then, and so are we soon
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { appendAndTell(s, i, tell) })
	}
	wg.Wait()
	return true
}

func appendAndTell(s *Store, caller int, tell func(told)) {
	ctx := context.Background() // a process of its own, which ends by being killed
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(caller)))
	for i := 0; ; i++ {
		name := events.Stream(fmt.Sprintf("order/acme/%d-%d", caller, r.IntN(4)))
		h, err := s.Head(ctx, name)
		if err != nil && !errors.Is(err, events.ErrNoStream) {
			return
		}
		m := newModel()
		a := m.append(r, name, events.PartitionOf(name, PartitionsDefault), h.Version, h.Hash)
		a.Command = events.Derive("child", fmt.Sprint(os.Getpid(), caller, i))
		tell(told{ID: a.Command, Asked: a})
		out := make([]events.Verdict, 1)
		if s.Append(ctx, a.Partition, []*events.Append{a}, out) != nil || out[0].Kind != events.Appended {
			return
		}
		tell(told{ID: a.Command, Acked: &out[0]})
	}
}

func startChild(t *testing.T, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childDir+"="+dir)
	c.Stderr = os.Stderr
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, pipe
}

func TestKill(t *testing.T) {
	dir, m := t.TempDir(), newModel()
	r := rand.New(rand.NewPCG(1, 1))
	inFlight, acked := 0, 0
	for range rounds(t, 5) {
		c, pipe := startChild(t, dir)
		end := 20 + r.IntN(400) // lines, then the kill
		lines := bufio.NewReader(pipe)
		open := 0
		for n := 0; ; n++ {
			b, err := lines.ReadBytes('\n')
			if err != nil {
				break // a last line may be cut
			}
			var line told
			if err := json.Unmarshal(b, &line); err != nil {
				t.Fatal(err)
			}
			if line.Asked != nil {
				m.asked[line.ID] = line.Asked
				open++
			} else {
				m.acked[line.ID] = *line.Acked
				open--
			}
			if n == end {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait() // it was killed
		if open == 0 {
			t.Error("no append was in flight at the kill")
		}
		inFlight += open
		s := openTest(t, dir, Options{})
		if err := m.check(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if len(m.acked) == acked {
			t.Fatal("nothing was acknowledged")
		}
		acked = len(m.acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d appends acknowledged, %d in flight at a kill", acked, inFlight)
}

func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	c, pipe := startChild(t, dir)
	defer c.Wait() // it is killed
	defer c.Process.Kill()
	if _, err := bufio.NewReader(pipe).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", c.Process.Pid)) {
		t.Fatalf("the folder of process %d: %v", c.Process.Pid, err)
	}
	t.Run("a restore into the folder is refused too", func(t *testing.T) {
		other := openTest(t, t.TempDir(), Options{})
		backup := filepath.Join(t.TempDir(), "backup")
		if _, err := other.Backup(t.Context(), BackupOptions{To: backup}); err != nil {
			t.Fatal(err)
		}
		_, err := Restore(t.Context(), RestoreOptions{From: backup, To: dir, Replace: true})
		if !errors.Is(err, ErrInUse) {
			t.Fatal(err)
		}
	})
}
