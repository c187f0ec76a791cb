package platform

import (
	"context"
	"sync"

	"github.com/sluice-platform/sluice/events"
)

// sharedFeed keeps the last page of each partition, so that the models, which read it at about the same time, have it
// read from the log once. A page that is a little old is a feed that is a little late, which a feed may be.
type sharedFeed struct {
	events.Feed

	mu    sync.Mutex
	pages map[events.Partition]*sharedPage
}

type sharedPage struct {
	sync.Mutex
	after   events.Position // the page holds everything between after and its last commit
	commits []events.Commit
}

func newSharedFeed(f events.Feed) *sharedFeed {
	return &sharedFeed{Feed: f, pages: map[events.Partition]*sharedPage{}}
}

// Read implements events.Feed. Nobody may change the commits that it returns.
func (f *sharedFeed) Read(
	ctx context.Context, p events.Partition, after events.Position, most int,
) ([]events.Commit, error) {
	page := f.page(p)
	page.Lock()
	defer page.Unlock()
	if n := len(page.commits); n > 0 && page.after <= after {
		// One commit beyond the reader's own is news; less would make a reader wait for what the log has.
		for i := range page.commits {
			if page.commits[i].Position > after && i+1 < n {
				return page.commits[i:min(n, i+most)], nil
			}
		}
	}
	commits, err := f.Feed.Read(ctx, p, after, most)
	if err == nil && len(commits) > 0 {
		page.after, page.commits = after, commits
	}
	return commits, err
}

func (f *sharedFeed) page(p events.Partition) *sharedPage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[p] == nil {
		f.pages[p] = &sharedPage{}
	}
	return f.pages[p]
}
