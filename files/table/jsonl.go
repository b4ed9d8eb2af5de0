package table

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/internal/jsontext"
)

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// maxDim bounds the columns of a vector, as in package files.
const maxDim = 1 << 20

// jsonlReader is the Reader of a .jsonl file.
type jsonlReader struct {
	name string
	r    io.ReaderAt
	size int64 // without blanks at the end of the file
	rows int   // lines
	next int   // row that Next returns next; its line is one more

	lines *bufio.Scanner
	item  decoder // makes items of lines
	err   error   // the final error
	io.Closer
}

func openJSONL(path, name string) (Reader, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, failure(name, 0, err)
	}
	info, err := f.Stat()
	var r *jsonlReader
	if err == nil {
		r, err = newJSONLReader(name, f, info.Size())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, failure(name, 0, err)
	}
	r.Closer = f
	if r.isTable() {
		return &jsonlTable{jsonlReader: r}, nil
	}
	return r, nil
}

// openRegular opens a regular file.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a named pipe would wait for somebody to write to it
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file: its lines are counted before they are read; copy it to one")
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// failure returns an error about a line, counted from 1, or about the file if line is
// 0.
func failure(path string, line int, err error) error {
	var e *files.Error
	if errors.As(err, &e) {
		return err
	}
	// The path is in File already, and *fs.PathError would repeat it.
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &files.Error{File: path, Line: line, Row: -1, Col: -1, Err: err}
}

func newJSONLReader(path string, f io.ReaderAt, size int64) (*jsonlReader, error) {
	r := &jsonlReader{name: path, r: f, size: size}
	if err := r.count(); err != nil {
		return nil, err
	}
	r.rewind()
	return r, nil
}

// count counts the lines, without blank ones at the end.
func (r *jsonlReader) count() error {
	block := make([]byte, min(1<<20, r.size))
	for r.size > 0 {
		n := min(int64(len(block)), r.size)
		if _, err := r.r.ReadAt(block[:n], r.size-n); err != nil && err != io.EOF {
			return err
		}
		rest := bytes.TrimRight(block[:n], " \t\r\n")
		r.size -= n - int64(len(rest))
		if len(rest) > 0 {
			break
		}
	}
	if r.size == 0 {
		return nil
	}
	r.rows = 1
	for at := int64(0); at < r.size; {
		n := min(int64(len(block)), r.size-at)
		if _, err := r.r.ReadAt(block[:n], at); err != nil && err != io.EOF {
			return err
		}
		r.rows += bytes.Count(block[:n], []byte{'\n'})
		at += n
	}
	return nil
}

func (r *jsonlReader) rewind() {
	r.lines = bufio.NewScanner(io.NewSectionReader(r.r, 0, r.size))
	// The line break CRLF takes two more, so that a line of the largest size fits.
	r.lines.Buffer(make([]byte, 256<<10), maxLine+2)
	r.next = 0
}

func (r *jsonlReader) Rows() int { return r.rows }

// line returns the next line, which is valid until the next call.
func (r *jsonlReader) line() ([]byte, error) {
	if !r.lines.Scan() {
		err := r.lines.Err()
		switch {
		case err == nil && r.next == r.rows:
			return nil, io.EOF
		case err == nil:
			err = fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
		case errors.Is(err, bufio.ErrTooLong):
			return nil, failure(r.name, r.next+1, fmt.Errorf("is longer than %d MiB: is this a file of items?", maxLine>>20))
		}
		return nil, failure(r.name, 0, err)
	}
	if r.next == r.rows {
		return nil, failure(r.name, 0, errors.New("the file became longer while it was read"))
	}
	r.next++
	line := r.lines.Bytes()
	if r.next == 1 {
		// Some editors begin UTF-8 with a byte order mark.
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, nil
}

func (r *jsonlReader) Next(item *Item) error {
	if r.err != nil {
		return r.err
	}
	line, err := r.line()
	if err != nil {
		r.err = err
		return err
	}
	if err := r.item.decode(line, item); err != nil {
		return r.Fail(err)
	}
	return nil
}

func (r *jsonlReader) Fail(err error) error {
	return &files.Error{File: r.name, Line: r.next, Row: r.next - 1, Col: -1, Err: err}
}

func (r *jsonlReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = failure(r.name, 0, os.ErrClosed)
	if r.Closer == nil {
		return nil
	}
	return r.Closer.Close()
}

// maxKept is the number of vectors whose memory a decoder keeps.
const maxKept = 1000

// A decoder makes items of lines. It reuses the memory of the vectors of the last item.
type decoder struct {
	scan   jsontext.Scanner
	dense  map[string][]float32 // memory of dense vectors, by name
	sparse map[string]Sparse    // memory of sparse vectors, by name
	sorter Sorter               // sorts their columns

	// measure says that numbers of dense vectors are counted and not read. Then vectors
	// and fields describe the item, in its order.
	measure bool
	vectors []size
	fields  []Field
}

// size describes a vector without its numbers.
type size struct {
	name   string
	dim    int
	sparse bool
}

// members are the members of an item.
var members = []string{"key", "vectors", "labels", "fields", "payload", "code", "code_from", "codes", "modalities"}

func (d *decoder) decode(line []byte, it *Item) error {
	// Every line may have other names, in a file that is not of a collection.
	if d.dense == nil || len(d.dense)+len(d.sparse) > maxKept {
		d.dense, d.sparse = map[string][]float32{}, map[string]Sparse{}
	}
	it.Reset()
	d.vectors, d.fields = d.vectors[:0], d.fields[:0]
	s := &d.scan
	s.Reset(line)
	if kind := s.Kind(); kind != jsontext.Object {
		if len(bytes.TrimSpace(line)) == 0 {
			return errors.New("is blank: every line must hold an item; {} is one without anything")
		}
		return fmt.Errorf("is %v, where an item is expected: {\"key\":...,\"vectors\":{...}}", kind)
	}
	seen := 0
	vectorless := false // the line is of an index-only copy
	err := s.Object(func(name []byte) error {
		i := 0
		for i < len(members) && members[i] != string(name) {
			i++
		}
		switch {
		case i == len(members):
			return fmt.Errorf("has a member %s, which items have not: key, vectors, labels, fields, payload and code are possible; values of one's own are in \"fields\"", quote(name))
		case seen&(1<<i) != 0:
			return fmt.Errorf("has %s twice", quote(name))
		}
		seen |= 1 << i
		if s.Kind() == jsontext.Null {
			return s.Null()
		}
		if err := d.member(members[i], it); err != nil {
			return fmt.Errorf("%s: %w", members[i], err)
		}
		vectorless = vectorless || members[i] == "modalities"
		return nil
	})
	if err == nil {
		err = s.End()
	}
	if err == nil && vectorless {
		err = errors.New("the item comes from an index-only copy and has no vectors here: export it from the database that this is a copy of")
	}
	return err
}

func (d *decoder) member(name string, it *Item) (err error) {
	s := &d.scan
	switch name {
	case "key":
		if it.Key, err = s.String(); err == nil && it.Key == "" {
			err = errors.New("is empty: an item needs a key; leave it out for one that is made")
		}
		return err
	case "vectors":
		return s.Object(func(name []byte) error {
			if err := d.vector(string(name), it); err != nil {
				return fmt.Errorf("%s: %w", quote(name), err)
			}
			return nil
		})
	case "labels":
		return s.Array(func() error {
			label, err := s.String()
			it.Labels = append(it.Labels, label)
			return err
		})
	case "fields":
		return s.Object(func(name []byte) error {
			if err := d.field(string(name), it); err != nil {
				return fmt.Errorf("%s: %w", quote(name), err)
			}
			return nil
		})
	case "payload":
		text, err := s.String()
		if err == nil {
			it.Payload, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return fmt.Errorf("is not base64: %w", err)
		}
		return nil
	case "code":
		text, err := s.String()
		if err == nil {
			it.Code, err = hex.DecodeString(text)
		}
		if err != nil {
			return fmt.Errorf("is not hexadecimal: %w", err)
		}
		return nil
	}
	return s.Skip()
}

// vector reads a dense or sparse vector.
func (d *decoder) vector(name string, it *Item) (err error) {
	_, dense := it.Vectors[name]
	_, sparse := it.Sparse[name]
	if dense || sparse {
		return errors.New("is there twice")
	}
	s := &d.scan
	switch s.Kind() {
	case jsontext.Null: // no vector of this name
		return s.Null()
	case jsontext.Array:
		if d.measure {
			n, err := s.Count()
			d.vectors = append(d.vectors, size{name, n, false})
			it.Vectors[name] = nil
			return err
		}
		x, err := s.Float32s(d.dense[name][:0], maxDim)
		d.dense[name], it.Vectors[name] = x, x
		return err
	case jsontext.Object:
		x := d.sparse[name]
		if x, err = d.sparseVector(x); err != nil {
			return err
		}
		d.sparse[name], it.Sparse[name] = x, x
		if d.measure {
			dim := 1
			if n := len(x.Index); n > 0 {
				dim = int(x.Index[n-1]) + 1
			}
			d.vectors = append(d.vectors, size{name, dim, true})
		}
		return nil
	}
	return fmt.Errorf("is %v, where a vector is expected: an array of numbers, or {\"i\":[...],\"v\":[...]}", s.Kind())
}

func (d *decoder) sparseVector(x Sparse) (Sparse, error) {
	s := &d.scan
	x.Index, x.Value = x.Index[:0], x.Value[:0]
	var hasIndex, hasValue bool
	err := s.Object(func(name []byte) (err error) {
		switch {
		case string(name) == "i" && !hasIndex:
			hasIndex = true
			x.Index, err = s.Uint32s(x.Index, maxDim)
		case string(name) == "v" && !hasValue:
			hasValue = true
			x.Value, err = s.Float32s(x.Value, maxDim)
		default:
			err = fmt.Errorf("has %s in a sparse vector, which has \"i\" and \"v\", each once", quote(name))
		}
		return err
	})
	switch {
	case err != nil:
		return x, err
	case !hasIndex || !hasValue:
		return x, errors.New("a sparse vector has \"i\", the columns of its numbers, and \"v\", the numbers")
	case len(x.Index) != len(x.Value):
		return x, fmt.Errorf("has %d columns and %d numbers", len(x.Index), len(x.Value))
	}
	return d.sorter.Sort(x)
}

// field reads the value of a field.
func (d *decoder) field(name string, it *Item) error {
	if _, twice := it.Fields[name]; twice {
		return errors.New("is there twice")
	}
	s := &d.scan
	kind := s.Kind()
	if kind == jsontext.Null { // the field is not set
		return s.Null()
	}
	v, err := d.scalar(kind)
	if err != nil {
		return err
	}
	it.Fields[name] = v
	if d.measure {
		d.fields = append(d.fields, Field{name, fieldType(v)})
	}
	return nil
}

// quote returns a name of a file for an error text, cut to a sane length.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
