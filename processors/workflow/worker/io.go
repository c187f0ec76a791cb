package worker

import (
	"errors"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// ErrDrained is the cause of a handler's context when its worker ends and cannot wait any longer.
var ErrDrained = errors.New("worker is ending")

// Input is what a job is told.
//
//sumtype:decl
type Input interface{ input() }

// The inputs.
type (
	// Received starts the job.
	Received struct{}
	// Began answers Begin.
	Began struct{ Err error }
	// Loaded answers Load. Err wraps handle.ErrMissingReference when trying again will not help.
	Loaded struct {
		Refs aggregates.Refs
		Err  error
	}
	// Answered says whether the start that was reported counts.
	Answered struct{ Counts bool }
	// Returned says that the handler returned, or panicked.
	Returned struct {
		Output   []byte
		Failure  *commands.Failure
		Panicked bool
	}
	// Abandoned answers Abandon: the handler has not returned, and nobody waits for it any longer.
	Abandoned struct{}
	// Stored answers Store.
	Stored struct {
		Name events.Hash
		Err  error
	}
	// Reported answers Result.
	Reported struct{ Err error }
	// Renewed answers Renew.
	Renewed struct{ Err error }
	// Beat says that the handler gave a sign of life.
	Beat struct{ At events.Time }
	// Tick says that Wake has come. One too early is harmless.
	Tick struct{}
	// Gone says that the attempt stopped counting.
	Gone struct{}
	// Drained says that the worker ends and waits for nothing more.
	Drained struct{}
)

func (Received) input()  {}
func (Began) input()     {}
func (Loaded) input()    {}
func (Answered) input()  {}
func (Returned) input()  {}
func (Abandoned) input() {}
func (Stored) input()    {}
func (Reported) input()  {}
func (Renewed) input()   {}
func (Beat) input()      {}
func (Tick) input()      {}
func (Gone) input()      {}
func (Drained) input()   {}

// Effects is what a driver does after a step, in this order. At most one of those that have an answer is there.
type Effects struct {
	Cancel  error                  // end the handler's context with this cause
	Start   *commands.StartTask    // report it; nobody waits for the append,
	Await   bool                   // unless this says so: then the report's Done is Answered
	Abandon bool                   // stop waiting for the handler, unless it has returned: Abandoned
	Begin   bool                   // Attempts.Begin: Began
	Load    []aggregates.Ref       // of the delivery's stream: Loaded
	Run     *workflow.Work         // run the handler: Returned
	Store   []byte                 // put into the tenant's blobs: Stored
	Result  *commands.RecordResult // report it: Reported
	Renew   bool                   // renew the delivery's lock: Renewed
	End     bool                   // Attempts.End
	Settle  *workflow.Settlement   // the job has ended
	Wake    events.Time            // Tick then, at the latest; 0: nothing is due
}
