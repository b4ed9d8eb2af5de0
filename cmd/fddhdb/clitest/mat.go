package clitest

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"
)

// A Matrix is a variable of a .mat file.
type Matrix struct {
	Name string
	Rows [][]float32
}

// WriteMAT writes a .mat file of version 5 with several variables, of single precision.
func WriteMAT(t testing.TB, path string, variables ...Matrix) {
	t.Helper()
	element := func(kind uint32, content []byte) []byte {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, kind),
			uint32(len(content)))
		return append(append(b, content...), make([]byte, -len(content)&7)...)
	}
	words := func(w ...uint32) (b []byte) {
		for _, x := range w {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	const int8s, int32s, uint32s, singles, matrix, single = 1, 5, 6, 7, 14, 7
	file := append(fmt.Appendf(nil, "%-124s", "MATLAB 5.0 MAT-file, made by a test"), 0, 1, 'I', 'M')
	for _, v := range variables {
		var numbers []byte // column by column
		for c := range v.Rows[0] {
			for _, row := range v.Rows {
				numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(row[c]))
			}
		}
		content := element(uint32s, words(single, 0))
		content = append(content, element(int32s, words(uint32(len(v.Rows)), uint32(len(v.Rows[0]))))...)
		content = append(content, element(int8s, []byte(v.Name))...)
		file = append(file, element(matrix, append(content, element(singles, numbers)...))...)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
}
