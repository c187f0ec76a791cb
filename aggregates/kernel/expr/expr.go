// Package expr evaluates JSON templates with CEL expressions inside ${{ }}.
// It never evaluates data: what a template reads is copied or computed with, whatever it looks like.
//
// A text that is one whole ${{ e }} becomes the value of e and keeps its type; with anything around it, the value is
// put into the text (texts as they are, other values as JSON). $${{ stands for the characters ${{ themselves. An
// expression reads input and tasks.NAME.output (tasks["NAME"].output where a name has '.' or '-'). One that is only a
// path is a copy of the stored text; any other is computed by CEL, with numbers that are int64 or double. What is
// marked optional (input.?a) and not there is left out of its object, list or text.
package expr

import "fmt"

const (
	// TemplateMax bounds a template, in bytes.
	TemplateMax = 1 << 20
	// ExpressionMax bounds one expression, in bytes.
	ExpressionMax = 4 << 10
	// FormulasMax bounds the different expressions of one template that CEL must compile, some 25 µs and 10 KB each.
	FormulasMax = 1_000
	// CostMax bounds what the expressions of one evaluation may cost together, in CEL's own units.
	CostMax = 1_000_000
	// depthMax bounds the nesting of templates, of what they read, and of what they come to.
	depthMax = 128
	// outputMax bounds what a template may come to; what is kept is bounded below it by whoever keeps it.
	outputMax = 64 << 20
)

// The codes of problems and errors.
const (
	CodeMissing  = "mapping_path_missing"
	CodeRange    = "number_out_of_range"
	CodeSyntax   = "expression_syntax"
	CodeType     = "expression_type"
	CodeTooLarge = "expression_too_large"
	CodeCost     = "expression_cost"
	CodeFailed   = "expression_error"
	CodeJSON     = "bad_json"
	CodeTask     = "unknown_task"
)

// Env is what expressions may name beside input.
type Env struct {
	Tasks []string // sorted
	// Reads, if there is one, is told of each output that an expression without a problem reads, and where, also when
	// the template has problems elsewhere.
	Reads func(task, pointer string)
}

// Problem is one thing that is wrong with a template.
type Problem struct {
	Pointer      string // RFC 6901, into the template
	Code         string
	Detail       string
	Line, Column int // within the expression, from 1; 0 when there is no such place
}

// Error says why a template came to nothing. The same template on the same scope fails the same way again.
type Error struct {
	Code   string
	Place  string // pointer into the template
	Detail string
}

func (e *Error) Error() string { return e.Code + " at " + e.Place + ": " + e.Detail }

// Scope is what a template reads, as JSON texts that do not change while it is evaluated. Output returns false for a
// task without an output and is asked at most once a task; nil stands for no outputs at all.
type Scope struct {
	Input  []byte
	Output func(task string) ([]byte, bool)
}

// Template is a compiled template. It is safe for concurrent use.
type Template struct {
	root     node
	constant []byte // without expressions: the text
	exprs    []expression
	formulas int
	tasks    []string
	places   map[string]string // of tasks
	input    bool
}

// Tasks are the tasks whose outputs the template reads, sorted.
func (t *Template) Tasks() []string { return t.tasks }

// Place is the pointer of the first text that reads the output of a task; empty for a task that is not read.
func (t *Template) Place(task string) string { return t.places[task] }

// UsesInput says that the template reads the input.
func (t *Template) UsesInput() bool { return t.input }

// Constant says that the template reads nothing.
func (t *Template) Constant() bool { return t.constant != nil }

// Formulas is how many different expressions CEL had to compile for the template.
func (t *Template) Formulas() int { return t.formulas }

// Condition says that the template is one whole expression that can come to true or false.
func (t *Template) Condition() bool {
	n, ok := t.root.(exprNode)
	return ok && t.exprs[n.expr].mayBeBool()
}

// Eval fills the template in; without an output at all (an absent value alone) it is null. The text of a constant
// template is shared: it must not be changed. Repeating it gives the same bytes.
func (t *Template) Eval(s Scope) ([]byte, *Error) {
	if t.constant != nil {
		return t.constant, nil
	}
	e := evaluation{t: t, scope: s, done: make([]outcome, len(t.exprs))}
	out, absent, err := t.root.eval(&e, make([]byte, 0, 128))
	switch {
	case err != nil:
		return nil, err
	case absent:
		return []byte("null"), nil
	default:
		return out, nil
	}
}

// evaluation is one run of a template. A document is opened once and an expression evaluated once, however often they
// stand in it.
type evaluation struct {
	t     *Template
	scope Scope
	done  []outcome
	input *document
	tasks map[string]*document // nil: without an output
	cost  uint64
}

type outcome struct {
	known, absent bool
	text          []byte // JSON
	err           *Error
}

func (e *evaluation) run(i int, place string) (*outcome, *Error) {
	o := &e.done[i]
	if !o.known {
		o.known = true
		o.text, o.absent, o.err = e.t.exprs[i].eval(e)
	}
	if o.err != nil {
		err := *o.err
		err.Place = place
		return nil, &err
	}
	return o, nil
}

// document is what an expression reads: the input, or the output of a task; nil for one without an output.
func (e *evaluation) document(task string) *document {
	if task == "" {
		if e.input == nil {
			e.input = &document{raw: trim(e.scope.Input), root: "input"}
		}
		return e.input
	}
	d, known := e.tasks[task]
	if !known {
		if e.tasks == nil {
			e.tasks = map[string]*document{}
		}
		if e.scope.Output != nil {
			if raw, ok := e.scope.Output(task); ok {
				d = &document{raw: trim(raw), root: outputOf(task)}
			}
		}
		e.tasks[task] = d
	}
	return d
}

// outputOf is how an expression names a task's output.
func outputOf(task string) string {
	if plain(task) {
		return "tasks." + task + ".output"
	}
	return fmt.Sprintf("tasks[%q].output", task)
}
