// Package slotstest holds every adapter of kernel.Slots to one contract.
// It never knows an adapter: what one needs stands in its Harness.
package slotstest

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/kernel"
)

// Limits answers like the configuration: slots of a tenant in all, and of one task type; 0: the adapter's default.
type Limits = func(tenant, taskType string) (tenantMax, typeMax int)

// Harness is what the suite needs of an adapter under test.
type Harness struct {
	// New makes empty slots under the given limits; nil limits mean the defaults.
	New func(t *testing.T, limits Limits) kernel.Slots
	// Pass lets time go by, by the adapter's clock.
	Pass func(d time.Duration)
	// Lose takes away everything that the slots hold, as a lost store would.
	Lose func(s kernel.Slots) kernel.Slots
}

const lasts = 30 * time.Second

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range cases {
		t.Run(c.policy, func(t *testing.T) {
			c.test(&run{T: t, h: h, s: h.New(t, c.limits)})
		})
	}
}

func tenantOf(n int) Limits       { return func(string, string) (int, int) { return n, 0 } }
func typeOf(tenant, n int) Limits { return func(string, string) (int, int) { return tenant, n } }

var cases = []struct {
	policy string
	limits Limits
	test   func(*run)
}{
	{"a tenant has as many slots as its limit, in the order of the requests", tenantOf(2), func(r *run) {
		r.take("+ + slot_tenant", "acme", 1, 2, 3)
		r.free("acme", 1)
		r.take("+ slot_tenant", "acme", 3, 4)
	}},
	{"without configuration a tenant has 1000", nil, func(r *run) {
		for n := range int32(1_000) {
			r.take("+", "acme", n)
		}
		r.take("slot_tenant", "acme", 1_000)
	}},
	{"tenants are apart", tenantOf(1), func(r *run) {
		r.take("+", "acme", 1)
		r.take("+", "globex", 1)
		r.take("slot_tenant", "acme", 2)
		r.free("globex", 1)
		r.take("slot_tenant", "acme", 2)
	}},
	{"a type has its own limit within the tenant's", typeOf(3, 1), func(r *run) {
		r.takeType("+", "http", 1)
		r.takeType("slot_type", "http", 2)
		r.takeType("+", "test", 3)
		r.takeType("+", "transform", 4)
		r.takeType("slot_tenant", "sleep", 5)
	}},
	{"a member that holds its slot is granted again and renewed", tenantOf(1), func(r *run) {
		r.take("+", "acme", 1)
		r.h.Pass(lasts * 2 / 3)
		r.take("+", "acme", 1)
		r.h.Pass(lasts * 2 / 3)
		r.take("slot_tenant", "acme", 2)
		r.held("acme", 1)
	}},
	{"one attempt's slot is not another attempt's", tenantOf(1), func(r *run) {
		second := r.request("acme", "http", 1)
		second.Member.Attempt = 2
		r.take("+", "acme", 1)
		r.takeAll("slot_tenant", []kernel.SlotRequest{second})
	}},
	{"freeing twice, or what was never held, is free", tenantOf(2), func(r *run) {
		r.free("acme", 1)
		r.take("+ +", "acme", 1, 2)
		r.free("acme", 1, 1)
		r.free("acme", 1)
		r.take("+ slot_tenant", "acme", 3, 4)
	}},
	{"WF-23 the slot of a lost holder is in use again when it ends, and no sooner", tenantOf(1), func(r *run) {
		r.take("+", "acme", 1)
		r.h.Pass(lasts - time.Second)
		r.take("slot_tenant", "acme", 2)
		r.h.Pass(2 * time.Second)
		r.take("+", "acme", 2)
		r.held("acme", 2)
	}},
	{"WF-23 a holder that lives keeps its slot", tenantOf(1), func(r *run) {
		r.take("+", "acme", 1)
		for range 5 {
			r.h.Pass(lasts * 2 / 3)
			r.renew("acme", 1)
			r.take("slot_tenant", "acme", 2)
		}
		r.held("acme", 1)
	}},
	{"WF-23 a holder that runs renews above the limit", tenantOf(1), func(r *run) {
		r.take("+", "acme", 1)
		r.h.Pass(lasts + time.Second)
		r.take("+", "acme", 2)
		r.renew("acme", 1)
		r.held("acme", 1, 2)
		r.free("acme", 2)
		r.take("slot_tenant", "acme", 3)
	}},
	{"WF-23 after a loss the owners refill the slots, also above the limit", tenantOf(2), func(r *run) {
		r.take("+ +", "acme", 1, 2)
		r.s = r.h.Lose(r.s)
		r.held("acme")
		r.renew("acme", 1, 2, 3)
		r.held("acme", 1, 2, 3)
		r.take("slot_tenant", "acme", 4)
	}},
	{"WF-23 who holds a slot is answered with since when and until when", tenantOf(2), holders},
}

type run struct {
	*testing.T
	s kernel.Slots
	h Harness
}

func (r *run) request(tenant, kind string, task int32) kernel.SlotRequest {
	return kernel.SlotRequest{
		Tenant: tenant, Type: kind,
		Member: kernel.SlotMember{Stream: events.StreamOf("execution", tenant, "7c0f"), Task: task, Attempt: 1},
	}
}

func (r *run) requests(tenant string, tasks []int32) (rs []kernel.SlotRequest) {
	for _, n := range tasks {
		rs = append(rs, r.request(tenant, "http", n))
	}
	return rs
}

// take wants one word per task: + for granted, else the reason.
func (r *run) take(want, tenant string, tasks ...int32) {
	r.Helper()
	r.takeAll(want, r.requests(tenant, tasks))
}

func (r *run) takeType(want, kind string, task int32) {
	r.Helper()
	r.takeAll(want, []kernel.SlotRequest{r.request("acme", kind, task)})
}

func (r *run) takeAll(want string, rs []kernel.SlotRequest) {
	r.Helper()
	answers, err := r.s.Take(r.Context(), rs, lasts)
	if err != nil {
		r.Fatalf("take: %v", err)
	}
	got := ""
	for i, a := range answers {
		if i > 0 {
			got += " "
		}
		if a.Granted {
			got += "+"
		}
		got += a.Reason
	}
	if got != want {
		r.Fatalf("take %v: %q, want %q", rs, got, want)
	}
}

func (r *run) renew(tenant string, tasks ...int32) {
	r.Helper()
	if err := r.s.Renew(r.Context(), r.requests(tenant, tasks), lasts); err != nil {
		r.Fatalf("renew: %v", err)
	}
}

func (r *run) free(tenant string, tasks ...int32) {
	r.Helper()
	if err := r.s.Free(r.Context(), r.requests(tenant, tasks)); err != nil {
		r.Fatalf("free: %v", err)
	}
}

func (r *run) list(tenant string) []kernel.SlotHolder {
	r.Helper()
	hs, err := r.s.Holders(r.Context(), tenant)
	if err != nil {
		r.Fatalf("holders: %v", err)
	}
	return hs
}

// held wants exactly these tasks among the holders.
func (r *run) held(tenant string, tasks ...int32) {
	r.Helper()
	got := map[int32]bool{}
	for _, h := range r.list(tenant) {
		got[h.Member.Task] = true
	}
	for _, n := range tasks {
		if !got[n] {
			r.Fatalf("task %d holds no slot: %v", n, got)
		}
	}
	if len(got) != len(tasks) {
		r.Fatalf("holders %v, want %v", got, tasks)
	}
}

func holders(r *run) {
	r.take("+", "acme", 1)
	r.h.Pass(10 * time.Second)
	r.take("+", "acme", 2)
	hs := r.list("acme")
	if len(hs) != 2 || hs[0].Member.Task != 1 || hs[1].Member.Task != 2 {
		r.Fatalf("longest held first: %+v", hs)
	}
	if hs[0].SlotRequest != r.request("acme", "http", 1) {
		r.Fatalf("the holder is the request: %+v", hs[0])
	}
	if d := hs[1].Since.Sub(hs[0].Since); d < 10*time.Second || d > 12*time.Second {
		r.Fatalf("taken 10 s apart, said %s", d)
	}
	if d := hs[0].Until.Sub(hs[0].Since); d != lasts {
		r.Fatalf("a slot lasts %s, said %s", lasts, d)
	}
	r.h.Pass(lasts + time.Second)
	r.held("acme")
}
