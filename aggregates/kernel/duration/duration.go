// Package duration reads lengths of time as people write them: Go style (1m30s, 1.5h) and ISO 8601 (PT1M30S, P1D).
// It never guesses: a text without a unit, with a sign, of no fixed length, or finer than the log keeps is refused.
package duration

import (
	"fmt"
	"strings"
	"time"
)

// Max is the longest duration: about a century, far from overflow when added to a time.
const Max = 100 * 365 * 24 * time.Hour

// textMax bounds the text of a duration.
const textMax = 64

// Parse reads a duration of at least 0 and at most Max. The error says what is wrong and how to write it.
func Parse(s string) (time.Duration, error) {
	switch {
	case s == "":
		return 0, fmt.Errorf("an empty text is no duration; write 30s or PT30S")
	case len(s) > textMax:
		return 0, fmt.Errorf("a duration has at most %d characters", textMax)
	case s[0] == '-' || s[0] == '+':
		return 0, fmt.Errorf("%q has a sign; a duration is 0 or more, without one", s)
	case s[0] == 'P':
		return iso(s)
	default:
		return goStyle(s)
	}
}

// goUnits are Go's, longest first where one begins another. The two micro signs are U+00B5 and U+03BC.
var goUnits = []struct {
	name string
	unit time.Duration
}{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"\u00b5s", time.Microsecond},
	{"\u03bcs", time.Microsecond},
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
}

// goStyle reads what time.ParseDuration does, but exactly: that one drops what is finer than a nanosecond.
func goStyle(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no duration; write a number and a unit (ms, s, m, h) as in 90s or 1m30s, or PT1M30S", s)
	var total time.Duration
	for rest := s; rest != ""; {
		n := decimal(rest)
		if n == 0 {
			return 0, bad
		}
		number, after := rest[:n], rest[n:]
		unit := time.Duration(0)
		for _, u := range goUnits {
			if strings.HasPrefix(after, u.name) {
				unit, rest = u.unit, after[len(u.name):]
				break
			}
		}
		if unit == 0 {
			return 0, bad
		}
		part, err := times(number, unit)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: %w", s, err)
		}
		if total += part; total > Max {
			break
		}
	}
	return check(s, total)
}

// decimal is how many digits and dots s begins with.
func decimal(s string) (n int) {
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
		n++
	}
	return n
}

func check(s string, d time.Duration) (time.Duration, error) {
	switch {
	case d > Max || d < 0:
		return 0, fmt.Errorf("%q is longer than the most, %s", s, Format(Max))
	case d%time.Microsecond != 0:
		return 0, tooFine(s)
	default:
		return d, nil
	}
}

func tooFine(s string) error {
	return fmt.Errorf("%q is finer than a microsecond, which is the finest that is kept", s)
}

// isoUnits are the designators in the order in which they may stand, before and behind the T.
var isoUnits = [2][]struct {
	letter byte
	unit   time.Duration
}{
	{{'W', 7 * 24 * time.Hour}, {'D', 24 * time.Hour}},
	{{'H', time.Hour}, {'M', time.Minute}, {'S', time.Second}},
}

// iso reads the fixed-length part of ISO 8601-1:2019 §5.5.2: weeks, days, hours, minutes, seconds, each at most once
// and in this order; only the last may have a fraction. Months and years have no fixed length.
func iso(s string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%q is no duration: %s; write it as in PT1M30S or P1D", s, why)
	}
	rest, total, half, next, parts, fraction := s[1:], time.Duration(0), 0, 0, 0, false
	for rest != "" {
		if rest[0] == 'T' {
			if half == 1 || len(rest) == 1 {
				return bad("T stands once, before hours, minutes or seconds")
			}
			half, next, rest = 1, 0, rest[1:]
			continue
		}
		digits := decimal(rest)
		if digits == 0 || digits == len(rest) {
			return bad("each number has a unit behind it")
		}
		number, letter := rest[:digits], rest[digits]
		rest = rest[digits+1:]
		if half == 0 && (letter == 'M' || letter == 'Y') {
			return bad("months and years have no fixed length")
		}
		for next < len(isoUnits[half]) && isoUnits[half][next].letter != letter {
			next++
		}
		if next == len(isoUnits[half]) || fraction {
			return bad("its parts are not in the order W, D, T, H, M, S")
		}
		part, err := times(number, isoUnits[half][next].unit)
		if err != nil {
			return bad(err.Error())
		}
		fraction = strings.Contains(number, ".")
		next++
		parts++
		if total += part; total > Max || total < 0 {
			return check(s, total)
		}
	}
	if parts == 0 {
		return bad("it has no parts")
	}
	return check(s, total)
}

// times multiplies a decimal by a unit exactly; Max + 1 stands for all that is longer than Max.
func times(number string, unit time.Duration) (time.Duration, error) {
	whole, fraction, dotted := strings.Cut(number, ".")
	if whole == "" || dotted && fraction == "" || strings.Contains(fraction, ".") || len(fraction) > 9 {
		return 0, fmt.Errorf("%q is not a decimal number of at most nine places", number)
	}
	var n int64
	for _, c := range []byte(whole) {
		if n = n*10 + int64(c-'0'); n > int64(Max/unit) {
			return Max + 1, nil
		}
	}
	d := time.Duration(n) * unit
	step := unit
	for _, c := range []byte(fraction) {
		if step%10 != 0 {
			return 0, fmt.Errorf("%q is finer than a nanosecond", number)
		}
		step /= 10
		d += time.Duration(c-'0') * step
	}
	return d, nil
}

// Format writes a duration as Parse reads it, shortest form in Go style.
func Format(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
