package arrows

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "github.com/fddhdb/fddhdb"

// A source holds the names and imports that the files of a package contain, without its
// tests.
type source struct {
	lines    int
	exported map[string]bool // names, and methods as Type.Method
	imports  map[string]bool // packages of ours by their path below the module's, others by their import path
	uses     map[string]bool // exported names of imported packages, such as os.Exit, and goStatement
}

// goStatement stands among the names that a package uses if it starts goroutines.
const goStatement = "a go statement"

// readModule reads all packages of the module in the folder root. It leaves out modules
// that are nested in it.
func readModule(root string) (map[string]*source, error) {
	packages := map[string]*source{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(file, "go.mod"))
			if rel != "." && (nested == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		name := path.Dir(filepath.ToSlash(rel))
		if packages[name] == nil {
			packages[name] = &source{exported: map[string]bool{}, imports: map[string]bool{},
				uses: map[string]bool{}}
		}
		return packages[name].read(file)
	})
	return packages, err
}

// read adds the names and imports of a file.
func (s *source) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.lines += bytes.Count(text, []byte("\n"))
	paths := map[string]string{} // import paths by the name that the file gives them
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		imported = strings.TrimPrefix(imported, module+"/")
		s.imports[imported] = true
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			return fmt.Errorf("%s imports %s as its own names: the rules cannot see them", file, imported)
		}
		paths[name] = imported
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			s.uses[goStatement] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && paths[x.Name] != "" {
				s.uses[paths[x.Name]+"."+n.Sel.Name] = true
			}
		}
		return true
	})
	for _, d := range f.Decls {
		s.declare(d)
	}
	return nil
}

// declare adds the exported names of a declaration.
func (s *source) declare(d ast.Decl) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			s.exported[id.Name] = true
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		} else if of := receiver(d.Recv.List[0].Type); ast.IsExported(of) && d.Name.IsExported() {
			s.exported[of+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id)
				}
			}
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr: // a type with a type parameter
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
