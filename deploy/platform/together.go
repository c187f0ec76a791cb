package platform

import (
	"context"
	"errors"
	"sync"
)

// together runs fs until all have returned. The first error stops the others and is returned; the end of ctx is none.
func together(ctx context.Context, fs ...func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for _, f := range fs {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				once.Do(func() { first = err })
				stop(err)
			}
		})
	}
	wg.Wait()
	if errors.Is(first, context.Canceled) {
		return nil
	}
	return first
}
