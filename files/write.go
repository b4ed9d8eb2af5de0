package files

import "strconv"

// AppendCSV appends a row of a .csv file to b, with its line end. Numbers must be finite. They get as many
// digits as it takes to read the same float32 again.
func AppendCSV(b []byte, row []float32) []byte {
	return append(appendNumbers(b, row), '\n')
}

// AppendJSON appends a dense vector to b in the form of a .jsonl file, without a line end. Numbers are
// written as by AppendCSV.
func AppendJSON(b []byte, row []float32) []byte {
	return append(appendNumbers(append(b, '['), row), ']')
}

// AppendSparseJSON appends a sparse vector, value[e] in column index[e], to b in the form of a .jsonl file,
// without a line end. Numbers are written as by AppendCSV.
func AppendSparseJSON(b []byte, index []uint32, value []float32) []byte {
	b = append(b, `{"i":[`...)
	for e, j := range index {
		if e > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(j), 10)
	}
	b = append(b, `],"v":[`...)
	return append(appendNumbers(b, value), "]}"...)
}

func appendNumbers(b []byte, row []float32) []byte {
	for i, x := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return b
}
