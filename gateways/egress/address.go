package egress

import (
	"net/netip"
	"strings"
)

// hostMax is the longest name that DNS carries as text (RFC 1035 §2.3.4).
const hostMax = 253

// canonical brings a host into the one form in which it is compared and looked up; why says what is wrong with it.
func canonical(host string) (name, why string) {
	name = strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" {
		return "", "there is no host"
	}
	if a, err := netip.ParseAddr(name); err == nil {
		if a.Zone() != "" {
			return "", "an address with a zone"
		}
		return a.Unmap().String(), ""
	}
	if len(name) > hostMax {
		return "", "the host is longer than a name may be"
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '*':
		case c >= 0x80:
			return "", "the host is not ASCII; write it in its xn-- form"
		default:
			return "", "the host has a character that no name has"
		}
	}
	if strings.Contains("."+name, "..") {
		return "", "the host has an empty label"
	}
	if numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		return "", "a number that is not an address of four decimal parts"
	}
	return name, ""
}

// numeric says that a last label makes resolvers read the whole host as an IPv4 address in some old spelling
// (0x7f000001, 2130706433, 0177.1): https://url.spec.whatwg.org/#ends-in-a-number-checker
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// ranges are the addresses that are not of the public internet: the special-purpose registries of IANA
// (https://www.iana.org/assignments/iana-ipv4-special-registry, …-ipv6-special-registry; looked up 2026-11).
var ranges = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "of this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "reserved"}, // unspecified, and IPv4 in its abandoned "compatible" form
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "a translated IPv4 address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "of a local translation"},
	{netip.MustParsePrefix("100::/64"), "discarded"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo among them
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("5f00::/16"), "of segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToV4 = netip.MustParsePrefix("2002::/16")
)

// special names the kind of an address that is not of the public internet; empty for one that is. An IPv6 address that
// carries an IPv4 one is what that one is: a translator would go there.
func special(a netip.Addr) string {
	a = a.Unmap()
	for _, r := range ranges {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return special(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToV4.Contains(a):
		return special(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return ""
}
