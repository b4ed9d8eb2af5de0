package source

import (
	"io"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
)

// Codes is a file of packed codes.
type Codes struct {
	file   string
	packed codec.Codes
	row    int
}

// OpenCodes reads packed codes.
func OpenCodes(file string) (*Codes, error) {
	codes, err := npy.ReadCodes(file)
	return &Codes{file: file, packed: codes}, err
}

// Path implements Source, as do Rows, Close and next.
func (s *Codes) Path() string { return s.file }
func (s *Codes) Rows() int    { return s.packed.Len() }
func (s *Codes) Close() error { return nil }

func (s *Codes) next(item *db.Item) error {
	if s.row == s.packed.Len() {
		return io.EOF
	}
	item.Code = s.At(s.row)
	s.row++
	return nil
}

// At returns the code of a row.
func (s *Codes) At(row int) []byte {
	return s.packed.At(row).AppendBytes(nil, s.packed.Bits())
}

// CheckBits checks the codes of the file against a collection with codes of so many bits.
func (s *Codes) CheckBits(c *db.Collection, bits int) error {
	if s.packed.Bits() != bits {
		return exit.Failedf("%s has codes of %d bits, collection %q has codes of %d", s.file, s.packed.Bits(), c.Name(), bits)
	}
	return nil
}

// Bits returns the length of the codes.
func (s *Codes) Bits() int { return s.packed.Bits() }
