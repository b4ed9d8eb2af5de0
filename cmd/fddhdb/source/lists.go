package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// listed is a file that has been read as a whole.
type listed struct {
	file string
	rows int
	row  int // the next one
	add  func(item *db.Item, row int) error
}

// Path implements rows.Source, as do Rows, Close and Next.
func (s *listed) Path() string { return s.file }
func (s *listed) Rows() int    { return s.rows }
func (s *listed) Close() error { return nil }

func (s *listed) Next(item *db.Item) error {
	if s.row == s.rows {
		return io.EOF
	}
	s.row++
	return s.add(item, s.row-1)
}

// Codes is a file of packed codes.
type Codes struct {
	listed
	packed codec.Codes
}

// OpenCodes reads packed codes.
func OpenCodes(file string) (*Codes, error) {
	codes, err := npy.ReadCodes(file)
	s := &Codes{packed: codes}
	s.listed = listed{file: file, rows: codes.Len(), add: func(item *db.Item, row int) error {
		item.Code = s.At(row)
		return nil
	}}
	return s, err
}

// At returns the code of a row.
func (s *Codes) At(row int) []byte {
	return s.packed.At(row).AppendBytes(nil, s.packed.Bits())
}

// CheckBits checks the codes of the file against a collection with codes of so many bits.
func (s *Codes) CheckBits(c api.Collection, bits int) error {
	if s.packed.Bits() != bits {
		return exit.Failedf("%s has codes of %d bits, collection %q has codes of %d", s.file, s.packed.Bits(),
			c.Name(), bits)
	}
	return nil
}

// Bits returns the length of the codes.
func (s *Codes) Bits() int { return s.packed.Bits() }

// keyLines is a file of keys, one a line.
type keyLines struct {
	listed
	seen rows.KeySet
}

// OpenKeys reads keys, one a line.
func OpenKeys(file string, twice rows.Duplicates) (rows.Source, error) {
	keys, err := files.ReadLines(file)
	s := &keyLines{seen: rows.KeySet{Policy: twice}}
	s.listed = listed{file: file, rows: len(keys), add: func(item *db.Item, row int) error {
		item.Key = keys[row]
		return s.check(item.Key, row)
	}}
	return s, err
}

// Repeats reports whether an earlier line has the key of the last one.
func (s *keyLines) Repeats() bool { return s.seen.Repeats() }

// check refuses what is no key, and one that the file has twice.
func (s *keyLines) check(key string, row int) error {
	fail := func(format string, args ...any) error {
		return &rows.Error{Err: fmt.Errorf("%s: "+format, append([]any{s.file}, args...)...)}
	}
	if key == "" {
		return fail("line %d is empty: an item needs a key", row+1)
	}
	if len(key) > db.MaxKeyBytes {
		return fail("line %d: a key of %d bytes, at most %d are possible", row+1, len(key), db.MaxKeyBytes)
	}
	first, err := s.seen.Add(key, row)
	if first >= 0 {
		return fail("the key %q stands on line %d and on line %d (%s takes one of them)", key, first+1, row+1,
			words.OnDuplicate)
	}
	return err
}

// ParseQuery parses a vector of a modality that is typed.
func ParseQuery(m db.Modality, s string) (db.Query, error) {
	x, err := ParseVector(s)
	if err == nil {
		err = x.Check(m.Dim)
	}
	return db.Query{From: m.Name, Vector: x.Dense, Sparse: x.Sparse}, err
}

// maxLine bounds a vector that is a line of text.
const maxLine = 32 << 20

// EachVector calls f with the vectors of a modality that a file has, as queries, and their numbers, from 0;
// or with the one of a row that is not negative. A query is valid until f returns.
func EachVector(ctx context.Context, m db.Modality, in Input, row int,
	f func(row any, q db.Query) error) error {
	s, err := OpenVectorsOf(m.Name, in)
	if name, rest, ok := strings.Cut(in.Path, "="); ok && errors.Is(err, os.ErrNotExist) {
		return exit.Usagef("--vectors %q: FILE is expected here, not NAME=FILE: --from %s --vectors %s", in.Path,
			name, rest)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if err = s.CheckDim(m); err == nil {
		err = CheckRow(row, s.Rows(), in.Name)
	}
	if err == nil {
		err = s.Skip(ctx, max(row, 0))
	}
	for i := max(row, 0); err == nil && (row < 0 || i == row); i++ {
		if err = s.Read(); err == io.EOF {
			return nil
		}
		if err == nil {
			err = exit.AtRow(f(i, s.Query()), in.Name, i)
		}
	}
	return err
}

// CheckRow refuses a --row that a file of so many rows has not.
func CheckRow(row, rows int, file string) error {
	if row >= rows {
		return exit.Usagef("--row %d: %s has %s, counted from 0", row, file, term.Plural(rows, "row", "rows"))
	}
	return nil
}

// EachQuery is EachVector of what r has: a .npy as a whole, or lines of text, a vector a line, as they come;
// there has to be one.
func EachQuery(ctx context.Context, m db.Modality, r io.Reader, only int,
	f func(row any, q db.Query) error) error {
	const name = "standard input"
	in := bufio.NewReaderSize(r, 1<<16)
	const magic = "\x93NUMPY"
	if start, _ := in.Peek(len(magic)); string(start) == magic {
		file, err := ReadStdin(ctx, in, true, func(int64) {})
		if err != nil {
			return err
		}
		return errors.Join(EachVector(ctx, m, file.Input, only, f), file.Close())
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	row := 0
	for ; lines.Scan(); row++ {
		q, err := ParseQuery(m, string(bytes.TrimSuffix(lines.Bytes(), []byte("\r"))))
		if err != nil {
			return exit.Failedf("%s, line %d: %w", name, row+1, err)
		}
		if only >= 0 && row != only {
			continue
		}
		if err := exit.AtRow(f(row, q), name, row); err != nil || row == only {
			return err
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return exit.Failedf("%s, line %d: a line of more than %d MiB: a .npy or a vector a line is expected",
			name, row+1, maxLine>>20)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case row == 0:
		return exit.Failedf("%s is empty: a vector a line, or a .npy, is expected", name)
	}
	return CheckRow(only, row, name)
}
