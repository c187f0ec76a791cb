package sqlite

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/events/storetest"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

var _ events.Store = (*Store)(nil)

func TestMain(m *testing.M) {
	if appendForever() {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	contract(t, driver.Default, 0)
}

// contract holds the store over d to the contract of events.Store.
func contract(t *testing.T, d driver.Driver, rounds int) {
	storetest.Run(t, storetest.Config{Rounds: rounds, Open: func(t *testing.T, o storetest.Options) storetest.Harness {
		dir := t.TempDir()
		opt := Options{
			Partitions: o.Partitions, Clock: o.Clock, BeforeCommit: o.BeforeCommit, AfterCommit: o.AfterCommit, Driver: d,
		}
		s := openTest(t, dir, opt)
		return storetest.Harness{
			Store: s,
			Reopen: func(t *testing.T) events.Store {
				s.Close()
				s = openTest(t, dir, opt)
				return s
			},
			Peer: func(t *testing.T) (events.Store, error) {
				other, err := Open(dir, opt)
				if err == nil {
					t.Cleanup(func() { other.Close() })
				}
				return other, err
			},
			Features: storetest.Features{OneProcess: true},
		}
	}})
}

func openTest(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
