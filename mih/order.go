package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A bitOrder says which bits of a code make up the substrings of a segment: bit k of
// the code that is split is bit order[k] of the original. nil is the natural order.
//
// Distances do not depend on the order, but the buckets do. Where the bits of one
// substring are correlated, some buckets are full, and queries meet them. So correlated
// bits go to different substrings, as by Norouzi, Punjani and Fleet (TPAMI 2014,
// section 5.3).
type bitOrder []uint16

const (
	orderSamples = 8192 // codes in the sample
	maxOrderBits = 512  // longer codes keep their order: finding one takes longer than it saves
	orderPays    = .9   // an order is kept if it leaves at most this share of the squared correlations
)

// findOrder chooses the order from a sample of codes. It places bits greedily. Then it
// swaps bits of different substrings while that lowers the sum of the squared
// correlations within substrings. It returns nil where no order is worth it.
func findOrder(codes codec.Codes, split Split) bitOrder {
	q, m := codes.Bits(), split.Len()
	if q > maxOrderBits || m < 2 || codes.Len() < minSegment {
		return nil
	}
	c := correlations(codes)
	groups := make([][]int, m)
	load := make([][]float64, m) // load[g][b]: sum of c between bit b and group g
	for g := range load {
		load[g] = make([]float64, q)
	}
	used := make([]bool, q)
	for placed := 0; placed < q; {
		for g := range m {
			if len(groups[g]) == split.Width(g) {
				continue
			}
			best := -1
			for b := range q {
				if !used[b] && (best < 0 || load[g][b] < load[g][best]) {
					best = b
				}
			}
			used[best] = true
			groups[g] = append(groups[g], best)
			for b := range q {
				load[g][b] += c[best][b]
			}
			placed++
		}
	}
	for changed, rounds := true, 0; changed && rounds < 10; rounds++ {
		changed = false
		for g := range m {
			for h := range g {
				for i := range groups[g] {
					for k := range groups[h] {
						a, b := groups[g][i], groups[h][k]
						if load[h][a]+load[g][b]-2*c[a][b]-load[g][a]-load[h][b] > -1e-9 {
							continue
						}
						for x := range q {
							load[g][x] += c[b][x] - c[a][x]
							load[h][x] += c[a][x] - c[b][x]
						}
						groups[g][i], groups[h][k] = b, a
						changed = true
					}
				}
			}
		}
	}
	natural, chosen := 0.0, 0.0
	order := make(bitOrder, 0, q)
	for g := range m {
		for _, a := range groups[g] {
			chosen += load[g][a]
			order = append(order, uint16(a))
		}
		for a := split.starts[g]; a < split.starts[g+1]; a++ {
			for b := split.starts[g]; b < split.starts[g+1]; b++ {
				natural += c[a][b]
			}
		}
	}
	// The sample alone makes squared correlations of 1/n between all bits.
	noise := float64(q) * float64(q/m) / float64(min(codes.Len(), orderSamples))
	if chosen-noise > orderPays*(natural-noise) {
		return nil
	}
	return order
}

// correlations returns the squared correlation of each two bits, 0 on the diagonal.
func correlations(codes codec.Codes) [][]float64 {
	q, n := codes.Bits(), min(codes.Len(), orderSamples)
	columns, ones := make([][]uint64, q), make([]float64, q)
	for j := range columns {
		columns[j] = make([]uint64, (n+63)/64)
	}
	for i := range n {
		code := codes.At(i * (codes.Len() / n))
		for j := range q {
			if code.Bit(j) {
				columns[j][i/64] |= 1 << (i % 64)
				ones[j]++
			}
		}
	}
	c := make([][]float64, q)
	for a := range c {
		c[a] = make([]float64, q)
		for b := range a {
			both := 0
			for i, x := range columns[a] {
				both += bits.OnesCount64(x & columns[b][i])
			}
			pa, pb := ones[a]/float64(n), ones[b]/float64(n)
			if v := pa * (1 - pa) * pb * (1 - pb); v > 0 {
				r := (float64(both)/float64(n) - pa*pb) / math.Sqrt(v)
				c[a][b], c[b][a] = r*r, r*r
			}
		}
	}
	return c
}

// apply writes c, with its bits in this order, to dst, and returns it.
func (o bitOrder) apply(dst, c codec.Code) codec.Code {
	if o == nil {
		return append(dst[:0], c...)
	}
	dst = append(dst[:0], c...)
	for w := range dst {
		var x uint64
		for k, b := range o[64*w : min(64*w+64, len(o))] {
			x |= c[b/64] >> (b % 64) & 1 << k
		}
		dst[w] = x
	}
	return dst
}

// applyAll returns copies of codes with their bits in this order. It goes byte by byte.
func (o bitOrder) applyAll(codes codec.Codes) codec.Codes {
	if o == nil {
		return codes
	}
	q, words := codes.Bits(), codec.Words(codes.Bits())
	// lut[p*256+v] is the contribution of value v of byte p.
	lut := make([]uint64, q/8*256*words)
	for k, b := range o {
		p, bit := int(b)/8, int(b)%8
		for v := range 256 {
			if v>>bit&1 == 1 {
				lut[(p*256+v)*words+k/64] |= 1 << (k % 64)
			}
		}
	}
	out := codec.NewCodes(q, codes.Len())
	sum := codec.NewCode(q)
	for i := range codes.Len() {
		clear(sum)
		for p := range q / 8 {
			v := int(codes.At(i)[p/8]>>(p%8*8)) & 255
			for w, x := range lut[(p*256+v)*words:][:words] {
				sum[w] |= x
			}
		}
		out.Append(sum)
	}
	return out
}

// A groupMask has the bits of a code that make up one group of substrings. Words
// without such bits at either end are left out.
type groupMask struct {
	first int // index of the first word
	words []uint64
}

// mask returns the mask of bits from to to-1 of the reordered code.
func (o bitOrder) mask(q, from, to int) groupMask {
	mask := codec.NewCode(q)
	for k := from; k < to; k++ {
		if o == nil {
			mask.Flip(k)
		} else {
			mask.Flip(int(o[k]))
		}
	}
	first, last := 0, len(mask)
	for mask[first] == 0 {
		first++
	}
	for mask[last-1] == 0 {
		last--
	}
	return groupMask{first, mask[first:last]}
}

// distance returns the number of bits of the mask in which a and b differ.
func (m *groupMask) distance(a, b codec.Code) (d int) {
	for i, word := range m.words {
		d += bits.OnesCount64((a[m.first+i] ^ b[m.first+i]) & word)
	}
	return d
}
