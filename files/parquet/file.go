package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"unsafe"

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
		return nil, fmt.Errorf("says that it has %d rows, its row groups have %d: it is damaged",
			meta.NumRows, rows)
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
	if start < int64(len(magic)) || m.TotalCompressedSize < 0 || end < start || end > f.Size-8 ||
		m.NumValues < 0 {
		return 0, 0, fmt.Errorf("its data is said to be at %d, %d bytes, in a file of %d: it is damaged",
			start, m.TotalCompressedSize, f.Size)
	}
	return start, end, nil
}

// Close closes the file.
func (f *file) Close() error {
	f.z.close()
	return f.Source.Close()
}

// page reads the next page of the column chunk.
func (s *stream) page() error {
	var header format.PageHeader
	if err := s.header(&header); err != nil {
		return err
	}
	packed, size := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	switch {
	case packed < 0 || size < 0 || packed > s.end-s.at:
		return fmt.Errorf("%w: it is said to have %d bytes, %d are left", errPage, packed, s.end-s.at)
	case packed > maxPage || size > maxPage:
		return fmt.Errorf("has a page of %d bytes, at most %d are supported: write it with smaller pages",
			max(packed, size), maxPage)
	}
	if err := grow(&s.f.memory, &s.packed, int(packed)); err != nil {
		return err
	}
	if err := s.f.ReadFull(s.packed, s.at); err != nil {
		return err
	}
	s.at += packed
	if header.CRC != 0 && crc32.ChecksumIEEE(s.packed) != uint32(header.CRC) {
		return fmt.Errorf("%w: its checksum is another", errPage)
	}
	switch header.Type {
	case format.DictionaryPage:
		if !header.DictionaryPageHeader.Valid {
			return errPage
		}
		return s.dictionary(&header.DictionaryPageHeader.V, int(size))
	case format.DataPage:
		if !header.DataPageHeader.Valid {
			return errPage
		}
		return s.pageV1(&header.DataPageHeader.V, int(size))
	case format.DataPageV2:
		if !header.DataPageHeaderV2.Valid {
			return errPage
		}
		return s.pageV2(&header.DataPageHeaderV2.V, int(size))
	}
	return nil // an index, which is not needed
}

// header reads the header of a page. Its length is not stored anywhere.
func (s *stream) header(h *format.PageHeader) error {
	for size := int64(1 << 10); ; size *= 16 {
		n := min(size, s.end-s.at)
		if n <= 0 {
			return errRows
		}
		if err := grow(&s.f.memory, &s.head, int(n)); err != nil {
			return err
		}
		if err := s.f.ReadFull(s.head, s.at); err != nil {
			return err
		}
		length, err := decode(s.head, h)
		if err == nil {
			s.at += int64(length)
			return nil
		}
		if !errors.Is(err, errShort) || n < size || size > 1<<24 {
			return fmt.Errorf("the header of a page: %w", err)
		}
		*h = format.PageHeader{}
	}
}

// count checks and takes the number of levels of a page.
func (s *stream) count(n int32) error {
	if n < 0 || int64(n) > s.values {
		return fmt.Errorf("%w: it has %d values, %d are left", errPage, n, s.values)
	}
	if n > maxValues {
		return fmt.Errorf("has a page of %d values, at most %d are supported: write it with smaller pages", n,
			maxValues)
	}
	s.n, s.pos, s.vpos = int(n), 0, 0
	s.values -= int64(n)
	return nil
}

func (s *stream) dictionary(h *format.DictionaryPageHeader, size int) error {
	if s.decoder.dict != nil || h.NumValues < 0 || h.NumValues > maxValues ||
		h.Encoding != format.Plain && h.Encoding != plainDictionary {
		return fmt.Errorf("%w: its dictionary is none", errPage)
	}
	if err := grow(&s.f.memory, &s.dictData, size); err != nil {
		return err
	}
	if err := s.f.z.inflate(s.dictData, s.packed, s.codec); err != nil {
		return err
	}
	dict, err := s.entries.plain(s.dictData, int(h.NumValues))
	s.decoder.dict = &dict
	return err
}

func (s *stream) pageV1(h *format.DataPageHeader, size int) error {
	if err := s.count(h.NumValues); err != nil {
		return err
	}
	b, err := s.data(s.packed, size)
	if err != nil {
		return err
	}
	part := func(most int, encoding format.Encoding) ([]byte, error) {
		if most == 0 {
			return nil, nil
		}
		if encoding != format.RLE {
			return nil, fmt.Errorf("has levels in encoding %v, which is not supported", encoding)
		}
		if len(b) < 4 {
			return nil, errValues
		}
		n := binary.LittleEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return nil, errValues
		}
		out := b[4 : 4+n]
		b = b[4+n:]
		return out, nil
	}
	reps, err := part(s.leaf.maxRep, h.RepetitionLevelEncoding)
	if err != nil {
		return err
	}
	defs, err := part(s.leaf.maxDef, h.DefinitionLevelEncoding)
	if err != nil {
		return err
	}
	return s.decode(reps, defs, b, h.Encoding)
}

func (s *stream) pageV2(h *format.DataPageHeaderV2, size int) error {
	if err := s.count(h.NumValues); err != nil {
		return err
	}
	reps, defs := int(h.RepetitionLevelsByteLength), int(h.DefinitionLevelsByteLength)
	if reps < 0 || defs < 0 || reps > len(s.packed) || defs > len(s.packed)-reps || reps+defs > size {
		return errPage
	}
	data := s.packed[reps+defs:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		var err error
		if data, err = s.data(data, size-reps-defs); err != nil {
			return err
		}
	}
	return s.decode(s.packed[:reps], s.packed[reps:reps+defs], data, h.Encoding)
}

// data decompresses packed, which becomes size bytes.
func (s *stream) data(packed []byte, size int) ([]byte, error) {
	if s.codec == format.Uncompressed {
		if len(packed) != size {
			return nil, errInflated
		}
		return packed, nil
	}
	if err := grow(&s.f.memory, &s.plain, size); err != nil {
		return nil, err
	}
	return s.plain, s.f.z.inflate(s.plain, packed, s.codec)
}

// decode decodes the levels and values of a page.
func (s *stream) decode(reps, defs, data []byte, encoding format.Encoding) (err error) {
	if s.leaf.maxRep > 0 {
		if err := grow(&s.f.memory, &s.reps, s.n); err != nil {
			return err
		}
		if _, err := levels(s.reps, reps, s.leaf.maxRep); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	there := s.n
	if s.leaf.maxDef > 0 {
		if err := grow(&s.f.memory, &s.defs, s.n); err != nil {
			return err
		}
		if there, err = levels(s.defs, defs, s.leaf.maxDef); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	s.present = there == s.n
	s.vals, err = s.decoder.decode(data, there, encoding)
	return err
}

// A file of some hundred bytes can claim a page of gigabytes, and one page of each column is in memory at a
// time. So all memory whose size depends on a claim of the file comes from one budget.
const (
	maxMemory = 1 << 30   // for all columns
	maxPage   = 256 << 20 // bytes of a page, decompressed
	maxValues = 32 << 20  // of a page
)

// budget is the memory of a file.
type budget struct{ free int } // bytes that are left

// take takes n bytes, or fails if fewer are left.
func (b *budget) take(n int) error {
	if n > b.free {
		return fmt.Errorf("its pages need more than %d MiB of memory at a time: write it with smaller pages (row groups), or read fewer columns", maxMemory>>20)
	}
	b.free -= n
	return nil
}

func (b *budget) give(n int) { b.free += n }

// grow gives *b a length of n elements, with any values. It takes the missing memory from the budget.
func grow[T any](m *budget, b *[]T, n int) error {
	if n > cap(*b) {
		var element T
		if err := m.take((n - cap(*b)) * int(unsafe.Sizeof(element))); err != nil {
			return err
		}
		*b = make([]T, n)
	}
	*b = (*b)[:n]
	return nil
}

// restore gives back all memory taken since free bytes were left. The streams that have taken it must not be
// read any more.
func (b *budget) restore(free int) { b.free = free }
