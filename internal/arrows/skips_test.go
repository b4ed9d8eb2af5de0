package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A test that skips says nothing, and nobody may notice. CONTRIBUTING.md has a table of all files whose tests
// can skip, with what each needs: whoever adds one decides where it runs.
func TestSkipsAreListed(t *testing.T) {
	const root, heading = "../..", "### Tests that can skip\n"
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("CONTRIBUTING.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z][A-Za-z0-9_/.-]*\\.(go|txtar))`").FindAllStringSubmatch(
		section, -1) {
		listed[m[1]] = true
	}
	skipping := map[string]bool{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir():
			if name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) == ".go":
			skips, err := mayLeaveOut(file)
			if skips {
				skipping[name] = true
			}
			return err
		case path.Ext(name) == ".txtar":
			b, err := os.ReadFile(file)
			if regexp.MustCompile(`(?m)^(\[.*\] +)?skip\b`).Match(b) {
				skipping[name] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(skipping)) {
		if !listed[name] {
			t.Errorf("%s has tests that can skip: say what they need in the table %q of CONTRIBUTING.md",
				name, strings.TrimSpace(heading))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !skipping[name] {
			t.Errorf("CONTRIBUTING.md says that tests of %s can skip, and they cannot", name)
		}
	}
}

// mayLeaveOut reports whether a file calls Skip, Skipf or SkipNow of a test, but where -short, the race
// detector or another operating system is the reason: the gate runs tests with and without the first two.
func mayLeaveOut(file string) (bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	known, skips := map[ast.Node]bool{}, false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if runsElsewhere(n.Cond) {
				known[n.Body] = true
			}
		case *ast.BlockStmt:
			return !known[n]
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok &&
				slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
				of, _ := s.X.(*ast.Ident)
				skips = skips || of != nil && slices.Contains([]string{"t", "b", "f", "tb"}, of.Name)
			}
		}
		return true
	})
	return skips, nil
}

// runsElsewhere reports whether a condition is true only with -short, under the race detector or on some
// operating systems.
func runsElsewhere(x ast.Expr) bool {
	is := func(x ast.Expr, of, name string) bool {
		s, _ := x.(*ast.SelectorExpr)
		if s == nil || s.Sel.Name != name {
			return false
		}
		id, _ := s.X.(*ast.Ident)
		return id != nil && id.Name == of
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return runsElsewhere(x.X)
	case *ast.UnaryExpr:
		return runsElsewhere(x.X)
	case *ast.Ident:
		return x.Name == "Race" // within package effort
	case *ast.SelectorExpr:
		return is(x, "effort", "Race")
	case *ast.CallExpr:
		return is(x.Fun, "testing", "Short")
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND:
			return runsElsewhere(x.X) || runsElsewhere(x.Y)
		case token.LOR:
			return runsElsewhere(x.X) && runsElsewhere(x.Y)
		}
		return is(x.X, "runtime", "GOOS")
	}
	return false
}
