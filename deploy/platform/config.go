package platform

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Config is everything that an operator can set. Start from Default.
type Config struct {
	Data       string // folder of the log, the views and the blobs; made if it is not there
	Listen     string // host:port of the HTTP API; port 0 takes a free one
	Partitions int    // of a new log; an existing one grows to it and never shrinks. 0: 1
	Workers    int    // tasks that this process runs at once
	// TenantSlots is how many attempts of one tenant may be in flight, TypeSlots how many of one task type; a type that
	// is not named has no limit of its own.
	TenantSlots int
	TypeSlots   map[string]int
	QueueDepth  int // items that one class of the queue holds; beyond it sends are refused and made again later
	// EgressAllow are the hosts that http tasks may call, as names or *.suffixes; empty: none.
	// EgressPrivate are the private ranges that they may reach.
	EgressAllow   []string
	EgressPrivate []netip.Prefix
	Drain         time.Duration // how long a stop waits for running tasks
}

// Default is what `up` uses: one folder, loopback only.
func Default() Config {
	return Config{
		Data: "sluice-data", Listen: "127.0.0.1:7510", Partitions: 1, Workers: 32, TenantSlots: 1000, QueueDepth: 100_000,
		EgressPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Drain:         10 * time.Second,
	}
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Data == "" {
		bad("data names no folder")
	}
	if c.Workers < 0 || c.Workers > 10_000 {
		bad("workers is %d; it is 0 to 10000", c.Workers)
	}
	if c.TenantSlots < 1 {
		bad("tenant_slots is %d; it is at least 1", c.TenantSlots)
	}
	if c.QueueDepth < 1000 {
		bad("queue_depth is %d; it is at least 1000, what one partition may send", c.QueueDepth)
	}
	for name, n := range c.TypeSlots {
		if n < 1 {
			bad("type_slots of %q is %d; it is at least 1", name, n)
		}
	}
	return errors.Join(errs...)
}
