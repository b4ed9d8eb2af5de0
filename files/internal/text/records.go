package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Records reads the records of a .csv (RFC 4180), which may take several lines where a field is in quotes.
// Blanks around quotes mean nothing. encoding/csv does not do for numbers: it skips blank lines, which would
// shift rows against labels and keys, and does not bound a record.
type Records struct {
	*Lines
	Line   int      // the first line of the record
	Fields [][]byte // of the record, valid until the next one
	Empty  bool     // the line has nothing, and the record one empty field
	most   int      // largest number of fields

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
		i := bytes.IndexByte(line, ',')
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

func (r *Records) many() error {
	return fmt.Errorf("has more than %s columns, which is the most that is supported", matrix.Thousands(r.most))
}

// quoted reads a record some of whose fields are in quotes, from its first line on.
func (r *Records) quoted(line []byte) (bad, err error) {
	r.text, r.ends = r.text[:0], r.ends[:0]
	for {
		if len(r.ends) == r.most {
			return r.many(), nil
		}
		if start := bytes.TrimLeft(line, " \t"); len(start) == 0 || start[0] != '"' {
			field, rest, more := bytes.Cut(line, []byte{','})
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
					return nil, matrix.LineError(r.name, r.Line, fmt.Errorf("is longer than %d MiB: is a quote not closed?", r.limit>>20))
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
		if line = bytes.TrimLeft(line, " \t"); len(line) == 0 {
			return nil, nil
		}
		if line[0] != ',' {
			return fmt.Errorf("%s follows a closing quote instead of a comma", matrix.Quote(line)), nil
		}
		line = line[1:]
	}
}

var errQuote = errors.New("a quote is not closed")
