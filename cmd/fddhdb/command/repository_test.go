package command

import (
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func TestFolderOf(t *testing.T) {
	slashes := func(s string) string { return filepath.FromSlash(s) }
	for name, want := range map[string][2]string{ // on Windows, elsewhere
		"backups":                {"backups", "backups"},
		"./a:b":                  {"./a:b", "./a:b"},
		`C:\backups`:             {`C:\backups`, `C:\backups`},
		"file:///mnt/b":          {slashes("/mnt/b"), slashes("/mnt/b")},
		"file:/mnt/b":            {slashes("/mnt/b"), slashes("/mnt/b")},
		"FILE:///a%20b%3F":       {slashes("/a b?"), slashes("/a b?")},
		"file://localhost/mnt/b": {slashes("/mnt/b"), slashes("/mnt/b")},
		"file:///C:/backups":     {slashes("C:/backups"), slashes("/C:/backups")},
		"file://server/share/b":  {slashes("//server/share/b"), ""},
		"file://b":               {"", ""},
		"file:b":                 {"", ""},
		"file:///a?b":            {"", ""},
		"file:///a#b":            {"", ""},
		"file:///a%00b":          {"", ""},
		"file:///%zz":            {"", ""},
		"https://host/b":         {"", ""},
		"sftp://host/b":          {"", ""},
		"sftp:b":                 {"", ""},
	} {
		for i, windows := range []bool{true, false} {
			got, err := folderOf(name, windows)
			if got != want[i] || (err == nil) != (want[i] != "") || err != nil && exit.Code(err) != exit.Usage {
				t.Errorf("%s, Windows %v: %q, %v, want %q", name, windows, got, err, want[i])
			}
		}
	}
}
