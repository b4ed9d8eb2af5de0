package files

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
// Rows and columns count from 0, as in numpy. Lines of a text file count from 1, as in
// editors. The text names the line if there is one, else the row. A CSV header is line
// 1 and no row.
type Error struct {
	File string // the path as it was given
	Line int    // line of a text file, from 1; 0 if it does not apply
	Row  int    // row of the matrix, or item, from 0; -1 if it does not apply
	Col  int    // column of the matrix, from 0; -1 if it does not apply
	Err  error  // the cause; never nil
}

// Error returns "FILE: row N, column N: cause".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	b.WriteString(": ")
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d", e.Line)
	case e.Row >= 0:
		fmt.Fprintf(&b, "row %d", e.Row)
	}
	if e.Col >= 0 {
		if e.Line > 0 || e.Row >= 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "column %d", e.Col)
	}
	if e.Line > 0 || e.Row >= 0 || e.Col >= 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause: errors.Is(err, fs.ErrNotExist) works.
func (e *Error) Unwrap() error { return e.Err }

// fileError returns an error about a file as a whole.
func fileError(file string, err error) *Error {
	// The path is in File already, and *fs.PathError would repeat it.
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &Error{File: file, Row: -1, Col: -1, Err: err}
}

// readError returns an error of the file system while a row is read. An early end must
// not look like io.EOF, by which a Reader says that it has returned all rows.
func readError(file string, err error) *Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
	}
	return fileError(file, err)
}

// quote returns bytes of a file for an error text, cut to a sane length.
func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}

// thousands returns a count with commas: 1,234,567.
func thousands[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
