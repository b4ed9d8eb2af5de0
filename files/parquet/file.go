package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

const magic = "PAR1"

// maxFooter bounds the footer: 1,000 columns in 200 row groups take about that much.
const maxFooter = 32 << 20

// file is an open file whose footer has been read. It belongs to one reader.
type file struct {
	matrix.Source

	rows    int
	columns []*column
	groups  []format.RowGroup
	memory  budget   // budget of all columns
	z       inflater // of all columns, which are read one at a time
}

// open opens a file; errors call it name.
func open(path, name string) (*file, error) {
	src, err := matrix.Open(path, name)
	if err != nil {
		return nil, err
	}
	f, err := newFile(src)
	if err != nil {
		_ = src.Close() // nothing was written
		return nil, matrix.FileError(name, err)
	}
	return f, nil
}

func newFile(src matrix.Source) (*file, error) {
	f := &file{Source: src, memory: budget{free: maxMemory}}
	footer, err := f.footer()
	if err != nil {
		return nil, err
	}
	var meta format.FileMetaData
	if _, err := decode(footer, &meta); err != nil {
		return nil, err
	}
	if meta.EncryptionAlgorithm.Value != nil {
		return nil, errEncrypted
	}
	if f.columns, err = readSchema(meta.Schema); err != nil {
		return nil, err
	}
	f.groups = meta.RowGroups
	rows := int64(0)
	for i := range f.groups {
		if err := f.checkGroup(&f.groups[i]); err != nil {
			return nil, fmt.Errorf("row group %d: %w", i, err)
		}
		if rows += f.groups[i].NumRows; rows > math.MaxUint32 {
			return nil, fmt.Errorf("has more than %d rows", uint32(math.MaxUint32))
		}
	}
	if rows != meta.NumRows {
		return nil, fmt.Errorf("says that it has %d rows, its row groups have %d: it is damaged", meta.NumRows, rows)
	}
	f.rows = int(rows)
	return f, nil
}

var errEncrypted = errors.New("is encrypted, which is not supported: write it without encryption")

// footer reads the metadata at the end of the file.
func (f *file) footer() ([]byte, error) {
	const frame = 2*len(magic) + 4
	if f.Size < int64(frame) {
		return nil, errors.New("is too short for a .parquet file")
	}
	var head [4]byte
	var tail [8]byte
	if err := f.ReadFull(head[:], 0); err != nil {
		return nil, err
	}
	if err := f.ReadFull(tail[:], f.Size-8); err != nil {
		return nil, err
	}
	switch {
	case string(head[:]) == "PARE", string(tail[4:]) == "PARE":
		return nil, errEncrypted
	case string(head[:]) != magic:
		return nil, fmt.Errorf("is not a .parquet file: it starts with %q", head[:])
	case string(tail[4:]) != magic:
		return nil, errors.New("does not end like a .parquet file: it is truncated")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case n > f.Size-int64(frame):
		return nil, fmt.Errorf("claims metadata of %d bytes, more than the file has: it is damaged", n)
	case n > maxFooter:
		return nil, fmt.Errorf("has metadata of %d bytes, at most %d are supported: write fewer columns or row groups", n, maxFooter)
	}
	footer := make([]byte, n)
	return footer, f.ReadFull(footer, f.Size-8-n)
}

// checkGroup checks the parts of a row group that are used.
func (f *file) checkGroup(g *format.RowGroup) error {
	leaves := 0
	for _, c := range f.columns {
		leaves += len(c.leaves)
	}
	switch {
	case len(g.Columns) != leaves:
		return fmt.Errorf("has %d columns, the schema has %d: it is damaged", len(g.Columns), leaves)
	case g.NumRows < 0:
		return fmt.Errorf("has %d rows: it is damaged", g.NumRows)
	}
	for i := range g.Columns {
		c := &g.Columns[i]
		switch {
		case c.FilePath != "":
			return errors.New("has its data in other files, which is not supported")
		case c.CryptoMetadata.Value != nil || len(c.EncryptedColumnMetadata) > 0:
			return errEncrypted
		}
	}
	return nil
}

// extent returns the start and the end of the pages of a column chunk.
func (f *file) extent(m *format.ColumnMetaData) (start, end int64, err error) {
	start = m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	end = start + m.TotalCompressedSize
	if start < int64(len(magic)) || m.TotalCompressedSize < 0 || end < start || end > f.Size-8 || m.NumValues < 0 {
		return 0, 0, fmt.Errorf("its data is said to be at %d, %d bytes, in a file of %d: it is damaged", start, m.TotalCompressedSize, f.Size)
	}
	return start, end, nil
}

// Close closes the file.
func (f *file) Close() error {
	f.z.close()
	return f.Source.Close()
}
