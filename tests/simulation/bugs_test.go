package simulation

import (
	"fmt"
	"testing"
)

// plantedSeeds is within how many seeds each planted bug must be caught.
const plantedSeeds = 60

func TestPlantedBugsAreCaught(t *testing.T) {
	for bug := NoBug + 1; int(bug) <= len(Bugs); bug++ {
		t.Run(Bugs[bug], func(t *testing.T) {
			caught, first := 0, error(nil)
			for seed := uint64(1); seed <= plantedSeeds; seed++ {
				if err := runTwice(seed, Options{Bug: bug}); err != nil {
					caught++
					if first == nil {
						first = err
					}
				}
			}
			if caught == 0 {
				t.Fatalf("no invariant of %d seeds notices it", plantedSeeds)
			}
			t.Logf("caught in %d of %d seeds; first: %.300v", caught, plantedSeeds, first)
		})
	}
}

// runTwice holds a run to its invariants, and a second one of the same seed to the same trace.
func runTwice(seed uint64, opt Options) error {
	a, err := Run(seed, opt)
	if err != nil {
		return err
	}
	if opt.Bug != NoBug && opt.Bug != WrongDice {
		return nil
	}
	b, err := Run(seed, opt)
	if err != nil {
		return err
	}
	if a.Trace != b.Trace {
		return fmt.Errorf("seed %d: its trace is %x, and %x the second time", seed, a.Trace, b.Trace)
	}
	return nil
}
