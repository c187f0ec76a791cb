// Package parking keeps commands that a fault of ours kept from being decided.
// It never runs them again by itself: an operator does, once the fault is mended.
package parking

import (
	"errors"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Category is the first part of a parked command's stream name: parked/tenant/command id.
const Category = "parked"

// Decider is the parked command's aggregate.
var Decider = aggregates.Decider[*State, commands.ParkingCommand, events.ParkingEvent]{
	Category: Category,
	Reducer:  1,
	Initial:  func() *State { return &State{} },
	Evolve: func(s *State, _ events.ParkingEvent, _ events.Version) *State {
		s.Parked = true
		return s
	},
	Open:   func(*State) bool { return false },
	Due:    func(*State) events.Time { return 0 },
	Encode: func(s *State, b []byte) []byte { return append(b, map[bool]byte{true: 1}[s.Parked]) },
	Decode: decode,
	Decide: decide,
}

// State says whether the command is parked.
type State struct{ Parked bool }

func decide(s *State, c commands.ParkingCommand, _ commands.Meta, _ aggregates.Refs) ([]events.ParkingEvent, error) {
	park, ok := c.(commands.ParkCommand)
	if !ok || s.Parked {
		return nil, nil
	}
	return []events.ParkingEvent{events.CommandParked{
		Stream: string(park.Stream), Command: park.Command, Body: park.Body, Fault: park.Fault,
	}}, nil
}

func decode(b []byte) (*State, error) {
	if len(b) != 1 {
		return nil, errors.New("a parked command's snapshot is one byte")
	}
	return &State{Parked: b[0] == 1}, nil
}
