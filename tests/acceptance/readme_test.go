package acceptance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// commands are the README's, in their order, from the first workflow on.
func commands(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, story, ok := strings.Cut(string(text), "## A first workflow")
	if !ok {
		t.Fatal("the README has no first workflow")
	}
	for _, block := range shell.FindAllStringSubmatch(story, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return lines
}

// TestReadme runs every command of the README as it is printed, save that the ports are free ones and that what
// `go run` would build is built once.
func TestReadme(t *testing.T) {
	p := start(t)
	said := map[string]string{}
	started := 0
	for _, line := range commands(t) {
		switch {
		case line == "go run . up" || line == "go run ./examples/onboarding/service":
			started++ // they run already
		case strings.HasPrefix(line, "curl -s http://127.0.0.1:7511"):
			said[line] = fetch(t, "http://"+p.service+strings.TrimPrefix(line, "curl -s http://127.0.0.1:7511"))
		default:
			rest, ok := strings.CutPrefix(line, "go run . ")
			if !ok {
				t.Fatalf("a command of another kind: %s", line)
			}
			rest = strings.ReplaceAll(rest, "examples/onboarding/workflow.yaml", p.workflow)
			c := exec.CommandContext(t.Context(), "sh", "-c", `"$SLUICE" `+rest)
			c.Dir, c.Env = root, append(os.Environ(), "SLUICE="+binary, "SLUICE_SERVER="+p.server)
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			if err := c.Run(); err != nil {
				t.Fatalf("%s: %v\n%s%s", line, err, &out, &errs)
			}
			said[line] = out.String()
		}
	}
	if started != 2 {
		t.Errorf("%d of the two programs are started by the README", started)
	}
	expect := func(command string, parts ...string) {
		t.Helper()
		for line, out := range said {
			if strings.Contains(line, command) {
				for _, part := range parts {
					if !strings.Contains(out, part) {
						t.Errorf("%s: %q is not in\n%s", line, part, out)
					}
				}
				return
			}
		}
		t.Errorf("the README has no %s", command)
	}
	expect("apply -f", "customer-onboarding", "1", "5")
	expect(`"ada@example.com"}' --wait`, "COMPLETED", "create", "verify", "score", "settle", "notify", `"risk":1`)
	expect("executions list", "customer-onboarding", "COMPLETED")
	expect("/count", `"keys":6`)
	expect("audit verify", "all of it holds")
	expect("replay --all", "executions is built anew", "counts is built anew")
	for line, out := range said {
		if strings.Contains(line, "-o json") {
			checkResult(t, out)
		}
	}
}

// checkResult holds the JSON of a run to what scripts rely on.
func checkResult(t *testing.T, out string) {
	t.Helper()
	var r struct {
		Status string
		Output struct {
			Customer string
			Risk     int
		}
		Tasks []struct{ Name, Status string }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if r.Status != "COMPLETED" || r.Output.Customer == "" || r.Output.Risk != 1 || len(r.Tasks) != 5 {
		t.Errorf("got %+v", r)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal([]byte(out), &members) // it was read once
	for _, m := range strings.Fields("id workflow version status input output error startedAt endedAt tasks") {
		if _, ok := members[m]; !ok {
			t.Errorf("no member %s", m)
		}
		delete(members, m)
	}
	if len(members) > 0 {
		t.Errorf("members that nobody was told of: %v", members)
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
