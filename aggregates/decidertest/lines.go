package decidertest

import (
	"fmt"
	"strings"
)

// lines shows events one a line, payloads as text.
func lines[E any](es []E) string {
	var b strings.Builder
	for _, e := range es {
		fmt.Fprintf(&b, "  %T%+v\n", e, e)
	}
	return b.String()
}
