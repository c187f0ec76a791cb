package duration_test

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/aggregates/kernel/duration"
)

func TestWF11DurationsAreReadExactlyOrRefused(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1m30s": 90 * time.Second, "PT1M30S": 90 * time.Second, "PT90S": 90 * time.Second,
		"42m30s": 2550 * time.Second, "1.5h": 5400 * time.Second, "P1D": 86400 * time.Second, "61s": 61 * time.Second,
		"PT0.5S": 500 * time.Millisecond, "P1DT2H": 26 * time.Hour, "P2W": 14 * 24 * time.Hour, "0s": 0,
		"PT1.5H": 90 * time.Minute,
		"1h30m":  90 * time.Minute, "250ms": 250 * time.Millisecond, "1500\u00b5s": 1500 * time.Microsecond,
		"7\u03bcs": 7 * time.Microsecond, "5000ns": 5 * time.Microsecond, "0.001ms": time.Microsecond,
		"876000h": duration.Max, "PT3153600000S": duration.Max, "3153600000s": duration.Max, "P36500D": duration.Max,
	} {
		got, err := duration.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
		if back, err := duration.Parse(duration.Format(got)); err != nil || back != got {
			t.Errorf("%q: written as %q it reads back as %v, %v", text, duration.Format(got), back, err)
		}
	}
	for _, text := range []string{
		"-5s", "+5s", "90", "1h 30m", "PT1M30", "P1M", "P1Y", "1d2", "", "0", "P", "PT", "P1DT", "PT1S1M", "PT1.5M1S",
		"1ns", "PT0.0000001S", "0.0000000001s", "999999999h", "P99999999999999999999D", "PT1H1H", "P1H", "PT1D",
		"PT.5S", "PT1.S",
		"1.0000001ms", "0.0001us", "1.5ns", ".5s", "5.s", "1..5s", "1.2.3h", "s", "1x", "1sx", "1S", "1s ", " 1s", "١s",
		"876000h1us", "PT3153600001S", "99999999999999999999h", "1h99999999999999999999ns", "1e3s", "Inf", "NaN",
	} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("%q: got %v, want a refusal", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"90s", "PT1M30S", "P1DT2H", "1.5h", "-5s", "P", "PT1.5M1S", "9223372036854775807ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := duration.Parse(s)
		if err != nil {
			return
		}
		if s[0] != 'P' {
			if std, err := time.ParseDuration(s); err != nil || std != d {
				t.Fatalf("%q: %v, the standard library says %v, %v", s, d, std, err)
			}
		}
		if d < 0 || d > duration.Max {
			t.Fatalf("%q: %v is out of range", s, d)
		}
		if back, err := duration.Parse(duration.Format(d)); err != nil || back != d {
			t.Fatalf("%q: %v written as %q reads back as %v, %v", s, d, duration.Format(d), back, err)
		}
	})
}
