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
	e.Versions = []events.Version{}
	for tag := range strings.SplitSeq(s, ",") {
		tag = strings.TrimSpace(tag)
		strong := strings.TrimPrefix(tag, "W/")
		if len(strong) < 2 || strong[0] != '"' || strong[len(strong)-1] != '"' {
			return e, Refuse(commands.Malformed, "bad_if_match",
				fmt.Sprintf(`If-Match is "7", a list of such tags, or *; not %.40s`, tag))
		}
		v := never
		if strong == tag {
			v = versionOf(strong[1:len(strong)-1], i)
		}
		e.Versions = append(e.Versions, v)
	}
	return e, nil
}

// never is a version that no stream is at.
const never events.Version = -1

func versionOf(s string, i events.Incarnation) events.Version {
	of := events.Incarnation(1)
	if left, right, dotted := strings.Cut(s, "."); dotted {
		n, err := strconv.ParseInt(left, 10, 64)
		if err != nil {
			return never
		}
		of, s = events.Incarnation(n), right
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || of != i || v <= 0 {
		return never
	}
	return events.Version(v)
}
