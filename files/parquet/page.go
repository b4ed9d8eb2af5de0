package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/format"
)

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
		return fmt.Errorf("has a page of %d bytes, at most %d are supported: write it with smaller pages", max(packed, size), maxPage)
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
		return fmt.Errorf("has a page of %d values, at most %d are supported: write it with smaller pages", n, maxValues)
	}
	s.n, s.pos, s.vpos = int(n), 0, 0
	s.values -= int64(n)
	return nil
}

func (s *stream) dictionary(h *format.DictionaryPageHeader, size int) error {
	if s.decoder.dict != nil || h.NumValues < 0 || h.NumValues > maxValues || h.Encoding != format.Plain && h.Encoding != plainDictionary {
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
