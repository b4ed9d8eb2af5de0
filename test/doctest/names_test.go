package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	goFile   = regexp.MustCompile(`^[\w./-]+/[\w.-]+\.go$`)
	testName = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)[A-Z]\w*$`)
)

// Files of Go and tests that a document names are there, so that moving one moves the
// map with it.
func TestNamesOfCode(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, found := range testFunction.FindAllStringSubmatch(tests.String(), -1) {
		declared[found[1]] = true
	}
	b, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	contributing := &document{path: "CONTRIBUTING.md", lines: strings.Split(string(b), "\n")}
	for _, d := range append(documents(t), contributing) {
		for i, line := range d.lines {
			for _, found := range quoted.FindAllStringSubmatch(line, -1) {
				name := found[1]
				if goFile.MatchString(name) {
					if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
						t.Errorf("%s: there is no file %s", d.at(i), name)
					}
				}
				if testName.MatchString(name) && !declared[name] {
					t.Errorf("%s: there is no test %s", d.at(i), name)
				}
			}
		}
	}
}
