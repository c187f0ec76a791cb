package simulation

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func number(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSimulation runs SLUICE_SIM_SEEDS seeds from SLUICE_SIM_FROM on, and shows the first of each kind of fault.
func TestSimulation(t *testing.T) {
	from, n := number(t, "SLUICE_SIM_FROM", 1), number(t, "SLUICE_SIM_SEEDS", 300)
	particulars := regexp.MustCompile(`(?s)\n.*|[0-9a-f]{8}-[0-9a-f-]+|\d+`)
	kinds := map[string]bool{}
	var all Stats
	for seed := from; seed < from+n; seed++ {
		st, err := Run(seed, Options{})
		all.add(&st)
		if err == nil {
			continue
		}
		kind := particulars.ReplaceAllString(err.Error(), "#")
		if kind = kind[:min(len(kind), 120)]; !kinds[kind] {
			kinds[kind] = true
			t.Errorf("%.4000v\nrepeat it: SLUICE_SIM_FROM=%d SLUICE_SIM_SEEDS=1 go test -run TestSimulation ./tests/simulation",
				err, seed)
		}
	}
	t.Logf("%d seeds: %+v", n, all)
	if n >= 100 && (all.Completed == 0 || all.Fenced == 0 || all.Ghosts == 0 || all.Holes == 0 || all.Conflicts == 0) {
		t.Error("the runs were empty")
	}
}

// TestSameSeedSameTrace compares two runs of a seed by the hash over all of their commits.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if err := runTwice(seed, Options{}); err != nil {
			t.Fatal(err)
		}
	}
}
