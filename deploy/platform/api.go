package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/workflow/dag"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/keys"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/projections"
	projworkflow "github.com/sluice-platform/sluice/projections/workflow"
)

// engine is the system as the HTTP handlers see it.
type engine struct {
	s        *System
	stopping <-chan struct{} // nil: never
}

func (e engine) Stopping() <-chan struct{} { return e.stopping }

func (e engine) Check(d *definition.Definition) []definition.Problem { return d.Check(e.s.Types.types) }

func (e engine) Publish(ctx context.Context, d *definition.Definition, m commands.Meta) (int64, handle.Outcome, error) {
	return e.s.Publish(ctx, d, m)
}

func (e engine) Do(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (handle.Outcome, error) {
	return e.s.Handler.Do(ctx, s, c, m)
}

func (e engine) Start(ctx context.Context, s events.Stream, c commands.Command, m commands.Meta) (handle.Outcome,
	error,
) {
	return e.s.Handler.Start(ctx, s, c, m)
}

func (e engine) Load(ctx context.Context, s events.Stream) (handle.Loaded, error) {
	return e.s.Handler.Load(ctx, s)
}

func (e engine) Await(ctx context.Context, s events.Stream) (handle.Loaded, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan struct{})
	defer close(end)
	go func() {
		select {
		case <-e.stopping:
			cancel()
		case <-end:
		}
	}()
	return e.s.Await(ctx, s)
}

func (e engine) Watch(s events.Stream) (<-chan struct{}, func(), bool) {
	return e.s.watches.watch(s, false)
}

func (e engine) Plan(ctx context.Context, tenant string, hash events.Hash) (*dag.Plan, error) {
	r := aggregates.Ref{Kind: aggregates.RefPlan, Hash: hash}
	refs, err := e.s.Refs.Load(ctx, events.StreamOf(definition.Category, tenant, "plan"), []aggregates.Ref{r})
	if err != nil {
		return nil, err
	}
	v, _ := refs.Get(r)
	p, ok := v.(*dag.Plan)
	if !ok {
		return nil, fmt.Errorf("content %s is no definition", hash)
	}
	return p, nil
}

func (e engine) Content(ctx context.Context, tenant string, hash events.Hash) ([]byte, error) {
	return e.s.Blobs.Get(ctx, tenant, hash)
}

func (e engine) Text(ctx context.Context, tenant string, p events.Payload) ([]byte, error) {
	return e.s.Refs.Text(ctx, tenant, p)
}

func (e engine) Recorded(ctx context.Context, s events.Stream, after events.Version,
	most int,
) (all []events.Recorded, err error) {
	commits, err := e.s.Store.Commits(ctx, s, after, most)
	if err != nil {
		return nil, err
	}
	for i := range commits {
		rs, err := events.Decode(&commits[i], e.s.Codec)
		if err != nil {
			return nil, err
		}
		all = append(all, rs...)
	}
	// A version in the middle of a commit is one that a page ended at.
	if len(commits) > 0 && after > 0 && commits[0].First > after+1 {
		c, err := e.s.Store.CommitAt(ctx, s, after+1)
		if err != nil {
			return nil, err
		}
		rs, err := events.Decode(&c, e.s.Codec)
		if err != nil {
			return nil, err
		}
		all = append(rs[after+1-c.First:], all...)
	} else if len(commits) == 0 && after > 0 {
		c, err := e.s.Store.CommitAt(ctx, s, after+1)
		if errors.Is(err, events.ErrNoStream) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		rs, err := events.Decode(&c, e.s.Codec)
		return rs[after+1-c.First:], err
	}
	return all, nil
}

func (e engine) Executions(ctx context.Context, q projections.Query) (projections.Page, error) {
	return e.s.Views.List(ctx, projworkflow.Executions(), "executions", q)
}

func (e engine) Counts(ctx context.Context, q projections.Query) (projections.Page, error) {
	return e.s.Views.List(ctx, projworkflow.Counts(), "counts", q)
}

// Token is incarnation, partition and position of a write.
func (e engine) Token(out handle.Outcome) string {
	if out.Position == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d-%d", e.s.Info.Incarnation, out.Partition, out.Position)
}

// seenMax is how long a list waits for the reader's own write.
const seenMax = 2 * time.Second

func (e engine) Seen(ctx context.Context, token string) error {
	if token == "" {
		return nil
	}
	var n [3]int64
	parts := strings.Split(token, "-")
	for i := range n {
		if len(parts) != len(n) {
			return badToken()
		}
		v, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return badToken()
		}
		n[i] = v
	}
	if events.Incarnation(n[0]) != e.s.Info.Incarnation {
		return commands.Refuse(commands.Unavailable, commands.CodeIncarnation,
			"the log was restored since; read without the token")
	}
	if n[1] < 0 || n[1] >= int64(e.s.Info.Partitions) {
		return badToken()
	}
	ctx, cancel := context.WithTimeout(ctx, seenMax)
	defer cancel()
	err := e.s.views.Await(ctx, "executions", events.Partition(n[1]), events.Position(n[2]))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // Sluice-As-Of tells how far the list is
	}
	return err
}

func badToken() error {
	return commands.Refuse(commands.Malformed, "bad_token", "this Sluice-Token is of no answer; read without it")
}

func (e engine) Incarnation() events.Incarnation { return e.s.Info.Incarnation }

func (e engine) NewID() events.ID { return randomIDs{}.NewID() }

// Verify holds the log to its promises, with the keys that are beside it.
func (e engine) Verify(ctx context.Context) (handle.Report, error) {
	ring, err := keys.Load(e.s.cfg.Data)
	if err != nil {
		return handle.Report{}, err
	}
	return handle.Verify(ctx, handle.Audit{
		Log: e.s.Store, Codec: e.s.Codec, Seals: e.s.Store, Public: ring.Public, Aggregates: e.s.Aggregates(),
		Blobs: e.s.Blobs,
	})
}

// Backup makes a backup in backups/NAME below the data.
func (e engine) Backup(ctx context.Context, name string) (string, error) {
	to, err := filepath.Abs(filepath.Join(e.s.cfg.Data, "backups", name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(to); err == nil {
		return "", commands.Refuse(commands.Refused, "backup_exists", "there is a backup of that name; choose another")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	_, err = e.s.Store.Backup(ctx, sqlite.BackupOptions{To: to, Blobs: filepath.Join(e.s.cfg.Data, "blobs")})
	return to, err
}

// Rebuild builds a view anew.
func (e engine) Rebuild(ctx context.Context, view string, progress func(done, total int64)) error {
	return e.s.views.Replay(ctx, view, progress)
}
