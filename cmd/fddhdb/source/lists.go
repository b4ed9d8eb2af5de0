package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
)

// listed is a file that has been read as a whole.
type listed struct {
	file string
	rows int
	row  int // the next one
}

// Path implements Source, as do Rows and Close.
func (s *listed) Path() string { return s.file }
func (s *listed) Rows() int    { return s.rows }
func (s *listed) Close() error { return nil }

// nextRow returns the number of the next row.
func (s *listed) nextRow() (int, error) {
	if s.row == s.rows {
		return 0, io.EOF
	}
	s.row++
	return s.row - 1, nil
}

// Codes is a file of packed codes.
type Codes struct {
	listed
	packed codec.Codes
}

// OpenCodes reads packed codes.
func OpenCodes(file string) (*Codes, error) {
	codes, err := npy.ReadCodes(file)
	return &Codes{listed{file: file, rows: codes.Len()}, codes}, err
}

func (s *Codes) next(item *db.Item) error {
	row, err := s.nextRow()
	if err == nil {
		item.Code = s.At(row)
	}
	return err
}

// At returns the code of a row.
func (s *Codes) At(row int) []byte {
	return s.packed.At(row).AppendBytes(nil, s.packed.Bits())
}

// CheckBits checks the codes of the file against a collection with codes of so many bits.
func (s *Codes) CheckBits(c *db.Collection, bits int) error {
	if s.packed.Bits() != bits {
		return exit.Failedf("%s has codes of %d bits, collection %q has codes of %d", s.file, s.packed.Bits(),
			c.Name(), bits)
	}
	return nil
}

// Bits returns the length of the codes.
func (s *Codes) Bits() int { return s.packed.Bits() }

// keySource is a file of keys.
type keySource struct {
	listed
	keys []string
	seen keySet
}

// OpenKeys reads keys, one a line.
func OpenKeys(file string) (*keySource, error) {
	keys, err := files.ReadLines(file)
	return &keySource{listed: listed{file: file, rows: len(keys)}, keys: keys}, err
}

func (s *keySource) next(item *db.Item) error {
	row, err := s.nextRow()
	if err != nil {
		return err
	}
	item.Key = s.keys[row]
	fail := func(format string, args ...any) error {
		return &RowError{fmt.Errorf("%s: "+format, append([]any{s.file}, args...)...)}
	}
	if item.Key == "" {
		return fail("line %d is empty: an item needs a key", row+1)
	}
	if len(item.Key) > db.MaxKeyBytes {
		return fail("line %d: a key of %d bytes, at most %d are possible", row+1, len(item.Key),
			db.MaxKeyBytes)
	}
	if first := s.seen.add(item.Key, row); first >= 0 {
		return fail("the key %q stands on line %d and on line %d", item.Key, first+1, row+1)
	}
	return nil
}

// A keySet finds duplicate keys in a file of any number of items. It holds hashes of 128 bits, which do not
// collide by chance, in about 50 bytes a key.
type keySet struct {
	seeds [2]maphash.Seed
	rows  map[[2]uint64]int
}

// add adds the key of a row, "" if it has none. It returns the earlier row with the same key, or -1.
func (s *keySet) add(key string, row int) (first int) {
	if key == "" {
		return -1
	}
	if s.rows == nil {
		s.rows = map[[2]uint64]int{}
		s.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	hash := [2]uint64{maphash.String(s.seeds[0], key), maphash.String(s.seeds[1], key)}
	if first, twice := s.rows[hash]; twice {
		return first
	}
	s.rows[hash] = row
	return -1
}

// OpenQueries opens a file of vectors of a modality, for a flag that takes FILE and not NAME=FILE.
func OpenQueries(m db.Modality, file string) (*Vectors, error) {
	s, err := OpenVectors(m.Name, file)
	if name, rest, ok := strings.Cut(file, "="); ok && errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usagef("--vectors %q: FILE is expected here, not NAME=FILE: --from %s --vectors %s",
			file, name, rest)
	}
	return s, err
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

// EachQuery calls f with the vectors of a modality that r has, and their numbers, from 0: a .npy as a whole,
// or lines of text, a vector a line, as they come; there has to be one. It stops at the first error.
func EachQuery(m db.Modality, r io.Reader, f func(row int, q db.Query) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	const magic = "\x93NUMPY"
	if start, _ := in.Peek(len(magic)); string(start) == magic {
		return eachOfNPY(m, in, f)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	row := 0
	for ; lines.Scan(); row++ {
		q, err := ParseQuery(m, string(bytes.TrimSuffix(lines.Bytes(), []byte("\r"))))
		if err != nil {
			return exit.Failedf("standard input, line %d: %w", row+1, err)
		}
		if err := f(row, q); err != nil {
			return err
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return exit.Failedf("standard input, line %d: a line of more than %d MiB: a .npy or a vector a line is expected", row+1, maxLine>>20)
	case err != nil:
		return fmt.Errorf("standard input: %w", err)
	case row == 0:
		return exit.Failedf("standard input is empty: a vector a line, or a .npy, is expected")
	}
	return nil
}

// eachOfNPY is EachQuery of a .npy, which has to be a file for its reader.
func eachOfNPY(m db.Modality, r io.Reader, f func(row int, q db.Query) error) (err error) {
	file, err := os.CreateTemp("", "fddhdb-stdin-*.npy")
	if err != nil {
		return err
	}
	path := file.Name()
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	_, err = io.Copy(file, r)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	s, err := OpenQueries(m, path)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.CheckDim(m); err != nil {
		return err
	}
	for row := 0; ; row++ {
		switch err := s.Read(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := f(row, s.Query()); err != nil {
			return err
		}
	}
}
