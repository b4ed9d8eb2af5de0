package matrix

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// Error is an error in a file, with its place.
//
// Rows and columns count from 0, as in numpy. Lines of a text file count from 1, as in editors. The text
// names the line if there is one, else the row. A header is line 1 and no row.
type Error struct {
	File string // the path as it was given
	Line int    // line of a text file, from 1; 0 if it does not apply
	Row  int    // row of the matrix, or item, from 0; -1 if it does not apply
	Col  int    // column of the matrix, from 0; -1 if it does not apply
	Err  error  // the cause; never nil
}

// Error returns "FILE: row N, column N: cause".
func (e *Error) Error() string {
	var place []string
	switch {
	case e.Line > 0:
		place = append(place, fmt.Sprintf("line %d", e.Line))
	case e.Row >= 0:
		place = append(place, fmt.Sprintf("row %d", e.Row))
	}
	if e.Col >= 0 {
		place = append(place, fmt.Sprintf("column %d", e.Col))
	}
	if place == nil {
		return e.File + ": " + e.Err.Error()
	}
	return e.File + ": " + strings.Join(place, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause: errors.Is(err, fs.ErrNotExist) works.
func (e *Error) Unwrap() error { return e.Err }

// FileError returns err as an error about a file as a whole, or as it is if it names its file already.
func FileError(file string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{File: file, Row: -1, Col: -1, Err: cause(err)}
}

// LineError returns err as an error about a line, which is no row.
func LineError(file string, line int, err error) error {
	return &Error{File: file, Line: line, Row: -1, Col: -1, Err: err}
}

// cause returns what an error of the file system says without its path. An early end must not look like
// io.EOF, by which readers say that they have returned all rows.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// A BadValue is an error about one value, which costs its row only.
type BadValue struct {
	At  int // its column, or its place in a list
	Err error
}

func (e *BadValue) Error() string { return fmt.Sprintf("number %d: %v", e.At, e.Err) }
func (e *BadValue) Unwrap() error { return e.Err }

// Bad returns an error about the value of a column.
func Bad(column int, err error) error { return &BadValue{column, err} }

// NotFinite returns the error about a value that is NaN or infinite.
func NotFinite(x string) error {
	return fmt.Errorf("%s is not a finite number, which every value of a vector must be: replace it or drop the row", x)
}

// TooLarge returns the error about a value that float32 cannot hold.
func TooLarge(x string) error {
	return errors.New(x + " is too large for float32 (at most 3.4028235e+38): scale the column")
}

// Quote returns text of a file for an error, cut to a sane length.
func Quote[T string | []byte](text T) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "..."
	}
	return strconv.Quote(string(text))
}

// Names returns the first names of a list, for an error.
func Names(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// Thousands returns a count with commas: 1,234,567.
func Thousands[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
