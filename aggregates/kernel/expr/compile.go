package expr

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Compile reads a JSON text as a template, and returns every problem of it. With problems there is no template.
func Compile(template []byte, env Env) (*Template, []Problem) {
	if len(template) > TemplateMax {
		return nil, []Problem{{Code: CodeTooLarge, Detail: fmt.Sprintf(
			"a template has at most %d bytes, not %d; move what is fixed into a task's handler", TemplateMax, len(template))}}
	}
	c := compiler{
		env: env, t: &Template{places: map[string]string{}}, known: map[string]int{},
		d: jsontext.NewDecoder(bytes.NewReader(template)),
	}
	root, err := c.value(0)
	if err == nil {
		if _, rest := c.d.ReadToken(); rest == nil {
			err = fmt.Errorf("there is more behind the value")
		}
	}
	if err != nil {
		return nil, []Problem{{Pointer: string(c.d.StackPointer()), Code: CodeJSON, Detail: err.Error()}}
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	c.t.root = root
	if n, ok := root.(constant); ok {
		c.t.constant = n
	}
	slices.Sort(c.t.tasks)
	return c.t, nil
}

// compiler builds a template.
type compiler struct {
	env      Env
	t        *Template
	d        *jsontext.Decoder
	known    map[string]int // expressions by text; -1: one that has a problem
	problems []Problem
}

func (c *compiler) problem(p Problem) {
	p.Pointer = string(c.d.StackPointer())
	c.problems = append(c.problems, p)
}

func (c *compiler) value(depth int) (node, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("nested more than %d deep", depthMax)
	}
	switch c.d.PeekKind() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		t, err := c.d.ReadToken()
		if err != nil {
			return nil, err
		}
		return c.text(t.String()), nil
	default:
		v, err := c.d.ReadValue()
		return constant(bytes.Clone(v)), err
	}
}

func (c *compiler) object(depth int) (node, error) {
	if _, err := c.d.ReadToken(); err != nil {
		return nil, err
	}
	o, fixed := objectNode{}, true
	for c.d.PeekKind() != '}' {
		name, err := c.d.ReadToken()
		if err != nil {
			return nil, err
		}
		quoted, err := jsontext.AppendQuote(nil, c.name(name.String()))
		if err != nil {
			return nil, err
		}
		v, err := c.value(depth + 1)
		if err != nil {
			return nil, err
		}
		_, one := v.(constant)
		fixed = fixed && one
		o = append(o, memberNode{append(quoted, ':'), v})
	}
	if _, err := c.d.ReadToken(); err != nil {
		return nil, err
	}
	return fold(o, fixed), nil
}

// name refuses an expression in a member's name: which members there are must be known before anything runs.
func (c *compiler) name(s string) string {
	parts, _ := split(s)
	if len(parts) == 1 && !parts[0].expr {
		return parts[0].text
	}
	c.problem(Problem{Code: CodeSyntax, Detail: "a member's name cannot have an expression; " +
		"write the object as one ${{ {…} }}, or $${{ for the characters themselves"})
	return s
}

func (c *compiler) array(depth int) (node, error) {
	if _, err := c.d.ReadToken(); err != nil {
		return nil, err
	}
	a, fixed := arrayNode{}, true
	for c.d.PeekKind() != ']' {
		v, err := c.value(depth + 1)
		if err != nil {
			return nil, err
		}
		_, one := v.(constant)
		fixed = fixed && one
		a = append(a, v)
	}
	if _, err := c.d.ReadToken(); err != nil {
		return nil, err
	}
	return fold(a, fixed), nil
}

// fold makes a part without expressions one constant.
func fold(n node, fixed bool) node {
	if !fixed {
		return n
	}
	out, _, _ := n.eval(nil, nil)
	return constant(out)
}

func (c *compiler) text(s string) node {
	place := string(c.d.StackPointer())
	parts, bad := split(s)
	if bad != "" {
		c.problem(Problem{Code: CodeSyntax, Detail: bad})
		return constant("null")
	}
	if len(parts) == 1 && !parts[0].expr {
		quoted, _ := jsontext.AppendQuote(nil, parts[0].text) // the decoder lets UTF-8 through only
		return constant(quoted)
	}
	n := textNode{place: place}
	for _, p := range parts {
		if p.expr {
			n.parts = append(n.parts, textPart{expr: c.expression(p.text, place)})
		} else {
			n.parts = append(n.parts, textPart{p.text, -1})
		}
	}
	if len(n.parts) == 1 {
		return exprNode{n.parts[0].expr, place}
	}
	return n
}

// expression compiles a text once, however often it stands in the template. One with a problem has no number, and the
// template is not made.
func (c *compiler) expression(src, place string) int {
	if i, ok := c.known[src]; ok && i >= 0 {
		return i
	}
	c.known[src] = -1
	e, reads, problem := c.compile(src)
	if problem == nil {
		problem = c.check(reads)
	}
	if problem != nil {
		c.problem(*problem)
		return -1
	}
	c.t.input = c.t.input || reads.input
	for _, name := range reads.tasks {
		if c.env.Reads != nil {
			c.env.Reads(name, place)
		}
		if _, seen := c.t.places[name]; !seen {
			c.t.places[name] = place
			c.t.tasks = append(c.t.tasks, name)
		}
	}
	c.t.exprs = append(c.t.exprs, e)
	c.known[src] = len(c.t.exprs) - 1
	return c.known[src]
}

func (c *compiler) check(r reads) *Problem {
	var unknown []string
	for _, name := range r.tasks {
		if _, ok := slices.BinarySearch(c.env.Tasks, name); !ok {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &Problem{Code: CodeTask, Detail: "there is no task " + strings.Join(unknown, ", ")}
}

// reads is what an expression names.
type reads struct {
	input bool
	tasks []string // each once
}

// expression is one compiled ${{ }}: a JSON text, or absent.
type expression interface {
	eval(e *evaluation) (text []byte, absent bool, err *Error)
	mayBeBool() bool
}

func (c *compiler) compile(src string) (expression, reads, *Problem) {
	if len(src) > ExpressionMax {
		return nil, reads{}, &Problem{Code: CodeTooLarge, Detail: fmt.Sprintf(
			"an expression has at most %d bytes, not %d; split the work over several tasks", ExpressionMax, len(src))}
	}
	if p, ok := parsePath(src); ok {
		return p, p.reads(), nil
	}
	if c.t.formulas++; c.t.formulas > FormulasMax {
		return nil, reads{}, &Problem{Code: CodeTooLarge, Detail: fmt.Sprintf(
			"a template has at most %d different expressions; split the work over several tasks", FormulasMax)}
	}
	return compileCEL(src)
}
