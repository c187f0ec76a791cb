// Package transform runs tasks of type transform that are too large to be decided in place: the value that the mapping
// evaluated to is the output. It never changes a digit of it.
package transform

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// Handler returns the value of a task. It is safe for concurrent use.
type Handler struct{}

var _ workflow.Handler = Handler{}

// Run returns the text of "value" as it stands in the evaluated mapping.
func (Handler) Run(_ context.Context, w workflow.Work) ([]byte, *commands.Failure) {
	var with struct {
		Value jsontext.Value `json:"value"`
	}
	err := json.Unmarshal(w.With, &with, json.RejectUnknownMembers(true))
	if err != nil || with.Value == nil {
		return nil, &commands.Failure{
			Class: events.Permanent, Code: "invalid_with", Message: `a transform task takes {"value": …} and nothing else`,
		}
	}
	return with.Value, nil
}
