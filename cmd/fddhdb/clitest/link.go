package clitest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CallsNoMethodByName links the program in the folder of the test and reports what in it calls methods by
// their names at run time, as templates do. The linker of such a program keeps every exported method of every
// type: it makes a file that is a quarter larger.
func CallsNoMethodByName(t *testing.T) {
	t.Helper()
	build := exec.Command("go", "build", "-ldflags=-s -w -dumpdep", "-o",
		filepath.Join(t.TempDir(), "program"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("main.main -> ")) {
		t.Fatalf("the linker does not tell what depends on what: %v\n%.2000s", err, out)
	}
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte("<ReflectMethod> -> reflect.")) &&
			!bytes.HasPrefix(line, []byte("type:")) {
			t.Errorf("it is kept by: %s", line)
		}
	}
}
