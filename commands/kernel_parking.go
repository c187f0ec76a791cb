package commands

import "github.com/sluice-platform/sluice/events"

// ParkingCommand is every request about one parked command.
//
//sumtype:decl
type ParkingCommand interface {
	Command
	parking()
}

// ParkCommand keeps a command that could not be decided. Its stream's id is the command's own, so once is enough.
type ParkCommand struct {
	Stream  events.Stream
	Command string
	Body    events.Payload
	Fault   string
}

// Validate accepts every value: handle makes it.
func (ParkCommand) Validate() error { return nil }
func (ParkCommand) parking()        {}
