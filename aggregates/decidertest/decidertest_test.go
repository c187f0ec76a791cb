package decidertest_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/decidertest"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// parked counts the commands that are parked in it; rule is what a test puts in the place of a decider.
type parked struct{ n byte }

type rule func(*parked, commands.ParkCommand, commands.Meta, aggregates.Refs) ([]events.ParkingEvent, error)

type decider = aggregates.Decider[*parked, commands.ParkCommand, events.ParkingEvent]

func deciding(r rule) decider {
	return decider{
		Category: "parked", Reducer: 1,
		Initial: func() *parked { return &parked{} },
		Evolve:  func(s *parked, _ events.ParkingEvent, _ events.Version) *parked { s.n++; return s },
		Encode:  func(s *parked, b []byte) []byte { return append(b, s.n) },
		Decode:  func(b []byte) (*parked, error) { return &parked{b[0]}, nil },
		Decide:  r,
	}
}

var fact = events.CommandParked{Stream: "a/b/c", Body: events.InlinePayload([]byte("1"))}

func once(s *parked, _ commands.ParkCommand, _ commands.Meta, _ aggregates.Refs) ([]events.ParkingEvent, error) {
	if s.n > 0 {
		return nil, nil
	}
	return []events.ParkingEvent{fact}, nil
}

func always(*parked, commands.ParkCommand, commands.Meta, aggregates.Refs) ([]events.ParkingEvent, error) {
	return []events.ParkingEvent{fact}, nil
}

// failure is what a test of a test comes to.
type failure struct {
	testing.TB
	said string
}

func (f *failure) Helper() {}
func (f *failure) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// said runs a test and returns what it failed with.
func said(test func(testing.TB)) string {
	f := &failure{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(f) {
				panic(p)
			}
		}()
		test(f)
	}()
	return f.said
}

type parking = commands.ParkCommand

func TestALawThatDoesNotHoldFailsTheTest(t *testing.T) {
	refused := func(*parked, parking, commands.Meta, aggregates.Refs) ([]events.ParkingEvent, error) {
		return nil, commands.Refuse(commands.Refused, "no", "not now")
	}
	for name, c := range map[string]struct {
		rule rule
		test func(decidertest.Spec[*parked, parking, events.ParkingEvent])
		want string
	}{
		"a command that yields its event twice": {
			always,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}).Then(fact) }, "not idempotent",
		},
		"other events": {
			once,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) {
				s.When(parking{}).Then(events.CommandParked{Stream: "a/b/d"})
			}, "want",
		},
		"events where none are wanted": {
			once,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}).ThenNothing() }, "want",
		},
		"a refusal where an event is wanted": {
			refused,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}).Then(fact) }, "not now",
		},
		"another refusal": {
			refused,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) {
				s.When(parking{}).ThenRefused("other")
			}, "other",
		},
		"no refusal": {
			once,
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}).ThenRefused("no") }, "no",
		},
		"a decider that moves the state": {
			func(s *parked, _ parking, _ commands.Meta, _ aggregates.Refs) ([]events.ParkingEvent, error) {
				s.n++
				return nil, nil
			},
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}) }, "changed the state",
		},
		"a reference that nobody gives": {
			func(*parked, parking, commands.Meta, aggregates.Refs) ([]events.ParkingEvent, error) {
				return nil, &aggregates.Missing{Refs: []aggregates.Ref{{Kind: aggregates.RefPayload, Version: 9}}}
			},
			func(s decidertest.Spec[*parked, parking, events.ParkingEvent]) { s.When(parking{}) }, "does not give",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := said(func(tb testing.TB) { c.test(decidertest.For(deciding(c.rule))(tb)) })
			if !strings.Contains(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

func TestAPersonMayMeanItTwice(t *testing.T) {
	decidertest.For(deciding(always))(t).When(parking{}).ThenByKey(fact).When(parking{}).ThenByKey(fact)
}

func TestReferences(t *testing.T) {
	readsLast := func(s *parked, _ parking, m commands.Meta, r aggregates.Refs) ([]events.ParkingEvent, error) {
		if s.n > 1 {
			return nil, nil
		}
		ref := aggregates.Ref{Kind: aggregates.RefPayload, Version: m.Version}
		v, ok := r.Get(ref)
		if !ok {
			return nil, &aggregates.Missing{Refs: []aggregates.Ref{ref}}
		}
		n := binary.AppendUvarint(nil, uint64(len(v.([]byte))))
		return []events.ParkingEvent{events.CommandParked{Body: events.InlinePayload(n)}}, nil
	}
	t.Run("what the past carries is there when it is asked for", func(t *testing.T) {
		o := decidertest.For(deciding(readsLast))(t, fact).When(parking{})
		o.Then(events.CommandParked{Body: events.InlinePayload([]byte{1})})
		if o.Rounds() != 1 {
			t.Errorf("%d rounds, want 1", o.Rounds())
		}
	})
	t.Run("also when it is too large for an event", func(t *testing.T) {
		large := events.CommandParked{Body: events.InlinePayload(make([]byte, events.InlineMax+1))}
		want := binary.AppendUvarint(nil, uint64(events.InlineMax+1))
		decidertest.For(deciding(readsLast))(t, large).When(parking{}).
			Then(events.CommandParked{Body: events.InlinePayload(want)})
	})
}
