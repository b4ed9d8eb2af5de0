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
	array bool
	N     int // number of the line that Next returned last, from 1
}

// newJSONLines starts to read the lines of a .jsonl, or the elements of its array as if they were lines.
func newJSONLines(src matrix.Source, array bool, limit int) *Lines {
	r := src.Reader()
	if array {
		r = &elements{r: r}
	}
	l := NewLines(src.Name, r, limit)
	l.array = array
	return l
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
	return l.fail(l.N, fmt.Errorf(format, args...))
}

// fail returns err as an error about a line, and of one of its columns if it is a bad value.
func (l *Lines) fail(line int, err error) error {
	var bad *matrix.BadValue
	e := &matrix.Error{File: l.name, Line: line, Row: -1, Col: -1, Err: err}
	if errors.As(err, &bad) {
		e.Col, e.Err = bad.At, bad.Err
	}
	if l.array { // its elements may all be on one line
		e.Line, e.Err = 0, fmt.Errorf("row %d: %w", line-1, e.Err)
	}
	return e
}

// line returns the number of the line that Next returned last, 0 if it is an element of an array.
func (l *Lines) line() int {
	if l.array {
		return 0
	}
	return l.N
}

// place returns in words where Next is.
func (l *Lines) place() string {
	if l.array {
		return fmt.Sprintf("row %d", l.N-1)
	}
	return fmt.Sprintf("line %d", l.N)
}

// known reads the lines of a .jsonl whose number is known.
type known struct {
	*Lines
	src   matrix.Source
	array bool
	rows  int
}

// count counts the lines, without blank ones at the end.
func count(src matrix.Source, limit int) (*known, error) {
	k := &known{src: src, array: isArray(src)}
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

func (k *known) rewind(limit int) { k.Lines = newJSONLines(k.src, k.array, limit) }

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
func each(in *Lines, next func() (line int, blank bool, err error), f func() error) error {
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
			return in.fail(first, errors.New("is blank, and rows follow: each line must hold a vector"))
		default:
			if err := f(); err != nil {
				return in.fail(line, err)
			}
		}
	}
}

// Records reads the records of a .csv (RFC 4180), which may take several lines where a field is in quotes.
// Commas separate fields, or tabs or semicolons if the first line has more of them. Blanks around quotes mean
// nothing. encoding/csv does not do for numbers: it skips blank lines, which would
// shift rows against labels and keys, and does not bound a record.
type Records struct {
	*Lines
	Line   int      // the first line of the record
	Fields [][]byte // of the record, valid until the next one
	Empty  bool     // the line has nothing, and the record one empty field
	most   int      // largest number of fields
	comma  byte     // what separates fields; 0 before the first line

	text []byte // fields of a record with quotes, one after the other
	ends []int  // where each of them ends
}

// NewRecords starts to read the records of a file, each of at most limit bytes and most fields.
func NewRecords(name string, r io.Reader, limit, most int) *Records {
	return &Records{Lines: NewLines(name, r, limit), most: most}
}

// Restart starts to read again, from a reader of the same file.
func (r *Records) Restart(again io.Reader) { r.Lines = NewLines(r.name, again, r.limit) }

// Next reads the next record. bad is an error that costs this record only; err is final, or io.EOF after the
// last one.
func (r *Records) Next() (bad, err error) {
	line, err := r.Lines.Next()
	if err != nil {
		return nil, err
	}
	r.Line, r.Fields, r.Empty = r.N, r.Fields[:0], len(line) == 0
	if r.comma == 0 && !r.Empty {
		r.comma = separator(line)
	}
	if bytes.IndexByte(line, '"') >= 0 {
		if bad, err = r.quoted(line); bad != nil || err != nil {
			return bad, err
		}
		start := 0
		for _, end := range r.ends {
			r.Fields = append(r.Fields, r.text[start:end:end])
			start = end
		}
		return nil, nil
	}
	for {
		i := bytes.IndexByte(line, r.comma)
		if i < 0 {
			r.Fields = append(r.Fields, line)
			return nil, nil
		}
		if len(r.Fields) == r.most-1 {
			return r.many(), nil
		}
		r.Fields = append(r.Fields, line[:i])
		line = line[i+1:]
	}
}

// separator returns what separates the fields of a line.
func separator(line []byte) byte {
	var n [256]int
	quoted := false
	for _, c := range bytes.TrimSpace(line) {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			n[c]++
		}
	}
	switch {
	case n['\t'] > max(n[','], n[';']):
		return '\t'
	case n[';'] > n[',']:
		return ';'
	}
	return ','
}

func (r *Records) many() error {
	return fmt.Errorf("has more than %s columns, which is the most that is supported",
		matrix.Thousands(r.most))
}

// quoted reads a record some of whose fields are in quotes, from its first line on.
func (r *Records) quoted(line []byte) (bad, err error) {
	r.text, r.ends = r.text[:0], r.ends[:0]
	for {
		if len(r.ends) == r.most {
			return r.many(), nil
		}
		if start := r.trim(line); len(start) == 0 || start[0] != '"' {
			field, rest, more := bytes.Cut(line, []byte{r.comma})
			if i := bytes.IndexByte(field, '"'); i >= 0 {
				return fmt.Errorf("has a quote inside a field, %s: the field has to be in quotes, and the quote doubled", matrix.Quote(field)), nil
			}
			r.text = append(r.text, field...)
			r.ends = append(r.ends, len(r.text))
			if !more {
				return nil, nil
			}
			line = rest
			continue
		} else {
			line = start[1:]
		}
		for {
			i := bytes.IndexByte(line, '"')
			if i < 0 { // the field goes on in the next line
				r.text = append(append(r.text, line...), '\n')
				if line, err = r.Lines.Next(); err == io.EOF {
					return errQuote, nil
				}
				if err != nil {
					return nil, err
				}
				if len(r.text)+len(line) > r.limit {
					return nil, matrix.LineError(r.name, r.Line,
						fmt.Errorf("is longer than %d MiB: is a quote not closed?", r.limit>>20))
				}
				continue
			}
			r.text = append(r.text, line[:i]...)
			if line = line[i+1:]; len(line) == 0 || line[0] != '"' {
				break
			}
			r.text = append(r.text, '"') // two quotes mean one
			line = line[1:]
		}
		r.ends = append(r.ends, len(r.text))
		if line = r.trim(line); len(line) == 0 {
			return nil, nil
		}
		if line[0] != r.comma {
			return fmt.Errorf("%s follows a closing quote instead of %s", matrix.Quote(line),
				map[byte]string{',': "a comma", ';': "a semicolon", '\t': "a tab"}[r.comma]), nil
		}
		line = line[1:]
	}
}

// trim cuts blanks before a field, or behind it.
func (r *Records) trim(line []byte) []byte {
	if r.comma == '\t' {
		return bytes.TrimLeft(line, " ")
	}
	return bytes.TrimLeft(line, " \t")
}

var errQuote = errors.New("a quote is not closed")
