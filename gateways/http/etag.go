package http

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// ETag is a version as a strong tag: "7", and after a restore "2.7".
func ETag(v events.Version, i events.Incarnation) string {
	if i > 1 {
		return fmt.Sprintf(`"%d.%d"`, i, v)
	}
	return fmt.Sprintf(`"%d"`, v)
}

// ParseIfMatch reads If-Match (RFC 9110 §13.1.1): a list of tags, or *. A weak tag and one of another incarnation never
// match. What is no tag at all is refused.
func ParseIfMatch(s string, i events.Incarnation) (e commands.Expectation, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return e, nil
	}
	if s == "*" {
		return commands.Expectation{Exists: true}, nil
	}
	for rest := s; ; {
		tag, left, ok := cutTag(rest)
		if !ok {
			return commands.Expectation{}, Refuse(commands.Malformed, "bad_if_match",
				fmt.Sprintf(`If-Match is "7", a list of such tags, or *; not %.40s`, rest))
		}
		e.Versions = append(e.Versions, versionOf(tag, i))
		if left == "" {
			return e, nil
		}
		rest = left
	}
}

// cutTag takes the first tag off a list. What is between its quotes may be a comma too.
func cutTag(s string) (tag, left string, ok bool) {
	weak := strings.HasPrefix(s, "W/")
	opaque, quoted := strings.CutPrefix(strings.TrimPrefix(s, "W/"), `"`)
	opaque, left, closed := strings.Cut(opaque, `"`)
	if !quoted || !closed || strings.IndexFunc(opaque, func(r rune) bool { return r <= ' ' || r == 0x7f }) >= 0 {
		return "", "", false
	}
	if tag = `"` + opaque + `"`; weak {
		tag = "W/" + tag
	}
	if left = strings.TrimSpace(left); left == "" {
		return tag, "", true
	}
	left, listed := strings.CutPrefix(left, ",")
	left = strings.TrimSpace(left)
	return tag, left, listed && left != ""
}

// never is a version that no stream is at.
const never events.Version = -1

// versionOf is the version that has exactly this tag.
func versionOf(tag string, i events.Incarnation) events.Version {
	digits := strings.Trim(tag, `"`)
	if _, right, dotted := strings.Cut(digits, "."); dotted {
		digits = right
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v <= 0 || ETag(events.Version(v), i) != tag {
		return never
	}
	return events.Version(v)
}
