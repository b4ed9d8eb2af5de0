package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// One place counts a commit, Committer.committed, and one ends it, Committer.ended: it tells the
// side file and shows the view. In between only Committer.finish waits for a sync. The few
// functions that write to a store at all are known by name.
func TestOnePlaceEndsACommit(t *testing.T) {
	want := map[string][]string{
		"counts a commit":     {"db/internal/state.Committer.committed"},
		"waits for its sync":  {"db/internal/state.Committer.finish"},
		"tells the side file": {"db/internal/state.Committer.Durable", "db/internal/state.Committer.ended"},
		"shows a view":        {"db/internal/state.Committer.ended"},
		"hands tables over":   {"db/internal/copies.extract.storeOf", "db/internal/store.Tables.ingest"},
		"commits to the store": {"db/internal/record.Identity.Store", "db/internal/repair.mender.flush",
			"db/internal/state.Tx.commit"},
	}
	got := map[string][]string{}
	err := filepath.WalkDir("../../db", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			// a module of its own, which has no store
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(filepath.ToSlash(file)), "../../")
		for _, decl := range f.Decls {
			name := pkg
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				name += "." + receiver(f.Recv.List[0].Type) + "." + f.Name.Name
			} else if ok {
				name += "." + f.Name.Name
			}
			for step := range steps(pkg, decl) {
				got[step] = append(got[step], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for step, functions := range want {
		if slices.Sort(got[step]); !slices.Equal(got[step], functions) {
			t.Errorf("%s: %q, want %q", step, got[step], functions)
		}
	}
}

// steps returns the steps of a commit that a declaration of a package contains.
func steps(pkg string, decl ast.Decl) map[string]bool {
	found := map[string]bool{}
	changed := func(x ast.Expr) {
		if s, ok := x.(*ast.SelectorExpr); ok && pkg == "db/internal/state" && s.Sel.Name == "sequence" {
			found["counts a commit"] = true
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IncDecStmt:
			changed(n.X)
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				changed(x)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				changed(n.X)
			}
		case *ast.CallExpr:
			// Of the Apply methods, only those of Pebble have two parameters: of a store, and of a batch,
			// which takes up another one.
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Apply" && len(n.Args) == 2 {
				of, ok := f.X.(*ast.SelectorExpr)
				if !ok || of.Sel.Name != "Batch" {
					found["commits to the store"] = true
				}
			}
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "current" &&
				pkg == "db/internal/state" {
				found["shows a view"] = true
			}
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			switch n.Sel.Name {
			case "SyncWait":
				found["waits for its sync"] = true
			case "ApplyNoSyncWait":
				found["commits to the store"] = true
			case "Reached":
				found["tells the side file"] = true
			case "Ingest", "IngestWithStats", "IngestAndExcise", "IngestExternalFiles", "IngestLocal":
				found["hands tables over"] = true
			case "Sync", "NoSync", "WriteOptions":
				if of != nil && of.Name == "pebble" {
					found["commits to the store"] = true
				}
			}
		}
		return true
	})
	return found
}
