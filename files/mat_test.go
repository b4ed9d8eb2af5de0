package files

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/mat"
)

// Files of Octave and scipy: see testdata/mat/README.md.
func TestMATFilesOfOtherWriters(t *testing.T) {
	for _, file := range []string{"octave_v6.mat", "octave_v7.mat", "scipy.mat", "scipy_compressed.mat"} {
		wantMatrices(t, filepath.Join("testdata", "mat", file))
	}
}

// wantMatrices expects what testdata/mat/README.md says of a file.
func wantMatrices(t *testing.T, path string) {
	t.Helper()
	for name, add := range map[string]float32{"double": .25, "single": .25, "int8": 0, "uint8": 0, "int16": 0,
		"uint16": 0,
		"int32":  0, "uint32": 0, "int64": 0, "uint64": 0, "logical": 0} {
		var want []float32
		for i := range 5 {
			for j := range 3 {
				x := float32(10*i+j) + add
				if name == "logical" {
					x = map[bool]float32{true: 1}[x > 20]
				}
				want = append(want, x)
			}
		}
		wantMAT(t, path+":"+name, want, 5, 3)
	}
	var want []float32
	for i := range 5 {
		for j := range 4 {
			x := float32(0)
			if (i+j)%3 == 0 {
				x = float32(10*i+j) + .5
			}
			want = append(want, x)
		}
	}
	wantMAT(t, path+":sparse", want, 5, 4)
	r := must(Open(path+":sparse", path+":sparse"))(t)
	s := r
	for i := 0; ; i++ {
		index, value, err := s.NextSparse(nil, nil)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for e, j := range index {
			if value[e] != want[4*i+int(j)] || value[e] == 0 || e > 0 && j <= index[e-1] {
				t.Errorf("%s: row %d: %v %v", path, i, index, value)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantMAT(t, path+":row", []float32{0, 1, 2}, 1, 3)
	wantMAT(t, path+":none", nil, 0, 3)
	for name, want := range map[string]string{
		"text":    `variable "text" is text`,
		"cell":    `variable "cell" is a cell array`,
		"complex": `variable "complex" has complex numbers`,
		"cube":    `variable "cube" has 3 dimensions`,
		"nosuch":  `has no variable "nosuch": there is`,
		"":        `has several matrices: say which with`,
	} {
		if name != "" {
			name = ":" + name
		}
		_, err := Open(path+name, path+name)
		wantError(t, err, want)
	}
}

func wantMAT(t *testing.T, path string, want []float32, rows, cols int) {
	t.Helper()
	x, n, d, err := ReadAll(path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if n != rows || d != cols || !slices.Equal(x, want) {
		t.Errorf("%s is %d x %d: %v, want %d x %d: %v", path, n, d, x, rows, cols, want)
	}
}

// Types of elements, and classes of matrices.
const (
	miInt8, miInt32, miUint32, miDouble, miMatrix, miCompressed = 1, 5, 6, 9, 14, 15
	mxSparse, mxDouble                                          = 5, 6
)

// matBuilder makes .mat files in either order of bytes.
type matBuilder struct {
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	b []byte
}

func newMAT(big bool) *matBuilder {
	m := &matBuilder{order: binary.LittleEndian}
	mark := "IM"
	if big {
		m.order, mark = binary.BigEndian, "MI"
	}
	m.b = fmt.Appendf(nil, "%-116s%8s", "MATLAB 5.0 MAT-file, made by a test", "")
	m.b = append(m.order.AppendUint16(m.b, 0x100), mark...)
	return m
}

func (m *matBuilder) element(kind uint32, content []byte) []byte {
	b := m.order.AppendUint32(m.order.AppendUint32(nil, kind), uint32(len(content)))
	b = append(b, content...)
	if kind != miCompressed {
		b = append(b, make([]byte, -len(b)&7)...)
	}
	return b
}

func (m *matBuilder) numbers(values ...int32) []byte {
	var b []byte
	for _, v := range values {
		b = m.order.AppendUint32(b, uint32(v))
	}
	return b
}

// matrix makes an element of a matrix; parts follow its name.
func (m *matBuilder) matrix(name string, class uint32, rows, cols int32, parts ...[]byte) []byte {
	content := slices.Concat(m.element(miUint32, m.numbers(int32(class), 0)),
		m.element(miInt32, m.numbers(rows, cols)), m.element(miInt8, []byte(name)))
	return m.element(miMatrix, slices.Concat(append([][]byte{content}, parts...)...))
}

func (m *matBuilder) compressed(element []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := z.Write(element)
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return m.element(miCompressed, b.Bytes())
}

func (m *matBuilder) doubles(values ...float64) []byte {
	var b []byte
	for _, v := range values {
		b = m.order.AppendUint64(b, math.Float64bits(v))
	}
	return m.element(miDouble, b)
}

func (m *matBuilder) add(element []byte) *matBuilder {
	m.b = append(m.b, element...)
	return m
}

func TestMATInBothByteOrders(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, compressed := range []bool{false, true} {
			m := newMAT(big)
			wrap := func(b []byte) []byte {
				if compressed {
					return m.compressed(b)
				}
				return b
			}
			m.add(wrap(m.matrix("x", mxDouble, 2, 3, m.doubles(1, 2, 3, 4, 5, math.Inf(1)))))
			m.add(wrap(m.matrix("s", mxSparse, 3, 2, m.element(miInt32, m.numbers(2, 0, 2)),
				m.element(miInt32, m.numbers(0, 1, 3)), m.doubles(7, 8, math.NaN()))))
			src := memory("x", m.b)
			src.Member = "x"
			r := must(mat.Open(src, false))(t)
			row := make([]float32, 3)
			if err := r.Next(row); err != nil || !slices.Equal(row, []float32{1, 3, 5}) {
				t.Errorf("%v, %v", row, err)
			}
			wantError(t, r.Next(row), "x: row 1, column 2: +Inf is not a finite number")
			src.Member = "s"
			r = must(mat.Open(src, false))(t)
			row = row[:2]
			for _, want := range [][]float32{{0, 8}, {0, 0}} {
				if err := r.Next(row); err != nil || !slices.Equal(row, want) {
					t.Errorf("%v, %v, want %v", row, err, want)
				}
			}
			wantError(t, r.Next(row), "x: row 2, column 1: is not a finite number")
			if err := r.Next(row); err != io.EOF {
				t.Error(err)
			}
		}
	}
}

func TestMATThatIsNone(t *testing.T) {
	m := newMAT(false)
	sparse := func(ir, jc []byte) []byte {
		return newMAT(false).add(m.matrix("s", mxSparse, 3, 2, ir, jc, m.doubles(1, 2))).b
	}
	ints := func(x ...int32) []byte { return m.element(miInt32, m.numbers(x...)) }
	good := newMAT(false).add(m.matrix("x", mxDouble, 1, 2, m.doubles(1, 2))).b
	bomb := m.compressed(m.matrix("x", mxDouble, 1, 2, m.doubles(1, 2)))
	lies := m.matrix("x", mxDouble, 1<<20, 1<<9, m.doubles(1, 2))
	binary.LittleEndian.PutUint32(lies[4:], 1<<31)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":     {nil, "is too short for a .mat file"},
		"foreign":   {bytes.Repeat([]byte("x"), 200), "is not a .mat file"},
		"hdf5":      {[]byte("\x89HDF\r\n\x1a\n"), "7.3"},
		"v7.3":      {fmt.Appendf(nil, "%-126s%s", "MATLAB 7.3 MAT-file", "IM"), "-v7"},
		"v4":        {make([]byte, 200), "version 4"},
		"truncated": {good[:len(good)-9], "the file is truncated"},
		"tag":       {good[:140], "the file is truncated"},
		"bytes": {newMAT(false).add(m.matrix("x", mxDouble, 2, 2, m.doubles(1, 2))).b,
			"is said to be 2 x 2, and has 16 bytes"},
		"negative": {newMAT(false).add(m.matrix("x", mxDouble, -2, 2, m.doubles(1, 2))).b, "damaged"},
		"columns": {newMAT(false).add(m.matrix("x", mxDouble, 2, 0)).b,
			"has no variable that is a matrix"},
		"transposed": {newMAT(false).add(m.matrix("x", mxDouble, 1, 1<<21, m.doubles())).b,
			"has no variable that is a matrix"},
		"nothing": {newMAT(false).b, "has no variable that is a matrix"},
		"zlib":    {newMAT(false).add(m.element(miCompressed, []byte("no zlib"))).b, "zlib"},
		"cut zlib": {newMAT(false).add(m.element(miCompressed, bomb[8:len(bomb)-4])).b,
			"compressed variable"},
		"bomb":   {newMAT(false).add(m.compressed(lies)).b, "claims"},
		"row":    {sparse(ints(0, 3), ints(0, 1, 2)), "row 3 of 3"},
		"starts": {sparse(ints(0, 1), ints(0, 2, 1)), "column 1 ends at 1"},
		"first":  {sparse(ints(0, 1), ints(1, 1, 2)), "damaged"},
		"many":   {sparse(ints(0, 1), ints(0, 1, 3)), "column 1 ends at 3 of 2"},
		"few":    {sparse(ints(0, 1), ints(0, 2)), "2 columns have 2 starts"},
		"twice":  {sparse(ints(1, 1), ints(0, 2, 2)), "two numbers"},
	} {
		bounded(t, len(c.b), 1<<20, 64, func() {
			r, err := mat.Open(memory("x", c.b), false)
			if err == nil {
				err = r.Next(make([]float32, r.Cols))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		})
	}
}

// A compressed variable that is too large for memory goes through a temporary file, which is gone after
// Close.
func TestMATThatIsLarge(t *testing.T) {
	defer func(n int64) { mat.MaxMemory = n }(mat.MaxMemory)
	mat.MaxMemory = 1 << 20
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp) // on Windows
	const rows, cols = 1 << 15, 5
	m := newMAT(false)
	content := make([]byte, 8*rows*cols)
	for i := range rows {
		for j := range cols {
			binary.LittleEndian.PutUint64(content[8*(j*rows+i):], math.Float64bits(float64(i%100*10+j)))
		}
	}
	path := filepath.Join(t.TempDir(), "x.mat")
	check(t, os.WriteFile(path,
		m.add(m.compressed(m.matrix("x", mxDouble, rows, cols, m.element(miDouble, content)))).b, 0o644))
	content = nil
	r := must(Open(path, path))(t)
	row := make([]float32, cols)
	for i := range rows {
		if err := r.Next(row); err != nil || row[0] != float32(i%100*10) ||
			row[cols-1] != float32(i%100*10+cols-1) {
			t.Fatalf("row %d: %v, %v", i, row, err)
		}
	}
	if err := r.Next(row); err != io.EOF {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func FuzzMAT(f *testing.F) {
	for _, big := range []bool{false, true} {
		m := newMAT(big)
		dense := m.matrix("x", mxDouble, 2, 2, m.doubles(1, 2, 3, math.NaN()))
		f.Add(newMAT(big).add(dense).b)
		f.Add(newMAT(big).add(m.compressed(dense)).b)
		f.Add(newMAT(big).add(m.matrix("s", mxSparse, 3, 2, m.element(miInt32, m.numbers(2, 0)),
			m.element(miInt32, m.numbers(0, 1, 2)), m.doubles(7, 8))).b)
	}
	for _, file := range []string{"octave_v6.mat", "scipy.mat"} {
		b := must(os.ReadFile(filepath.Join("testdata", "mat", file)))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, member := range []string{"", "x", "sparse"} {
			src := memory("x", b)
			src.Member = member
			// Compressed data may expand a thousand times.
			bounded(t, len(b), 16<<20, 3000, func() {
				r, err := mat.Open(src, false)
				if err == nil && r.Rows > 1<<20 {
					return // a sparse matrix, whose rows need no bytes
				}
				checkReader(t, r, err)
			})
		}
	})
}
