package acceptance

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// crashed is how many executions are started before the process is killed; the soak takes more.
const crashed = 40

const crashing = `workflow: crashing
defaults: {retry: {maxAttempts: 5, base: 10ms, cap: 100ms}}
tasks:
  first: {type: http, with: {method: POST, url: "http://SERVICE/customers", json: "${{ input }}"}}
  pause: {type: sleep, needs: [first], with: {for: 1s}}
  last:
    type: http
    needs: [pause]
    with: {method: POST, url: "http://SERVICE/mails", json: {to: "${{ input.email }}"}}
`

// TestKilledAmidExecutions holds that what was accepted before kill -9 ends after the next start, and that the
// downstream sees one key for each effect.
func TestKilledAmidExecutions(t *testing.T) {
	p := start(t)
	definition := file(t, "c.yaml", strings.ReplaceAll(crashing, "SERVICE", p.service))
	if code, _, errs := sluice(t, p.server, "apply", "-f", definition); code != 0 {
		t.Fatal(errs)
	}
	ids := make([]string, crashed)
	for i := range ids {
		code, out, errs := sluice(t, p.server, "run", "crashing", "--input", `{"email":"a@b.example"}`, "-o", "json")
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, errs)
		}
		ids[i] = r.ID
	}
	if err := p.platform.stop(t, os.Kill); err == nil {
		t.Fatal("a killed process ends in order")
	}
	_, at := launch(t, binary, "up", "--data", p.data, "--listen", "127.0.0.1:0")
	for _, id := range ids {
		if code, out, errs := sluice(t, "http://"+at, "executions", "watch", id); code != 0 {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
	var count struct{ Keys int }
	counted := fetch(t, "http://"+p.service+"/count")
	if err := json.Unmarshal([]byte(counted), &count); err != nil || count.Keys != 2*crashed {
		t.Errorf("%d keys, want %d; %v", count.Keys, 2*crashed, err)
	}
	if code, out, errs := sluice(t, "http://"+at, "audit", "verify"); code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
