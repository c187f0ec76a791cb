package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"testing"
)

func TestMapOrder(t *testing.T) {
	head := "package a\nimport (\"maps\"; \"slices\"; \"sort\")\nvar _ = maps.Keys[map[int]int]\nvar _ = slices.Sort[[]int]\nvar _ = sort.Ints\n" +
		"type set map[string]int64\nfunc emit(string)\n"
	in := func(body string) map[string]string { return map[string]string{"aggregates/a.go": head + body} }
	refused := []string{"aggregates/a.go#f"}
	hold(t, mapOrder, nil,
		example{
			"what comes out of a map in its order is refused",
			in("func f(m set) { for k := range m { emit(k) } }"),
			refused,
		},
		example{
			"through a field, a call or another package of ours as well",
			map[string]string{
				"events/e.go": "package events\ntype Facts struct { ByTask map[int]string }\nfunc (f *Facts) Of() map[int]string { return f.ByTask }",
				"aggregates/a.go": `package a
import "github.com/sluice-platform/sluice/events"
type state struct { *events.Facts }
func f(s state) (all []string) { for _, v := range s.ByTask { all = append(all, v) }; return all }
func g(s state) (all []string) { for _, v := range s.Of() { all = append(all, v) }; return all }`,
			},
			[]string{"aggregates/a.go#f", "aggregates/a.go#g"},
		},
		example{
			"the first match is a matter of order",
			in("func f(m set) string { for k, v := range m { if v > 3 { return k } }; return \"\" }"),
			refused,
		},
		example{
			"the iterators of package maps are no better",
			in("func f(m set) { for k := range maps.Keys(m) { emit(k) } }\nfunc g(m set) []string { return slices.Collect(maps.Keys(m)) }"),
			[]string{"aggregates/a.go#f", "aggregates/a.go#g"},
		},
		example{
			"floating point sums depend on order",
			in("func f(m map[int]float64) (sum float64) { for _, v := range m { sum += v }; return sum }"),
			refused,
		},
		example{
			"sorting what was collected mends it",
			in(`func f(m set) (ks []string) { for k := range m { ks = append(ks, k) }; slices.Sort(ks); return ks }
func g(m set) []string { return slices.Sorted(maps.Keys(m)) }
func h(m set) { for _, k := range slices.Sorted(maps.Keys(m)) { emit(k) } }`),
			nil,
		},
		example{
			"counting, filling another map, deleting, asking for any or all need no order",
			in(`func f(m, to set) (n int64) { for k, v := range m { to[k] = v; n += v; if v == 0 { delete(m, k); continue } }; return n }
func g(m set) bool { for _, v := range m { if v < 0 { return false } }; return true }`),
			nil,
		},
		example{
			"tests and slices are free",
			map[string]string{
				"aggregates/a_test.go": "package a\nfunc f(m map[int]int) { for k := range m { g(k) } }",
				"aggregates/b.go":      "package a\nfunc f(m []int) { for k := range m { g(k) } }\nfunc g(int) {}",
			},
			nil,
		},
	)
}

// mapOrder finds where the order of a map can reach a result. It type-checks our own packages only; what other
// modules return has no type here, and no map of theirs has reached a pure layer yet.
func mapOrder(tr *tree) (found []finding) {
	c := &checker{tr: tr, done: map[string]*types.Package{}, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	for _, f := range tr.files {
		if f.isTest() || f.isSuite() || !under(f.path, deterministic...) {
			continue
		}
		if _, err := c.Import(module + "/" + f.dir()); err != nil {
			return append(found, finding{f.path, err.Error()})
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for range c.unordered(f, fn.Body) {
				found = append(found, finding{f.path + "#" + fn.Name.Name, "a result depends on the order of a map"})
			}
		}
	}
	return found
}

// unordered lists the places of a function's body where a map's order gets out.
func (c *checker) unordered(f *file, body *ast.BlockStmt) (at []token.Pos) {
	lastSort := token.NoPos
	ordered := map[ast.Node]bool{} // arguments of a function that sorts
	for _, u := range f.uses(body) {
		if u.pkg == "sort" || u.pkg == "slices" && len(u.name) > 3 && u.name[:4] == "Sort" {
			lastSort = max(lastSort, u.node.Pos())
		}
	}
	for _, call := range f.calls(body, "slices", "Sorted", "SortedFunc", "SortedStableFunc") {
		for _, arg := range call.Args {
			ordered[arg] = true
		}
	}
	for _, call := range f.calls(body, "maps", "Keys", "Values", "All") {
		if !ordered[call] && lastSort < call.End() {
			at = append(at, call.Pos())
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if loop, ok := n.(*ast.RangeStmt); ok && lastSort < loop.End() && !c.orderFree(loop.Body) {
			if _, isMap := underlying(c.info.TypeOf(loop.X)).(*types.Map); isMap {
				at = append(at, loop.Pos())
			}
		}
		return true
	})
	return at
}

// orderFree says whether a loop's body gives the same result in any order, as far as its form shows.
func (c *checker) orderFree(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		free := false
		switch s := s.(type) {
		case *ast.IncDecStmt, *ast.BranchStmt:
			free = true
		case *ast.AssignStmt:
			free = c.assignFree(s)
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			fn, named := (*ast.Ident)(nil), false
			if ok {
				fn, named = call.Fun.(*ast.Ident)
			}
			free = named && fn.Name == "delete"
		case *ast.ReturnStmt:
			free = !slices.ContainsFunc(s.Results, func(r ast.Expr) bool { return !constant(r) })
		case *ast.IfStmt:
			free = s.Else == nil && c.orderFree(s.Body)
		}
		if !free {
			return false
		}
	}
	return true
}

// assignFree allows integer sums and writing to a map.
func (c *checker) assignFree(s *ast.AssignStmt) bool {
	if len(s.Lhs) != 1 {
		return false
	}
	if s.Tok == token.ADD_ASSIGN || s.Tok == token.OR_ASSIGN {
		basic, ok := underlying(c.info.TypeOf(s.Lhs[0])).(*types.Basic)
		return ok && basic.Info()&types.IsInteger != 0
	}
	index, ok := s.Lhs[0].(*ast.IndexExpr)
	if !ok || s.Tok != token.ASSIGN {
		return false
	}
	_, isMap := underlying(c.info.TypeOf(index.X)).(*types.Map)
	return isMap
}

func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

func constant(e ast.Expr) bool {
	if _, ok := e.(*ast.BasicLit); ok {
		return true
	}
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"true", "false", "nil"}, id.Name)
}

// checker gives types to our own packages. Others are empty shells, which costs no reading and needs no build.
type checker struct {
	tr   *tree
	done map[string]*types.Package
	info *types.Info
}

// Import makes checker a types.Importer.
func (c *checker) Import(p string) (*types.Package, error) {
	if pkg := c.done[p]; pkg != nil {
		return pkg, nil
	}
	dir, our := ours(p)
	if !our {
		pkg := types.NewPackage(p, path.Base(p))
		pkg.MarkComplete()
		c.done[p] = pkg
		return pkg, nil
	}
	c.done[p] = types.NewPackage(p, path.Base(p)) // ends a cycle, which the compiler will report
	var files []*ast.File
	for _, f := range c.tr.files {
		if f.dir() == dir && !f.isTest() {
			files = append(files, f.ast)
		}
	}
	conf := types.Config{Importer: c, Error: func(error) {}} // shells make errors; the compiler reports the true ones
	pkg, _ := conf.Check(p, c.tr.fset, files, c.info)
	c.done[p] = pkg
	return pkg, nil
}
