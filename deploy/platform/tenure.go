package platform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/events"
)

const (
	// tenureLasts is how long an ownership lasts unless it is renewed; tenureRenew is how often it is.
	tenureLasts = 30 * time.Second
	tenureRenew = 10 * time.Second
	// tenureMargin is for skew and for what is under way: an owner stops acting that much before its tenure ends.
	tenureMargin = 2 * time.Second
	// acquireRest is what is waited before one more attempt to own a partition.
	acquireRest = time.Second
)

// ownPartition acquires a partition, runs what start makes of the tenure while it lasts, and gives it back. When the
// partition goes to another owner it waits for its next turn. It returns when ctx ends, or run fails for another
// reason.
func ownPartition(ctx context.Context, o events.Ownership, id events.Partition, name string, log *slog.Logger,
	run func(context.Context, events.Tenure) error,
) error {
	for ctx.Err() == nil {
		sent := time.Now()
		t, err := o.Acquire(ctx, id, name, tenureLasts)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, events.ErrHeld):
			if (sleeper{}).Wait(ctx, acquireRest) != nil {
				return nil
			}
			continue
		default:
			return fmt.Errorf("acquire partition %d: %w", id, err)
		}
		err = together(ctx,
			func(ctx context.Context) error { return run(ctx, t) },
			func(ctx context.Context) error { return renewTenure(ctx, o, t, sent) },
		)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if fault := o.Release(release, t); fault != nil && !errors.Is(fault, events.ErrNotOwner) {
			log.Warn("release a partition", "partition", id, "error", fault)
		}
		cancel()
		if err == nil || !errors.Is(err, errFenced) && !errors.Is(err, events.ErrNotOwner) {
			return err
		}
		log.Warn("a partition went to another owner", "partition", id, "fence", t.Fence, "error", err)
	}
	return nil
}

// renewTenure keeps a tenure; it returns ErrNotOwner when it is lost, or cannot be renewed in time: the owner counts
// from the *sending* of its last answered request.
func renewTenure(ctx context.Context, o events.Ownership, t events.Tenure, sent time.Time) error {
	for {
		if (sleeper{}).Wait(ctx, tenureRenew) != nil {
			return nil
		}
		until := sent.Add(tenureLasts - tenureMargin)
		call, cancel := context.WithDeadline(ctx, until)
		began := time.Now()
		next, err := o.Renew(call, t, tenureLasts)
		cancel()
		switch {
		case err == nil:
			t, sent = next, began
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, events.ErrNotOwner), !time.Now().Before(until):
			return fmt.Errorf("renew partition %d: %w", t.Partition, events.ErrNotOwner)
		}
	}
}
