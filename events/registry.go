package events

import (
	"errors"
	"fmt"
	"slices"
)

// Type is an event's wire name, such as "workflow.task_completed". It never changes and is never used again.
type Type string

// Event is one fact. Implementations are structs without pointers; what they hold is never changed.
type Event interface{ EventType() Type }

// ErrUnknownEvent says that this build does not know a type, or not that version of its schema.
// The stream that holds it can be read and cannot be written (DESIGN §4, "Unknown events").
var ErrUnknownEvent = errors.New("event is of a newer build")

// Registration is what a codec needs to know of a type.
type Registration struct {
	Type   Type
	Schema int // current version; versions 1..Schema can be read
	// Read makes the event from what fill puts into a pointer to its struct.
	Read func(fill func(into any) error) (Event, error)
	// Upcast holds, by the version it starts from, what makes the next version's fields from the last one's.
	Upcast map[int]func(fields map[string]any)
}

var registry = map[Type]*Registration{}

// register is called by the file that declares E.
func register[E Event](schema int) {
	var zero E
	t := zero.EventType()
	if registry[t] != nil {
		panic(fmt.Sprintf("event type %s is registered twice", t))
	}
	registry[t] = &Registration{Type: t, Schema: schema, Read: func(fill func(any) error) (Event, error) {
		var e E
		err := fill(&e)
		return e, err
	}}
}

// Registered lists every type of this build by name.
func Registered() []Registration {
	all := make([]Registration, 0, len(registry))
	for _, r := range registry { //nolint:maporder // sorted below
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Registration) int {
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	return all
}

// SchemaOf is the version that this build writes; 0 for a type that it does not know.
func SchemaOf(t Type) int {
	if r := registry[t]; r != nil {
		return r.Schema
	}
	return 0
}
