// Package aggregates decides: given what has happened, what may happen next.
// It never reads a clock, draws at random, or touches the world; all that a decision uses is in its arguments.
package aggregates

import (
	"fmt"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Decider is a whole aggregate. S is a pointer: Evolve may change it in place, so a state has one holder at a time.
type Decider[S any, C commands.Command, E events.Event] struct {
	Category string // the first part of its streams' names
	Reducer  int    // version of the fold and of Encode; a snapshot of another version is ignored

	Initial func() S                                     // the state of an empty stream
	Evolve  func(S, E, events.Version) S                 // total: facts cannot be refused. The version is the event's own
	Needs   func(S, C, commands.Meta) []Ref              // references that Decide will surely read; nil: none known yet
	Open    func(S) bool                                 // an owner has work with it
	Due     func(S) events.Time                          // its next deadline, 0 for none
	Encode  func(S, []byte) []byte                       // appends the snapshot
	Decode  func([]byte) (S, error)                      // reads a snapshot of this Reducer
	Decide  func(S, C, commands.Meta, Refs) ([]E, error) // none and nil: it is already so. *Missing: load and decide again
}

// Aggregate is a Decider for code that serves all of them. What State holds is the decider's S.
type Aggregate interface {
	Category() string
	Reducer() int
	Initial() State
	Evolve(State, events.Event, events.Version) State
	Needs(State, commands.Command, commands.Meta) []Ref
	Decide(State, commands.Command, commands.Meta, Refs) ([]events.Event, error)
	Open(State) bool
	Due(State) events.Time
	Encode(State, []byte) []byte
	Decode([]byte) (State, error)
}

// State is one aggregate's state.
type State any

// Untyped wraps d. A command or event of another aggregate is a fault of the caller's, reported by Decide.
func (d Decider[S, C, E]) Untyped() Aggregate { return untyped[S, C, E]{d} }

type untyped[S any, C commands.Command, E events.Event] struct{ d Decider[S, C, E] }

func (u untyped[S, C, E]) Category() string                { return u.d.Category }
func (u untyped[S, C, E]) Reducer() int                    { return u.d.Reducer }
func (u untyped[S, C, E]) Initial() State                  { return u.d.Initial() }
func (u untyped[S, C, E]) Open(s State) bool               { return u.d.Open(s.(S)) }
func (u untyped[S, C, E]) Due(s State) events.Time         { return u.d.Due(s.(S)) }
func (u untyped[S, C, E]) Encode(s State, b []byte) []byte { return u.d.Encode(s.(S), b) }

func (u untyped[S, C, E]) Decode(b []byte) (State, error) {
	s, err := u.d.Decode(b)
	return s, err
}

func (u untyped[S, C, E]) Evolve(s State, e events.Event, v events.Version) State {
	if mine, ok := e.(E); ok {
		return u.d.Evolve(s.(S), mine, v)
	}
	return s
}

func (u untyped[S, C, E]) Needs(s State, c commands.Command, m commands.Meta) []Ref {
	if mine, ok := c.(C); ok && u.d.Needs != nil {
		return u.d.Needs(s.(S), mine, m)
	}
	return nil
}

func (u untyped[S, C, E]) Decide(s State, c commands.Command, m commands.Meta, r Refs) ([]events.Event, error) {
	mine, ok := c.(C)
	if !ok {
		return nil, fmt.Errorf("%s has no rule for %T", u.d.Category, c)
	}
	decided, err := u.d.Decide(s.(S), mine, m, r)
	if err != nil || len(decided) == 0 {
		return nil, err
	}
	es := make([]events.Event, len(decided))
	for i, e := range decided {
		es[i] = e
	}
	return es, nil
}
