package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// names is a resolver whose answer changes from call to call, as a rebinding server's does.
type names struct {
	answers map[string][][]string
	asked   int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	n.asked++
	left := n.answers[host]
	if len(left) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(left) > 1 {
		n.answers[host] = left[1:]
	}
	for _, text := range left[0] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

// guard makes one that notes what it dials instead of dialling.
func guard(t *testing.T, c Config, n *names) (*Guard, *[]string) {
	t.Helper()
	g, err := New(c, n)
	if err != nil {
		t.Fatal(err)
	}
	dialled := &[]string{}
	g.dial = func(_ context.Context, _, address string) (net.Conn, error) {
		*dialled = append(*dialled, address)
		mine, _ := net.Pipe()
		return mine, nil
	}
	return g, dialled
}

func TestWhichURLsMayBeCalled(t *testing.T) {
	listed := []string{"crm.example", "*.partner.example", "api.example:8443", "93.184.216.34", "[2606:4700::1]"}
	for _, c := range []struct {
		name    string
		allow   []string
		url     string
		setting string // of the denial
		denied  string // part of the denial; empty: allowed
	}{
		{"a listed host", listed, "https://crm.example/customers", "", ""},
		{"a listed host in capitals, with its dot", listed, "https://CRM.Example./customers", "", ""},
		{"a host below a listed domain", listed, "http://eu.api.partner.example", "", ""},
		{"the listed domain itself", listed, "http://partner.example", SettingAllow, "not on the allow-list"},
		{"a domain that only ends alike", listed, "http://evilpartner.example", SettingAllow, "not on the allow-list"},
		{"a listed host as a prefix", listed, "http://crm.example.evil.test", SettingAllow, "not on the allow-list"},
		{"the listed port", listed, "https://api.example:8443/", "", ""},
		{"another port", listed, "https://api.example/", SettingAllow, "not on the allow-list"},
		{"a listed address", listed, "http://93.184.216.34/", "", ""},
		{"a listed address in its mapped form", listed, "http://[::ffff:93.184.216.34]/", "", ""},
		{"a listed IPv6 address in another spelling", listed, "http://[2606:4700:0:0::1]/", "", ""},
		{"an empty allow-list", nil, "https://crm.example", SettingAllow, "not on the allow-list"},
		{"everything", []string{"*"}, "https://any.test", "", ""},
		{"everything on one port", []string{"*:443"}, "http://any.test", SettingAllow, "not on the allow-list"},
		{"userinfo", []string{"*"}, "https://user:pw@crm.example", "", "user name"},
		{"userinfo that looks like a host", []string{"*"}, "https://crm.example@evil.test", "", "user name"},
		{"another scheme", []string{"*"}, "file:///etc/passwd", "", "only http"},
		{"another scheme with a host", []string{"*"}, "gopher://crm.example:70", "", "only http"},
		{"no scheme", []string{"*"}, "crm.example/x", "", "only http"},
		{"no host", []string{"*"}, "http:///x", "", "no host"},
		{"an address as one number", []string{"*"}, "http://2130706433/", "", "a number"},
		{"an address in hexadecimal", []string{"*"}, "http://0x7f000001/", "", "a number"},
		{"an address with hexadecimal parts", []string{"*"}, "http://127.0.0.0x1/", "", "a number"},
		{"an address with octal parts", []string{"*"}, "http://0177.0.0.01/", "", "a number"},
		{"an address of two parts", []string{"*"}, "http://127.1/", "", "a number"},
		{"an address with a zone", []string{"*"}, "http://[fe80::1%25eth0]/", "", "zone"},
		{"a host beyond ASCII", []string{"*"}, "http://exämple.test/", "", "xn--"},
		{"full-width digits", []string{"*"}, "http://\uff11\uff12\uff17.0.0.1/", "", "xn--"},
		{"a private address", []string{"*"}, "http://127.0.0.1/", SettingAllowPrivate, "loopback"},
		{"an empty label", []string{"*"}, "http://crm..example/", "", "empty label"},
		{"a long name", []string{"*"}, "http://" + strings.Repeat("a.", 127) + "test/", "", "longer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := guard(t, Config{Allow: c.allow}, &names{})
			u, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			checkDenied(t, g.CheckURL(u), c.denied, c.setting)
		})
	}
}

func checkDenied(t *testing.T, err error, part, setting string) {
	t.Helper()
	if part == "" {
		if err != nil {
			t.Fatalf("it is allowed, but: %v", err)
		}
		return
	}
	var d *Denied
	if !errors.As(err, &d) {
		t.Fatalf("it is denied, but: %v", err)
	}
	if !strings.Contains(d.Why, part) || d.Setting != setting {
		t.Fatalf("denied because %q (%s), want %q (%s)", d.Why, d.Setting, part, setting)
	}
}

func TestWhichAddressesMayBeReached(t *testing.T) {
	for _, c := range []struct{ address, kind string }{
		{"93.184.216.34", ""},
		{"2606:4700::1", ""},
		{"127.0.0.1", "loopback"},
		{"127.8.9.10", "loopback"},
		{"0.0.0.0", "of this network"},
		{"10.1.2.3", "private"},
		{"172.16.0.1", "private"},
		{"172.32.0.1", ""},
		{"192.168.1.1", "private"},
		{"100.100.1.1", "shared"},
		{"169.254.169.254", "link-local"},
		{"198.19.0.1", "benchmarks"},
		{"224.0.0.1", "multicast"},
		{"255.255.255.255", "reserved"},
		{"::1", "loopback"},
		{"::", "reserved"},
		{"::127.0.0.1", "reserved"},
		{"::ffff:127.0.0.1", "loopback"},
		{"::ffff:a9fe:a9fe", "link-local"},
		{"::ffff:0:7f00:1", "translated"},
		{"64:ff9b::7f00:1", "loopback"},
		{"64:ff9b::5db8:d822", ""},
		{"64:ff9b:1::1", "translation"},
		{"2002:7f00:1::", "loopback"},
		{"2002:5db8:d822::1", ""},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"},
		{"fd00:ec2::254", "private"},
		{"fe80::1", "link-local"},
		{"fec0::1", "site-local"},
		{"ff02::1", "multicast"},
	} {
		t.Run(c.address, func(t *testing.T) {
			g, dialled := guard(t, Config{Allow: []string{"*"}}, &names{answers: map[string][][]string{
				"host.test": {{c.address}},
			}})
			_, err := g.Dial(t.Context(), "tcp", "host.test:80")
			checkDenied(t, err, c.kind, SettingAllowPrivate)
			if (len(*dialled) == 0) != (c.kind != "") {
				t.Fatalf("dialled %v", *dialled)
			}
			_, err = g.Dial(t.Context(), "tcp", net.JoinHostPort(c.address, "80"))
			checkDenied(t, err, c.kind, SettingAllowPrivate)
		})
	}
}

func TestPrivateRangesThatAreAllowed(t *testing.T) {
	g, dialled := guard(t, Config{Allow: []string{"*"}, AllowPrivate: Loopback}, &names{answers: map[string][][]string{
		"localhost": {{"::1", "127.0.0.1"}}, "meta.test": {{"169.254.169.254"}}, "mapped.test": {{"::ffff:127.0.0.1"}},
	}})
	for _, host := range []string{"localhost:8080", "127.0.0.1:8080", "mapped.test:8080"} {
		if _, err := g.Dial(t.Context(), "tcp", host); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(*dialled, " "); got != "[::1]:8080 127.0.0.1:8080 127.0.0.1:8080" {
		t.Fatalf("dialled %s", got)
	}
	_, err := g.Dial(t.Context(), "tcp", "meta.test:80")
	checkDenied(t, err, "link-local", SettingAllowPrivate)
}

func TestANameIsResolvedOnceAndTheCheckedAddressIsDialled(t *testing.T) {
	n := &names{answers: map[string][][]string{"rebind.test": {{"93.184.216.34"}, {"127.0.0.1"}}}}
	g, dialled := guard(t, Config{Allow: []string{"rebind.test"}}, n)
	if _, err := g.Dial(t.Context(), "tcp", "rebind.test:443"); err != nil {
		t.Fatal(err)
	}
	if n.asked != 1 || len(*dialled) != 1 || (*dialled)[0] != "93.184.216.34:443" {
		t.Fatalf("asked %d times, dialled %v", n.asked, *dialled)
	}
	_, err := g.Dial(t.Context(), "tcp", "rebind.test:443") // the next connection is checked anew
	checkDenied(t, err, "loopback", SettingAllowPrivate)
}

func TestOfSeveralAddressesOnlyThoseThatMayBeReachedAreTried(t *testing.T) {
	g, dialled := guard(t, Config{Allow: []string{"*"}}, &names{answers: map[string][][]string{
		"mixed.test": {{"10.0.0.1", "93.184.216.34", "192.168.0.1"}},
	}})
	if _, err := g.Dial(t.Context(), "tcp", "mixed.test:80"); err != nil {
		t.Fatal(err)
	}
	if len(*dialled) != 1 || (*dialled)[0] != "93.184.216.34:80" {
		t.Fatalf("dialled %v", *dialled)
	}
}

func TestTheNextAddressIsTriedWhenOneFails(t *testing.T) {
	g, _ := guard(t, Config{Allow: []string{"*"}}, &names{answers: map[string][][]string{
		"two.test": {{"93.184.216.34", "93.184.216.35"}},
	}})
	fault := errors.New("refused")
	var tried []string
	g.dial = func(_ context.Context, _, address string) (net.Conn, error) {
		tried = append(tried, address)
		return nil, fault
	}
	if _, err := g.Dial(t.Context(), "tcp", "two.test:80"); !errors.Is(err, fault) || len(tried) != 2 {
		t.Fatalf("tried %v: %v", tried, err)
	}
}

func TestDialChecksTheHostToo(t *testing.T) {
	g, dialled := guard(t, Config{Allow: []string{"crm.example:443"}}, &names{answers: map[string][][]string{
		"evil.test": {{"93.184.216.34"}}, "crm.example": {{"93.184.216.34"}},
	}})
	_, err := g.Dial(t.Context(), "tcp", "evil.test:443")
	checkDenied(t, err, "allow-list", SettingAllow)
	_, err = g.Dial(t.Context(), "tcp", "crm.example:80")
	checkDenied(t, err, "allow-list", SettingAllow)
	if len(*dialled) != 0 {
		t.Fatalf("dialled %v", *dialled)
	}
}

func TestAnUnknownNameIsTheResolversError(t *testing.T) {
	g, _ := guard(t, Config{Allow: []string{"*"}}, &names{})
	_, err := g.Dial(t.Context(), "tcp", "nowhere.test:80")
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		t.Fatalf("dial: %v", err)
	}
}

func TestEveryMistakeOfTheConfigurationIsReported(t *testing.T) {
	_, err := New(Config{
		Allow:        []string{"ok.example", "a.*.example", "*x.example", "http://x.example", "host:http", "", "host:99999"},
		AllowPrivate: []netip.Prefix{{}},
	}, nil)
	if err == nil || strings.Count(err.Error(), "egress.") != 7 {
		t.Fatalf("six patterns and a range are wrong: %v", err)
	}
}
