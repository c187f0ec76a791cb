package platform

import (
	"sync/atomic"
	"time"
)

// laneMeter counts what a partition's appends cost, so that other times can be told apart from them.
type laneMeter struct {
	calls, appends, nanos atomic.Int64
	last                  atomic.Int64 // ns of the last call
}

func (m *laneMeter) appended(d time.Duration, n int) {
	m.calls.Add(1)
	m.appends.Add(int64(n))
	m.nanos.Add(int64(d))
	m.last.Store(int64(d))
}
