package aggregates

import (
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// Ref names an immutable value that a decision uses: content by hash, or the payload of one event of the deciding
// stream by version.
type Ref struct {
	Kind    RefKind
	Hash    events.Hash    // RefPlan, RefBlob
	Version events.Version // RefPayload
}

// RefKind says what a Ref names, and so what Refs.Get returns for it.
type RefKind uint8

// The kinds of Ref.
const (
	RefPlan    RefKind = iota + 1 // *dag.Plan: a compiled definition
	RefPayload                    // []byte: the JSON text that event Version carries (input, output, with)
	RefBlob                       // []byte: the JSON text of a blob that a command names and no event carries yet
)

// RefRoundsMax bounds how often a decision may ask for more references.
const RefRoundsMax = 64

// Refs answers from what was loaded.
type Refs interface {
	// Get returns the value; ok is false when it is not loaded, and Decide then returns a *Missing that names it.
	Get(Ref) (value any, ok bool)
}

// Missing says which references Decide lacks. Nothing was decided; load them and decide again.
type Missing struct{ Refs []Ref }

func (m *Missing) Error() string {
	return fmt.Sprintf("decision needs %d more references", len(m.Refs))
}

// Ahead says that a command knows more than the state: the state is stale. Load it and decide again; a state fresh
// from the store that is still behind means that the command is of no log that we know, and it is dropped.
type Ahead struct{ Detail string }

func (a *Ahead) Error() string { return "the state is behind the command: " + a.Detail }
