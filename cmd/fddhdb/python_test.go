package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/python"
)

// runPython runs a program of testdata/python, with numpy, beside the client as the command prints it. It
// skips the test where no Python has numpy.
func runPython(t *testing.T, program string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	out := clitest.Must(exec.Command("fddhdb", "python").Output())(t)
	clitest.WriteFile(t, filepath.Join(dir, "fddhdb.py"), string(out))
	program = clitest.Must(filepath.Abs(filepath.Join("testdata", "python", program)))(t)
	for _, interpreter := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(interpreter, "-c", "import numpy").Run() != nil {
			continue
		}
		all := append([]string{"-W", "error::ResourceWarning", program}, args...)
		cmd := exec.Command(interpreter, all...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1",
			"FDDHDB_BINARY="+clitest.Must(exec.LookPath("fddhdb"))(t))
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", interpreter, err, said)
		}
		return
	}
	t.Skip("there is no python3 with numpy")
}

// The client does what it says, in a Python of its own, whatever ends meanwhile.
func TestPython(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	runPython(t, "test_fddhdb.py")
}

// The blocks of docs/PYTHON.md run, one after the other, and print what it says.
func TestPythonDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	runPython(t, "run_document.py", clitest.Must(filepath.Abs("../../docs/PYTHON.md"))(t))
}

// The client is one file of a length that can be read, and has a version of the form that Python knows.
func TestPythonFile(t *testing.T) {
	out := clitest.Must(exec.Command("fddhdb", "python").Output())(t)
	if n := bytes.Count(out, []byte("\n")); n >= 900 {
		t.Errorf("fddhdb.py has %d lines", n)
	}
	if string(out) != python.Source() || !strings.Contains(python.Source(), "\n__version__ = \"") {
		t.Error("the command prints another client, or one without a version")
	}
	for i, line := range strings.Split(string(out), "\n") {
		if len(line) > 120 {
			t.Errorf("line %d of fddhdb.py has %d columns", i+1, len(line))
		}
	}
}
