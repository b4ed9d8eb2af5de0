package files

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/npy"
)

// member is a file of an archive.
type member struct {
	name string
	b    []byte
}

// buildNPZ writes an archive, independently of CSRWriter.
func buildNPZ(t testing.TB, method uint16, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f := must(w.CreateHeader(&zip.FileHeader{Name: m.name + ".npy", Method: method}))(t)
		if _, err := f.Write(m.b); err != nil {
			t.Fatal(err)
		}
	}
	check(t, w.Close())
	return out.Bytes()
}

func formatMember(name string) member {
	return member{"format", buildNPY(1, dict(fmt.Sprintf("|S%d", len(name)), "False", "()"), []byte(name))}
}

func shapeMember(t testing.TB, rows, cols int64) member {
	return member{"shape", build(t, 1, "<i8", "False", "(2,)", []int64{rows, cols})}
}

// csrMembers are the members of a matrix of float64 and int32, as scipy writes it.
func csrMembers(t testing.TB, rows, cols int64, indptr, indices []int32, data []float64) []member {
	one := func(n int) string { return fmt.Sprintf("(%d,)", n) }
	return []member{
		{"indices", build(t, 1, "<i4", "False", one(len(indices)), indices)},
		{"indptr", build(t, 1, "<i4", "False", one(len(indptr)), indptr)},
		formatMember("csr"), shapeMember(t, rows, cols),
		{"data", build(t, 1, "<f8", "False", one(len(data)), data)},
	}
}

// replaced returns the members with one of them replaced, or left out for nil bytes.
func replaced(members []member, name string, b []byte) []member {
	members = slices.Clone(members)
	i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
	if b == nil {
		return slices.Delete(members, i, i+1)
	}
	members[i].b = b
	return members
}

// sparseRows reads all rows as text. An error replaces its row.
func sparseRows(t testing.TB, b []byte) (rows []string, r *Vectors, err error) {
	t.Helper()
	open, err := npy.OpenZip(memory("x.npz", b), false)
	if err != nil {
		return nil, nil, err
	}
	r = open
	for {
		index, value, err := r.NextSparse([]uint32{99}, []float32{99})
		if err == io.EOF {
			return rows, r, nil
		}
		var bad *Error
		switch {
		case err == nil:
			rows = append(rows, fmt.Sprint(index[1:], value[1:]))
		case errors.As(err, &bad) && bad.Col >= 0:
			rows = append(rows, err.Error())
		default:
			return rows, r, err
		}
	}
}

func TestReadCSR(t *testing.T) {
	inf := math.Inf(1)
	indptr, indices := []int32{0, 2, 2, 6, 7}, []int32{0, 3, 4, 1, 4, 2, 1}
	data := []float64{1, 2, .5, 3, .25, 0, inf}
	want := []string{"[0 3] [1 2]", "[] []", "[1 4] [3 0.75]",
		"x.npz: row 3, column 1: +Inf is not a finite number, which every value of a vector must be: replace it or drop the row"}
	members := csrMembers(t, 4, 5, indptr, indices, data)
	widened := func(x []int32) (y []int64) {
		for _, v := range x {
			y = append(y, int64(v))
		}
		return y
	}
	for name, b := range map[string][]byte{
		"stored":     buildNPZ(t, zip.Store, members...),
		"compressed": buildNPZ(t, zip.Deflate, members...),
		"int64": buildNPZ(t, zip.Deflate, replaced(replaced(members,
			"indptr", build(t, 1, "<i8", "False", "(5,)", widened(indptr))),
			"indices", build(t, 1, ">i8", "False", "(7,)", widened(indices)))...),
		"of a newer scipy": buildNPZ(t, zip.Deflate,
			append(members, member{"_is_array", buildNPY(1, dict("|b1", "False", "()"), []byte{1})})...),
		"format of text": buildNPZ(t, zip.Deflate, replaced(members, "format",
			buildNPY(1, dict("<U3", "False", "()"), []byte("c\000\000\000s\000\000\000r\000\000\000")))...),
	} {
		rows, r, err := sparseRows(t, b)
		if err != nil || !slices.Equal(rows, want) || r.Rows != 4 || r.Cols != 5 {
			t.Errorf("%s: %q of %v, want %q (%v)", name, rows, r, want, err)
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if _, _, err := r.NextSparse(nil, nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
	// The rows of integers, read as dense ones.
	b := buildNPZ(t, zip.Deflate, replaced(csrMembers(t, 2, 3, []int32{0, 1, 3}, []int32{2, 0, 1}, nil),
		"data", build(t, 1, "|i1", "False", "(3,)", []int8{-1, 7, 1}))...)
	r := must(npy.OpenZip(memory("x", b), false))(t)
	x, rows, cols, err := restOf(r)
	wantMatrix(t, x, rows, cols, err, [][]float32{{0, 0, -1}, {7, 1, 0}}, 3)
	// No numbers, and no rows.
	for _, n := range []int64{0, 2} {
		rows, _, err := sparseRows(t,
			buildNPZ(t, zip.Deflate, csrMembers(t, n, 5, make([]int32, n+1), nil, nil)...))
		if err != nil || len(rows) != int(n) || n > 0 && rows[1] != "[] []" {
			t.Errorf("%d rows: %q, %v", n, rows, err)
		}
	}
}

func TestReadCSRRefuses(t *testing.T) {
	good := csrMembers(t, 2, 3, []int32{0, 1, 3}, []int32{2, 0, 1}, []float64{1, 2, 3})
	npz := func(members []member) []byte { return buildNPZ(t, zip.Deflate, members...) }
	change := func(name string, b []byte) []byte { return npz(replaced(good, name, b)) }
	damaged := buildNPZ(t, zip.Store, good...)
	at := bytes.Index(damaged, build(t, 1, "<f8", "False", "(3,)", []float64{1, 2, 3}))
	damaged[at+80] ^= 1
	for name, c := range map[string]struct {
		b    []byte
		says string
	}{
		"bsr": {change("format", formatMember("bsr").b),
			`x.npz: holds a sparse matrix of format "bsr", and csr is read: write it with scipy.sparse.save_npz(FILE, m.tocsr())`},
		"no zip":     {[]byte("\x93NUMPY"), "x.npz: is not a .npz file, which is a zip archive"},
		"no indices": {change("indices", nil), `has no member "indices"`},
		"no data":    {change("data", nil), `has no member "data"`},
		"columns":    {change("shape", shapeMember(t, 2, 1<<20+1).b), "1,048,577 columns"},
		"no columns": {change("shape", shapeMember(t, 2, 0).b), "has no columns"},
		"rows":       {change("shape", shapeMember(t, -2, 3).b), "has -2 rows"},
		"other rows": {change("shape", shapeMember(t, 5, 3).b),
			"indptr has 3 numbers, 5 rows need one more"},
		"shape": {change("shape", build(t, 1, "<i8", "False", "(3,)", []int64{1, 2, 3})),
			"x.npz:shape: has 3 numbers, not two"},
		"float shape": {change("shape", build(t, 1, "<f8", "False", "(2,)", []float64{2, 3})),
			"integers are expected"},
		"more data": {change("data", build(t, 1, "<f8", "False", "(4,)", []float64{1, 2, 3, 4})),
			"indices has 3 numbers and data 4"},
		"two-d data": {change("data", build(t, 1, "<f8", "False", "(3, 1)", []float64{1, 2, 3})),
			"x.npz:data: has two dimensions"},
		"float starts": {change("indptr", build(t, 1, "<f4", "False", "(3,)", []float32{0, 1, 3})),
			"x.npz:indptr: is of dtype float32, where integers are expected"},
		"start": {change("indptr", build(t, 1, "<i4", "False", "(3,)", []int32{1, 1, 3})),
			"starts with 1, not with 0"},
		"descending": {change("indptr", build(t, 1, "<i4", "False", "(3,)", []int32{0, 3, 1})),
			"row 1 ends at 1 of 3 numbers, the one before at 3"},
		"beyond": {change("indptr", build(t, 1, "<i4", "False", "(3,)", []int32{0, 1, 4})),
			"ends at 4 of 3"},
		"rest": {change("indptr", build(t, 1, "<i4", "False", "(3,)", []int32{0, 1, 2})),
			"m.prune()"},
		"too many": {npz(csrMembers(t, 1, 2, []int32{0, 3}, []int32{0, 1, 0}, []float64{1, 2, 3})),
			"m.sum_duplicates()"},
		"column": {change("indices", build(t, 1, "<i4", "False", "(3,)", []int32{2, 3, 1})),
			"row 1 has a number in column 3 of 3"},
		"negative": {change("indices", build(t, 1, "<i4", "False", "(3,)", []int32{-1, 0, 1})),
			"row 0 has a number in column -1"},
		"truncated": {change("data", build(t, 1, "<f8", "False", "(3,)", []float64{1, 2, 3})[:100]),
			"x.npz:data: holds"},
		"damaged": {damaged, "checksum"},
	} {
		_, _, err := sparseRows(t, c.b)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A sum that is too large costs its row only.
	rows, _, err := sparseRows(t,
		npz(csrMembers(t, 2, 3, []int32{0, 2, 3}, []int32{1, 1, 0}, []float64{0x1p127, 0x1p127, 1})))
	if err != nil || len(rows) != 2 ||
		!strings.Contains(rows[0], "row 0, column 1: 3.402823669209385e+38 is too large for float32") ||
		rows[1] != "[0] [1]" {
		t.Errorf("%q, %v", rows, err)
	}
}

func TestReadNPZMembers(t *testing.T) {
	dir := t.TempDir()
	c := build(t, 1, "<f4", "False", "(2, 2)", []float32{1, 2, 3, 4})
	fortran := build(t, 1, "<f4", "True", "(2, 2)", []float32{1, 2, 3, 4})
	file := func(name string, members ...member) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, buildNPZ(t, zip.Deflate, members...), 0o644))
		return path
	}
	one, two := file("one.NPZ", member{"arr_0", c}), file("two.npz", member{"train", c},
		member{"test", fortran})
	sparse := file("sparse.npz", csrMembers(t, 2, 3, []int32{0, 1, 3}, []int32{2, 0, 1},
		[]float64{1, 2, 3})...)
	for _, path := range []string{one, one + ":arr_0", two + ":train"} {
		x, rows, cols, err := ReadAll(path)
		wantMatrix(t, x, rows, cols, err, [][]float32{{1, 2}, {3, 4}}, 2)
	}
	x, rows, cols, err := ReadAll(sparse + ":data")
	wantMatrix(t, x, rows, cols, err, [][]float32{{1, 2, 3}}, 3)
	x, rows, cols, err = ReadAll(sparse)
	wantMatrix(t, x, rows, cols, err, [][]float32{{0, 0, 1}, {2, 3, 0}}, 3)
	for path, says := range map[string]string{
		two: "has several members: say which with " + two +
			":NAME, NAME being one of test, train",
		two + ":val":          `has no member "val": there is test, train`,
		two + ":test":         "Fortran order",
		file("empty.npz"):     "has no members",
		dir + "/none.npz:x":   "no such file",
		file("bad.npz") + ":": "has no members",
		file("twice.npz", member{"a", c}, member{"a", c}): "two members",
	} {
		if _, _, _, err := ReadAll(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestZipBomb: claims are not allocated, and contents are streamed.
func TestZipBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const n = 8 << 20
	zeros := make([]byte, 4*n)
	starts := buildNPY(1, dict("<i4", "False", fmt.Sprintf("(%d,)", n)), zeros)
	b := buildNPZ(t, zip.Deflate, replaced(csrMembers(t, n-1, 5, nil, nil, nil), "indptr", starts)...)
	before := allocated()
	rows := 0
	r := must(npy.OpenZip(memory("x", b), false))(t)
	dst := make([]float32, 5)
	for ; r.Next(dst) == nil; rows++ {
	}
	if used := allocated() - before; rows != n-1 || used > 2<<20 {
		t.Errorf("%d rows of a file of %d bytes took %d bytes", rows, len(b), used)
	}
}

func TestCSRWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	w := must(npy.NewCSRWriter(&out, 1000))(t)
	var want []string
	for range 20_000 {
		index, value := []uint32{}, []float32{}
		for j := range uint32(1000) {
			if rng.IntN(200) == 0 {
				index, value = append(index, j), append(value, rng.Float32()+1)
			}
		}
		want = append(want, fmt.Sprint(index, value))
		check(t, w.Write(index, value))
	}
	for _, bad := range [][]uint32{{1, 1}, {2, 1}, {0, 1000}, {0}} {
		if err := w.Write(bad, []float32{1, 1}); err == nil {
			t.Errorf("%v is written", bad)
		}
	}
	check(t, w.Close())
	rows, _, err := sparseRows(t, out.Bytes())
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%d rows came back other than they were (%v)", len(rows), err)
	}
	// Everything that scipy looks for is there, in scipy's form.
	archive := must(zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())))(t)
	for _, c := range []struct{ name, head string }{
		{"format", "{'descr': '|S3', 'fortran_order': False, 'shape': (), }"},
		{"shape", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"},
		{"indptr", "{'descr': '<i4', 'fortran_order': False, 'shape': (20001,), }"},
		{"indices", "{'descr': '<i4', "}, {"data", "{'descr': '<f4', "},
	} {
		f := must(archive.Open(c.name + ".npy"))(t)
		b, err := io.ReadAll(f)
		if err != nil || !strings.HasPrefix(string(b[10:]), c.head) {
			t.Errorf("%s: %q, %v", c.name, b[:min(len(b), 100)], err)
		}
	}
	for _, cols := range []int{0, matrix.MaxCols + 1} {
		if _, err := npy.NewCSRWriter(io.Discard, cols); err == nil {
			t.Errorf("%d columns can be written", cols)
		}
	}
}

// TestCSRChangesWhileItIsRead: row starts that were valid when the file was opened lie beyond the numbers
// when they are read again. The checksum is known only at the end.
func TestCSRChangesWhileItIsRead(t *testing.T) {
	const rows, from, to = 30000, 9000, 16000 // of the starts that change
	starts, columns := make([]int32, rows+1), make([]int32, rows)
	for i := range starts {
		starts[i] = int32(i)
	}
	b := buildNPZ(t, zip.Store, csrMembers(t, rows, 4, starts, columns, make([]float64, rows))...)
	changed := bytes.NewReader(b)
	r := must(npy.OpenZip(matrix.Source{Name: "x.npz", ReaderAt: changed, Size: int64(len(b))}, false))(t)
	defer r.Close()
	whole := slices.Clone(b)
	at := bytes.Index(whole, []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0})
	for i := from; i < to; i++ {
		binary.LittleEndian.PutUint32(whole[at+4*i:], uint32(from+4*(i-from)))
	}
	changed.Reset(whole)
	var err error
	for err == nil {
		_, _, err = r.NextSparse(nil, nil)
	}
	checkNPZError(t, err)
	if !strings.Contains(err.Error(), "changes while it is read") {
		t.Error(err)
	}
}

func FuzzNPZ(f *testing.F) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		f.Add(buildNPZ(f, method, csrMembers(f, 2, 3, []int32{0, 1, 3}, []int32{2, 1, 1},
			[]float64{1, 2, 3})...))
		f.Add(buildNPZ(f, method, csrMembers(f, 1, 1<<20, []int32{0, 2}, []int32{7, 5},
			[]float64{math.NaN(), 3})...))
		f.Add(buildNPZ(f, method, member{"x", build(f, 1, "<f4", "False", "(2, 2)", []float32{1, 2, 3, 4})}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// 8 MiB are two rows of the largest matrix. Each entry of the directory and each open member costs
		// buffers.
		bounded(t, len(b), 16<<20, 256, func() {
			r, err := npy.OpenZip(memory("x", b), false)
			if err != nil {
				checkNPZError(t, err)
				return
			}
			defer r.Close()
			dst := make([]float32, r.Cols)
			for i := 0; i*r.Cols < 1<<24; i++ {
				var err error
				if r.Sparse && i%2 == 0 {
					var index []uint32
					index, _, err = r.NextSparse(nil, nil)
					for e, j := range index {
						if int(j) >= r.Cols || e > 0 && j <= index[e-1] {
							t.Fatalf("row %d has columns %v", i, index)
						}
					}
				} else {
					err = r.Next(dst)
				}
				if err == io.EOF && i != r.Rows || i > r.Rows {
					t.Fatalf("%d rows of %d", i, r.Rows)
				}
				var bad *Error
				if err != nil && !(errors.As(err, &bad) && bad.Row >= 0) {
					if err != io.EOF {
						checkNPZError(t, err)
					}
					return
				}
			}
		})
	})
}

func checkNPZError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.File, "x") || e.Err == nil {
		t.Errorf("%#v is no *Error about the file", err)
	}
}
