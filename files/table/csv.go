package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/internal/jsontext"
)

// csvTable is the Table of a .csv file. Its first line has the names of the columns.
type csvTable struct {
	name string
	f    io.ReadSeekCloser

	csv   *csv.Reader
	limit *lineLimit
	looks []Look
	uses  []Use
	rows  int   // of the whole file; -1 before look has read it
	next  int   // row that Next returns next
	line  int   // of the row that Next returned last
	err   error // the final error

	cell  []byte // memory of a cell
	scan  jsontext.Scanner
	dense [][]float32 // by column: memory of its vector
}

func openCSV(path, name string) (Reader, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, failure(name, 0, err)
	}
	t, err := newCSVTable(name, f)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, failure(name, 0, err)
	}
	return t, nil
}

func newCSVTable(path string, f io.ReadSeekCloser) (*csvTable, error) {
	t := &csvTable{name: path, f: f, rows: -1}
	header, err := t.rewind()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		switch {
		case i == maxColumns:
			return nil, fmt.Errorf("has more than %d columns", maxColumns)
		case !utf8.ValidString(name):
			return nil, failure(path, 1, errors.New("is not UTF-8 text: save the file in that encoding"))
		case seen[name] && name != "":
			return nil, failure(path, 1, fmt.Errorf("has the column %s twice", quote([]byte(name))))
		}
		seen[name] = true
		l := NewLook(name)
		l.Text = true
		t.looks = append(t.looks, l)
	}
	if len(header) == 1 && strings.ContainsAny(header[0], ";\t") {
		return nil, failure(path, 1, fmt.Errorf("is %s: columns are separated by commas", quote([]byte(header[0]))))
	}
	if numbersOnly(header) {
		return nil, failure(path, 1, errors.New("has only numbers, where the names of the columns are expected: write a header; vectors without one go by --vectors"))
	}
	return t, nil
}

// numbersOnly reports whether all cells of a line are numbers.
func numbersOnly(cells []string) bool {
	for _, c := range cells {
		if _, err := strconv.ParseFloat(strings.TrimSpace(c), 64); err != nil {
			return false
		}
	}
	return true
}

// rewind starts at the first row, and returns the header.
func (t *csvTable) rewind() ([]string, error) {
	if _, err := t.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	t.limit = &lineLimit{t.f, maxLine}
	text := bufio.NewReader(t.limit)
	if bom, _ := text.Peek(3); string(bom) == "\ufeff" {
		_, _ = text.Discard(3) // peeked
	}
	t.csv = csv.NewReader(text)
	t.csv.ReuseRecord = true
	t.next, t.line, t.err = 0, 1, nil
	header, err := t.csv.Read()
	if err == io.EOF {
		return nil, errors.New("is empty: its first line has the names of the columns")
	}
	if err != nil {
		return nil, t.textError(err)
	}
	return header, nil
}

// A lineLimit ends a line that is too long, as encoding/csv does not: a quote that is
// not closed makes the rest of the file one line.
type lineLimit struct {
	r    io.Reader
	left int // bytes of the line
}

var errLine = fmt.Errorf("is longer than %d MiB: is a quote not closed?", maxLine>>20)

func (l *lineLimit) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLine
	}
	n, err := l.r.Read(b)
	l.left -= n
	return n, err
}

// record reads the next line. A *csv.ParseError costs only that line.
func (t *csvTable) record() ([]string, error) {
	t.limit.left = maxLine
	cells, err := t.csv.Read()
	if err == nil {
		t.line, _ = t.csv.FieldPos(0)
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		t.line = bad.StartLine
	}
	return cells, err
}

// textError returns an error of encoding/csv in our words.
func (t *csvTable) textError(err error) error {
	var bad *csv.ParseError
	switch {
	case errors.Is(err, errLine):
		return failure(t.name, t.line+1, errLine)
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("has another number of columns than the header, which has %d", t.csv.FieldsPerRecord)
	case errors.As(err, &bad):
		return fmt.Errorf("%w, in line %d", bad.Err, bad.Line)
	}
	return failure(t.name, 0, err)
}

func (t *csvTable) Columns() ([]Column, error) {
	if t.rows < 0 {
		if err := t.look(); err != nil {
			return nil, err
		}
	}
	return columnsOf(t.looks), nil
}

// look reads all lines.
func (t *csvTable) look() error {
	if t.err != nil && t.err != io.EOF {
		return t.err
	}
	rows := 0
	for ; ; rows++ {
		cells, err := t.record()
		if err == io.EOF {
			break
		}
		var bad *csv.ParseError
		switch {
		case errors.As(err, &bad): // an error of the row, when it is read
			continue
		case err != nil:
			return t.textError(err)
		}
		for i, c := range cells {
			if c != "" {
				t.lookAt(&t.looks[i], c)
			}
		}
	}
	t.rows = rows
	for i := range t.looks {
		if l := &t.looks[i]; l.Kind == Scalars && l.Type == "string" && l.lists > 0 && l.others == 0 {
			l.Listed, l.Joined = true, ""
		}
	}
	_, err := t.rewind()
	return err
}

func (t *csvTable) Map(uses []Use) error {
	if err := suit(columnsOf(t.looks), uses); err != nil {
		return failure(t.name, 0, err)
	}
	t.uses, t.dense = uses, make([][]float32, len(uses))
	return nil
}

// Shape follows from the columns and their uses.
func (t *csvTable) Shape() (*Shape, error) {
	if t.err != nil && t.err != io.EOF {
		return nil, t.err
	}
	return shapeOf(columnsOf(t.looks), t.uses), nil
}

// Rows returns the number of rows, -1 before Columns has counted them.
func (t *csvTable) Rows() int { return t.rows }

func (t *csvTable) Next(item *Item) error {
	if t.err != nil {
		return t.err
	}
	cells, err := t.record()
	var bad *csv.ParseError
	switch {
	case err == io.EOF && t.rows >= 0 && t.next < t.rows:
		err = failure(t.name, 0, fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF))
	case err == io.EOF || err == nil || errors.As(err, &bad):
	default:
		err = t.textError(err)
	}
	if err != nil && bad == nil {
		t.err = err
		return err
	}
	t.next++
	item.Reset()
	if bad != nil {
		return t.Fail(t.textError(err))
	}
	for i, u := range t.uses {
		if cells[i] == "" && u.Role != AsKey {
			continue // no value
		}
		if err := t.take(i, cells[i], item); err != nil {
			return t.Fail(fmt.Errorf("%s: %w", quote([]byte(t.looks[i].Name)), err))
		}
	}
	return nil
}

func (t *csvTable) Fail(err error) error {
	var e *files.Error
	if errors.As(err, &e) {
		return err
	}
	return &files.Error{File: t.name, Line: t.line, Row: t.next - 1, Col: -1, Err: err}
}

func (t *csvTable) Close() error {
	if errors.Is(t.err, os.ErrClosed) {
		return nil
	}
	t.err = failure(t.name, 0, os.ErrClosed)
	return t.f.Close()
}
