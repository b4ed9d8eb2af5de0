package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files"
)

const magic = "PAR1"

// maxFooter bounds the footer: 1,000 columns in 200 row groups take about that much.
const maxFooter = 32 << 20

// file is an open file whose footer has been read. It belongs to one reader.
type file struct {
	name string // for errors
	r    io.ReaderAt
	size int64
	io.Closer

	rows    int
	columns []*column
	groups  []format.RowGroup
	memory  budget   // budget of all columns
	z       inflater // of all columns, which are read one at a time
}

// open opens a file; errors call it name.
func open(path, name string) (*file, error) {
	info, err := os.Stat(path) // opening a named pipe would wait for somebody to write to it
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file: its end is read first; copy it to one")
	}
	if err != nil {
		return nil, fail(name, err)
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, fail(name, err)
	}
	f, err := newFile(name, r, info.Size())
	if err != nil {
		_ = r.Close() // nothing was written
		return nil, fail(name, err)
	}
	f.Closer = r
	return f, nil
}

// fail returns an error about a file as a whole.
func fail(name string, err error) error {
	var e *files.Error
	if errors.As(err, &e) {
		return err
	}
	// The path is in File already, and *fs.PathError would repeat it.
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, io.EOF) { // a caller would take it for the end of the rows
		err = errors.New("ends too early: it is damaged, or became shorter while it was read")
	}
	return &files.Error{File: name, Row: -1, Col: -1, Err: err}
}

func newFile(name string, r io.ReaderAt, size int64) (*file, error) {
	f := &file{name: name, r: r, size: size, memory: budget{free: maxMemory}}
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
	if f.size < int64(frame) {
		return nil, errors.New("is too short for a .parquet file")
	}
	var head [4]byte
	var tail [8]byte
	if err := f.read(head[:], 0); err != nil {
		return nil, err
	}
	if err := f.read(tail[:], f.size-8); err != nil {
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
	case n > f.size-int64(frame):
		return nil, fmt.Errorf("claims metadata of %d bytes, more than the file has: it is damaged", n)
	case n > maxFooter:
		return nil, fmt.Errorf("has metadata of %d bytes, at most %d are supported: write fewer columns or row groups", n, maxFooter)
	}
	footer := make([]byte, n)
	return footer, f.read(footer, f.size-8-n)
}

func (f *file) read(b []byte, at int64) error {
	// io.ReaderAt may return io.EOF with the last byte of the file.
	if n, err := f.r.ReadAt(b, at); n < len(b) {
		return err
	}
	return nil
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
	if start < int64(len(magic)) || m.TotalCompressedSize < 0 || end < start || end > f.size-8 || m.NumValues < 0 {
		return 0, 0, fmt.Errorf("its data is said to be at %d, %d bytes, in a file of %d: it is damaged", start, m.TotalCompressedSize, f.size)
	}
	return start, end, nil
}

func (f *file) close() error {
	f.z.close()
	if f.Closer == nil {
		return nil
	}
	return f.Closer.Close()
}

// column returns the column with a name, or nil.
func (f *file) column(name string) *column {
	for _, c := range f.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// quote returns a name of a file for an error text, cut to a sane length.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// list returns the first few names, for an error text.
func list(names []string) string {
	const most = 20
	var b bytes.Buffer
	for i, name := range names {
		if i == most {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(name))
	}
	return b.String()
}
