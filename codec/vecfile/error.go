package vecfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// Error says what is wrong with a file, and where.
//
// Rows and columns are counted from 0, as numpy indexes them; lines of a text
// file from 1, as editors show them. The text names the line where there is one
// and the row otherwise. A CSV header is line 1 and no row.
type Error struct {
	File string // the path as it was given
	Line int    // line of a text file, from 1; 0 where it does not apply
	Row  int    // row of the matrix, or item, from 0; -1 where it does not apply
	Col  int    // column of the matrix, from 0; -1 where it does not apply
	Err  error  // what is wrong; never nil
}

// Error spells the error as "FILE: row N, column N: what is wrong".
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

// fileError is an error about a file as a whole.
func fileError(file string, err error) *Error {
	// The path is in File already; *fs.PathError would say it twice.
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &Error{File: file, Row: -1, Col: -1, Err: err}
}

// readError is an error of the file system while a row is read. An early end
// must not look like io.EOF, which is how a Reader says that all is well.
func readError(file string, err error) *Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
	}
	return fileError(file, err)
}

// quote spells bytes of a file in an error text, cut to a sane length.
func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}

// thousands spells a count with commas: 1,234,567.
func thousands[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
