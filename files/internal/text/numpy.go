package text

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// errCut is the error of an array that cannot be read, as its numbers are not in the file.
var errCut = errors.New("is an array that numpy cut when it printed it: the numbers between its ... are not in the file; write the file again by df.to_parquet(...), or the vectors alone by numpy.save or numpy.savetxt")

// cellNumbers returns the numbers of an array in a cell: between commas, or as numpy prints them between
// blanks. Some may be NaN, infinite or null, but not all. cut says that numpy has put ... in place of most.
func cellNumbers(cell []byte) (numbers [][]byte, cut, ok bool) {
	cell = bytes.TrimSpace(cell)
	if len(cell) < 2 || cell[0] != '[' || cell[len(cell)-1] != ']' {
		return nil, false, false
	}
	if cell = bytes.TrimSpace(cell[1 : len(cell)-1]); bytes.IndexByte(cell, ',') < 0 {
		numbers = bytes.Fields(cell)
	} else {
		numbers = bytes.Split(cell, []byte{','})
	}
	ok = len(numbers) == 0
	for i, text := range numbers {
		text = bytes.TrimSpace(text)
		numbers[i] = text
		switch {
		case isDecimal(text):
			ok = true
		case string(text) == "..." && i > 0:
			cut = true
		case !isMissing(text):
			return nil, false, false
		}
	}
	return numbers, cut && ok, ok
}

// isDecimal reports whether a text is a finite number in decimal digits.
func isDecimal(text []byte) bool {
	_, err := strconv.ParseFloat(string(text), 64)
	return len(bytes.Trim(text, "0123456789+-.eE")) == 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// isMissing reports whether a text is an element of an array that is no number.
func isMissing(text []byte) bool {
	return slices.Contains([]string{"nan", "null", "none", "inf", "infinity"},
		strings.ToLower(string(bytes.TrimLeft(text, "+-"))))
}

// listNumbers calls f for the numbers of the cell.
func (t *csvTable) listNumbers(f func(is table.Is, text []byte) bool) (int, error) {
	numbers, cut, ok := cellNumbers(t.cell)
	switch {
	case !ok:
		return 0, errors.New("is no list of numbers")
	case cut:
		return 0, errCut
	}
	for _, text := range numbers {
		is := table.Null
		if isDecimal(text) {
			is = numberIs(text)
		}
		if !f(is, text) {
			break
		}
	}
	return len(numbers), nil
}

// floats appends the numbers of the cell, which is no list of JSON, for the reason err.
func (t *csvTable) floats(dst []float32, err error) ([]float32, error) {
	numbers, cut, ok := cellNumbers(t.cell)
	switch {
	case !ok:
		return dst, err
	case cut:
		return dst, errCut
	case len(numbers) > matrix.MaxCols:
		return dst, fmt.Errorf("has %d numbers, at most %d are possible", len(numbers), matrix.MaxCols)
	}
	for i, text := range numbers {
		x, err := parseFloat32(text)
		if s := strings.ToLower(string(text)); s == "null" || s == "none" {
			err = fmt.Errorf("is %s, where a number is expected", text)
		}
		if err != nil {
			return dst, matrix.Bad(i, err)
		}
		dst = append(dst, x)
	}
	return dst, nil
}
