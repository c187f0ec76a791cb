package handle

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Park keeps a command that panicked in a stream of its own, named after the command: once is enough, and repeating
// it is free. A Handler whose aggregates include parking's is the Parking of everybody else.
func (h *Handler) Park(ctx context.Context, p Parked) error {
	body, err := json.Marshal(p.Command)
	if err != nil {
		return fmt.Errorf("write %T as JSON: %w", p.Command, err)
	}
	id := p.Meta.Command
	if id == (commands.ID{}) { // a machine's: what it is for and what it says name it
		id = events.Derive("parked", string(p.Stream), fmt.Sprintf("%T", p.Command), string(body))
	}
	s := events.StreamOf("parked", p.Stream.Tenant(), id.String())
	_, err = h.Do(ctx, s, commands.ParkCommand{
		Stream: p.Stream, Command: fmt.Sprintf("%T", p.Command), Body: events.InlinePayload(body), Fault: p.Fault,
	}, commands.Meta{
		Command: id, Tenant: p.Stream.Tenant(), Actor: p.Meta.Actor, Cause: p.Meta.Cause, Correlation: p.Meta.Correlation,
	})
	return err
}
