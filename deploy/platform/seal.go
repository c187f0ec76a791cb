package platform

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
	"github.com/sluice-platform/sluice/processors/kernel/sealer"
)

const (
	sealEvery = 5 * time.Second // how often the sealer looks at the tail
	sealPage  = 1000
)

// seal drives the sealer of one partition until ctx ends. A fault is logged and the sealer made anew from the last
// seal that is stored: an unsealed tail is late, never wrong.
func seal(ctx context.Context, s events.Store, p events.Partition, k kernel.Signer, log *slog.Logger) error {
	info, err := s.Log(ctx)
	if err != nil {
		return fmt.Errorf("seal partition %d: %w", p, err)
	}
	for ctx.Err() == nil {
		if err := sealOn(ctx, s, info, p, k); err != nil && ctx.Err() == nil {
			log.Error("seal", "partition", p, "error", err)
		}
		if (sleeper{}).Wait(ctx, sealEvery) != nil {
			return nil
		}
	}
	return nil
}

func sealOn(ctx context.Context, s events.Store, info events.LogInfo, p events.Partition, k kernel.Signer) error {
	last, err := lastSeal(ctx, s, p)
	if err != nil {
		return err
	}
	machine := sealer.New(info, p, last, k)
	for {
		page, err := s.Tail(ctx, p, machine.After(), sealPage)
		if err != nil {
			return err
		}
		effects, err := machine.Step(systemClock{}.Now(), page)
		if err != nil {
			return err
		}
		for _, x := range effects.Seals {
			if err := s.PutSeal(ctx, x); err != nil {
				return err
			}
		}
		if len(page) == sealPage {
			continue
		}
		if (sleeper{}).Wait(ctx, sealEvery) != nil {
			return nil
		}
	}
}

func lastSeal(ctx context.Context, s events.Store, p events.Partition) (last events.Seal, err error) {
	for {
		page, err := s.SealsOf(ctx, p, last.To, sealPage)
		if err != nil || len(page) == 0 {
			return last, err
		}
		last = page[len(page)-1]
	}
}
