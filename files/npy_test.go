package files

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/internal/text"
	"github.com/fddhdb/fddhdb/files/npy"
)

// memory is a file that is not on disk.
func memory(name string, b []byte) matrix.Source {
	return matrix.Source{Name: name, ReaderAt: bytes.NewReader(b), Size: int64(len(b))}
}

// buildNPY writes a .npy from a literal header, independently of Writer: without padding, and whatever the
// header says.
func buildNPY(major byte, dict string, data []byte) []byte {
	b := []byte("\x93NUMPY")
	b = append(b, major, 0)
	if major == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dict)))
	}
	b = append(b, dict...)
	return append(b, data...)
}

// dict returns a header in numpy's form.
func dict(descr, fortran, shape string) string {
	return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }   \n"
}

// build is buildNPY for values, written one by one in a byte order.
func build(t testing.TB, major byte, descr, fortran, shape string, values any) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	var data bytes.Buffer
	check(t, binary.Write(&data, order, values))
	return buildNPY(major, dict(descr, fortran, shape), data.Bytes())
}

func readMemory(b []byte) ([]float32, int, int, error) {
	v, err := npy.Open(memory("x.npy", b), false)
	if err != nil {
		return nil, 0, 0, err
	}
	return restOf(v)
}

// restOf reads all rows.
func restOf(v *Vectors) ([]float32, int, int, error) {
	data, err := Rest(v)
	return data, v.Rows, v.Cols, err
}

func wantMatrix(t *testing.T, data []float32, rows, cols int, err error, want [][]float32, wantCols int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if rows != len(want) || cols != wantCols || len(data) != rows*cols {
		t.Fatalf("%d x %d with %d values, want %d x %d", rows, cols, len(data), len(want), wantCols)
	}
	for i, row := range want {
		for j, x := range row {
			if math.Float32bits(data[i*cols+j]) != math.Float32bits(x) {
				t.Errorf("row %d, column %d: %v, want %v", i, j, data[i*cols+j], x)
			}
		}
	}
}

// The bytes are put together by hand from the format's description in numpy's lib/format.py: magic, version,
// length of the header, header, data.
func TestNPYByHand(t *testing.T) {
	const magic = "934e554d5059"
	pad := func(s string, n int) string { // to n bytes with blanks and a newline
		return hex.EncodeToString([]byte(s + strings.Repeat(" ", n-1-len(s)) + "\n"))
	}
	for _, c := range []struct {
		name, hex string
		cols      int
		want      [][]float32
	}{
		{"numpy.save of float32 [[1, -2], [0.5, 3]]",
			magic + "0100" + "7600" + pad("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
				118) +
				"0000803f" + "000000c0" + "0000003f" + "00004040", 2, [][]float32{{1, -2}, {.5, 3}}},
		{"the same, big-endian, in Fortran order, version 2.0",
			magic + "0200" + "74000000" + pad("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2), }",
				116) +
				"3f800000" + "3f000000" + "c0000000" + "40400000", 2, [][]float32{{1, -2}, {.5, 3}}},
		{"version 3.0, float64, one dimension",
			magic + "0300" + "74000000" + pad("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
				116) +
				"000000000000f03f" + "000000000000e0bf" + "0000000000000840", 3, [][]float32{{1, -.5, 3}}},
		{"Python 2, long integers",
			magic + "0100" + "4600" + pad("{'descr': '<i2', 'fortran_order': False, 'shape': (1L, 2L), }",
				70) +
				"ffff" + "0001", 2, [][]float32{{-1, 256}}},
		{"keys in another order, double quotes, no padding, last comma missing",
			magic + "0100" + "3b00" + pad(`{"shape":(1,2),"fortran_order":False,"descr":"|u1"}`, 59) +
				"00ff", 2, [][]float32{{0, 255}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := must(hex.DecodeString(c.hex))(t)
			data, rows, cols, err := readMemory(b)
			wantMatrix(t, data, rows, cols, err, c.want, c.cols)
		})
	}
}

func TestNPYTypes(t *testing.T) {
	type value struct {
		descr  string
		values any
		want   [][]float32
	}
	want := [][]float32{{0, 1, 2}, {3, 100, 127}}
	signed := [][]float32{{0, 1, -2}, {-3, 100, -128}}
	for _, c := range []value{
		{"<f2", []uint16{0, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0001},
			[][]float32{{0, 1, -2}, {0.333251953125, 65504, 0x1p-24}}},
		{">f2", []uint16{0, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x8000},
			[][]float32{{0, 1, -2}, {0.333251953125, 65504, float32(math.Copysign(0, -1))}}},
		{"<f4", []float32{0, 1.5, -2, 3e38, 1e-45, 7}, [][]float32{{0, 1.5, -2}, {3e38, 1e-45, 7}}},
		{">f4", []float32{0, 1.5, -2, 3e38, 1e-45, 7}, [][]float32{{0, 1.5, -2}, {3e38, 1e-45, 7}}},
		{"=f4", []float32{0, 1.5, -2, 3e38, 1e-45, 7}, [][]float32{{0, 1.5, -2}, {3e38, 1e-45, 7}}},
		{"<f8", []float64{0, 0.1, -2, 3e38, 1e-300, math.MaxFloat32},
			[][]float32{{0, 0.1, -2}, {3e38, 0, math.MaxFloat32}}},
		{">f8", []float64{0, 0.1, -2, 3e38, 1e-300, math.MaxFloat32},
			[][]float32{{0, 0.1, -2}, {3e38, 0, math.MaxFloat32}}},
		{"|i1", []int8{0, 1, -2, -3, 100, -128}, signed},
		{"<i2", []int16{0, 1, -2, -3, 100, -128}, signed},
		{">i2", []int16{0, 1, -2, -3, 100, -128}, signed},
		{"<i4", []int32{0, 1, -2, -3, 100, -128}, signed},
		{">i4", []int32{0, 1, -2, -3, 100, -128}, signed},
		{"<i8", []int64{0, 1, -2, -3, 100, -128}, signed},
		{">i8", []int64{0, 1, -2, -3, 100, -128}, signed},
		{"|u1", []uint8{0, 1, 2, 3, 100, 127}, want},
		{"<u1", []uint8{0, 1, 2, 3, 100, 127}, want},
		{"<u2", []uint16{0, 1, 2, 3, 100, 127}, want},
		{">u2", []uint16{0, 1, 2, 3, 100, 127}, want},
		{"<u4", []uint32{0, 1, 2, 3, 100, 127}, want},
		{">u4", []uint32{0, 1, 2, 3, 100, 127}, want},
		{"<u8", []uint64{0, 1, 2, 3, 100, 127}, want},
		{">u8", []uint64{0, 1, 2, 3, 100, 127}, want},
		{"|b1", []bool{false, true, true, false, false, true}, [][]float32{{0, 1, 1}, {0, 0, 1}}},
		// Rounded once; converting to float64 first would give 2^60.
		{"<i8", []int64{1<<60 + 1<<36 + 1, math.MaxInt64, math.MinInt64, 1<<24 + 1, 1<<24 + 3, 0},
			[][]float32{{1<<60 + 1<<37, 1 << 63, -1 << 63}, {1 << 24, 1<<24 + 4, 0}}},
		{"<u8", []uint64{1<<60 + 1<<36 + 1, math.MaxUint64, 0, 0, 0, 0},
			[][]float32{{1<<60 + 1<<37, 1 << 64, 0}, {0, 0, 0}}},
	} {
		t.Run(fmt.Sprint(c.descr, c.want[0]), func(t *testing.T) {
			data, rows, cols, err := readMemory(build(t, 1, c.descr, "False", "(2, 3)", c.values))
			wantMatrix(t, data, rows, cols, err, c.want, 3)

			// The same elements in Fortran order are the transpose of (3, 2).
			data, rows, cols, err = readMemory(build(t, 2, c.descr, "True", "(3, 2)", c.values))
			var transposed [][]float32
			for j := range 3 {
				transposed = append(transposed, []float32{c.want[0][j], c.want[1][j]})
			}
			wantMatrix(t, data, rows, cols, err, transposed, 2)
		})
	}
}

func TestNPYShapes(t *testing.T) {
	six := []float32{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		shape, fortran string
		values         []float32
		rows, cols     int
	}{
		{"(6,)", "False", six, 1, 6},
		{"(6,)", "True", six, 1, 6},
		{"(6, 1)", "True", six, 6, 1},
		{"(1, 6)", "False", six, 1, 6},
		{"(1, 6)", "True", six, 1, 6},
		{"(0, 6)", "False", nil, 0, 6},
		{"(0, 6)", "True", nil, 0, 6},
		{"(2, 3,)", "False", six, 2, 3},
	} {
		data, rows, cols, err := readMemory(build(t, 1, "<f4", c.fortran, c.shape, c.values))
		if err != nil || rows != c.rows || cols != c.cols {
			t.Errorf("%s: %d x %d, %v; want %d x %d", c.shape, rows, cols, err, c.rows, c.cols)
			continue
		}
		for i, x := range c.values {
			if data[i] != x {
				t.Errorf("%s: value %d is %v, want %v", c.shape, i, data[i], x)
			}
		}
	}
}

// A matrix of many blocks comes back in either order, and streaming it takes no more memory than a block.
func TestNPYBlocks(t *testing.T) {
	const rows, cols = 70_001, 9 // 2.5 MB: two full blocks and a part
	value := func(i, j int) float32 { return float32(i)*16 + float32(j) }
	c := make([]float32, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			c = append(c, value(i, j))
		}
	}
	f := make([]float32, 0, rows*cols)
	for j := range cols {
		for i := range rows {
			f = append(f, value(i, j))
		}
	}
	for _, file := range []struct {
		order string
		bytes []byte
	}{
		{"C", build(t, 1, ">f4", "False", "(70001, 9)", c)},
		{"Fortran", build(t, 1, ">f4", "True", "(70001, 9)", f)},
	} {
		before := allocated()
		r := must(npy.Open(memory("x.npy", file.bytes), false))(t)
		row := make([]float32, cols)
		for i := range rows {
			if err := r.Next(row); err != nil {
				t.Fatal(file.order, i, err)
			}
			for j, x := range row {
				if x != value(i, j) {
					t.Fatalf("%s: row %d, column %d is %v, want %v", file.order, i, j, x, value(i, j))
				}
			}
		}
		if err := r.Next(row); err != io.EOF {
			t.Errorf("%s: %v after the last row", file.order, err)
		}
		if n := allocated() - before; n > 5*1<<20/4 {
			t.Errorf("%s: streaming allocates %d bytes", file.order, n)
		}
	}
}

// allocated is the number of bytes that this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestNPYRejects(t *testing.T) {
	raw := func(s string) []byte { return []byte(s) }
	f4 := func(shape string, n int) []byte {
		return buildNPY(1, dict("<f4", "False", shape), make([]byte, n))
	}
	descr := func(d string) []byte {
		return buildNPY(1, "{'descr': "+d+", 'fortran_order': False, 'shape': (1, 1), }\n", make([]byte, 8))
	}
	head := func(text string) []byte { return buildNPY(1, text, nil) }
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"empty file", nil, "x.npy: is empty, not a .npy file"},
		{"text", raw("1,2,3\n4,5,6\n"),
			`x.npy: is not a .npy file: it starts with "1,2,3\n4,"; write it with numpy.save`},
		{"short text", raw("1\n"), `is not a .npy file: it starts with "1\n"`},
		{"npz", raw("PK\x03\x04 and so on"),
			"is not a .npy file: it starts like a zip archive, which .npz files are"},
		{"only the magic", raw("\x93NUMPY\x01\x00"),
			"ends inside the .npy header, after 8 bytes: the file is truncated"},
		{"header cut", buildNPY(1, dict("<f4", "False", "(1, 1)"), nil)[:40],
			"ends inside the .npy header, which claims"},
		{"version 4", append(append(raw("\x93NUMPY\x04\x00"), 10, 0, 0, 0), make([]byte, 10)...),
			"is of .npy version 4.0: versions 1.0, 2.0 and 3.0 are supported"},
		{"version 0", append(raw("\x93NUMPY\x00\x00"), make([]byte, 10)...), "is of .npy version 0.0"},
		{"version 1.1", append(raw("\x93NUMPY\x01\x01"), make([]byte, 10)...), "is of .npy version 1.1"},
		{"header of 4 GiB", raw("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
			"claims a .npy header of 4,294,967,295 bytes, which no matrix needs: at most 65,536 are supported"},

		{"truncated", f4("(10, 128)", 1234),
			"holds 1,234 bytes of data where the header's shape (10, 128) float32 needs 5,120: the file is truncated"},
		{"no data", f4("(10, 128)", 0),
			"holds 0 bytes of data where the header's shape (10, 128) float32 needs 5,120: the file is truncated"},
		{"one byte short", f4("(3,)", 11),
			"holds 11 bytes of data where the header's shape (3,) float32 needs 12: the file is truncated"},
		{"one byte more", f4("(3,)", 13),
			"holds 13 bytes of data where the header's shape (3,) float32 needs 12: there is something after the matrix; save it alone"},
		{"data of no rows", f4("(0, 3)", 4),
			"holds 4 bytes of data where the header's shape (0, 3) float32 needs 0"},
		{"huge", f4("(4611686018427387904, 1)", 4), "needs more than a file can hold: the header is damaged"},
		{"huge product", f4("(9223372036854775807, 1048576)", 4), "needs more than a file can hold"},
		{"huge, within int64", f4("(1000000000000, 1)", 4), "needs 4,000,000,000,000: the file is truncated"},
		{"beyond int64", f4("(9223372036854775808, 1)", 4),
			`a length in the shape is negative or too large: "9223372036854775808"`},
		{"negative", f4("(-1, 4)", 4), `a length in the shape is negative or too large: "-1"`},
		{"no columns", f4("(3, 0)", 0), "has no columns, shape (3, 0)"},
		{"no rows, no columns", f4("(0, 0)", 0), "has no columns, shape (0, 0)"},
		{"transposed", f4("(0, 1048577)", 0),
			"has 1,048,577 columns, shape (0, 1048577): at most 1,048,576 are supported; rows are items, is the matrix transposed?"},
		{"no dimension", f4("()", 4),
			"holds a single number (shape ()), not a matrix: one or two dimensions are supported"},
		{"three dimensions", f4("(1, 1, 1)", 4),
			"has 3 dimensions, shape (1, 1, 1): one or two are supported, rows being items; reshape it"},
		{"many dimensions", f4("("+strings.Repeat("1, ", 20)+")", 4),
			"has 20 dimensions, shape (1, 1, 1, 1, 1, 1, ...)"},

		{"object", descr("'|O'"), "dtype object (pickled Python values) is not supported: float16, float32, float64, the integer types and bool are; in numpy, a.astype(numpy.float32)"},
		{"object with a size", descr("'|O8'"), "dtype object"},
		{"strings", descr("'<U16'"),
			`dtype "<U16" holds strings: keys and labels are read from text files, one line an item`},
		{"bytes", descr("'|S5'"), `dtype "|S5" holds strings`},
		{"complex", descr("'<c8'"), `dtype "<c8" is not supported: float16`},
		{"long double", descr("'<f16'"), `dtype "<f16" is not supported`},
		{"time", descr("'<M8[ns]'"), `dtype "<M8[ns]" is not supported`},
		{"no type", descr("''"), `dtype "" is not supported`},
		{"only an order", descr("'<'"), `dtype "<" is not supported`},
		{"long type", descr("'" + strings.Repeat("x", 100) + "'"),
			`dtype "` + strings.Repeat("x", 60) + `"... is not supported`},
		{"structured", descr("[('a', '<f4'), ('b', '<i4')]"), "a structured dtype is not supported: float16"},
		{"subarray", descr("('<f4', (3,))"), "a structured dtype is not supported"},
		{"descr is a number", descr("4"), `.npy header: it is not as numpy writes it, at byte 2:`},

		{"no dict", head("[1, 2, 3]"), `.npy header: it is not as numpy writes it, at byte 0: "[1`},
		{"empty dict", head("{}  "), `.npy header: the key "descr" is missing`},
		{"dict not closed", head("{'descr': '<f4', "),
			`.npy header: it is not as numpy writes it, at byte 17`},
		{"unknown key", head("{'descr': '<f4', 'order': 'C', }"),
			`is none of descr, a string, fortran_order, True or False, and shape, a tuple`},
		{"key twice", head("{'descr': '<f4', 'descr': '<f8', }"),
			`.npy header: the key "descr" stands there twice`},
		{"key missing", head("{'descr': '<f4', 'shape': (1, 1), }"),
			`.npy header: the key "fortran_order" is missing`},
		{"no colon", head("{'descr' '<f4'}"), `.npy header: it is not as numpy writes it, at byte 1`},
		{"no comma", head("{'descr': '<f4' 'shape': (1, 1), }"),
			`.npy header: it is not as numpy writes it, at byte 1`},
		{"quote not closed", head("{'descr: 4, }"), `.npy header: it is not as numpy writes it, at byte 1`},
		{"escape", head(`{'d\x65scr': '<f4'}`), `.npy header: it is not as numpy writes it, at byte 1`},
		{"boolean in lower case", head(dict("<f4", "false", "(1, 1)")),
			`.npy header: it is not as numpy writes it, at byte 20`},
		{"order is a number", head(dict("<f4", "0", "(1, 1)")),
			`.npy header: it is not as numpy writes it, at byte 20`},
		{"shape is a number", head(dict("<f4", "False", "3")),
			`.npy header: it is not as numpy writes it, at byte 44`},
		{"shape is a list", head(dict("<f4", "False", "[3, 4]")),
			`.npy header: it is not as numpy writes it, at byte 44`},
		{"shape is not a tuple", head(dict("<f4", "False", "(3)")), `the shape (3) is no tuple, as (3,) is`},
		{"shape of floats", head(dict("<f4", "False", "(3.0, 4)")),
			`.npy header: it is not as numpy writes it, at byte 44`},
		{"shape of names", head(dict("<f4", "False", "(n, 4)")),
			`.npy header: it is not as numpy writes it, at byte 44`},
		{"shape not closed", head("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4"),
			`.npy header: it is not as numpy writes it, at byte 40`},
		{"after the dict", head(strings.TrimSpace(dict("<f4", "False", "(1, 1)")) + " import os"),
			`.npy header: it is not as numpy writes it, at byte 59`},

		{"NaN", build(t, 1, "<f4", "False", "(2, 2)", []float32{1, 2, 3, float32(math.NaN())}),
			"x.npy: row 1, column 1: NaN is not a finite number, which every value of a vector must be: replace it or drop the row"},
		{"NaN, Fortran", build(t, 1, ">f4", "True", "(3, 2)", []float32{1, 2, 3, 4, 5, float32(math.NaN())}),
			"x.npy: row 2, column 1: NaN"},
		{"Inf", build(t, 1, "<f8", "False", "(2, 2)", []float64{1, math.Inf(-1), 3, 4}),
			"x.npy: row 0, column 1: -Inf is not a finite number"},
		{"half Inf", build(t, 1, "<f2", "False", "(2,)", []uint16{0, 0x7c00}),
			"x.npy: row 0, column 1: +Inf is not a finite number"},
		{"overflow", build(t, 1, "<f8", "False", "(1, 2)", []float64{1, 1e39}),
			"x.npy: row 0, column 1: 1e+39 is too large for float32 (at most 3.4028235e+38): scale the column"},
		{"overflow by rounding", build(t, 1, "<f8", "False", "(1,)", []float64{-3.4028236e38}),
			"row 0, column 0: -3.4028236e+38 is too large for float32"},
		{"no bool", build(t, 1, "|b1", "False", "(1, 2)", []byte{1, 2}),
			"row 0, column 1: a bool is 0 or 1, not 2: the file is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := allocated()
			_, _, _, err := readMemory(c.bytes)
			if n := allocated() - before; n > 1<<16 {
				t.Errorf("%d bytes allocated for a file of %d", n, len(c.bytes))
			}
			wantError(t, err, c.want)
		})
	}
}

// wantError checks the text of an error (the whole text if want starts with the file), and that the error has
// the file.
func wantError(t *testing.T, err error, want string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.File == "" {
		t.Fatalf("%v is no *Error with a file, want %s", err, want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Fatalf("got  %s\nwant %s", err, want)
	}
	return e
}

// A bad value costs its row, not the rest of the file.
func TestNextAfterBadValue(t *testing.T) {
	nan := float32(math.NaN())
	npy := must(npy.Open(memory("x.npy",
		build(t, 1, "<f4", "False", "(4, 2)", []float32{1, 2, nan, 3, 4, 5, 6, nan})), false))(t)
	csv := must(text.OpenCSV(memory("x.csv", []byte("a,b\n1,2\nNaN,3\n4,5\n6,x\n"))))(t)
	for _, r := range []*Vectors{npy, csv} {
		var kept []float32
		var bad []int
		for row := make([]float32, 2); ; {
			err := r.Next(row)
			if err == io.EOF {
				break
			}
			var e *Error
			if errors.As(err, &e) && e.Col >= 0 {
				bad = append(bad, e.Row, e.Col)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, row...)
		}
		if fmt.Sprint(kept) != "[1 2 4 5]" || fmt.Sprint(bad) != "[1 0 3 1]" {
			t.Errorf("%T kept %v, bad rows and columns %v", r, kept, bad)
		}
	}
}

func TestReaderMisuse(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"x.npy": build(t, 1, "<f4", "False", "(2, 2)", []float32{1, 2, 3, 4}),
		"x.csv": []byte("1,2\n3,4\n"),
	} {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, content, 0o666))
		r := must(Open(path, path))(t)
		wantError(t, r.Next(make([]float32, 3)), "a row has 2 values, the slice for it 3")
		row := make([]float32, 2)
		if err := r.Next(row); err != nil || row[0] != 1 {
			t.Errorf("%s: %v, %v after a slice of a wrong length", name, row, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: second Close: %v", name, err)
		}
		if err := r.Next(row); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v after Close", name, err)
		}
	}
}

// A file that shrinks while it is read must not look complete.
func TestFileShrinks(t *testing.T) {
	ordered := build(t, 1, "<f4", "False", "(4, 2)", make([]float32, 8))
	fortran := build(t, 1, "<f4", "True", "(4, 2)", make([]float32, 8))
	csv := []byte("1,2\n3,4\n5,6\n")
	for _, c := range []struct {
		ext  string
		file []byte
	}{{".npy", ordered}, {".npy", fortran}, {".csv", csv}} {
		shrinking := &shrinkingFile{b: c.file}
		r := must(formats[c.ext](matrix.Source{Name: "x", ReaderAt: shrinking, Size: int64(len(c.file))},
			false))(t)
		shrinking.b = c.file[:len(c.file)-5]
		_, err := Rest(r)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%T: %v", r, err)
		}
		if again := r.Next(make([]float32, 2)); again != err {
			t.Errorf("%T: %v, then %v", r, err, again)
		}
	}
}

type shrinkingFile struct{ b []byte }

func (f *shrinkingFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.b).ReadAt(p, at)
}

// Every matrix that Writer writes comes back, and so does every one in Fortran order.
func TestNPYRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
		data := rapid.SliceOfN(rapid.Float32(), rows*cols, rows*cols).Draw(t, "data")
		var file bytes.Buffer
		w := must(npy.NewWriter[float32](&file, rows, cols))(t)
		for rest, left := data, rows; left > 0; {
			n := rapid.IntRange(0, left).Draw(t, "rows at once")
			check(t, w.Write(rest[:n*cols]))
			rest, left = rest[n*cols:], left-n
		}
		check(t, w.Close())

		columns := make([]float32, 0, len(data))
		for j := range cols {
			for i := range rows {
				columns = append(columns, data[i*cols+j])
			}
		}
		var transposed bytes.Buffer
		check(t, binary.Write(&transposed, binary.BigEndian, columns))
		fortran := buildNPY(3, dict(">f4", "True", fmt.Sprintf("(%d, %d)", rows, cols)), transposed.Bytes())

		for _, b := range [][]byte{file.Bytes(), fortran} {
			got, r, c, err := readMemory(b)
			if err != nil || r != rows || c != cols {
				t.Fatalf("%d x %d comes back as %d x %d: %v", rows, cols, r, c, err)
			}
			for i := range data {
				if math.Float32bits(got[i]) != math.Float32bits(data[i]) {
					t.Fatalf("value %d of %d x %d is %v, want %v", i, rows, cols, got[i], data[i])
				}
			}
		}
	})
}

// sharedData is where the data of the project is; nothing of it is copied here.
const sharedData = "../../shared/data"

// Files that numpy itself has written.
func TestNumpyFiles(t *testing.T) {
	if _, err := os.Stat(sharedData); err != nil {
		t.Skipf("the shared data is absent: %v", err)
	}
	for _, c := range []struct {
		path       string
		rows, cols int
	}{
		{"wiki/train_image.npy", 2173, 128},
		{"wiki/query_text.npy", 693, 10},
		{"ucidigits/train_image.npy", 1500, 76},
		{"golden/R1_0.npy", 800, 32},
		{"golden/B0.npy", 32, 2173},
		{"golden/anchors.npy", 1, 800},
	} {
		_, rows, cols, err := ReadAll(filepath.Join(sharedData, c.path))
		if err != nil || rows != c.rows || cols != c.cols {
			t.Errorf("%s: %d x %d, %v; want %d x %d", c.path, rows, cols, err, c.rows, c.cols)
		}
	}

	// B0 is a matrix of signs.
	signs, _, _, err := ReadAll(filepath.Join(sharedData, "golden/B0.npy"))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range signs {
		if x != 1 && x != -1 {
			t.Fatalf("B0: value %d is %v", i, x)
		}
	}

	// A matrix of labels and a vector of classes describe the same items.
	matrix := must(ReadLabels(filepath.Join(sharedData, "wiki/train_labels.npy")))(t)
	vector := must(ReadLabels(filepath.Join(sharedData, "golden/labels_train.npy")))(t)
	if fmt.Sprint(matrix.Names) != "[0 1 2 3 4 5 6 7 8 9]" || len(matrix.Sets) != 2173 ||
		len(vector.Sets) != 2173 {
		t.Errorf("wiki has labels %v, %d and %d items", matrix.Names, len(matrix.Sets), len(vector.Sets))
	}
	for i, set := range matrix.Sets {
		if len(set) != 1 || set[0] != vector.Sets[i][0] {
			t.Fatalf("wiki item %d has labels %v and class %v", i, set, vector.Sets[i])
		}
	}
}

// Rows after those that were skipped are the ones that reading all would give, whatever the order in the
// file.
func TestNPYSkip(t *testing.T) {
	for _, order := range []string{"False", "True"} {
		const rows, cols = 700, 500 // more than a block
		data := make([]byte, 0, 4*rows*cols)
		for i := range rows * cols {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
		}
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': %s, 'shape': (%d, %d), }", order, rows, cols)
		header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
		file := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
		path := filepath.Join(t.TempDir(), "x.npy")
		check(t, os.WriteFile(path, append(append(file, header...), data...), 0o600))
		all := make([][]float32, rows)
		r := must(Open(path, path))(t)
		for i := range all {
			all[i] = make([]float32, cols)
			check(t, r.Next(all[i]))
		}
		r.Close()
		for _, skips := range [][]int{{0}, {1}, {523, 1}, {524}, {525, 30}, {699}, {700}, {9999}} {
			r := must(Open(path, path))(t)
			at := 0
			row := make([]float32, cols)
			for _, n := range skips {
				check(t, r.SkipRows(t.Context(), n))
				at = min(at+n, rows)
				err := r.Next(row)
				if at == rows {
					if err != io.EOF {
						t.Errorf("after all rows: %v", err)
					}
					break
				}
				if err != nil || !slices.Equal(row, all[at]) {
					t.Errorf("order %s, skips %v: another row than %d, or %v", order, skips, at, err)
				}
				at++
			}
			r.Close()
		}
	}
}

// tester is a testing.TB or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// must ends the test if there is an error, and returns the value beside it if there is none.
func must[T any](x T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		check(t, err)
		return x
	}
}

// check ends the test if there is an error.
func check(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
