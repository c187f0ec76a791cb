// Package chaos kills the real program while it works and looks at what is left.
// It never asks a process to end in order: that is what acceptance tests do.
package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// downstream counts how often each Idempotency-Key had an effect: once, however often it is called with it.
type downstream struct {
	mu      sync.Mutex
	effects map[string]bool
	calls   int
	reached chan struct{} // something after each first call of a key
}

func (d *downstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.calls++
	key := r.Header.Get("Idempotency-Key")
	fresh := !d.effects[key]
	d.effects[key] = true
	d.mu.Unlock()
	if fresh {
		select {
		case d.reached <- struct{}{}:
		default:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"key":%q}`, key)
}

func (d *downstream) seen() (effects, calls int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.effects), d.calls
}

// program is the built binary on one folder and one port.
type program struct {
	t    *testing.T
	bin  string
	dir  string
	addr string
	cmd  *exec.Cmd
	out  bytes.Buffer
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "sluice")
	cmd := exec.Command("go", "build", "-o", bin, "../..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it was only asked for its port
	return l.Addr().String()
}

func (p *program) start() {
	p.t.Helper()
	p.out.Reset()
	p.cmd = exec.Command(p.bin, "up", "--data", p.dir, "--listen", p.addr)
	p.cmd.Stderr, p.cmd.Stdout = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, 30*time.Second, func() bool {
		resp, err := http.Get("http://" + p.addr + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close() // it was read
		return resp.StatusCode == http.StatusOK
	}, func() string { return p.out.String() })
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// call makes a request and reads a JSON answer; it fails the test on a refusal.
func (p *program) call(method, path, kind string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+p.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return json.Unmarshal(text, out)
}

func eventually(t *testing.T, within time.Duration, is func() bool, why func() string) {
	t.Helper()
	end := time.After(within)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-end:
			t.Fatalf("it never came: %s", why())
		case <-again.C:
		}
	}
}

// rounds is how many kills a run makes; SLUICE_SOAK_ROUNDS is the long version's.
func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("SLUICE_SOAK_ROUNDS"))
	if err != nil {
		return 2
	}
	t.Logf("%d rounds", n)
	return n
}

func TestKillAmidExecutionsLosesNothingAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills the program")
	}
	const executions = 200
	bin := build(t)
	for round := range rounds(t) {
		d := &downstream{effects: map[string]bool{}, reached: make(chan struct{}, 1)}
		srv := httptest.NewServer(d)
		p := &program{t: t, bin: bin, dir: filepath.Join(t.TempDir(), strconv.Itoa(round)), addr: freeAddr(t)}
		p.start()
		definition := fmt.Sprintf(`workflow: three
tasks:
  a: {type: http, with: {method: POST, url: %q}}
  b: {type: http, needs: [a], with: {method: POST, url: %q, json: "${{ tasks.a.output.body }}"}}
  c: {type: http, needs: [b], with: {method: POST, url: %q}}
`, srv.URL, srv.URL, srv.URL)
		var published map[string]any
		if err := p.call("POST", "/v1/workflows/three/versions", "application/yaml", []byte(definition), &published); err != nil {
			t.Fatal(err)
		}
		acknowledged := p.submitUntilKilled(executions, 20+rand.IntN(2*executions), d)
		p.start()
		eventually(t, 60*time.Second, func() bool { return p.open() == 0 }, func() string {
			return fmt.Sprintf("%d executions are still open; %s", p.open(), p.out.String())
		})
		p.finished(acknowledged)
		effects, calls := d.seen()
		if done := p.count("COMPLETED"); effects != 3*done {
			t.Errorf("round %d: %d executions have completed with %d effects (%d calls)", round, done, effects, calls)
		}
		var report struct {
			Findings []any `json:"findings"`
		}
		if err := p.call("POST", "/v1/audit/verify", "application/json", nil, &report); err != nil || len(report.Findings) > 0 {
			t.Errorf("round %d: audit: %v %v", round, err, report.Findings)
		}
		p.kill()
		srv.Close()
	}
}

// submitUntilKilled submits from several callers and kills the program once the downstream has seen so many keys. It
// returns the ids that were acknowledged.
func (p *program) submitUntilKilled(n, after int, d *downstream) (ids []string) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range n / 8 {
				var x struct {
					ID string `json:"id"`
				}
				if err := p.call("POST", "/v1/workflows/three/executions", "application/json", []byte(`{"input":1}`), &x); err != nil {
					p.t.Log(err)
					return // killed
				}
				mu.Lock()
				ids = append(ids, x.ID)
				mu.Unlock()
			}
		})
	}
	for effects, _ := d.seen(); effects < after; effects, _ = d.seen() {
		<-d.reached
	}
	p.kill()
	callers.Wait()
	return ids
}

func (p *program) count(status string) (n int) {
	var counts struct {
		Items []struct {
			Status string
			Count  int
		}
	}
	if err := p.call("GET", "/v1/counts", "", nil, &counts); err != nil {
		p.t.Fatal(err)
	}
	for _, c := range counts.Items {
		if c.Status == status {
			n += c.Count
		}
	}
	return n
}

func (p *program) open() int { return p.count("PENDING") + p.count("RUNNING") }

func (p *program) finished(ids []string) {
	p.t.Helper()
	for _, id := range ids {
		var x struct{ Status string }
		if err := p.call("GET", "/v1/executions/"+id, "", nil, &x); err != nil || x.Status != "COMPLETED" {
			p.t.Errorf("%s was acknowledged and is %q: %v", id, x.Status, err)
		}
	}
}
