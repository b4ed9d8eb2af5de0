package fit

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shared is the folder of the data of published runs, if there is one.
const shared = "../../../shared/data"

// A matrix is the content of a .npy file, whatever its type.
type matrix struct {
	rows, cols int // cols is 1 for a vector
	x          []float64
}

func (m matrix) row(i int) []float64 { return m.x[i*m.cols : (i+1)*m.cols] }

func (m matrix) transpose() matrix {
	t := matrix{rows: m.cols, cols: m.rows, x: make([]float64, len(m.x))}
	for i := range m.rows {
		for j, v := range m.row(i) {
			t.x[j*t.cols+i] = v
		}
	}
	return t
}

func (m matrix) float32s() [][]float32 {
	rows := make([][]float32, m.rows)
	for i := range rows {
		for _, v := range m.row(i) {
			rows[i] = append(rows[i], float32(v))
		}
	}
	return rows
}

var npyHeader = regexp.MustCompile(
	`'descr': '.(..)', 'fortran_order': False, 'shape': \((\d+),(?: (\d+),?)? ?\)`)

// readNpy reads a version 1.0 file in C order; it skips the test when the data
// is not there.
func readNpy(t testing.TB, path ...string) matrix {
	t.Helper()
	b := readShared(t, path...)
	head := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	f := npyHeader.FindStringSubmatch(string(b[:head]))
	stopIf(t, !strings.HasPrefix(string(b), "\x93NUMPY\x01\x00") || f == nil, "%v: cannot read the header %q",
		path, b[:head])
	m := matrix{cols: 1}
	fmt.Sscan(f[2], &m.rows)
	if f[3] != "" {
		fmt.Sscan(f[3], &m.cols)
	}
	width := int(f[1][1] - '0')
	for b = b[head:]; len(b) >= width; b = b[width:] {
		var v float64
		switch f[1] {
		case "i1":
			v = float64(int8(b[0]))
		case "u1":
			v = float64(b[0])
		case "i4":
			v = float64(int32(binary.LittleEndian.Uint32(b)))
		case "f4":
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case "f8":
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		default:
			t.Fatalf("%v: type %s", path, f[1])
		}
		m.x = append(m.x, v)
	}
	stopIf(t, len(m.x) != m.rows*m.cols, "%v: %d numbers for %d x %d", path, len(m.x), m.rows, m.cols)
	return m
}

func readShared(t testing.TB, path ...string) []byte {
	t.Helper()
	name := filepath.Join(append([]string{shared}, path...)...)
	b, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		t.Skipf("%s is not here: the shared data is needed for this test", name)
	}
	must(t, err)
	return b
}
