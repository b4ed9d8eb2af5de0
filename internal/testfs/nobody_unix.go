//go:build unix

package testfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that no file belongs to, nearly everywhere.
const nobody = 65534

// Nobody runs tests of this package as a user whom the permissions of files bind, if the process is of root,
// whom they do not, and reports whether it has. run is as of go test -run. files are what they read below the
// present folder; they get a copy of it.
func Nobody(t *testing.T, run string, files ...string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "nobody-") // t.TempDir is inside a folder of root alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	give := func(path string) {
		if err := os.Lchown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	put := func(from, to string, mode os.FileMode) {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, mode); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "test")
	put(os.Args[0], program, 0o755)
	for _, file := range files {
		put(file, filepath.Join(dir, file), 0o644)
	}
	give(dir)
	cmd := exec.Command(program, "-test.run", run, "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody,
		NoSetGroups: true}}
	out, err := cmd.CombinedOutput()
	if said := string(out); err != nil || strings.Contains(said, "--- SKIP") ||
		!strings.Contains(said, "--- PASS") {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return true
}
