package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// OpenCSV opens a .csv of vectors: numbers, with or without a header line. It counts rows and columns, so
// that a ragged file is refused before any of it is used. Only the second pass parses numbers.
//
// The first line is a header if none of its fields is a number, and a line with numbers and other fields is
// an error. So a first row without any number, NA in all columns, is taken for a header.
func OpenCSV(src matrix.Source) (*matrix.Vectors, error) {
	r := NewRecords(src.Name, src.Reader(), Numbers, matrix.MaxCols)
	f := matrix.Format{Name: src.Name, Closer: src.Closer}
	var bad error // of the record
	err := each(r.Lines, func() (line int, blank bool, err error) {
		bad, err = r.Next()
		return r.Line, bad == nil && err == nil && len(r.Fields) == 1 && len(trim(r.Fields[0])) == 0, err
	}, func() (err error) {
		if bad != nil {
			return bad
		}
		cols := len(r.Fields)
		if f.Cols == 0 {
			f.Cols = cols
			if f.Header, err = isHeader(r.Fields); err != nil || f.Header {
				return err
			}
		}
		if cols != f.Cols {
			return fmt.Errorf("has %s columns where line 1 has %s", matrix.Thousands(cols),
				matrix.Thousands(f.Cols))
		}
		f.Rows++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.Cols == 0 {
		return nil, src.Fail("holds neither a header nor a row, so the number of columns is unknown")
	}
	r.Restart(src.Reader())
	header := f.Header
	f.Line = func() int { return r.Line }
	f.Dense = func(dst []float32) error {
		bad, err := r.Next()
		if header && bad == nil && err == nil {
			header = false
			bad, err = r.Next()
		}
		if err != nil {
			return err
		}
		if bad == nil && len(r.Fields) != len(dst) {
			bad = fmt.Errorf("has %d columns, and had %d before: the file changes while it is read",
				len(r.Fields), len(dst))
		}
		if bad != nil {
			return matrix.Bad(0, bad)
		}
		for c, field := range r.Fields {
			if dst[c], err = cellFloat32(field); err != nil {
				return matrix.Bad(c, err)
			}
		}
		return nil
	}
	return matrix.New(f), nil
}

func trim(field []byte) []byte { return bytes.Trim(field, " \t") }

// parseFloat32 parses a field as the nearest float32, rounding once.
func parseFloat32(field []byte) (float32, error) {
	x, err := strconv.ParseFloat(string(field), 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, matrix.TooLarge(matrix.Quote(field))
	case err != nil && len(field) == 0:
		return 0, errors.New("the field is empty: every field must be a number")
	case err != nil && bytes.ContainsAny(field, "; \t"):
		return 0, fmt.Errorf("%s is not a number; commas separate numbers", matrix.Quote(field))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number", matrix.Quote(field))
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, matrix.NotFinite(matrix.Quote(field))
	}
	return float32(x), nil
}

// isNumber says whether a field of the first line is data rather than a name. NaN is data, and so are numbers
// that something else than a comma separates: a broken row must be reported, not taken for a header.
func isNumber(field []byte) bool {
	parts := bytes.FieldsFunc(field, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' })
	for _, part := range parts {
		if _, err := strconv.ParseFloat(string(part), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return false
		}
	}
	return len(parts) > 0
}

// isHeader says whether the first line is a header, which has no numbers, or a row, which has nothing else. A
// line that is neither is an error about the first column that has no number.
func isHeader(fields [][]byte) (bool, error) {
	name, number := -1, -1 // the first columns that have one
	for c, field := range fields {
		switch is := isNumber(field); {
		case is && number < 0:
			number = c
		case !is && name < 0:
			name = c
		}
	}
	if name >= 0 && number >= 0 {
		_, said := parseFloat32(trim(fields[name]))
		return false, matrix.Bad(name, fmt.Errorf("%w; nor is the line a header, as column %d has a number",
			said, number))
	}
	return name >= 0, nil
}

// textIs says what a value is whose text is cell. Three kinds of digits are strings and not numbers: digits
// with a leading zero, as in a postal code; digits behind a plus, as in a telephone number; and more digits
// than an int holds.
func textIs(cell string) table.Is {
	switch cell {
	case "true", "false", "True", "False", "TRUE", "FALSE":
		return table.Bool
	}
	if instant.IsDate(cell) { // also of the year 1, which has leading zeros
		return table.Time
	}
	digits := strings.TrimLeft(cell, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' ||
		strings.ContainsAny(digits, "_xXpP") {
		return table.Text
	}
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		if _, err := strconv.ParseInt(cell, 10, 64); err != nil || cell[0] == '+' {
			return table.Text
		}
		return table.Int
	}
	if x, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		return table.Float
	}
	return table.Text
}

// stringList reads a list of strings, in the quotes of JSON or of Python, or bare as textList has it.
func stringList(cell []byte) (list []string, bare, ok bool) {
	if json.Unmarshal(cell, &list) == nil {
		return list, false, list != nil
	}
	return textList(string(cell))
}

// textList reads a cell that holds a list of strings. DuckDB quotes a string only if it has special
// characters: [red, very new, 'x: y', NULL]. NULL is left out of the list. bare reports that some element has
// no quotes, ok that the cell is a list.
func textList(cell string) (list []string, bare, ok bool) {
	rest := strings.TrimSpace(cell)
	if len(rest) < 2 || rest[0] != '[' || rest[len(rest)-1] != ']' {
		return nil, false, false
	}
	list = []string{}
	if rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest == "" {
		return list, false, true
	}
	for {
		if rest == "" {
			return nil, false, false
		}
		if rest[0] == '"' || rest[0] == '\'' {
			var b strings.Builder
			i := 1
			for ; i < len(rest) && rest[i] != rest[0]; i++ {
				if rest[i] == '\\' && i+1 < len(rest) && strings.IndexByte(`\'"`, rest[i+1]) >= 0 {
					i++
				}
				b.WriteByte(rest[i])
			}
			if i == len(rest) {
				return nil, false, false
			}
			list, rest = append(list, b.String()), strings.TrimSpace(rest[i+1:])
		} else {
			end := strings.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			s := strings.TrimSpace(rest[:end])
			if s == "" || strings.ContainsAny(s, "()[]{}:=\"'\\") {
				return nil, false, false
			}
			if bare = true; s != "NULL" {
				list = append(list, s)
			}
			rest = rest[end:]
		}
		if rest == "" {
			return list, bare, true
		}
		if rest[0] != ',' {
			return nil, false, false
		}
		rest = strings.TrimSpace(rest[1:])
	}
}
