package picture

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db"
)

func TestFilesNamed(t *testing.T) {
	for value, want := range map[string]string{
		"a.png":                            "[a.png]",
		"x/y/a.png":                        "[x/y/a.png y/a.png a.png]",
		`C:\photos\a.png`:                  "[C:/photos/a.png photos/a.png a.png]",
		"/photos/a.png":                    "[photos/a.png a.png]",
		"file:///photos/a%20b.png":         "[photos/a b.png a b.png]",
		"https://host:1/p/a.png?x=/b.png#": "[p/a.png a.png]",
		"https://host":                     "[]",
		"http://%zz/a.png":                 "[]",
		"../../a.png":                      "[a.png]",
		"x/../../a.png":                    "[a.png]",
		"":                                 "[]",
		".":                                "[]",
		"..":                               "[]",
		"/":                                "[]",
	} {
		if filepath.Separator != '/' {
			want = strings.ReplaceAll(want, "C:/photos/a.png ", "") // no local name there
		}
		var got []string
		for _, name := range filesNamed(value) {
			got = append(got, filepath.ToSlash(name))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", value, got, want)
		}
	}
	if n := len(filesNamed(strings.Repeat("a/", 100_000))); n > 16 {
		t.Errorf("%d names", n)
	}
}

// No name and no link leads out of the folder, and a file that is no picture counts as
// none.
func TestPicturesStayInTheirFolder(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "in")
	clitest.Check(t, os.MkdirAll(filepath.Join(inside, "folder.png"), 0o777))
	data := string(clitest.Picture(t, "a.png", 3, 3, color.Black))
	clitest.WriteFile(t, filepath.Join(dir, "out.png"), data)
	clitest.WriteFile(t, filepath.Join(inside, "a.png"), data)
	clitest.WriteFile(t, filepath.Join(inside, "text.png"), "no picture")
	clitest.WriteFile(t, filepath.Join(inside, "empty.png"), "")
	linked := os.Symlink(filepath.Join(dir, "out.png"), filepath.Join(inside, "link.png")) == nil
	f, err := OpenFolder(inside, func(head []byte) bool { return strings.HasPrefix(string(head), "\x89PNG") })
	clitest.Check(t, err)
	defer f.Close()
	for name, want := range map[string]bool{
		"a.png": true, "x/a.png": true, filepath.Join(inside, "a.png"): true,
		"out.png": false, "../out.png": false, filepath.Join(dir, "out.png"): false, "link.png": false,
		"text.png": false, "empty.png": false, "folder.png": false, "none.png": false, "a.png\x00": false,
	} {
		if name == "link.png" && !linked {
			continue
		}
		for _, it := range []*db.Item{{Key: name},
			{Key: "k", Fields: map[string]any{"year": 1999, "file": name}}} {
			file := f.Find(it)
			if (file != "") != want {
				t.Fatalf("%s: %v", name, file)
			}
			if file == "" {
				continue
			}
			if got, err := f.Read(file); err != nil || string(got) != data {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
}
