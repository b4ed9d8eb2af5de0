package learn

import (
	"math"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// bitCounts counts, for each bit, the items whose code has it set.
type bitCounts struct {
	ones []int // by bit
	n    int   // all items
}

// newBitCounts returns counts of codes of q bits.
func newBitCounts(q int) bitCounts { return bitCounts{ones: make([]int, q)} }

// add counts a code that so many items have.
func (b *bitCounts) add(code codec.Code, items int) {
	b.n += items
	for i, w := range code {
		for ; w != 0; w &= w - 1 {
			b.ones[64*i+bits.TrailingZeros64(w)] += items
		}
	}
}

// balance returns the mean over the bits of |ones - zeros| / n, 0 for perfect balance, and the
// number of bits that are the same in all codes. It returns nil if there are no codes.
func (b *bitCounts) balance() *report.Balance {
	if b.n == 0 {
		return nil
	}
	out := &report.Balance{}
	for _, ones := range b.ones {
		if ones == 0 || ones == b.n {
			out.ConstantBits++
		}
		out.BitBalance += math.Abs(float64(2*ones-b.n)) / float64(b.n)
	}
	out.BitBalance /= float64(len(b.ones))
	return out
}

// maxBalanced is the limit that PresentBalance gives BalanceIn.
const maxBalanced = 100_000

// BalanceIn measures the balance of the codes in the space of cv. It
// looks at all codes if at most limit are distinct, else at the codes of limit items, spread
// evenly over the rows. It returns nil if there are no codes, or not all are in memory yet. The
// result belongs to the caller.
func BalanceIn(cv *state.CollectionView, limit int) *report.Balance {
	if cv.Space == nil {
		return nil
	}
	t := cv.Codes.Table
	if t == nil {
		return nil
	}
	counts := newBitCounts(cv.Space.Bits)
	var sample *roaring.Bitmap
	if cv.Codes.Codes > limit {
		sample = evenly(cv.Live, limit)
		for it := sample.Iterator(); it.HasNext(); {
			if n, has := t.CodeOf(it.Next()); has {
				counts.add(t.Code(n), 1)
			}
		}
	} else {
		for n, code := range t.All() {
			counts.add(code, t.Cardinality(n))
		}
	}
	out := counts.balance()
	if out != nil && sample != nil {
		out.Sampled = int(sample.GetCardinality())
	}
	return out
}
