package doctest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programs holds the programs of all documents and the examples that they run. All are
// linked into one binary, which takes the name of one as its first argument, because
// linking takes longer than all else.
type programs struct {
	names  map[*block]string // names of the blocks that can be run
	binary string
	files  map[string][]byte // sources by path in the module
}

// folder is the path at which the compiler finds the programs. An overlay puts them
// there; the clone has no such folder.
const folder = "internal/programs"

// imports are the packages that fragments may use without importing them.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "os": "os", "signal": "os/signal",
	"slices": "slices", "slog": "log/slog", "strings": "strings", "testing": "testing", "time": "time",
	"http": "net/http",
	"db":   module + "/db", "backup": module + "/db/backup",
	"s3": module + "/db/s3", "storetest": module + "/db/backup/storetest",
	"event": module + "/db/event", "api": module + "/db/api", "importer": module + "/db/importer",
	"model": module + "/model", "files": module + "/files",
}

// around holds the declarations that surround a fragment.
const around = `
var (
	ctx context.Context
	d   *db.DB
	c   *db.Collection
	dir string
	err error
)
`

func build(t *testing.T, all []*document) *programs {
	t.Helper()
	p := &programs{names: map[*block]string{}, files: map[string][]byte{}}
	for _, d := range all {
		p.add(t, d)
	}
	p.addExamples(t)
	if t.Failed() {
		t.FailNow()
	}
	p.addMain()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range slices.Sorted(maps.Keys(p.files)) {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(file, p.files[name], 0o666); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(clone, filepath.FromSlash(name))] = file
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	p.binary = filepath.Join(dir, "programs")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags", "-s -w",
		"-o", p.binary, "./"+folder+"/main")
	cmd.Dir = clone
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the programs of the documents do not compile: %v\n%s", err, out)
	}
	return p
}

// add takes the Go blocks of a document.
func (p *programs) add(t *testing.T, d *document) {
	document := strings.ToLower(
		regexp.MustCompile(`\W`).ReplaceAllString(strings.TrimSuffix(path.Base(d.path), ".md"), ""))
	for i, b := range d.blocks {
		if b.kind != program {
			continue
		}
		source := strings.Join(b.lines, "\n") + "\n"
		if formatted, err := format.Source([]byte(source)); err != nil {
			t.Errorf("%s: the program cannot be parsed: %v", d.at(b.first), err)
			continue
		} else if string(formatted) != source {
			t.Errorf("%s: the program is not gofmt-clean", d.at(b.first))
		}
		if strings.Contains(source, module+"/internal/") {
			t.Errorf("%s: readers cannot import internal packages", d.at(b.first))
		}
		if b.notRun != "" {
			continue
		}
		name := fmt.Sprintf("%s%d", document, i)
		place := fmt.Sprintf("//line %s:%d\n", d.path, b.first+1)
		if strings.HasPrefix(source, "package ") {
			p.names[b] = name
			p.put(name, name+".go", place+source)
			continue
		}
		whole, err := fragment(name, place, source)
		if err != nil {
			t.Errorf("%s: %v", d.at(b.first), err)
			continue
		}
		p.files[path.Join(folder, name, name+".go")] = []byte(whole)
	}
}

var (
	packageMain = regexp.MustCompile(`(?m)^package main$`)
	mainFunc    = regexp.MustCompile(`(?m)^func main\(\)`)
)

// put stores a file of a program. The program becomes a package with a function Main.
func (p *programs) put(name, file, source string) {
	source = packageMain.ReplaceAllString(source, "package "+name)
	p.files[path.Join(folder, name, file)] = []byte(mainFunc.ReplaceAllString(source, "func Main()"))
}

// examples are the examples that documents run as commands, once they are installed.
var examples = []string{"neardup", "photos"}

// addExamples takes the examples.
func (p *programs) addExamples(t *testing.T) {
	for _, name := range examples {
		files, err := filepath.Glob(filepath.Join(root, "examples", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("there is no example %s", name)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p.put(name, filepath.Base(file), string(b))
		}
	}
}

// addMain makes the program that runs the others. It imports the fragments too, so that
// they are compiled.
func (p *programs) addMain() {
	runs := map[string]bool{}
	for file, source := range p.files {
		runs[path.Base(path.Dir(file))] = runs[path.Base(path.Dir(file))] ||
			bytes.Contains(source, []byte("\nfunc Main()"))
	}
	var list, cases strings.Builder
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		as := "_"
		if runs[name] {
			as = name
			fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", name, name)
		}
		fmt.Fprintf(&list, "\t%s %q\n", as, module+"/"+folder+"/"+name)
	}
	p.files[folder+"/main/main.go"] = []byte("package main\n\nimport (\n\t\"os\"\n\n" + list.String() +
		")\n\nfunc main() {\n\tname := os.Args[1]\n\tos.Args = os.Args[1:]\n\tswitch name {\n" +
		cases.String() +
		"\tdefault:\n\t\tpanic(name)\n\t}\n}\n")
}

// fragment makes a package of a source that has only statements or declarations.
func fragment(name, place, source string) (string, error) {
	head := func(source string) string {
		used := map[string]bool{"context": true, "db": true}
		for found := range imports {
			if regexp.MustCompile(`\b` + found + `\.[A-Z]`).MatchString(source) {
				used[found] = true
			}
		}
		s := "package " + name + "\n\nimport (\n"
		for _, found := range slices.Sorted(maps.Keys(used)) {
			s += fmt.Sprintf("\t%q\n", imports[found])
		}
		return s + ")\n" + around
	}
	declarations := head(source) + place + source
	if _, err := parser.ParseFile(token.NewFileSet(), "", declarations, 0); err == nil {
		return declarations, nil
	}
	body := head(source) + "func _() (_ error) {\n" + place + source
	file, err := parser.ParseFile(token.NewFileSet(), "", body+"return\n}\n", 0)
	if err != nil {
		return "", err
	}
	// A fragment may leave a result unused.
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok {
			for _, name := range defined(f.Body.List) {
				body += "_ = " + name + "\n"
			}
		}
	}
	return body + "return\n}\n", nil
}

// defined returns the names of the variables that the statements declare.
func defined(statements []ast.Stmt) []string {
	var names []string
	for _, s := range statements {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for _, x := range a.Lhs {
				if id, ok := x.(*ast.Ident); ok && id.Name != "_" {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

func TestFragment(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{"r, err := c.Get(ctx, k)\n",
			"func _() (_ error) {\n//line a.md:1\nr, err := c.Get(ctx, k)\n_ = r\n_ = err\nreturn\n}\n"},
		{"if err != nil {\n\treturn err\n}\n",
			"func _() (_ error) {\n//line a.md:1\nif err != nil {\n\treturn err\n}\nreturn\n}\n"},
		{"func f() {}\n", ")\n//line a.md:1\nfunc f() {}\n"},
		{"backup.List(ctx, nil)\n", "\t\"" + module + "/db/backup\"\n"},
	} {
		got, err := fragment("a", "//line a.md:1\n", test.source)
		if err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%q: %v\n%s", test.source, err, got)
		}
	}
	if _, err := fragment("a", "", "func f("); err == nil {
		t.Error("what cannot be parsed passes")
	}
}
