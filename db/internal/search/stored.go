package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// EachCode calls f with the items that have a code and the modality to, in ascending order of rows; "" means
// any modality. A code, of bits/8 bytes, is valid until f returns. A collection without a space has no codes.
func EachCode(ctx context.Context, cv *state.CollectionView, r pebble.Reader, to string,
	f func(row uint32, key string, code []byte) error) error {
	if cv.Space == nil {
		return nil
	}
	set, err := cv.CodesFor(to)
	if err != nil {
		return err
	}
	var having *roaring.Bitmap // nil: all
	if to != "" {
		t, err := cv.ModalityOf(to)
		if err != nil {
			return err
		}
		having = cv.Presence[t]
	}
	var b []byte
	return record.ForEachEntry(r, codec.CollectionKey(codec.KindRowKeys, cv.ID),
		func(row uint32, entry []byte) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if having != nil && !having.Contains(row) {
				return nil
			}
			n, found, err := set.NumberOf(r, row)
			if err != nil || !found {
				return err
			}
			code, err := set.CodeOf(r, n, row)
			if err != nil {
				return err
			}
			b = code.AppendBytes(b[:0], set.Bits)
			return f(row, string(entry), b)
		})
}

// CanEncode returns an error if the collection cannot encode features of items.
func CanEncode(cv *state.CollectionView) error {
	if cv.CodesOnly() {
		return fault.Invalid("collection %q has no model to encode with: its items bring codes", cv.Name)
	}
	_, err := cv.CodesFor("")
	return err
}

// EncodeItem returns the code that an item with these features would get without labels, bits/8 bytes, and
// the projection, whose signs are the code. The vectors are by modality.
func EncodeItem(cv *state.CollectionView, vectors []model.Vector) (code []byte, z []float64, err error) {
	sp := cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	for t, x := range vectors {
		if _, known := e.Position(t); x.Present() && !known {
			return nil, nil, cv.Unlearned(t)
		}
	}
	if _, err := e.Project([][]model.Vector{vectors}); err != nil {
		return nil, nil, fault.Invalid("encode: %w", err)
	}
	fused, _ := e.Fuse(0)
	if spaces.IsZero(fused) {
		return nil, nil, ErrFarAway
	}
	z = slices.Clone(fused)
	return codec.PackSigns(codec.NewCode(sp.Bits), z).AppendBytes(nil, sp.Bits), z, nil
}

// EncodeLabels returns the code that the model has learned for labels together, bits/8 bytes.
func EncodeLabels(cv *state.CollectionView, names []string) ([]byte, error) {
	sp := cv.Space
	var ids []uint32
	for _, name := range names {
		id, known := cv.Labels.ID(name)
		if !known || !sp.Learned.LabelCode(codec.NewCode(sp.Bits), []uint32{id}) {
			return nil, fault.Invalid("label %q: the model of collection %q does not know it",
				record.Shortened(name), cv.Descriptor.Name)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	code := codec.NewCode(sp.Bits)
	sp.Learned.LabelCode(code, slices.Compact(ids))
	return code.AppendBytes(nil, sp.Bits), nil
}

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
func (s *StoredCodes) Near(ctx context.Context, dst []codec.Near, query codec.Code, numbers []uint32,
	r int) ([]codec.Near, error) {
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
func (p *nearPart) read(ctx context.Context, blocks *record.CodeBlocks, query codec.Code, numbers []uint32,
	r int) error {
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
func (s *StoredCodes) Blocks(first uint32, f func(numbers []uint32, codes []uint64) error) error {
	return s.blocks.Each(first, f)
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

// seekBlocks is the number of blocks from which on one iterator is faster than a look-up for each.
const seekBlocks = 4

// storedSimilarities is similarities for rows whose projections are not in memory. It reads each block of 256
// rows once, in order. A missing block has no projections. Entries of another length are fault.ErrCorrupt.
func (s *Searcher) storedSimilarities(rows []uint32, floor float32,
	f func(uint32, float32) float32) (err error) {
	get := s.getBlock
	if rows[len(rows)-1]/codec.BlockRows-rows[0]/codec.BlockRows >= seekBlocks {
		k := s.Cv.Space.Keys(s.Cv.ID)
		it, err := s.V.Snap.NewIter(&pebble.IterOptions{
			LowerBound: k.Block(codec.KindProjection, rows[0]),
			UpperBound: codec.PrefixEnd(k.Block(codec.KindProjection, rows[len(rows)-1])),
		})
		if err != nil {
			return fault.ReadError(err, "projections")
		}
		defer it.Close() // all that it read was checked
		get = func(key []byte, use func([]byte) error) error {
			if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
				return it.Error()
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			return use(value)
		}
	}
	for len(rows) > 0 {
		block := rows[0] / codec.BlockRows
		n := 1
		for n < len(rows) && rows[n]/codec.BlockRows == block {
			n++
		}
		found := false
		err := get(s.Cv.Space.Keys(s.Cv.ID).Block(codec.KindProjection, rows[0]), func(value []byte) error {
			found = true
			b, err := codec.DecodeBlock(value)
			if err == nil && b.Len() > 0 && b.Width() != s.Cv.Space.ProjectionBytes() {
				err = fmt.Errorf("%w: entries of %d bytes", codec.ErrCorrupt, b.Width())
			}
			if err != nil {
				return err
			}
			for _, row := range rows[:n] {
				similarity := float32(0)
				if entry, ok := b.Lookup(byte(row)); ok {
					similarity = s.p.direction.Similarity(codec.Direction(entry))
				}
				if similarity > floor {
					floor = f(row, similarity)
				}
			}
			return nil
		})
		first := block * codec.BlockRows
		if err != nil {
			return fault.ReadError(err, "projections of rows %d to %d", first, first+codec.BlockRows-1)
		}
		for i := 0; !found && i < n; i++ {
			if 0 > floor {
				floor = f(rows[i], 0)
			}
		}
		rows = rows[n:]
	}
	return nil
}

// getBlock looks a block up, and calls use with its value if the block exists.
func (s *Searcher) getBlock(key []byte, use func([]byte) error) error {
	value, closer, err := s.V.Snap.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	return use(value)
}

// storedVector reads the vector of a row that has modality t. The vector is valid until the next call. Rows
// need not ascend. All reads of a search share one iterator, which is several times as fast as a look-up for
// each. A missing vector is fault.ErrCorrupt.
func (s *Searcher) storedVector(row uint32, t int) (model.Vector, error) {
	m := s.Cv.Modalities[t]
	damaged := func(err error) (model.Vector, error) {
		return s.vector, fault.Corrupt(err, "features %q of row %d", m.Name, row)
	}
	if s.vectors == nil {
		lower := codec.CollectionKey(codec.KindFeatures, s.Cv.ID)
		it, err := s.V.Snap.NewIter(
			&pebble.IterOptions{LowerBound: lower, UpperBound: codec.PrefixEnd(lower)})
		if err != nil {
			return s.vector, fault.ReadError(err, "features")
		}
		s.vectors = it
	}
	key := codec.FeatureKey(s.Cv.ID, row, uint16(t))
	if !s.vectors.SeekGE(key) || !bytes.Equal(s.vectors.Key(), key) {
		if err := s.vectors.Error(); err != nil {
			return s.vector, fault.ReadError(err, "features %q of row %d", m.Name, row)
		}
		return damaged(errors.New("missing"))
	}
	value, err := s.vectors.ValueAndErr()
	if err != nil {
		return s.vector, fault.ReadError(err, "features %q of row %d", m.Name, row)
	}
	if err := m.DecodeVector(&s.vector, value); err != nil {
		return damaged(err)
	}
	return s.vector, nil
}
