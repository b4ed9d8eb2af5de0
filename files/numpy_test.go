package files

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/npy"
)

// python runs a program with numpy in a folder. It skips the test if numpy is missing.
func python(t *testing.T, dir, needs, program string) string {
	t.Helper()
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(path, "-c", "import "+needs).Run() != nil {
			continue
		}
		cmd := exec.Command(path, "-c", program)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Skipf("there is no python3 with %s", needs)
	return ""
}

// Files of numpy are read correctly: value (i, j) is 2 i - j / 4.
func TestFilesOfNumpy(t *testing.T) {
	dir := t.TempDir()
	python(t, dir, "numpy", `
import numpy as np
x = 2.0 * np.arange(5)[:, None] - np.arange(3)[None, :] / 4
for t in ("f2", "f4", "f8", ">f4", ">f8"):
    np.save("c" + t.strip(">") + ("be" if t[0] == ">" else "") + ".npy", x.astype(t))
    np.save("f" + t.strip(">") + ("be" if t[0] == ">" else "") + ".npy", np.asfortranarray(x.astype(t)))
np.savez("stored.npz", image=x.astype("f4"), text=-x.astype("f2"))
np.savez_compressed("deflated.npz", image=x.astype("f4"), text=-x.astype("f2"))
np.savez_compressed("one.npz", x)
np.save("column.npy", x[:, :1].astype("f4"))
np.save("vector.npy", x[3].astype("f4"))
np.savetxt("x.csv", x, delimiter=",")
`)
	files, err := filepath.Glob(filepath.Join(dir, "[cf]f*.npy"))
	if err != nil || len(files) != 10 {
		t.Fatal(files, err)
	}
	for _, name := range []string{"stored.npz:image", "stored.npz:text", "deflated.npz:image",
		"deflated.npz:text", "one.npz", "x.csv"} {
		files = append(files, filepath.Join(dir, name))
	}
	value := func(i, j int) float64 { return 2*float64(i) - float64(j)/4 }
	for _, file := range files {
		if strings.HasSuffix(file, ":text") {
			wantValues(t, file, 5, 3, func(i, j int) float64 { return -value(i, j) })
		} else {
			wantValues(t, file, 5, 3, value)
		}
	}
	wantValues(t, filepath.Join(dir, "column.npy"), 5, 1, value)
	wantValues(t, filepath.Join(dir, "vector.npy"), 1, 3, func(_, j int) float64 { return value(3, j) })
}

// wantValues compares a file with values by row and column.
func wantValues(t *testing.T, file string, rows, cols int, want func(i, j int) float64) {
	t.Helper()
	data, n, d, err := ReadAll(file)
	if err != nil || n != rows || d != cols {
		t.Errorf("%s: %d x %d, %v, want %d x %d", file, n, d, err, rows, cols)
		return
	}
	for i := range rows {
		for j := range cols {
			if v := data[i*cols+j]; float64(v) != want(i, j) {
				t.Errorf("%s: (%d, %d) is %v, want %v", file, i, j, v, want(i, j))
			}
		}
	}
}

// Files of scipy are read here, and numpy and scipy read files written here.
func TestSparseFilesOfScipy(t *testing.T) {
	dir := t.TempDir()
	python(t, dir, "scipy.sparse", `
import numpy as np, scipy.sparse as sp
x = np.zeros((4, 6), "f8"); x[0, 5] = 1.5; x[2, 0] = -2; x[2, 3] = .25
sp.save_npz("deflated.npz", sp.csr_matrix(x))
sp.save_npz("stored.npz", sp.csr_matrix(x.astype("f4")), compressed=False)
`)
	want := map[[2]int]float32{{0, 5}: 1.5, {2, 0}: -2, {2, 3}: .25}
	for _, name := range []string{"deflated.npz", "stored.npz"} {
		data, rows, cols, err := ReadAll(filepath.Join(dir, name))
		if err != nil || rows != 4 || cols != 6 {
			t.Fatalf("%s: %d x %d, %v", name, rows, cols, err)
		}
		for i, v := range data {
			if v != want[[2]int{i / cols, i % cols}] {
				t.Errorf("%s: (%d, %d) is %v", name, i/cols, i%cols, v)
			}
		}
	}
	f := must(os.Create(filepath.Join(dir, "ours.npz")))(t)
	w := must(npy.NewCSRWriter(f, 6))(t)
	for _, row := range []struct {
		index []uint32
		value []float32
	}{{[]uint32{5}, []float32{1.5}}, {}, {[]uint32{0, 3}, []float32{-2, .25}}, {}} {
		check(t, w.Write(row.index, row.value))
	}
	check(t, w.Close())
	check(t, f.Close())
	if said := python(t, dir, "scipy.sparse", `
import numpy as np, scipy.sparse as sp
print((sp.load_npz("ours.npz") != sp.load_npz("stored.npz")).nnz)
`); said != "0" {
		t.Errorf("scipy sees differences in %s values", said)
	}
}

// numpy reads files written here, bit for bit.
func TestNumpyReadsOurs(t *testing.T) {
	dir := t.TempDir()
	f := must(os.Create(filepath.Join(dir, "ours.npy")))(t)
	w := must(npy.NewWriter[float32](f, 2, 3))(t)
	rows := [][]float32{{1, -0.1, math.MaxFloat32}, {math.SmallestNonzeroFloat32, 0, 3e-5}}
	for _, row := range rows {
		check(t, w.Write(row))
	}
	check(t, w.Close())
	check(t, f.Close())
	python(t, dir, "numpy", `
import numpy as np
np.save("theirs.npy", np.load("ours.npy"))
`)
	data, n, cols, err := ReadAll(filepath.Join(dir, "theirs.npy"))
	if err != nil || n != 2 || cols != 3 {
		t.Fatal(n, cols, err)
	}
	for i, v := range data {
		if math.Float32bits(v) != math.Float32bits(rows[i/3][i%3]) {
			t.Errorf("value %d is %v", i, v)
		}
	}
}
