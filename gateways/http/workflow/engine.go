// Package workflow serves definitions and executions over HTTP.
// It decides nothing: commands go to handle, answers come from heads, streams and views.
package workflow

import (
	"context"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/projections"
)

// Engine is what the handlers need of the platform.
type Engine interface {
	// Check returns everything that is wrong with a definition.
	Check(d *definition.Definition) []definition.Problem
	// Publish makes a checked definition a version; the same content is the same version.
	Publish(ctx context.Context, d *definition.Definition, m commands.Meta) (version int64, out handle.Outcome, err error)
	Do(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (handle.Outcome, error)
	// Start is Do for a stream whose id was just drawn.
	Start(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (handle.Outcome, error)
	Load(ctx context.Context, s events.Stream) (handle.Loaded, error)
	// Await waits for the end of an execution, of ctx, or of the server: then its error is context.Canceled.
	Await(ctx context.Context, s events.Stream) (handle.Loaded, error)
	// Stopping is closed when the server stops: whoever follows or waits gets what there is.
	Stopping() <-chan struct{}
	// Watch tells of each growth of a stream; ok is false when too many watch.
	Watch(s events.Stream) (grown <-chan struct{}, end func(), ok bool)
	// Plan returns a definition's plan.
	Plan(ctx context.Context, tenant string, hash events.Hash) (*dag.Plan, error)
	// Content returns a definition's canonical text.
	Content(ctx context.Context, tenant string, hash events.Hash) ([]byte, error)
	// Text returns a payload's JSON text.
	Text(ctx context.Context, tenant string, p events.Payload) ([]byte, error)
	// Recorded reads a stream's events after a version, at most some max commits of them.
	Recorded(ctx context.Context, s events.Stream, after events.Version, max int) ([]events.Recorded, error)
	// Executions reads a page of the executions view; Counts the counts.
	Executions(ctx context.Context, q projections.Query) (projections.Page, error)
	Counts(ctx context.Context, q projections.Query) (projections.Page, error)
	// Seen waits until the views have what a Sluice-Token names, at most two seconds.
	Seen(ctx context.Context, token string) error
	// Token names what an outcome has written, for Seen.
	Token(out handle.Outcome) string
	Incarnation() events.Incarnation
	NewID() events.ID
}

// tenant is everybody's until identities come.
const tenant = "default"
