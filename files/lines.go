package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// maxLine bounds a line of keys or labels, in bytes.
const maxLine = 1 << 20

// ReadLines reads a text file of keys or label names, one a line, in file order. A line
// ends with LF, CRLF or the end of the file. An empty line is an empty string, and
// other blanks are part of their line. Text that is not UTF-8, and a line of more than
// 1 MiB, give an *Error with the number of the line.
//
// The result takes the memory of the text and 16 bytes a line. The file may be a pipe.
func ReadLines(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	return readLines(path, f)
}

func readLines(name string, r io.Reader) ([]string, error) {
	var text []string
	for l := newLines(name, r, maxLine); ; {
		line, err := l.nextText()
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		text = append(text, string(line))
	}
}

// lines reads a text line by line.
type lines struct {
	name  string
	scan  *bufio.Scanner
	limit int // largest line in bytes
	line  int // number of the line that next returned last, from 1
}

func newLines(name string, r io.Reader, limit int) *lines {
	scan := bufio.NewScanner(r)
	// The line break CRLF takes two more, so that a line of the largest size fits.
	scan.Buffer(make([]byte, 64<<10), limit+2)
	return &lines{name: name, scan: scan, limit: limit}
}

// each calls f with each line, for the first pass over a file of numbers. Blank lines are
// possible at the end only; holds says in words what each line before has to hold. An error of f
// is one of the line.
func (l *lines) each(holds string, f func(line []byte) error) error {
	fail := func(line int, err error) error { return &Error{File: l.name, Line: line, Row: -1, Col: -1, Err: err} }
	blank := 0 // number of the first blank line since the last row
	for {
		line, err := l.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return textLine(err)
		case len(bytes.TrimSpace(line)) == 0:
			if blank == 0 {
				blank = l.line
			}
			continue
		case blank > 0:
			return fail(blank, fmt.Errorf("is blank, and rows follow: every %s", holds))
		}
		if err := f(line); err != nil {
			return fail(l.line, err)
		}
	}
}

// textLine removes the row from an error of lines, as a header may precede it.
func textLine(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Row = -1
	}
	return err
}

// next returns the next line without its end, valid until the next call, or io.EOF
// after the last.
func (l *lines) next() ([]byte, error) {
	if !l.scan.Scan() {
		switch err := l.scan.Err(); {
		case err == nil:
			return nil, io.EOF
		case errors.Is(err, bufio.ErrTooLong):
			l.line++
			return nil, l.tooLong()
		default:
			return nil, fileError(l.name, err)
		}
	}
	l.line++
	line := l.scan.Bytes()
	if l.line == 1 {
		// Spreadsheets begin UTF-8 with a byte order mark.
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if len(line) > l.limit {
		return nil, l.tooLong()
	}
	return line, nil
}

// nextText is next for lines that must be UTF-8.
func (l *lines) nextText() ([]byte, error) {
	line, err := l.next()
	if err == nil && !utf8.Valid(line) {
		return nil, l.fail("is not UTF-8 text: save the file in that encoding")
	}
	return line, err
}

func (l *lines) tooLong() error {
	return l.fail("is longer than %s bytes: is this a text file?", thousands(l.limit))
}

// fail returns an error about the line that next returned last. The line counts as an
// item.
func (l *lines) fail(format string, args ...any) error {
	return &Error{File: l.name, Line: l.line, Row: l.line - 1, Col: -1, Err: fmt.Errorf(format, args...)}
}
