package expr

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// inspect finds what an expression reads, and refuses what CEL would let pass: a task whose name does not stand in the
// expression (nobody could tell what must be loaded), a pattern or a time zone that comes from data (the first costs
// what it likes, the second reads the machine's files).
func inspect(tree *ast.AST) (r reads, problem *Problem) {
	idents, named, outputs := 0, 0, 0
	seen := map[string]bool{}
	isTasks := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "tasks" }
	task := func(name string) {
		named++
		if !seen[name] {
			seen[name] = true
			r.tasks = append(r.tasks, name)
		}
	}
	refuse := func(e ast.Expr, code, detail string) {
		if problem == nil {
			at := tree.SourceInfo().GetStartLocation(e.ID())
			problem = &Problem{Code: code, Detail: detail, Line: at.Line(), Column: at.Column() + 1}
		}
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			r.input = r.input || e.AsIdent() == "input"
			if isTasks(e) {
				idents++
			}
		case ast.SelectKind:
			s := e.AsSelect()
			if isTasks(s.Operand()) {
				task(s.FieldName())
			}
			if s.FieldName() == "output" && isTask(s.Operand(), isTasks) {
				outputs++
			}
		case ast.CallKind:
			call := e.AsCall()
			if name, ok := taken(call, isTasks); ok {
				task(name)
			}
			if name, ok := taken(call, func(e ast.Expr) bool { return isTask(e, isTasks) }); ok && name == "output" {
				outputs++
			}
			if detail := unfit(call); detail != "" {
				refuse(e, CodeSyntax, detail)
			}
		}
	}))
	switch {
	case idents != named:
		refuse(tree.Expr(), CodeTask, `tasks is read by name, as in tasks.create.output or tasks["create"].output`)
	case named != outputs:
		refuse(tree.Expr(), CodeSyntax, "of a task only its output can be read, as in tasks.create.output")
	}
	return r, problem
}

// isTask says that e is tasks.name in one of its spellings.
func isTask(e ast.Expr, isTasks func(ast.Expr) bool) bool {
	switch e.Kind() {
	case ast.SelectKind:
		return isTasks(e.AsSelect().Operand())
	case ast.CallKind:
		_, ok := taken(e.AsCall(), isTasks)
		return ok
	default:
		return false
	}
}

// taken is the name in of["name"], of[?"name"] and of.?name.
func taken(call ast.CallExpr, of func(ast.Expr) bool) (string, bool) {
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
	default:
		return "", false
	}
	args := call.Args()
	if len(args) != 2 || !of(args[0]) || args[1].Kind() != ast.LiteralKind {
		return "", false
	}
	name, ok := args[1].AsLiteral().(types.String)
	return string(name), ok
}

// offset is a time zone that needs no table.
var offset = regexp.MustCompile(`^[+-]?[0-9]{2}:[0-9]{2}$`)

func unfit(call ast.CallExpr) string {
	args, name := call.Args(), call.FunctionName()
	switch {
	case name == "matches" && len(args) > 0:
		if args[len(args)-1].Kind() != ast.LiteralKind {
			return "the pattern of matches must stand in the expression as a text"
		}
	case strings.HasPrefix(name, "get") && call.IsMemberFunction() && len(args) == 1:
		zone, ok := types.String(""), args[0].Kind() == ast.LiteralKind
		if ok {
			zone, ok = args[0].AsLiteral().(types.String)
		}
		if !ok || zone != "UTC" && !offset.MatchString(string(zone)) {
			return "a time zone in an expression is \"UTC\" or an offset as in \"+02:00\": tables of zones change"
		}
	}
	return ""
}
