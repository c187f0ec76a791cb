package tenant_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/aggregates/kernel/tenant"
	"github.com/sluice-platform/sluice/events"
)

// TestWF19NamesAndKeysWithAwkwardCharacters is the table of the case.
func TestWF19NamesAndKeysWithAwkwardCharacters(t *testing.T) {
	const composed, decomposed = "\u00e9", "e\u0301"
	for _, c := range []struct {
		text              string
		name, key, header bool
	}{
		{"a/b", false, true, true},
		{"a b", false, true, false},
		{"a#b?c", false, true, true},
		{"%2F", false, true, true},
		{composed, false, true, false},
		{decomposed, false, true, false},
		{"\U0001f600", false, true, false},
		{strings.Repeat("a", 300), false, false, false},
		{"a.b_c-1", true, true, true},
		{"a__b", true, true, true},
		{"", false, false, false},
		{".a", false, true, true},
		{"-a", false, true, true},
		{"_a", false, true, true},
		{"..", false, true, true},
		{"9", true, true, true},
		{"a\n", false, true, false},
		{"a\x00", false, true, false},
		{"a\x7f", false, true, false},
		{"a\xff", false, false, false},
		{strings.Repeat("a", tenant.NameMax), true, true, true},
		{strings.Repeat("a", tenant.NameMax+1), false, true, true},
		{strings.Repeat("a", tenant.KeyMax), false, true, true},
		{strings.Repeat("a", tenant.KeyMax+1), false, false, false},
		{strings.Repeat(composed, tenant.KeyMax/2), false, true, false},
		{strings.Repeat(composed, tenant.KeyMax/2+1), false, false, false},
	} {
		for what, check := range map[string]struct {
			err  error
			want bool
			is   error
		}{
			"name":       {tenant.Name(c.text), c.name, tenant.ErrBadName},
			"key":        {tenant.Key(c.text), c.key, tenant.ErrBadKey},
			"header key": {tenant.HeaderKey(c.text), c.header, tenant.ErrBadKey},
		} {
			if (check.err == nil) != check.want || check.err != nil && !errors.Is(check.err, check.is) {
				t.Errorf("%.40q as %s: %v, want it to pass: %v", c.text, what, check.err, check.want)
			}
		}
	}
	t.Run("two spellings of one character are two keys", func(t *testing.T) {
		if events.Derive("inbox", "acme", composed) == events.Derive("inbox", "acme", decomposed) {
			t.Error("they give one id")
		}
	})
	t.Run("what is wrong is shown, and never at length", func(t *testing.T) {
		if err := tenant.Name(strings.Repeat("é", 500)); len(err.Error()) > 300 || !strings.Contains(err.Error(), "é") {
			t.Errorf("%v", err)
		}
	})
}

func TestNamesMakeStreams(t *testing.T) {
	t.Run("three names are always a stream's name", rapid.MakeCheck(func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`)
		category, who, id := name.Draw(t, "category"), name.Draw(t, "tenant"), name.Draw(t, "id")
		for _, n := range []string{category, who, id} {
			if err := tenant.Name(n); err != nil {
				t.Fatal(err)
			}
		}
		if err := events.StreamOf(category, who, id).Check(); err != nil {
			t.Fatal(err)
		}
	}))
	t.Run("the default tenant has a name", func(t *testing.T) {
		if err := tenant.Name(tenant.Default); err != nil {
			t.Error(err)
		}
	})
}
