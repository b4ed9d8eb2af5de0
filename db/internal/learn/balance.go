package learn

import (
	"math"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// bitCounts counts in how many codes each bit is set.
type bitCounts struct {
	ones []int
	n    int
}

func newBitCounts(q int) bitCounts { return bitCounts{ones: make([]int, q)} }

// add adds the code of so many items.
func (b *bitCounts) add(code codec.Code, items int) {
	b.n += items
	for i, w := range code {
		for ; w != 0; w &= w - 1 {
			b.ones[64*i+bits.TrailingZeros64(w)] += items
		}
	}
}

// balance returns nil where there are no codes.
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

// maxBalanced is up to how many distinct codes all are looked at for Stats, and how
// many items of more.
const maxBalanced = 100_000

// BalanceIn measures the codes of all items, over all targets, or of a sample of limit items
// where there are more codes than that; nil where there are none, or they are not in
// memory yet.
func BalanceIn(cv *state.CollectionView, limit int) *report.Balance {
	if cv.Space == nil {
		return nil
	}
	counts, codes := newBitCounts(cv.Space.Bits), 0
	for i := range cv.Sets {
		if cv.Sets[i].Table == nil {
			return nil
		}
		codes += cv.Sets[i].Codes
	}
	var sample *roaring.Bitmap
	if codes > limit {
		sample = evenly(cv.Live, limit)
	}
	for i := range cv.Sets {
		t := cv.Sets[i].Table
		if sample == nil {
			for n, code := range t.All() {
				counts.add(code, t.Cardinality(n))
			}
			continue
		}
		for it := sample.Iterator(); it.HasNext(); {
			if n, has := t.CodeOf(it.Next()); has {
				counts.add(t.Code(n), 1)
			}
		}
	}
	out := counts.balance()
	if out != nil && sample != nil {
		out.Sampled = int(sample.GetCardinality())
	}
	return out
}
