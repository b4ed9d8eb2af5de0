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

// StoredCodes implements mih.Store for a code set in Pebble: its postings, its codes and their rows. Searches
// use it in three cases: while codes are being loaded, if their plan asks for it, and if tables in memory
// would exceed their limit. It is for one search in one goroutine, which closes it. Near starts goroutines of
// its own and waits for them.
//
// If Set has a table in memory, codes and rows come from it and only postings from the store. Package db
// tests StoredCodes by itself (db/codes_test.go).
type StoredCodes struct {
	Snap *pebble.Snapshot   // of the view; belongs to the caller
	Set  *state.CodeSetView // of the same view

	filter *roaring.Bitmap // of the search, read-only; nil: every row that has a code

	// weigh, if not nil, returns the number of results of the rows of a code. It replaces the number of rows
	// that pass the filter. A search behind a cursor, or with a least similarity, sets it.
	weigh func(rows mih.Rows, number uint32, distance int) int

	key    []byte            // scratch memory of Posting
	blocks record.CodeBlocks // reads codes; for the search's own goroutine

	// carried has the number beside a code in its block, by code number, for the codes that Near or Rows have
	// read. It is the only row with the code, or codec.ManyRows. It saves Rows a second read of the block.
	carried map[uint32]uint32
}

// NewStoredCodes returns the stored codes of a set. It opens nothing before the first read. The filter has
// the rows that count; nil means all.
func NewStoredCodes(snap *pebble.Snapshot, set *state.CodeSetView, filter *roaring.Bitmap) *StoredCodes {
	return &StoredCodes{
		Snap: snap, Set: set, filter: filter,
		blocks: record.NewCodeBlocks(snap, set.CodeKeys), carried: map[uint32]uint32{},
	}
}

// Close closes the iterator over codes, if it is open. Its error repeats an error that a read has returned.
func (s *StoredCodes) Close() error { return s.blocks.Close() }

// Posting implements mih.Store: one read of the store.
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

// MinPart is the least number of codes for which Near starts another goroutine. A block outside the cache
// takes microseconds, and so does another iterator. It is also the number of codes between two checks of the
// context.
const MinPart = 64

// Near implements mih.Store. It reads codes that are not in memory on all cores, each with an iterator of its
// own. A panic there is an error of this search. A number without a code is fault.ErrCorrupt, because it
// comes from a posting.
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
	// Numbers ascend, so parts that follow each other share at most one block. The first part uses the
	// iterator of s, and leaves it open for Rows.
	parts := make([]nearPart, max(1, min(runtime.GOMAXPROCS(0), len(numbers)/MinPart)))
	err := work.ParallelBy(ctx, work.All(), 1, len(parts), func(i int) error {
		from, to := i*len(numbers)/len(parts), (i+1)*len(numbers)/len(parts)
		blocks := &s.blocks
		if i > 0 {
			other := record.NewCodeBlocks(s.Snap, s.Set.CodeKeys)
			defer other.Close() // all that it read was checked
			blocks = &other
		}
		return parts[i].read(ctx, blocks, query, numbers[from:to], r)
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

// A nearPart is the result of one goroutine of Near.
type nearPart struct {
	near   []codec.Near
	beside []uint32 // the numbers beside them, see StoredCodes.carried
}

// read appends to the part the codes with these numbers that are within r bits. numbers ascend, so blocks
// reads each block once.
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

// Blocks implements mih.Store. It reads codes from the store even if they are in memory.
func (s *StoredCodes) Blocks(f func(numbers []uint32, codes []uint64) error) error {
	return s.blocks.Each(f)
}

// Weight implements mih.Store. It applies the filter, or weigh.
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

// Rows returns the rows of code number n, without the filter. A code with one row has the row beside it; the
// rows of other codes are layers, a key for each container. A code without rows is fault.ErrCorrupt: a stored
// code has rows.
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

// codeOf returns code number n, in new memory.
func (s *StoredCodes) codeOf(n uint32) (codec.Code, error) {
	code, _, err := s.blocks.Read(n)
	return append(codec.Code(nil), code...), err
}
