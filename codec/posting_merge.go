package codec

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A postingEdit is an encoded posting, split into additions and deletions.
type postingEdit [2]postingPart

func (e postingEdit) hasBitmap() bool {
	return e[0].form == postingBitmap || e[1].form == postingBitmap
}

// addPostings returns the sum of encoded edits of a posting, given oldest first. If
// final, no older edit exists, and deletions are not recorded. Edits without bitmaps
// are added in one pass over their numbers. Bitmaps are changed in place by the edits
// between them.
func addPostings(values [][]byte, final bool) ([]byte, error) {
	edits := make([]postingEdit, len(values))
	bitmaps := false
	for i, v := range values {
		var err error
		if edits[i][0], edits[i][1], err = splitPosting(v); err != nil {
			return nil, err
		}
		bitmaps = bitmaps || edits[i].hasBitmap()
	}
	if len(edits) == 1 && (!final || edits[0][1].form == postingNone) {
		_, _, err := DecodePosting(values[0])
		return values[0], err
	}
	if bitmaps {
		return addBitmaps(edits, final)
	}
	added, deleted, err := addDeltas(edits)
	if err != nil {
		return nil, err
	}
	if final {
		deleted = nil
	}
	return AppendPosting(nil, added, deleted), nil
}

// addDeltas adds edits without bitmaps, given oldest first.
//
// An operation is one word about a number: the number, how many edits are younger, and
// whether it is deleted. In order, the first operation on each number is the valid one.
// The longest list is not sorted in, so many small edits of a long posting cost their
// own sorting and one pass over it. Code numbers grow with time, so the operations are
// often in order already.
func addDeltas(edits []postingEdit) (added, deleted []uint32, err error) {
	operation := func(edit, part int) uint64 { // on number 0
		return uint64(len(edits)-1-edit)<<1 | uint64(part)
	}
	edit, part := 0, 0 // of the longest list
	for i, e := range edits {
		for j, p := range e {
			if len(p.b) > len(edits[edit][part].b) {
				edit, part = i, j
			}
		}
	}
	base, err := edits[edit][part].appendTo(nil)
	if err != nil {
		return nil, nil, err
	}
	var operations []uint64
	var scratch []uint32
	for i, e := range edits {
		for j, p := range e {
			if i == edit && j == part {
				continue
			}
			if scratch, err = p.appendTo(scratch[:0]); err != nil {
				return nil, nil, err
			}
			for _, x := range scratch {
				operations = append(operations, uint64(x)<<32|operation(i, j))
			}
		}
	}
	slices.Sort(operations)

	into := [2]*[]uint32{&added, &deleted}
	*into[part] = make([]uint32, 0, len(base)+len(operations))
	last := uint64(math.MaxUint64) // no operation, as no edit has 2^31 younger ones
	for len(base) > 0 || len(operations) > 0 {
		var next uint64
		if len(base) > 0 {
			next = uint64(base[0])<<32 | operation(edit, part)
		}
		fromBase := len(base) > 0 && (len(operations) == 0 || next < operations[0])
		if fromBase {
			base = base[1:]
		} else {
			next, operations = operations[0], operations[1:]
		}
		if next>>1 == last>>1 {
			return nil, nil, errBothWays(uint32(next >> 32))
		}
		if next>>32 != last>>32 || last == math.MaxUint64 {
			*into[next&1] = append(*into[next&1], uint32(next>>32))
		}
		last = next
		if fromBase { // numbers up to the next operation are valid
			n := 0
			for n < len(base) && (len(operations) == 0 || uint64(base[n]) < operations[0]>>32) {
				n++
			}
			*into[part] = append(*into[part], base[:n]...)
			base = base[n:]
		}
	}
	return added, deleted, nil
}

// addBitmaps adds edits, some of them with bitmaps, given oldest first.
func addBitmaps(edits []postingEdit, final bool) ([]byte, error) {
	sum := NewLayer()
	for len(edits) > 0 {
		short := slices.IndexFunc(edits, postingEdit.hasBitmap)
		if short < 0 {
			short = len(edits)
		}
		var l Layer
		if short > 0 {
			added, deleted, err := addDeltas(edits[:short])
			if err != nil {
				return nil, err
			}
			l, edits = Layer{roaring.BitmapOf(added...), roaring.BitmapOf(deleted...)}, edits[short:]
		} else {
			var err error
			if l.Added, err = edits[0][0].bitmap(); err != nil {
				return nil, err
			}
			if l.Deleted, err = edits[0][1].bitmap(); err != nil {
				return nil, err
			}
			if both := roaring.And(l.Added, l.Deleted); !both.IsEmpty() {
				return nil, errBothWays(both.Minimum())
			}
			edits = edits[1:]
		}
		sum.apply(l)
	}
	added, err := bitmapNumbers(sum.Added)
	if err != nil {
		return nil, err
	}
	var deleted numbers
	if !final {
		if deleted, err = bitmapNumbers(sum.Deleted); err != nil {
			return nil, err
		}
	}
	return appendPosting(nil, added, deleted), nil
}
