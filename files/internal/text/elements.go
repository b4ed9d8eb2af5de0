package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// isArray reports whether a file is one JSON array, of objects or of arrays or empty, and not an object or a
// vector a line.
func isArray(src matrix.Source) bool {
	r := bufio.NewReader(src.Reader())
	next := func() byte {
		for {
			c, err := r.ReadByte()
			if err != nil {
				return 0
			}
			if !isBlank(c) {
				return c
			}
		}
	}
	if bom, _ := r.Peek(3); string(bom) == "\ufeff" {
		_, _ = r.Discard(3)
	}
	if next() != '[' {
		return false
	}
	c := next()
	return c == '{' || c == '[' || c == ']' && next() == 0
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// elements reads a JSON array as lines, an element a line. It only looks at brackets, commas and strings; the
// lines have the errors of the elements.
type elements struct {
	r       io.Reader
	depth   int  // of brackets
	quoted  bool // in a string
	escaped bool // behind a \ in it
	ended   bool // behind the array
}

var (
	errArrayEnds = errors.New("ends inside its array: the file is truncated")
	errBehind    = errors.New("has more than one array")
)

// Read implements io.Reader.
func (e *elements) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	for i, c := range p[:n] {
		blank := isBlank(c)
		switch {
		case e.ended && !blank:
			return i, fmt.Errorf("%w: %s follows it", errBehind, matrix.Quote(p[i:n]))
		case e.quoted && e.escaped:
			e.escaped = false
		case e.quoted && c == '\\':
			e.escaped = true
		case e.quoted && c == '\n':
			p[i] = '\r' // an error of the string, and not the end of the line
		case c == '"':
			e.quoted = !e.quoted
		case e.quoted:
		case blank:
			p[i] = ' '
		case c == '[' || c == '{':
			if e.depth++; e.depth == 1 {
				p[i] = ' '
			}
		case c == ']' || c == '}':
			if e.depth--; e.depth == 0 {
				e.ended = true
				if c == ']' { // else it is an error of the last element
					p[i] = '\n'
				}
			}
		case c == ',' && e.depth == 1:
			p[i] = '\n'
		}
	}
	if err == io.EOF && !e.ended {
		err = errArrayEnds
	}
	return n, err
}
