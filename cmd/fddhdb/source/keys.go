package source

import (
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// keySource is a file of keys.
type keySource struct {
	file string
	keys []string
	row  int
	line map[string]int // line of each key so far
}

// OpenKeys reads keys, one a line.
func OpenKeys(file string) (*keySource, error) {
	keys, err := files.ReadLines(file)
	return &keySource{file: file, keys: keys, line: make(map[string]int, len(keys))}, err
}

// Path implements Source, as do Rows, Close and next.
func (s *keySource) Path() string { return s.file }
func (s *keySource) Rows() int    { return len(s.keys) }
func (s *keySource) Close() error { return nil }

func (s *keySource) next(item *db.Item) error {
	if s.row == len(s.keys) {
		return io.EOF
	}
	item.Key = s.keys[s.row]
	s.row++
	first, twice := s.line[item.Key]
	switch {
	case item.Key == "":
		return &RowError{fmt.Errorf("%s: line %d is empty: an item needs a key", s.file, s.row)}
	case len(item.Key) > db.MaxKeyBytes:
		return &RowError{fmt.Errorf("%s: line %d: a key of %d bytes, at most %d are possible", s.file, s.row, len(item.Key), db.MaxKeyBytes)}
	case twice:
		return &RowError{fmt.Errorf("%s: the key %q stands on line %d and on line %d", s.file, item.Key, first, s.row)}
	}
	s.line[item.Key] = s.row
	return nil
}
