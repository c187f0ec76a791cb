// Package arch holds the shape of the tree: who may import whom, what pure code may call, how long things may get.
// It never runs what it reads: rules look at files, so that the go command's test cache sees every change.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

const module = "github.com/sluice-platform/sluice"

// tree is a source tree: its Go files parsed, the rest as they lie.
type tree struct {
	fs.FS
	fset  *token.FileSet
	files []*file
}

// file is one Go file of the tree.
type file struct {
	path  string
	lines int
	ast   *ast.File
}

func (f *file) dir() string     { return path.Dir(f.path) }
func (f *file) isTest() bool    { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) isSuite() bool   { return isSuite(f.dir()) }
func (f *file) isProduct() bool { return !f.isTest() && !f.isSuite() && !under(f.path, "tests") }

// isSuite says whether a package holds a contract suite: its name ends in test, like storetest.
func isSuite(dir string) bool {
	name := path.Base(dir)
	return strings.HasSuffix(name, "test") && name != "test" // gateways/tasks/test is a task type
}

// under says whether p is one of the folders or lies below one.
func under(p string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

// finding is one place where a rule does not hold.
type finding struct {
	place string // what an exception names: a path, or path#name
	text  string
}

// rule reports where it does not hold, in a stable order.
type rule func(*tree) []finding

// exceptions are places where a rule is known not to hold, with the reason. One that is no longer needed is reported:
// the list only gets shorter by itself.
type exceptions map[string]string

func (e exceptions) without(found []finding) (left []string) {
	used := map[string]bool{}
	for _, f := range found {
		if e[f.place] == "" {
			left = append(left, f.place+": "+f.text)
		}
		used[f.place] = true
	}
	left = slices.Compact(left)
	for place, reason := range e {
		if !used[place] {
			left = append(left, "the exception for "+place+" is not needed")
		}
		if reason == "" {
			left = append(left, "the exception for "+place+" has no reason")
		}
	}
	return left
}

// example is a small tree and the places at which a rule must refuse it; none: it must pass.
type example struct {
	policy string
	files  map[string]string
	want   []string
}

// hold applies a rule to the repository, and to examples that show that it can fail.
func hold(t *testing.T, r rule, except exceptions, examples ...example) {
	t.Helper()
	for _, ex := range examples {
		t.Run(ex.policy, func(t *testing.T) {
			small, err := load(mapFS(ex.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r(small) {
				got = append(got, f.place)
			}
			if !slices.Equal(got, ex.want) {
				t.Errorf("refused %q, want %q", got, ex.want)
			}
		})
	}
	t.Run("the tree keeps the rule", func(t *testing.T) {
		for _, text := range except.without(r(repository(t))) {
			t.Error(text)
		}
	})
}

func mapFS(files map[string]string) fs.FS {
	small := fstest.MapFS{}
	for p, text := range files {
		small[p] = &fstest.MapFile{Data: []byte(text)}
	}
	return small
}

var loadRepository = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

func repository(t *testing.T) *tree {
	t.Helper()
	whole, err := loadRepository()
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// load parses every Go file of the module in fsys; nested modules and testdata are not part of it.
func load(fsys fs.FS) (*tree, error) {
	tr := &tree{FS: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (hidden(p) || path.Base(p) == "testdata" || nestedModule(fsys, p)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(tr.fset, p, src, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		tr.files = append(tr.files, &file{path: p, lines: strings.Count(string(src), "\n"), ast: parsed})
		return nil
	})
	return tr, err
}

func hidden(p string) bool {
	base := path.Base(p)
	return base[0] == '.' || base[0] == '_' || base == "node_modules"
}

func nestedModule(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, dir+"/go.mod")
	return err == nil
}

// imports lists what f imports, by the name that the file uses for it.
func (f *file) imports() map[string]string {
	m := map[string]string{}
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(p)
		if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		m[name] = p
	}
	return m
}

// imported lists what f imports, in the order of the file.
func (f *file) imported() (paths []string) {
	for _, spec := range f.ast.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

// ours cuts the module's name off an import path.
func ours(importPath string) (dir string, ok bool) { return strings.CutPrefix(importPath, module+"/") }

// use is one mention of something exported by an imported package.
type use struct {
	pkg, name string
	node      *ast.SelectorExpr
}

// uses lists the mentions of imported names below node.
func (f *file) uses(node ast.Node) (all []use) {
	names := f.imports()
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			// An identifier that the file declares itself has an Obj: it hides the package.
			if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && names[x.Name] != "" {
				all = append(all, use{names[x.Name], sel.Sel.Name, sel})
			}
		}
		return true
	})
	return all
}

// calls lists the calls below node of some functions of one package.
func (f *file) calls(node ast.Node, pkg string, names ...string) (all []*ast.CallExpr) {
	imports := f.imports()
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isCall(call, names...) {
			if x, ok := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident); ok && x.Obj == nil && imports[x.Name] == pkg {
				all = append(all, call)
			}
		}
		return true
	})
	return all
}

// strings lists the string literals of f, quotes included.
func (f *file) strings() (all []string) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			all = append(all, lit.Value)
		}
		return true
	})
	return all
}

// funcs lists the names of the functions that f declares.
func (f *file) funcs() (all []string) {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			all = append(all, fn.Name.Name)
		}
	}
	return all
}

func TestExceptions(t *testing.T) {
	found := []finding{{"a.go", "is wrong"}, {"b.go", "is wrong"}}
	for _, c := range []struct {
		policy string
		except exceptions
		want   []string
	}{
		{"what no exception names is reported", exceptions{"a.go": "known"}, []string{"b.go: is wrong"}},
		{
			"an exception that is not needed is reported",
			exceptions{"a.go": "known", "b.go": "known", "c.go": "gone"},
			[]string{"the exception for c.go is not needed"},
		},
		{
			"an exception without a reason is none",
			exceptions{"a.go": "known", "b.go": ""},
			[]string{"b.go: is wrong", "the exception for b.go has no reason"},
		},
	} {
		t.Run(c.policy, func(t *testing.T) {
			if got := c.except.without(found); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
