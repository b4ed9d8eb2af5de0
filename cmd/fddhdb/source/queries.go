package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// OpenQueries opens a file of vectors of a modality, for a flag that takes FILE and not NAME=FILE.
func OpenQueries(m db.Modality, file string) (*Vectors, error) {
	s, err := OpenVectors(m.Name, file)
	if name, rest, ok := strings.Cut(file, "="); ok && errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usagef("--vectors %q: FILE is expected here, not NAME=FILE: --from %s --vectors %s", file, name, rest)
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
