package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// maxCSVLine bounds a line of numbers in bytes: maxCols numbers with all the digits of
// float64, and some blanks.
const maxCSVLine = 32 << 20

// This package does not use encoding/csv. That skips blank lines, which would shift
// rows against labels and keys, and takes about fifty bytes of memory a field, however
// long a line is. Numbers need little of its syntax: no field that is a number spans
// lines or contains a quote.

// cutField cuts the first field off a line, without surrounding blanks and quotes. more
// says that another field follows in rest.
func cutField(line []byte) (field, rest []byte, more bool, err error) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] != '"' {
		field, rest, more = bytes.Cut(line, []byte{','})
		return bytes.TrimRight(field, " \t"), rest, more, nil
	}
	line = line[1:]
	end := 0
	for {
		i := bytes.IndexByte(line[end:], '"')
		if i < 0 {
			return nil, nil, false, errors.New("a quote is not closed on its line")
		}
		end += i
		if end+1 < len(line) && line[end+1] == '"' {
			end += 2 // two quotes mean one
			continue
		}
		break
	}
	field, rest = line[:end], bytes.TrimLeft(line[end+1:], " \t")
	if len(rest) == 0 {
		return field, nil, false, nil
	}
	if rest[0] != ',' {
		return nil, nil, false, fmt.Errorf("%s follows a closing quote instead of a comma", quote(rest))
	}
	return field, rest[1:], true, nil
}

// parseFloat32 parses a field as the nearest float32, rounding once.
func parseFloat32(field []byte) (float32, error) {
	x, err := strconv.ParseFloat(string(field), 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errTooLarge(quote(field))
	case err != nil && len(field) == 0:
		return 0, errors.New("the field is empty: every field must be a number")
	case err != nil && bytes.ContainsAny(field, "; \t"):
		return 0, fmt.Errorf("%s is not a number; commas separate numbers", quote(field))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number", quote(field))
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, errNotFinite(quote(field))
	}
	return float32(x), nil
}

// isNumber says whether a field of the first line is data rather than a name. NaN is
// data, and so are numbers that something else than a comma separates: a broken row must
// be reported, not taken for a header.
func isNumber(field []byte) bool {
	parts := bytes.FieldsFunc(field, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' })
	for _, part := range parts {
		if _, err := strconv.ParseFloat(string(part), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return false
		}
	}
	return len(parts) > 0
}

// csvReader is the Reader of a .csv file.
type csvReader struct {
	src        source
	rows, cols int
	header     bool // the first line is a header
	lines      *lines
	next       int   // the row that Next returns
	err        error // the final error
}

// openCSV does the first pass: it counts rows and columns, so that a ragged file is
// refused before any of it is used. Only the second pass parses numbers.
func openCSV(src source) (Reader, error) {
	r := &csvReader{src: src}
	r.rewind()
	wrong := -1 // the column of the first line that is neither header nor row
	err := r.lines.each("row must hold its numbers", func(line []byte) error {
		cols, err := countFields(line)
		if err != nil {
			return err
		}
		if r.lines.line == 1 {
			r.cols = cols
			if cols > maxCols {
				return fmt.Errorf("has %s columns: at most %s are supported; rows are items, is the matrix transposed?",
					thousands(cols), thousands(maxCols))
			}
			if r.header, wrong, err = isHeader(line); err != nil {
				return err
			}
		}
		if cols != r.cols {
			return fmt.Errorf("has %s columns where line 1 has %s", thousands(cols), thousands(r.cols))
		}
		if !r.header || r.lines.line > 1 {
			r.rows++
		}
		return nil
	})
	var e *Error
	if errors.As(err, &e) && e.Line == 1 {
		e.Col = wrong
	}
	if err != nil {
		return nil, err
	}
	if r.cols == 0 {
		return nil, src.fail("holds neither a header nor a row, so the number of columns is unknown")
	}
	r.rewind()
	return r, nil
}

// countFields counts the fields of a line.
func countFields(line []byte) (n int, err error) {
	for more := true; more; n++ {
		if _, line, more, err = cutField(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// isHeader says whether the first line is a header, which has no numbers, or a row, which has
// nothing else. A line that is neither is an error about the column wrong.
func isHeader(line []byte) (header bool, wrong int, err error) {
	name, number := -1, -1 // the first columns that have one
	var said error         // about the first name, if it were a number
	for more, c := true, 0; more; c++ {
		var field []byte
		if field, line, more, err = cutField(line); err != nil {
			return false, c, err
		}
		switch {
		case isNumber(field):
			if number < 0 {
				number = c
			}
		case name < 0:
			name = c
			_, said = parseFloat32(field)
		}
	}
	if name >= 0 && number >= 0 {
		return false, name, fmt.Errorf("%w; nor is the line a header, as column %d has a number", said, number)
	}
	return name >= 0, 0, nil
}

// rewind starts at the first line.
func (r *csvReader) rewind() {
	r.lines = newLines(r.src.name, io.NewSectionReader(r.src, 0, r.src.size), maxCSVLine)
}

func (r *csvReader) fail(line, row, col int, err error) error {
	return &Error{File: r.src.name, Line: line, Row: row, Col: col, Err: err}
}

// HasHeader says that the first line was taken for a header: it is no row.
func (r *csvReader) HasHeader() bool { return r.header }

func (r *csvReader) Rows() int { return r.rows }
func (r *csvReader) Cols() int { return r.cols }

func (r *csvReader) Next(dst []float32) error {
	if r.err != nil {
		return r.err
	}
	if len(dst) != r.cols {
		return r.src.fail("a row has %d values, the slice for it %d", r.cols, len(dst))
	}
	if r.next == r.rows {
		r.err = io.EOF
		return r.err
	}
	line, err := r.line()
	if err != nil {
		r.err = err
		return err
	}
	row := r.next
	r.next++
	more := true
	for c := range dst {
		var field []byte
		if more {
			field, line, more, err = cutField(line)
		}
		if err == nil {
			dst[c], err = parseFloat32(field)
		}
		if err != nil {
			return r.fail(r.lines.line, row, c, err)
		}
	}
	return nil
}

// line returns the line of the next row.
func (r *csvReader) line() ([]byte, error) {
	line, err := r.lines.next()
	if err == nil && r.header && r.lines.line == 1 {
		line, err = r.lines.next()
	}
	switch {
	case err == io.EOF:
		return nil, readError(r.src.name, err)
	case err != nil:
		return nil, textLine(err)
	}
	return line, nil
}

func (r *csvReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fileError(r.src.name, os.ErrClosed)
	return r.src.close()
}
