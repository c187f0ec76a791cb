// Package egress decides which hosts the outbound calls of tasks may reach, and connects to them.
// It never lets a name be resolved again after it was checked: what is dialled is the address that was checked.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config is the egress allow-list of a platform.
type Config struct {
	// Allow lists what may be called: a host ("crm.example"), all hosts below a domain ("*.example": a.example and
	// b.a.example, not example itself), an address ("192.0.2.7", "[2001:db8::1]"), or "*" for every host; each with
	// ":port" where only that port is meant. Default: none, so that every call is denied.
	Allow []string
	// AllowPrivate lists the ranges of addresses that are not of the public internet (loopback, private, link-local,
	// and other special ranges) that may be reached all the same. Default: none. A wide range here lets definitions
	// reach what stands beside the platform, its metadata service included.
	AllowPrivate []netip.Prefix
	// DialTimeout bounds one connection, name look-up included. Default 10 s.
	DialTimeout time.Duration
}

// The settings that a denial names, as they stand in the configuration file.
const (
	SettingAllow        = "egress.allow"
	SettingAllowPrivate = "egress.allow_private"
)

// dialTimeout is long enough for a lost SYN or two (RFC 6298: 1 s, then 2 s) and short beside a task's timeout.
const dialTimeout = 10 * time.Second

// addressesMax bounds how many addresses of one name are tried.
const addressesMax = 8

// Loopback is what a developer's machine allows beside the public internet.
var Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Denied says that a call is not allowed. It is permanent: only another definition or configuration helps.
type Denied struct {
	Host    string // as the call named it
	Why     string
	Setting string // the setting that would allow it; empty where none does
}

func (d *Denied) Error() string {
	s := fmt.Sprintf("call to %q is denied: %s", d.Host, d.Why)
	if d.Setting != "" {
		s += " (setting " + d.Setting + ")"
	}
	return s
}

// Resolver looks names up; net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard holds the checks. It is safe for concurrent use.
type Guard struct {
	allow    []pattern
	private  []netip.Prefix
	timeout  time.Duration
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// New makes a guard, or reports every mistake of the configuration. resolver nil is the machine's own.
func New(c Config, resolver Resolver) (*Guard, error) {
	g := &Guard{private: c.AllowPrivate, timeout: c.DialTimeout, resolver: resolver}
	if g.timeout <= 0 {
		g.timeout = dialTimeout
	}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	g.dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	var wrong []error
	for _, text := range c.Allow {
		p, err := parsePattern(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %q: %w", SettingAllow, text, err))
			continue
		}
		g.allow = append(g.allow, p)
	}
	for _, p := range c.AllowPrivate {
		if !p.IsValid() {
			wrong = append(wrong, fmt.Errorf("%s: a range is not valid", SettingAllowPrivate))
		}
	}
	return g, errors.Join(wrong...)
}

// CheckURL says whether a request to u may be made, as far as that can be said before its name is resolved: *Denied
// when not. Call it for the first URL and for every redirect; Dial checks the rest.
func (g *Guard) CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &Denied{Host: u.Hostname(), Why: fmt.Sprintf("only http and https are spoken, not %q", u.Scheme)}
	case u.User != nil:
		return &Denied{Host: u.Hostname(), Why: "a URL with a user name or password; use a header"}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	name, err := g.checkHost(u.Hostname(), port)
	if err != nil {
		return err
	}
	if a, err := netip.ParseAddr(name); err == nil {
		_, err = g.reachable(u.Hostname(), []netip.Addr{a})
		return err
	}
	return nil
}

// checkHost returns the host as it is to be looked up.
func (g *Guard) checkHost(host, port string) (string, error) {
	name, why := canonical(host)
	if why != "" {
		return "", &Denied{Host: host, Why: why}
	}
	for _, p := range g.allow {
		if p.matches(name, port) {
			return name, nil
		}
	}
	return "", &Denied{Host: host, Why: "the host is not on the allow-list", Setting: SettingAllow}
}

// Dial connects to host:port: it checks the host, resolves its name once, checks every address and connects to one that
// may be reached. It is a DialContext for an http.Transport, which must have no Proxy: a proxy would resolve anew.
// *Denied when it may not be reached; else the network's error.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Denied{Host: address, Why: "it is not host:port"}
	}
	name, err := g.checkHost(host, port)
	if err != nil {
		return nil, err
	}
	addrs, err := g.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	addrs, err = g.reachable(host, addrs)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, a := range addrs {
		conn, err := g.dial(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (g *Guard) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	return g.resolver.LookupNetIP(ctx, "ip", name)
}

// reachable keeps the addresses that may be reached, in the resolver's order.
func (g *Guard) reachable(host string, addrs []netip.Addr) (may []netip.Addr, err error) {
	why := "it has no address"
	for _, a := range addrs {
		a = a.Unmap()
		if kind := g.forbidden(a); kind != "" {
			why = fmt.Sprintf("address %s is %s", a, kind)
		} else if len(may) < addressesMax {
			may = append(may, a)
		}
	}
	if len(may) == 0 {
		return nil, &Denied{Host: host, Why: why, Setting: SettingAllowPrivate}
	}
	return may, nil
}

func (g *Guard) forbidden(a netip.Addr) string {
	kind := special(a)
	if kind == "" {
		return ""
	}
	for _, p := range g.private {
		if p.Contains(a) {
			return ""
		}
	}
	return kind
}

// pattern is one entry of the allow-list.
type pattern struct {
	any    bool
	suffix bool   // host begins with a dot
	host   string // canonical
	port   string // empty: every port
}

func parsePattern(text string) (p pattern, err error) {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if _, err := net.LookupPort("tcp", port); err != nil || port == "" || port[0] < '0' || port[0] > '9' {
			return p, fmt.Errorf("%q is not a port", port)
		}
		host, p.port = h, port
	} else if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	}
	if host == "*" {
		p.any = true
		return p, nil
	}
	rest, suffix := strings.CutPrefix(host, "*.")
	name, why := canonical(rest)
	switch {
	case why != "":
		return p, errors.New(why)
	case strings.Contains(name, "*"):
		return p, errors.New("a * stands alone or as the first label")
	case suffix:
		p.suffix, p.host = true, "."+name
	default:
		p.host = name
	}
	return p, nil
}

func (p pattern) matches(name, port string) bool {
	switch {
	case p.port != "" && p.port != port:
		return false
	case p.any:
		return true
	case p.suffix:
		return strings.HasSuffix(name, p.host) && len(name) > len(p.host)
	}
	return name == p.host
}
