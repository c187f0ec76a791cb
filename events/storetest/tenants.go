package storetest

import (
	"crypto/sha256"
	"fmt"

	"github.com/sluice-platform/sluice/events"
)

// lookalikes are streams that a search by prefix, by pattern, without case or with padding would mix up.
var lookalikes = []events.Stream{
	"order/acme/1", "order/ACME/1", "Order/acme/1", "order/acm_/1", "order/acm%/1", "order/acme/10", "order/acme/1 ",
	"order/acme2/1", "orders/acme/1", "order/acmé/1", "order/acme´/1", "order/acme'/1", "order/acme/%", "order/acme/_",
}

var tenants = []rule{
	{"streams are told apart to the last byte", func(f *fixture) {
		for i, s := range lookalikes {
			f.wantNoStream(s, 1)
			f.want(f.do(f.append0(s, 0, "of "+string(s), 0, 1)), appended(1, events.Position(i+1)))
		}
		for _, s := range lookalikes {
			page, err := f.Store.Commits(f.Context(), s, 0, 10)
			f.must(err)
			if len(page) != 1 || page[0].Stream != s || page[0].Command != commandOf("of "+string(s)) {
				f.Fatalf("%q holds %d commits", s, len(page))
			}
		}
	}},
	{"ES-32 what happens to one tenant changes no byte of another", func(f *fixture) {
		for _, tenant := range []string{"a", "b"} {
			s := events.StreamOf("order", tenant, "1")
			for v := range events.Version(3) {
				a := f.append0(s, v, fmt.Sprint(tenant, v), 0, 1)
				a.Head = events.HeadUpdate{Open: true, Due: start + 60e6, Snapshot: fmt.Append(nil, tenant, v)}
				f.do(a)
			}
		}
		before := f.digest("order/b/1")
		f.do(f.append0("order/a/1", 3, "a3", 0, 5), f.append0("order/a/1", 0, "none", 0, 1))
		f.reopenKept()
		f.do(f.append0("order/a/1", f.versionOf("order/a/1"), "a4", 0, 1))
		if after := f.digest("order/b/1"); after != before {
			f.Fatal("the rows of tenant b have changed")
		}
	}},
	{"ES-35 bytes that another encoder wrote come back as they are, and verify", func(f *fixture) {
		a := f.append0(streamS, 0, "c1", 0, 1)
		// A block of a map with its size in bytes before it (Avro 1.12, "Maps"), which today's encoder leaves out.
		foreign := []byte{0x01, 0x08, 0x02, 'k', 0x02, 'v', 0x00}
		a.Events = f.frame(nil, foreign, events.Origin{})
		f.chain(a)
		f.do(a)
		f.do(f.append0(streamS, 1, "c2", 0, 1))
		c := f.wantStored(a)
		rs, err := events.Decode(&c, codec{})
		f.must(err)
		if string(rs[0].Body) != string(foreign) {
			f.Fatalf("the body came back as %x", rs[0].Body)
		}
	}},
}

// digest is over all that can be read of a stream.
func (f *fixture) digest(s events.Stream) (sum [32]byte) {
	f.Helper()
	page, err := f.Store.Commits(f.Context(), s, 0, 100)
	f.must(err)
	return sha256.Sum256(fmt.Appendf(nil, "%+v %+v", f.head(s), page))
}
