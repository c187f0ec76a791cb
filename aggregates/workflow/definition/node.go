package definition

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is what a node is in JSON.
type kind uint8

const (
	broken kind = iota // what could not be read, and has been told
	object
	array
	text
	number
	boolean
	null
)

func (k kind) String() string {
	return [...]string{"nothing", "an object", "a list", "a text", "a number", "true or false", "null"}[k]
}

// node is a JSON value with its place in the source, whether that was YAML or JSON. Numbers keep their digits.
type node struct {
	kind         kind
	text         string // of a text; the digits of a number; true or false
	members      []member
	items        []*node
	line, column int
}

// member is one of an object; their names are unique.
type member struct {
	name         string
	line, column int
	value        *node
}

// place is a node for problems of the member's name.
func (m *member) place() *node { return &node{kind: text, line: m.line, column: m.column} }

// member finds one; nil for none, and for a nil node.
func (n *node) member(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// find goes down a pointer as far as there are nodes.
func (n *node) find(pointer string) *node {
	if pointer == "" {
		return n
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		next := n.member(unescaper.Replace(part))
		if n.kind == array {
			for i, item := range n.items {
				if itoa(i) == part {
					next = item
				}
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// appendJSON writes the canonical form: members sorted by name, no white space, numbers as they were written.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case object:
		sorted := n.members
		if !slices.IsSortedFunc(sorted, byName) {
			sorted = slices.Clone(sorted)
			slices.SortFunc(sorted, byName)
		}
		b = append(b, '{')
		for i, m := range sorted {
			if i > 0 {
				b = append(b, ',')
			}
			b = m.value.appendJSON(append(quote(b, m.name), ':'))
		}
		return append(b, '}')
	case array:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case text:
		return quote(b, n.text)
	case number, boolean:
		return append(b, n.text...)
	default:
		return append(b, "null"...)
	}
}

func byName(x, y member) int { return cmp.Compare(x.name, y.name) }

// quote writes a JSON text. The readers let through UTF-8 only.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func quoted(s string) string { return string(quote(nil, s)) }

// badText says why a text may not stand in a definition; empty when it may.
func badText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "this is not UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "a text cannot have the character NUL"
	default:
		return ""
	}
}

var tooDeep = "this is nested more than " + itoa(depthMax) + " deep"
