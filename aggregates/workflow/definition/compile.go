package definition

import (
	"errors"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
)

// compiled keeps what has been compiled: in a wide fan-out most tasks say the same.
type compiled struct {
	templates   map[string]*expr.Template
	schemas     map[string]*schema.Schema
	shapes      map[string]*schema.Schema // of task types
	formulas    int
	schemaBytes int
}

// compile compiles every schema and template: the tasks may read the outputs of their ancestors, the workflow's output
// those of all tasks.
func (c *checker) compile() {
	k := &compiled{
		templates: map[string]*expr.Template{}, schemas: map[string]*schema.Schema{}, shapes: map[string]*schema.Schema{},
	}
	d := c.d
	d.InputSchema = c.schema(k, d.Input, d.root.member("input"), "/input")
	for i := range d.Tasks {
		if c.problems.full() {
			return
		}
		t := &d.Tasks[i]
		at := t.pointer()
		t.OutputSchema = c.schema(k, t.Output, t.at.member("output"), at+"/output")
		t.WithTemplate = c.template(k, t.With, place{i, t.at.member("with"), at + "/with"})
		t.WhenTemplate = c.template(k, t.When, place{i, t.at.member("when"), at + "/when"})
		c.with(k, t, at+"/with")
		if when := t.at.member("when"); t.WhenTemplate != nil && !t.WhenTemplate.Condition() {
			c.problem(when, at+"/when", "bad_condition", "a condition is one expression that comes to true or false: ${{ … }}")
		}
	}
	d.OutputTemplate = c.template(k, d.Output, place{-1, d.root.member("output"), "/output"})
}

func (c *checker) schema(k *compiled, raw []byte, n *node, pointer string) *schema.Schema {
	if raw == nil {
		return nil
	}
	if s := k.schemas[string(raw)]; s != nil {
		return s
	}
	if k.schemaBytes += len(raw); k.schemaBytes > SchemaBytesMax {
		c.problem(n, pointer, "too_large", "the schemas of a definition have at most "+itoa(SchemaBytesMax)+" bytes together")
		return nil
	}
	s, err := schema.Compile(raw)
	if wrong := (*schema.Error)(nil); errors.As(err, &wrong) {
		for _, v := range wrong.Violations {
			c.problem(n.find(v.Pointer), pointer+v.Pointer, "bad_schema", v.Detail)
		}
		return nil
	}
	k.schemas[string(raw)] = s
	return s
}

// place is where a template stands.
type place struct {
	task    int // -1: it is the workflow's output
	n       *node
	pointer string
}

func (c *checker) template(k *compiled, raw []byte, at place) *expr.Template {
	if raw == nil || k.formulas > FormulasMax {
		return nil
	}
	if t := k.templates[string(raw)]; t != nil {
		for _, name := range t.Tasks() {
			c.reference(name, t.Place(name), at)
		}
		return t
	}
	t, wrong := expr.Compile(raw, expr.Env{
		Tasks: c.d.TaskNames(), Reads: func(name, pointer string) { c.reference(name, pointer, at) },
	})
	for _, p := range wrong {
		detail := p.Detail
		if p.Line > 0 {
			detail = "at " + itoa(p.Line) + ":" + itoa(p.Column) + " of the expression: " + detail
		}
		c.problem(at.n.find(p.Pointer), at.pointer+p.Pointer, p.Code, detail)
	}
	if len(wrong) > 0 {
		return nil
	}
	if k.formulas += t.Formulas(); k.formulas > FormulasMax {
		c.problem(at.n, at.pointer, "expression_too_large", "a definition has at most "+itoa(FormulasMax)+
			" different expressions; what follows has not been checked")
		return nil
	}
	k.templates[string(raw)] = t
	return t
}

// reference tells of an output that may not be there yet. Of a task in or behind a cycle nothing is told: there is no
// before.
func (c *checker) reference(name, pointer string, at place) {
	if at.task < 0 {
		return
	}
	if is, known := c.graph.ancestor(int32(at.task), c.graph.index[name]); known && !is {
		c.problem(at.n.find(pointer), at.pointer+pointer, "not_an_ancestor", "the output of "+quoted(name)+
			" may not be there yet; name it in needs, directly or by way of another task")
	}
}

// with checks the fixed parts of a mapping against the type's schema.
func (c *checker) with(k *compiled, t *Task, pointer string) {
	n, raw := t.at.member("with"), t.With
	switch {
	case n == nil:
		n, raw = t.at, []byte("{}")
	case n.kind != object:
		c.problem(n, pointer, "wrong_type", "with is an object, not "+n.kind.String())
		return
	case t.WithTemplate == nil:
		return
	}
	shape := c.shape(k, t.Type)
	if shape == nil {
		return
	}
	for _, v := range shape.Shape(raw, isTemplate) {
		at := n
		if n != t.at {
			at = n.find(v.Pointer)
		}
		c.problem(at, pointer+v.Pointer, "bad_mapping", v.Detail)
	}
}

func isTemplate(s string) bool { return strings.Contains(s, "${{") }

// shape is the schema of a task type's mapping, nil for none. One that cannot be compiled is the platform's own fault:
// the test of the platform's types finds it, and here it checks nothing.
func (c *checker) shape(k *compiled, name string) *schema.Schema {
	if s, ok := k.shapes[name]; ok {
		return s
	}
	var s *schema.Schema
	if raw := c.types[name].With; raw != nil {
		s, _ = schema.Compile(raw)
	}
	k.shapes[name] = s
	return s
}

// Validate says what is wrong with the types of a deployment; call it once, where they are put together.
func (ts Types) Validate() error {
	var all []error
	for _, name := range ts.names() {
		if raw := ts[name].With; raw != nil {
			if _, err := schema.Compile(raw); err != nil {
				all = append(all, errors.New("task type "+name+": schema of with: "+err.Error()))
			}
		}
	}
	return errors.Join(all...)
}

func (ts Types) names() (names []string) {
	for name := range ts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TaskNames are the names of all tasks, sorted: what the expressions of a definition may name.
func (d *Definition) TaskNames() []string {
	if d.names == nil {
		for i := range d.Tasks {
			d.names = append(d.names, d.Tasks[i].Name)
		}
		slices.Sort(d.names)
	}
	return d.names
}
