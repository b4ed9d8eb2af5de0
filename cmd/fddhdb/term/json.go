package term

import (
	"bufio"
	"bytes"
)

// A jsonDocument lays out objects for people: members of objects and elements of arrays
// stand on lines of their own, but arrays of plain values on one line, so that a vector
// takes a line. It takes JSON in pieces of any size, and holds none of it back.
type jsonDocument struct {
	out   *bufio.Writer
	array bool // the objects are elements of one array
	any   bool // an object has begun

	nesting  []nesting // of brackets that are open
	opened   bool      // nothing follows the last open bracket yet
	inString bool
	escaped  bool // the last byte of the string was a backslash
}

// A nesting is how the content of a bracket is laid out.
type nesting bool

const (
	onLines   nesting = false
	onOneLine nesting = true
)

// Write implements io.Writer.
func (d *jsonDocument) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if d.inString {
			rest = rest[d.text(rest):]
		} else {
			d.structure(rest[0])
			rest = rest[1:]
		}
	}
	return len(p), d.out.Flush()
}

// text writes the bytes of a string, to its end at the most, and returns their number.
func (d *jsonDocument) text(p []byte) int {
	n := bytes.IndexAny(p, `"\`) + 1
	switch {
	case d.escaped:
		d.escaped = false
		n = 1
	case n == 0:
		n = len(p)
	case p[n-1] == '\\':
		d.escaped = true
	default:
		d.inString = false
	}
	d.out.Write(p[:n])
	return n
}

// structure writes a byte outside of strings, and the blanks and line ends around it.
func (d *jsonDocument) structure(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '}', ']':
		d.close(c)
	case ',':
		d.out.WriteByte(',')
		if d.nesting[len(d.nesting)-1] == onOneLine {
			d.out.WriteByte(' ')
		} else {
			d.newLine()
		}
	case ':':
		d.out.WriteString(": ")
	default:
		d.value(c)
	}
}

// value writes a byte of a value, or of the name of a member.
func (d *jsonDocument) value(c byte) {
	bracket := c == '{' || c == '['
	switch {
	case d.opened && !bracket && d.nesting[len(d.nesting)-1] == onOneLine:
		d.opened = false // the first element of an array is plain, so the others are
	case d.opened:
		d.opened = false
		d.nesting[len(d.nesting)-1] = onLines
		d.newLine()
	case len(d.nesting) > 0 || !d.array:
	case d.any:
		d.out.WriteByte(',')
		d.newLine()
	default:
		d.out.WriteByte('[')
		d.newLine()
	}
	d.any = true
	d.out.WriteByte(c)
	if bracket {
		d.nesting = append(d.nesting, c == '[')
		d.opened = true
	}
	d.inString = c == '"'
}

func (d *jsonDocument) close(c byte) {
	last := len(d.nesting) - 1
	lines := d.nesting[last] == onLines && !d.opened
	d.nesting, d.opened = d.nesting[:last], false
	if lines {
		d.newLine()
	}
	d.out.WriteByte(c)
	if last == 0 && !d.array {
		d.out.WriteByte('\n')
	}
}

func (d *jsonDocument) newLine() {
	depth := len(d.nesting)
	if d.array {
		depth++
	}
	d.out.WriteByte('\n')
	for range depth {
		d.out.WriteString("  ")
	}
}

// end ends the document. ok says that the verb has succeeded: then an array without
// objects is one, too.
func (d *jsonDocument) end(ok bool) {
	switch {
	case !d.array:
	case d.any:
		d.out.WriteString("\n]\n")
	case ok:
		d.out.WriteString("[]\n")
	}
}
