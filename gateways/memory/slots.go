package memory

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
)

// SlotsTenantDefault is how many attempts of a tenant are in flight at most when the configuration says nothing.
const SlotsTenantDefault = 1_000

// SlotLimits answers how many slots a tenant has, in all and for one task type. A tenantMax of 0 means
// SlotsTenantDefault, a typeMax of 0 means as many as the tenant has. It is called for every slot taken: keep it cheap.
type SlotLimits func(tenant, taskType string) (tenantMax, typeMax int)

// Slots counts slots of concurrency within one process. Owners refill it after a restart.
type Slots struct {
	clock  commands.Clock
	limits SlotLimits

	mu      sync.Mutex
	tenants map[string]*tenantSlots
}

type tenantSlots struct {
	inUse  map[kernel.SlotMember]*slotUse
	byType map[string]int
	// ends is when the first slot may end: never later than the truth, so that most calls need not look.
	ends events.Time
}

type slotUse struct {
	kind         string
	since, until events.Time
}

// NewSlots makes empty slots. limits nil gives every tenant SlotsTenantDefault.
func NewSlots(clock commands.Clock, limits SlotLimits) *Slots {
	if limits == nil {
		limits = func(string, string) (int, int) { return 0, 0 }
	}
	return &Slots{clock: clock, limits: limits, tenants: map[string]*tenantSlots{}}
}

// Take answers each request in order. A member that holds its slot is granted again and renewed. The error is nil.
func (s *Slots) Take(_ context.Context, rs []kernel.SlotRequest, lasts time.Duration) ([]kernel.SlotAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	answers := make([]kernel.SlotAnswer, len(rs))
	for i := range rs {
		answers[i] = s.take(&rs[i], now, now.Add(lasts))
	}
	return answers, nil
}

func (s *Slots) take(r *kernel.SlotRequest, now, until events.Time) kernel.SlotAnswer {
	t := s.tenant(r.Tenant, now)
	if u := t.inUse[r.Member]; u != nil {
		u.until = until
		return kernel.SlotAnswer{Granted: true}
	}
	tenantMax, typeMax := s.limits(r.Tenant, r.Type)
	if tenantMax <= 0 {
		tenantMax = SlotsTenantDefault
	}
	switch {
	case len(t.inUse) >= tenantMax:
		return kernel.SlotAnswer{Reason: "slot_tenant"}
	case typeMax > 0 && t.byType[r.Type] >= typeMax:
		return kernel.SlotAnswer{Reason: "slot_type"}
	}
	t.add(r, now, until)
	return kernel.SlotAnswer{Granted: true}
}

func (s *Slots) tenant(name string, now events.Time) *tenantSlots {
	t := s.tenants[name]
	if t == nil {
		t = &tenantSlots{inUse: map[kernel.SlotMember]*slotUse{}, byType: map[string]int{}}
		s.tenants[name] = t
	}
	t.expire(now)
	return t
}

func (t *tenantSlots) add(r *kernel.SlotRequest, now, until events.Time) {
	t.inUse[r.Member] = &slotUse{kind: r.Type, since: now, until: until}
	t.byType[r.Type]++
	if t.ends == 0 || until < t.ends {
		t.ends = until
	}
}

// expire frees what nobody renewed. It looks through all slots of a tenant at most once per end of a slot.
func (t *tenantSlots) expire(now events.Time) {
	if t.ends == 0 || now < t.ends {
		return
	}
	t.ends = 0
	for m, u := range t.inUse {
		if u.until <= now {
			t.free(m)
		} else if t.ends == 0 || u.until < t.ends {
			t.ends = u.until
		}
	}
}

func (t *tenantSlots) free(m kernel.SlotMember) {
	u := t.inUse[m]
	if u == nil {
		return
	}
	delete(t.inUse, m)
	if t.byType[u.kind]--; t.byType[u.kind] == 0 {
		delete(t.byType, u.kind)
	}
}

// Renew prolongs slots; one that has ended is taken anew, also above the limit, because its attempt runs.
// The error is nil.
func (s *Slots) Renew(_ context.Context, rs []kernel.SlotRequest, lasts time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for i := range rs {
		r := &rs[i]
		t := s.tenant(r.Tenant, now)
		if u := t.inUse[r.Member]; u != nil {
			u.until = now.Add(lasts)
			continue
		}
		t.add(r, now, now.Add(lasts))
	}
	return nil
}

// Free gives slots back. Repeating it is free. The error is nil.
func (s *Slots) Free(_ context.Context, rs []kernel.SlotRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rs {
		t := s.tenants[rs[i].Tenant]
		if t == nil {
			continue
		}
		t.free(rs[i].Member)
		if len(t.inUse) == 0 {
			delete(s.tenants, rs[i].Tenant)
		}
	}
	return nil
}

// Holders lists the slots in use of a tenant, longest held first. The error is nil.
func (s *Slots) Holders(_ context.Context, tenant string) ([]kernel.SlotHolder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t == nil {
		return nil, nil
	}
	t.expire(s.clock.Now())
	hs := make([]kernel.SlotHolder, 0, len(t.inUse))
	for m, u := range t.inUse {
		hs = append(hs, kernel.SlotHolder{
			SlotRequest: kernel.SlotRequest{Tenant: tenant, Type: u.kind, Member: m}, Since: u.since, Until: u.until,
		})
	}
	slices.SortFunc(hs, byAge)
	return hs, nil
}

func byAge(a, b kernel.SlotHolder) int {
	switch {
	case a.Since != b.Since:
		return int(min(max(a.Since-b.Since, -1), 1))
	case a.Member.Stream != b.Member.Stream:
		return strings.Compare(string(a.Member.Stream), string(b.Member.Stream))
	case a.Member.Task != b.Member.Task:
		return int(a.Member.Task) - int(b.Member.Task)
	}
	return int(a.Member.Attempt) - int(b.Member.Attempt)
}
