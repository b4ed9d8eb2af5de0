package db

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

// storedCodes is the mih.Store of what Pebble has of a space: postings, codes,
// and the rows that carry them. It answers searches while the codes are being
// loaded, and where the tables in memory would take too much of it. For one
// search; close it.
type storedCodes struct {
	snap   *pebble.Snapshot
	cv     *collectionView
	filter *roaring.Bitmap
	weigh  func(rows mih.Rows, number uint32, distance int) int

	key     []byte
	blocks  *pebble.Iterator // over the codes; nil before it is needed
	block   codec.Block      // that it stands at
	at      uint32           // its number + 1
	code    codec.Code
	carried map[uint32]uint32 // what stands beside the codes that were near
}

func newStoredCodes(snap *pebble.Snapshot, cv *collectionView, filter *roaring.Bitmap) *storedCodes {
	return &storedCodes{
		snap: snap, cv: cv, filter: filter,
		code: codec.NewCode(cv.space.Bits), carried: map[uint32]uint32{},
	}
}

func (s *storedCodes) close() error {
	if s.blocks == nil {
		return nil
	}
	return s.blocks.Close()
}

// Posting implements mih.Store.
func (s *storedCodes) Posting(dst []uint32, j int, value uint32) ([]uint32, error) {
	s.key = codec.AppendSubstringKey(s.key[:0], s.cv.ID, s.cv.space.ID, 0, uint16(j), value)
	b, closer, err := s.snap.Get(s.key)
	if errors.Is(err, errNotFound) {
		return dst, nil
	}
	if err != nil {
		return dst, readError(err, "posting %d of substring %d", value, j)
	}
	dst, err = codec.AppendPostingCodes(dst, b)
	closer.Close()
	if err != nil {
		return dst, corrupt(err, "posting %d of substring %d", value, j)
	}
	return dst, nil
}

// Near implements mih.Store.
func (s *storedCodes) Near(dst []codec.Near, query codec.Code, numbers []uint32, r int) ([]codec.Near, error) {
	for _, n := range numbers {
		code, row := codec.Code(nil), uint32(0)
		if t := s.cv.table; t != nil {
			if code = t.Code(n); code == nil {
				return dst, corrupt(errors.New("in a posting, but there is none"), "code number %d", n)
			}
		} else {
			var err error
			if code, row, err = s.read(n); err != nil {
				return dst, err
			}
		}
		if d := codec.Distance(query, code); d <= r {
			dst = append(dst, codec.NearOf(d, n))
			s.carried[n] = row
		}
	}
	return dst, nil
}

// iterator returns the iterator over the blocks of codes.
func (s *storedCodes) iterator() (*pebble.Iterator, error) {
	if s.blocks != nil {
		return s.blocks, nil
	}
	prefix := append(codec.NumberKey(codec.KindCodes, s.cv.ID, s.cv.space.ID), 0)
	it, err := s.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, readError(err, "codes")
	}
	s.blocks = it
	return it, nil
}

// read returns the code with a number, in memory that the next call takes, and
// what stands beside it.
func (s *storedCodes) read(n uint32) (codec.Code, uint32, error) {
	if block := n / codec.BlockRows; s.at != block+1 {
		it, err := s.iterator()
		if err != nil {
			return nil, 0, err
		}
		s.at = 0
		s.key = append(s.key[:0], codec.SpaceBlockKey(codec.KindCodes, s.cv.ID, s.cv.space.ID, 0, block)...)
		if !it.SeekGE(s.key) || string(it.Key()) != string(s.key) {
			if err := it.Error(); err != nil {
				return nil, 0, readError(err, "code number %d", n)
			}
			return nil, 0, corrupt(errors.New("missing"), "code number %d", n)
		}
		if err := s.decode(it); err != nil {
			return nil, 0, err
		}
	}
	entry, ok := s.block.Lookup(byte(n))
	if !ok {
		return nil, 0, corrupt(errors.New("missing"), "code number %d", n)
	}
	row, err := codec.DecodeCodeEntry(s.code, s.cv.space.Bits, entry)
	if err != nil {
		return nil, 0, corrupt(err, "code number %d", n)
	}
	return s.code, row, nil
}

// decode decodes the block at which the iterator stands, in whose memory it is.
func (s *storedCodes) decode(it *pebble.Iterator) error {
	s.at = 0
	value, err := it.ValueAndErr()
	if err != nil {
		return readError(err, "block %x", it.Key())
	}
	if err = codec.CheckKey(it.Key()); err == nil {
		s.block, err = codec.DecodeBlock(value)
	}
	if err != nil {
		return corrupt(err, "block %x", it.Key())
	}
	s.at = codec.LastNumber(it.Key()) + 1
	return nil
}

// Blocks implements mih.Store.
func (s *storedCodes) Blocks(f func(numbers []uint32, codes []uint64) error) error {
	it, err := s.iterator()
	if err != nil {
		return err
	}
	q := s.cv.space.Bits
	var numbers []uint32
	codes := codec.NewCodes(q, codec.BlockRows)
	for ok := it.First(); ok; ok = it.Next() {
		if err := s.decode(it); err != nil {
			return err
		}
		numbers, codes = numbers[:0], codes.Truncated()
		base := (s.at - 1) * codec.BlockRows
		for i := range s.block.Len() {
			n := base + uint32(s.block.Offset(i))
			if _, err := codec.DecodeCodeEntry(s.code, q, s.block.Entry(i)); err != nil {
				return corrupt(err, "code number %d", n)
			}
			numbers = append(numbers, n)
			codes.Append(s.code)
		}
		if err := f(numbers, codes.Slice(0, codes.Len())); err != nil {
			return err
		}
	}
	s.at = 0 // the iterator has left the last block, and taken back its memory
	return readError(it.Error(), "codes")
}

// Weight implements mih.Store.
func (s *storedCodes) Weight(n uint32, distance int) (int, error) {
	rows, err := s.rows(n)
	if err != nil {
		return 0, err
	}
	if s.weigh != nil {
		return s.weigh(rows, n, distance), nil
	}
	return rows.LenIn(s.filter), nil
}

// rows returns the rows that carry a code that was near.
func (s *storedCodes) rows(n uint32) (mih.Rows, error) {
	if t := s.cv.table; t != nil {
		return t.Rows(n), nil
	}
	row, known := s.carried[n]
	if !known {
		var err error
		if _, row, err = s.read(n); err != nil {
			return mih.Rows{}, err
		}
		s.carried[n] = row
	}
	if row != codec.ManyRows {
		return mih.RowsOf(row), nil
	}
	var rows []uint32
	prefix := codec.CodeRowsPrefix(s.cv.ID, s.cv.space.ID, 0, n)
	err := forEach(s.snap, prefix, func(key, value []byte) error {
		_, container := codec.CodeRowsKeyParts(key)
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return corrupt(err, "rows of code number %d", n)
		}
		l.Added.Iterate(func(x uint32) bool {
			rows = append(rows, uint32(container)<<16|x)
			return true
		})
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = corrupt(fmt.Errorf("none"), "rows of code number %d", n)
	}
	return mih.RowsOf(rows...), err
}

// codeOf returns the code with a number; it belongs to the caller.
func (s *storedCodes) codeOf(n uint32) (codec.Code, error) {
	code, _, err := s.read(n)
	return append(codec.Code(nil), code...), err
}
