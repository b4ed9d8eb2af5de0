package text

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Bounds of a line, in bytes.
const (
	ShortLine = 1 << 20  // of keys or labels
	Numbers   = 32 << 20 // of a vector: MaxCols numbers with all the digits of float64, and some blanks
	Whole     = 64 << 20 // of an item
)

// Lines reads a text line by line.
type Lines struct {
	name  string // of the file, for errors
	scan  *bufio.Scanner
	limit int // largest line in bytes
	N     int // number of the line that Next returned last, from 1
}

// NewLines starts to read the lines of a file, each of at most limit bytes.
func NewLines(name string, r io.Reader, limit int) *Lines {
	scan := bufio.NewScanner(r)
	// The line break CRLF takes two more, so that a line of the largest size fits.
	scan.Buffer(make([]byte, 64<<10), limit+2)
	return &Lines{name: name, scan: scan, limit: limit}
}

// Next returns the next line without its end, valid until the next call, or io.EOF after the last.
func (l *Lines) Next() ([]byte, error) {
	if !l.scan.Scan() {
		switch err := l.scan.Err(); {
		case err == nil:
			return nil, io.EOF
		case errors.Is(err, bufio.ErrTooLong):
			l.N++
			return nil, l.tooLong()
		default:
			return nil, matrix.FileError(l.name, err)
		}
	}
	l.N++
	line := l.scan.Bytes()
	if l.N == 1 {
		// Spreadsheets begin UTF-8 with a byte order mark.
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if len(line) > l.limit {
		return nil, l.tooLong()
	}
	return line, nil
}

// NextText is Next for lines that must be UTF-8.
func (l *Lines) NextText() ([]byte, error) {
	line, err := l.Next()
	if err == nil && !utf8.Valid(line) {
		return nil, l.Fail("%w", errUTF8)
	}
	return line, err
}

var errUTF8 = errors.New("is not UTF-8 text: save the file in that encoding")

func (l *Lines) tooLong() error {
	return l.Fail("is longer than %s bytes: is this a text file?", matrix.Thousands(l.limit))
}

// Fail returns an error about the line that Next returned last.
func (l *Lines) Fail(format string, args ...any) error {
	return matrix.LineError(l.name, l.N, fmt.Errorf(format, args...))
}

// known reads the lines of a file of which it is known how many there are.
type known struct {
	*Lines
	src  matrix.Source
	rows int
}

// count counts the lines, without blank ones at the end.
func count(src matrix.Source, limit int) (*known, error) {
	k := &known{src: src}
	k.rewind(limit)
	for {
		line, err := k.Lines.Next()
		if err == io.EOF {
			k.rewind(limit)
			return k, nil
		}
		if err != nil {
			return nil, err
		}
		if len(line) > 0 && (line[len(line)-1] > ' ' || len(bytes.TrimSpace(line)) > 0) {
			k.rows = k.N
		}
	}
}

func (k *known) rewind(limit int) { k.Lines = NewLines(k.src.Name, k.src.Reader(), limit) }

// next returns the next line, or io.EOF after the last.
func (k *known) next() ([]byte, error) {
	if k.N == k.rows {
		return nil, io.EOF
	}
	line, err := k.Lines.Next()
	if err == io.EOF {
		err = matrix.FileError(k.name, err)
	}
	return line, err
}

// each calls f for each line or record of a file of vectors, which next reads. Blank lines are possible at
// the end only.
func each(name string, next func() (line int, blank bool, err error), f func() error) error {
	first := 0 // number of the first blank line since the last row
	for {
		line, blank, err := next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case blank && first == 0:
			first = line
		case blank:
		case first > 0:
			return matrix.LineError(name, first, errors.New("is blank, and rows follow: each line must hold a vector"))
		default:
			if err := f(); err != nil {
				return lineError(name, line, err)
			}
		}
	}
}

// lineError returns err as an error about a line, and of one of its columns if it is a bad value.
func lineError(name string, line int, err error) error {
	var bad *matrix.BadValue
	if errors.As(err, &bad) {
		return &matrix.Error{File: name, Line: line, Row: -1, Col: bad.At, Err: bad.Err}
	}
	return matrix.LineError(name, line, err)
}
