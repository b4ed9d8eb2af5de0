package files

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// octave runs a program of GNU Octave in a folder. It skips the test if Octave is missing.
func octave(t *testing.T, dir, program string) string {
	t.Helper()
	path, err := exec.LookPath("octave-cli")
	if err != nil {
		t.Skip("there is no Octave:", err)
	}
	cmd := exec.Command(path, "--norc", "--eval", program)
	cmd.Dir = dir
	var complaints bytes.Buffer // some versions complain when they end
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	return strings.TrimSpace(string(out))
}

// The versions of Octave and scipy that are installed write what those behind testdata/mat wrote.
func TestMATFilesOfInstalledWriters(t *testing.T) {
	program := func(name string) string {
		b := must(os.ReadFile(filepath.Join("testdata", "mat", name)))(t)
		return string(b)
	}
	t.Run("octave", func(t *testing.T) {
		dir := t.TempDir()
		octave(t, dir, program("make.m"))
		wantMatrices(t, filepath.Join(dir, "octave_v6.mat"))
		wantMatrices(t, filepath.Join(dir, "octave_v7.mat"))
	})
	t.Run("scipy", func(t *testing.T) {
		dir := t.TempDir()
		python(t, dir, "scipy.io", program("make.py"))
		wantMatrices(t, filepath.Join(dir, "scipy.mat"))
		wantMatrices(t, filepath.Join(dir, "scipy_compressed.mat"))
	})
}
