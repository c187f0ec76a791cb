package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// parseDepthMax bounds how deeply the parts of an expression are nested.
const parseDepthMax = 64

// base is the environment that every expression is compiled in: CEL's standard functions, optional values, math, and
// the functions on texts of texts.go. It is made once and never changed. CEL's list extension is left out: it works and
// allocates by the square of what it is given before its cost is counted.
var base = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(append([]cel.EnvOption{
		cel.OptionalTypes(),
		cel.CustomTypeAdapter(ordered{}),
		cel.Variable("input", cel.DynType),
		cel.Variable("tasks", cel.MapType(cel.StringType, cel.DynType)),
		ext.Math(),
		cel.ParserExpressionSizeLimit(ExpressionMax),
		cel.ParserRecursionLimit(parseDepthMax),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	}, textFunctions()...)...)
})

// formula is an expression that CEL computes.
type formula struct {
	program cel.Program
	result  *cel.Type
	reads   reads
	text    string
}

func (f *formula) mayBeBool() bool {
	return f.result.IsAssignableType(cel.BoolType)
}

func compileCEL(src string) (expression, reads, *Problem) {
	env, err := base()
	if err != nil {
		return nil, reads{}, &Problem{Code: CodeFailed, Detail: err.Error()}
	}
	tree, issues := env.Compile(src)
	if issues.Err() != nil {
		return nil, reads{}, refused(issues)
	}
	root := tree.NativeRep().Expr()
	if p, ok := pathOf(src, root); ok {
		return p, p.reads(), nil
	}
	r, problem := inspect(tree.NativeRep())
	if problem != nil {
		return nil, r, problem
	}
	program, err := env.Program(tree, cel.CostLimit(CostMax), cel.CustomDecoratorV2(orderLiterals))
	if err != nil {
		return nil, r, &Problem{Code: CodeSyntax, Detail: err.Error()}
	}
	return &formula{program, tree.OutputType(), r, src}, r, nil
}

func refused(issues *cel.Issues) *Problem {
	first := issues.Errors()[0]
	p := &Problem{Code: CodeSyntax, Detail: first.Message}
	if line := first.Location.Line(); line > 0 { // what concerns the whole expression has no place
		p.Line, p.Column = line, first.Location.Column()+1
	}
	switch {
	case strings.Contains(first.Message, "found no matching overload"):
		p.Code = CodeType
		if strings.Contains(first.Message, "int") && strings.Contains(first.Message, "double") {
			p.Detail += "; CEL does not mix int and double: write double(…) or int(…)"
		}
	case strings.Contains(first.Message, "invalid int literal"), strings.Contains(first.Message, "invalid uint literal"),
		strings.Contains(first.Message, "invalid double literal"):
		p.Code = CodeRange
		p.Detail += "; numbers in expressions are int64 or double"
	case strings.Contains(first.Message, "undeclared reference"):
		p.Detail += "; an expression reads input and tasks.NAME.output, or tasks[\"NAME\"].output where NAME has '.' or '-'"
	}
	return p
}

// pathOf finds the path in an expression that is only a path in an unusual spelling: with spaces, brackets, escapes.
func pathOf(src string, e ast.Expr) (*path, bool) {
	var steps []step
	for e.Kind() != ast.IdentKind {
		s := step{index: -1}
		switch e.Kind() {
		case ast.SelectKind:
			if e.AsSelect().IsTestOnly() {
				return nil, false
			}
			s.name, e = e.AsSelect().FieldName(), e.AsSelect().Operand()
		case ast.CallKind:
			name, args := e.AsCall().FunctionName(), e.AsCall().Args()
			s.optional = name != operators.Index
			if s.optional && name != operators.OptIndex && name != operators.OptSelect || len(args) != 2 ||
				args[1].Kind() != ast.LiteralKind {
				return nil, false
			}
			switch v := args[1].AsLiteral().(type) {
			case types.String:
				s.name = string(v)
			case types.Int:
				if v < 0 {
					return nil, false
				}
				s.index = int(v)
			default:
				return nil, false
			}
			e = args[0]
		default:
			return nil, false
		}
		steps = append([]step{s}, steps...)
	}
	return newPath(src, e.AsIdent(), steps)
}

func (f *formula) eval(e *evaluation) (text []byte, absent bool, wrong *Error) {
	bindings := map[string]any{}
	if f.reads.input {
		bindings["input"] = e.document("").value()
	}
	if len(f.reads.tasks) > 0 {
		tasks := map[string]any{}
		for _, name := range f.reads.tasks {
			task := map[string]any{}
			if d := e.document(name); d != nil {
				task["output"] = d.value()
			}
			tasks[name] = task
		}
		bindings["tasks"] = tasks
	}
	value, details, err := f.program.Eval(bindings)
	if cost := details.ActualCost(); cost != nil {
		e.cost += *cost
	}
	switch {
	case e.cost > CostMax:
		return nil, false, &Error{Code: CodeCost, Detail: fmt.Sprintf(
			"at expression %.200s the mapping costs more than %d; do such work in a task", f.text, CostMax)}
	case err != nil:
		return nil, false, f.failed(err)
	}
	return f.write(value)
}

// failed classes CEL's run-time errors by their texts: it has no codes of its own.
func (f *formula) failed(err error) *Error {
	if ours := (*Error)(nil); errors.As(err, &ours) {
		return &Error{Code: ours.Code, Detail: fmt.Sprintf("expression %.200s: %s", f.text, ours.Detail)}
	}
	message := err.Error()
	e := &Error{Code: CodeFailed, Detail: fmt.Sprintf("expression %.200s: %.200s", f.text, message)}
	has := func(s string) bool { return strings.Contains(message, s) }
	switch {
	case has("no such key"), has("no such attribute"), has("index out of bounds"), has("optional.none()"),
		has("unsupported index type"):
		e.Code = CodeMissing
	case has("cost limit exceeded"):
		e.Code = CodeCost
		e.Detail = fmt.Sprintf("expression %.200s costs more than %d; do such work in a task", f.text, CostMax)
	case has("integer overflow"), has("range error"), has("out of range of"):
		e.Code = CodeRange
	case has("no such overload"):
		e.Code = CodeType
		e.Detail = fmt.Sprintf(
			"expression %.200s: its operands do not go together; CEL does not mix int and double: write double(…)", f.text)
	}
	return e
}
