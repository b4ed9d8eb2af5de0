package arrows

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The libraries of the nested modules know no program: what a program is given, prints and ends with is
// decided in its own package. The one exception reads the files of an import, which a pipeline reads as
// import does.
func TestLibrariesOfModules(t *testing.T) {
	allowed := map[string][]string{"db/beam": {"cmd/fddhdb/source"}}
	libraries := 0
	err := filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "go.mod" ||
			filepath.Dir(file) == filepath.FromSlash("../..") {
			return err
		}
		root := filepath.Dir(file)
		rel, err := filepath.Rel("../..", root)
		if err != nil {
			return err
		}
		packages, err := readModule(root)
		if err != nil {
			return err
		}
		for name, s := range packages {
			name = path.Join(filepath.ToSlash(rel), name)
			if strings.Contains(name+"/", "/cmd/") || !within(name, "db") && !within(name, "contrib") {
				continue
			}
			libraries++
			for imported := range s.imports {
				if within(imported, "cmd") || within(imported, "internal") {
					if !slices.Contains(allowed[name], imported) {
						t.Errorf("%s imports %s: a library knows no program, and no package that another module keeps to itself", name, imported)
					}
				}
			}
		}
		return nil
	})
	if err != nil || libraries < 2 {
		t.Errorf("%d libraries, %v", libraries, err)
	}
}
