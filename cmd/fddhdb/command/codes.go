package command

import (
	"io"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// codeSource is a file of packed codes.
type codeSource struct {
	file  string
	codes codec.Codes
	row   int
}

func openCodes(file string) (*codeSource, error) {
	codes, err := vecfile.ReadCodes(file)
	return &codeSource{file: file, codes: codes}, err
}

func (s *codeSource) path() string { return s.file }
func (s *codeSource) rows() int    { return s.codes.Len() }
func (s *codeSource) close() error { return nil }

func (s *codeSource) next(item *db.Item) error {
	if s.row == s.codes.Len() {
		return io.EOF
	}
	item.Code = s.at(s.row)
	s.row++
	return nil
}

func (s *codeSource) at(row int) []byte {
	return s.codes.At(row).AppendBytes(nil, s.codes.Bits())
}

// checkBits holds the codes of the file against those of a collection.
func (s *codeSource) checkBits(c *db.Collection, bits int) error {
	if s.codes.Bits() != bits {
		return exit.Failedf("%s has codes of %d bits, collection %q has codes of %d", s.file, s.codes.Bits(), c.Name(), bits)
	}
	return nil
}

// bits is the length of the codes.
func (s *codeSource) bits() int { return s.codes.Bits() }
