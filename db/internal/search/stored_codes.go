package search

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// StoredCodes is the mih.Store of what Pebble has of a code set: postings, codes,
// and the rows that carry them. It answers searches while the codes are being
// loaded, and where the tables in memory would take too much of it. For one
// search; close it.
type StoredCodes struct {
	Snap   *pebble.Snapshot
	Set    *state.CodeSetView
	filter *roaring.Bitmap
	weigh  func(rows mih.Rows, number uint32, distance int) int

	key     []byte
	blocks  record.CodeBlocks
	carried map[uint32]uint32 // what stands beside the codes that were near
}

func NewStoredCodes(snap *pebble.Snapshot, set *state.CodeSetView, filter *roaring.Bitmap) *StoredCodes {
	return &StoredCodes{
		Snap: snap, Set: set, filter: filter,
		blocks: record.NewCodeBlocks(snap, set.CodeKeys), carried: map[uint32]uint32{},
	}
}

func (s *StoredCodes) Close() error { return s.blocks.Close() }

// Posting implements mih.Store.
func (s *StoredCodes) Posting(dst []uint32, j int, value uint32) ([]uint32, error) {
	s.key = s.Set.AppendPosting(s.key[:0], uint16(j), value)
	b, closer, err := s.Snap.Get(s.key)
	if errors.Is(err, fault.ErrMissing) {
		return dst, nil
	}
	if err != nil {
		return dst, fault.ReadError(err, "posting %d of substring %d", value, j)
	}
	dst, err = codec.AppendPostingCodes(dst, b)
	closer.Close()
	if err != nil {
		return dst, fault.Corrupt(err, "posting %d of substring %d", value, j)
	}
	return dst, nil
}

// MinPart is the number of codes that are worth a goroutine: blocks that are not in
// the cache yet take microseconds each, and so does another iterator.
const MinPart = 64

// Near implements mih.Store. Codes that are not in memory are read on all cores.
func (s *StoredCodes) Near(ctx context.Context, dst []codec.Near, query codec.Code, numbers []uint32, r int) ([]codec.Near, error) {
	if t := s.Set.Table; t != nil {
		for _, n := range numbers {
			code := t.Code(n)
			if code == nil {
				return dst, fault.Corrupt(errors.New("in a posting, but there is none"), "code number %d", n)
			}
			if d := codec.Distance(query, code); d <= r {
				dst = append(dst, codec.NearOf(d, n))
			}
		}
		return dst, nil
	}
	parts := make([]nearPart, max(1, min(runtime.GOMAXPROCS(0), len(numbers)/MinPart)))
	err := work.ParallelBy(ctx, work.All(), 1, len(parts), func(i int) error {
		from, to := i*len(numbers)/len(parts), (i+1)*len(numbers)/len(parts)
		return work.Safely(func() error {
			blocks := &s.blocks
			if i > 0 {
				other := record.NewCodeBlocks(s.Snap, s.Set.CodeKeys)
				defer other.Close() // what it has read, it has checked
				blocks = &other
			}
			return parts[i].read(ctx, blocks, query, numbers[from:to], r)
		})
	})
	if err != nil {
		return dst, err
	}
	for _, p := range parts {
		dst = append(dst, p.near...)
		for i, x := range p.near {
			s.carried[x.Position()] = p.beside[i]
		}
	}
	return dst, nil
}

// A nearPart is what one goroutine finds of the codes that are near.
type nearPart struct {
	near   []codec.Near
	beside []uint32 // what stands beside them
}

// read finds what is near among the codes with these numbers.
func (p *nearPart) read(ctx context.Context, blocks *record.CodeBlocks, query codec.Code, numbers []uint32, r int) error {
	for i, n := range numbers {
		if i%MinPart == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		code, beside, err := blocks.Read(n)
		if err != nil {
			return err
		}
		if d := codec.Distance(query, code); d <= r {
			p.near, p.beside = append(p.near, codec.NearOf(d, n)), append(p.beside, beside)
		}
	}
	return nil
}

// Blocks implements mih.Store.
func (s *StoredCodes) Blocks(f func(numbers []uint32, codes []uint64) error) error {
	return s.blocks.Each(f)
}

// Weight implements mih.Store.
func (s *StoredCodes) Weight(n uint32, distance int) (int, error) {
	rows, err := s.Rows(n)
	if err != nil {
		return 0, err
	}
	if s.weigh != nil {
		return s.weigh(rows, n, distance), nil
	}
	return rows.LenIn(s.filter), nil
}

// Rows returns the rows that carry a code that was near.
func (s *StoredCodes) Rows(n uint32) (mih.Rows, error) {
	if t := s.Set.Table; t != nil {
		return t.Rows(n), nil
	}
	row, known := s.carried[n]
	if !known {
		var err error
		if _, row, err = s.blocks.Read(n); err != nil {
			return mih.Rows{}, err
		}
		s.carried[n] = row
	}
	if row != codec.ManyRows {
		return mih.RowsOf(row), nil
	}
	var rows []uint32
	prefix := s.Set.AllRows(n)
	err := record.ForEach(s.Snap, prefix, func(key, value []byte) error {
		_, container := codec.CodeRowsKeyParts(key)
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return fault.Corrupt(err, "rows of code number %d", n)
		}
		l.Added.Iterate(func(x uint32) bool {
			rows = append(rows, uint32(container)<<16|x)
			return true
		})
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = fault.Corrupt(fmt.Errorf("none"), "rows of code number %d", n)
	}
	return mih.RowsOf(rows...), err
}

// codeOf returns the code with a number; it belongs to the caller.
func (s *StoredCodes) codeOf(n uint32) (codec.Code, error) {
	code, _, err := s.blocks.Read(n)
	return append(codec.Code(nil), code...), err
}
