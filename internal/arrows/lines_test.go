package arrows

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line has at most 110 columns, a tab counting as 4, so that two files fit beside each other. A text that a
// user reads stays whole, for those who look for it in the code: lines with a long string may be longer.
func TestLinesAreShort(t *testing.T) {
	const columns, text = 110, 25
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() != "../.." && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mayBeLong := map[int]bool{}
		set := token.NewFileSet()
		var s scanner.Scanner
		output := false // of an example
		s.Init(set.AddFile(file, -1, len(b)), b, nil, scanner.ScanComments)
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				break
			}
			line := set.Position(pos).Line
			output = tok == token.COMMENT && (output || strings.HasPrefix(lit, "// Output:"))
			shown := output || tok == token.COMMENT &&
				(strings.HasPrefix(lit, "//\t") || strings.Contains(lit, "://"))
			if tok == token.STRING && len(lit) >= text || shown {
				for i := range strings.Count(lit, "\n") + 1 {
					mayBeLong[line+i] = true
				}
			}
		}
		for i, line := range strings.Split(string(b), "\n") {
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > columns &&
				!mayBeLong[i+1] {
				t.Errorf("%s:%d: %d columns: %d are possible", file, i+1, n, columns)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
