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
		b, err := os.ReadFile(filepath.Join("testdata", "mat", name))
		if err != nil {
			t.Fatal(err)
		}
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

// Octave and scipy read .mat files written here.
func TestOthersReadOurMAT(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, matrix func(f *os.File) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := matrix(f); err != nil {
			t.Fatal(err)
		}
	}
	write("dense.mat", func(f *os.File) error {
		w, err := NewMATWriter(f, "x", 3, 2)
		if err != nil {
			return err
		}
		for _, row := range [][]float32{{1, -.5}, {0, 3e38}, {1e-45, 7}} {
			if err := w.Write(row); err != nil {
				return err
			}
		}
		return w.Close()
	})
	write("sparse.mat", func(f *os.File) error {
		w, err := NewMATSparseWriter(f, "x", 4)
		if err != nil {
			return err
		}
		for _, row := range []sparseRow{{[]uint32{0, 3}, []float32{1.5, -2}}, {}, {[]uint32{1}, []float32{.25}}} {
			if err := w.Write(row.index, row.value); err != nil {
				return err
			}
		}
		return w.Close()
	})
	t.Run("octave", func(t *testing.T) {
		said := octave(t, dir, `
dense = load("dense.mat").x;
sparsely = load("sparse.mat").x;
disp(isequal(dense, single([1 -.5; 0 3e38; 1e-45 7])) && isa(dense, "single"))
disp(issparse(sparsely) && isequal(full(sparsely), [1.5 0 0 -2; 0 0 0 0; 0 .25 0 0]))
`)
		if said != "1\n1" {
			t.Errorf("Octave sees other matrices: %s", said)
		}
	})
	t.Run("scipy", func(t *testing.T) {
		said := python(t, dir, "scipy.io", `
import numpy as np, scipy.io as io, scipy.sparse as sp
dense, sparsely = io.loadmat("dense.mat")["x"], io.loadmat("sparse.mat")["x"]
print(dense.dtype == "f4" and np.array_equal(dense, np.array([[1, -.5], [0, 3e38], [1e-45, 7]], "f4")))
print(sp.issparse(sparsely) and np.array_equal(sparsely.toarray(), [[1.5, 0, 0, -2], [0, 0, 0, 0], [0, .25, 0, 0]]))
`)
		if said != "True\nTrue" {
			t.Errorf("scipy sees other matrices: %s", said)
		}
	})
}
