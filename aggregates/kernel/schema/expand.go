package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// expansion counts the schemas that one is made of once its references are written out. Without a bound a few
// kilobytes (forty definitions, each naming the next one twice) make a check of any document take for ever.
type expansion struct {
	root    any
	anchors map[string]string // pointers by name
	sizes   map[string]int    // by pointer; 0: being counted
}

// expand refuses a schema that is too large when it is written out.
func expand(root any) error {
	x := expansion{root: root, anchors: map[string]string{}, sizes: map[string]int{}}
	x.name(root, "")
	if n := x.size(root, ""); n > ExpandedMax {
		return fmt.Errorf("the schema with its references written out has more than %d parts", ExpandedMax)
	}
	return nil
}

func (x *expansion) name(v any, at string) {
	x.each(v, at, func(child any, at string) { x.name(child, at) })
	if m, ok := v.(map[string]any); ok {
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if s, ok := m[key].(string); ok {
				x.anchors[s] = at
			}
		}
	}
}

func (x *expansion) each(v any, at string, do func(child any, at string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) { // what is counted first must not be chance
			do(v[key], at+"/"+escape(key))
		}
	case []any:
		for i, child := range v {
			do(child, at+"/"+strconv.Itoa(i))
		}
	}
}

func (x *expansion) size(v any, at string) int {
	if n, known := x.sizes[at]; known {
		return max(n, 1) // what is being counted refers to itself: deeper in the document it comes again
	}
	x.sizes[at] = 0
	n := 1
	add := func(child any, at string) { n = min(n+x.size(child, at), ExpandedMax+1) }
	m, _ := v.(map[string]any)
	x.each(v, at, func(child any, at string) {
		if !strings.HasSuffix(at, "/$defs") && !strings.HasSuffix(at, "/definitions") {
			add(child, at)
		}
	})
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := m[key].(string); ok {
			if target, at, found := x.resolve(ref); found {
				add(target, at)
			}
		}
	}
	x.sizes[at] = n
	return n
}

func (x *expansion) resolve(ref string) (v any, at string, found bool) {
	name, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, "", false
	}
	if name != "" && name[0] != '/' {
		if name, found = x.anchors[name]; !found {
			return nil, "", false
		}
	}
	v = x.root
	for _, part := range strings.Split(name, "/")[1:] {
		if v, found = member(v, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)); !found {
			return nil, "", false
		}
	}
	return v, name, true
}

func member(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[name]
		return child, ok
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}
