package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// path is an expression that only names a value: it is a copy of the stored text, digits and all, without CEL.
type path struct {
	task     string // empty: the input
	optional bool   // an output that is not there is left out
	steps    []step
	text     string
}

// step takes one member or item. As in CEL, a step behind an optional one is optional too.
type step struct {
	name     string
	index    int // -1: by name
	optional bool
}

func (p *path) mayBeBool() bool { return true }

func (p *path) reads() reads {
	if p.task == "" {
		return reads{input: true}
	}
	return reads{tasks: []string{p.task}}
}

// parsePath reads input and tasks.NAME.output with member and index steps in their usual spelling; ok is false for
// anything else, which CEL parses.
func parsePath(src string) (*path, bool) {
	var root string
	switch {
	case strings.HasPrefix(src, "input"):
		root = "input"
	case strings.HasPrefix(src, "tasks"):
		root = "tasks"
	default:
		return nil, false
	}
	var steps []step
	for rest := src[len(root):]; rest != ""; {
		s, after, ok := nextStep(rest)
		if !ok {
			return nil, false
		}
		steps, rest = append(steps, s), after
	}
	return newPath(src, root, steps)
}

// newPath makes a path of its steps; ok is false for one into tasks that names no output.
func newPath(src, root string, steps []step) (*path, bool) {
	for i := 1; i < len(steps); i++ {
		steps[i].optional = steps[i].optional || steps[i-1].optional
	}
	if root == "input" {
		return &path{steps: steps, text: src}, true
	}
	if len(steps) < 2 || steps[0].index >= 0 || steps[1].index >= 0 || steps[1].name != "output" {
		return nil, false
	}
	return &path{task: steps[0].name, optional: steps[1].optional, steps: steps[2:], text: src}, true
}

func nextStep(s string) (st step, rest string, ok bool) {
	st.index = -1
	switch {
	case s[0] == '.':
		s = s[1:]
		if strings.HasPrefix(s, "?") {
			st.optional, s = true, s[1:]
		}
		n := identifier(s)
		st.name = s[:n]
		return st, s[n:], n > 0
	case s[0] == '[':
		s = s[1:]
		if strings.HasPrefix(s, "?") {
			st.optional, s = true, s[1:]
		}
		if s == "" {
			return st, "", false
		}
		if s[0] == '"' || s[0] == '\'' {
			n := quoted(s, false)
			if n < 2 || strings.ContainsAny(s[:n], "\\\r\n") || strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, "'''") {
				return st, "", false
			}
			st.name, s = s[1:n-1], s[n:]
		} else {
			n := 0
			for n < len(s) && s[n] >= '0' && s[n] <= '9' {
				n++
			}
			index, err := strconv.Atoi(s[:n])
			if err != nil {
				return st, "", false
			}
			st.index, s = index, s[n:]
		}
		return st, strings.TrimPrefix(s, "]"), strings.HasPrefix(s, "]")
	default:
		return st, "", false
	}
}

// identifier is how long the identifier at the start of s is.
func identifier(s string) (n int) {
	for n < len(s) {
		switch c := s[n]; {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', n > 0 && c >= '0' && c <= '9':
			n++
		default:
			return n
		}
	}
	return n
}

// plain says that a name can stand behind a dot.
func plain(name string) bool { return name != "" && identifier(name) == len(name) }

func (p *path) eval(e *evaluation) (text []byte, absent bool, err *Error) {
	d := e.document(p.task)
	if d == nil {
		if p.optional {
			return nil, true, nil
		}
		return nil, false, &Error{Code: CodeMissing, Detail: fmt.Sprintf(
			"path %s: there is no %s; write .?output if the task may be skipped", p.text, outputOf(p.task))}
	}
	for _, s := range p.steps {
		if err := d.open(); err != nil {
			return nil, false, err
		}
		next := s.take(d)
		if next == nil {
			if s.optional && (s.index >= 0 || d.raw[0] != '[') { // CEL has no members of lists, optional or not
				return nil, true, nil
			}
			return nil, false, &Error{Code: CodeMissing, Detail: fmt.Sprintf("path %s: there is no %s%s", p.text, d, s)}
		}
		d = next
	}
	if len(p.steps) == 0 {
		err = d.open() // what stands below has been read as JSON on the way to it
	}
	return d.raw, false, err
}

func (s step) take(d *document) *document {
	if s.index < 0 {
		return d.member(s.name)
	}
	return d.item(s.index)
}

func (s step) String() string {
	if s.index >= 0 {
		return "[" + strconv.Itoa(s.index) + "]"
	}
	return byName(s.name)
}
