package platform

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/aggregates/workflow/execution"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
)

// Publish makes a checked definition a version and returns its number. The same content is the same version.
func (s *System) Publish(ctx context.Context, d *definition.Definition, m commands.Meta) (version int64,
	out handle.Outcome, err error,
) {
	plan, err := dag.New(d, s.Types.types)
	if err != nil {
		return 0, out, err
	}
	content := d.Canonical()
	if _, err := s.Blobs.Put(ctx, m.Tenant, content); err != nil {
		return 0, out, fmt.Errorf("keep the definition: %w", err)
	}
	stream := events.StreamOf(definition.Category, m.Tenant, d.Workflow)
	c := commands.PublishVersion{Hash: plan.Hash, Size: int64(len(content)), Tasks: int32(len(plan.Tasks))}
	if out, err = s.Handler.Do(ctx, stream, c, m); err != nil {
		return 0, out, err
	}
	l, err := s.Handler.Load(ctx, stream)
	if err != nil {
		return 0, out, err
	}
	return l.State.(*definition.State).Find(plan.Hash), out, nil
}

// Await waits until an execution has ended, or ctx does, and returns the state that it saw last.
func (s *System) Await(ctx context.Context, stream events.Stream) (handle.Loaded, error) {
	grown, end, ok := s.watches.watch(stream, true)
	if !ok {
		return handle.Loaded{}, commands.Refuse(commands.TooMany, "too_many_watchers",
			"%d requests wait for executions already; ask again without wait", watchersMax)
	}
	defer end()
	for {
		l, err := s.Handler.Load(ctx, stream)
		if err != nil {
			return l, err
		}
		if x := l.State.(*execution.State); x.Status() != execution.None && !x.Open() {
			return l, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return l, errors.Join(errStillOpen, context.Cause(ctx))
		}
	}
}

// errStillOpen says that an execution had not ended when the wait did.
var errStillOpen = errors.New("execution is still open")
