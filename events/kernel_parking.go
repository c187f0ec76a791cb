package events

// ParkingEvent is every fact about one parked command; its stream is parked/tenant/command id.
//
//sumtype:decl
type ParkingEvent interface {
	Event
	parking()
}

// CommandParked keeps a command that our own fault kept from being decided, with its input, for an operator.
type CommandParked struct {
	Stream  string  `avro:"stream"`  // that it was for
	Command string  `avro:"command"` // its Go type's name
	Body    Payload `avro:"body"`    // the command as JSON
	Fault   string  `avro:"fault"`   // what went wrong, with the stack
}

// EventType is the wire name.
func (CommandParked) EventType() Type         { return "kernel.command_parked" }
func (CommandParked) parking()                {}
func (e CommandParked) Carried() Payload      { return e.Body }
func (e CommandParked) Carry(p Payload) Event { e.Body = p; return e }

func init() { register[CommandParked](1) }
