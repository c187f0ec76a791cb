package workflow

import (
	"strconv"

	"github.com/sluice-platform/sluice/events"
)

// TaskExecutionID names one task of one execution: the same for all of its attempts, another in a replay. Downstreams
// get it as the Idempotency-Key.
func TaskExecutionID(s events.Stream, task int32) events.ID {
	return events.Derive("task", string(s), strconv.Itoa(int(task)))
}
