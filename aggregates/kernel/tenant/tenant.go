// Package tenant checks names and keys before anything is stored under them (case WF-19).
// It never mends one: a name that is changed silently is another name.
package tenant

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Default is the one tenant of a platform that has not been told of others.
const Default = "default"

const (
	// NameMax is how many bytes a name may have: names stand in streams, URLs and metrics.
	NameMax = 128
	// KeyMax is how many bytes a key may have.
	KeyMax = 255
)

// ErrBadName says that a text is no name of a tenant, workflow, task or schedule.
var ErrBadName = errors.New("a name is letters, digits, '.', '_' and '-', first a letter or digit, at most 128 bytes")

// ErrBadKey says that a text is no key.
var ErrBadKey = errors.New("not a key")

// Name wants the name of a tenant, workflow, task or schedule: ASCII letters, digits, '.', '_' and '-', first a letter
// or digit, at most NameMax bytes. Anything else is an error that wraps ErrBadName and shows the text.
func Name(s string) error {
	if s == "" || len(s) > NameMax || !alphanumeric(s[0]) {
		return badName(s)
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return badName(s)
		}
	}
	return nil
}

func badName(s string) error { return fmt.Errorf("%.40q: %w", s, ErrBadName) }

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Key wants a free key of a body, such as a correlation or event id: UTF-8 of 1 to KeyMax bytes. It is compared byte by
// byte, and stands in a stream's name in derived form only. An error wraps ErrBadKey.
func Key(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: it is empty", ErrBadKey)
	case len(s) > KeyMax:
		return fmt.Errorf("%w: it has %d bytes, at most %d", ErrBadKey, len(s), KeyMax)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %.40q is not UTF-8", ErrBadKey, s)
	default:
		return nil
	}
}

// HeaderKey wants a key that travels in a header, such as Idempotency-Key: visible ASCII of 1 to KeyMax bytes. An error
// wraps ErrBadKey.
func HeaderKey(s string) error {
	if err := Key(s); err != nil {
		return err
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fmt.Errorf("%w: %.40q has characters other than visible ASCII", ErrBadKey, s)
		}
	}
	return nil
}
