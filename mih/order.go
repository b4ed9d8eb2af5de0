package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A bitOrder says which bits of a code make up the substrings of a segment: bit
// order[k] of the code is bit k of what is split. Distances do not depend on it,
// but the buckets do: where bits of one substring are correlated, some buckets
// are full and the queries are near them. So bits that are correlated go to
// different substrings, as Norouzi, Punjani and Fleet do (TPAMI 2014, section
// 5.3). nil is the natural order.
type bitOrder []uint16

const (
	orderSamples = 8192
	maxOrderBits = 512 // beyond, finding an order takes longer than it is worth
	orderPays    = .9  // of the sum of squared correlations may be left
)

// findOrder chooses the order for codes, from a sample: greedily, then by
// swapping bits of different substrings as long as that makes the sum of the
// squared correlations within substrings smaller.
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
	// Sampling alone makes correlations of 1/n, squared, among all.
	noise := float64(q) * float64(q/m) / float64(min(codes.Len(), orderSamples))
	if chosen-noise > orderPays*(natural-noise) {
		return nil
	}
	return order
}

// correlations returns the squared correlations between bits, 0 of a bit with
// itself.
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

// apply writes the code in this order to dst.
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

// applyAll returns codes in this order, a byte at a time.
func (o bitOrder) applyAll(codes codec.Codes) codec.Codes {
	if o == nil {
		return codes
	}
	q, words := codes.Bits(), codec.Words(codes.Bits())
	// lut[p*256+v] is what value v of byte p becomes.
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

// A groupMask has the bits of a code that make up a group of substrings, without
// the words before and after that have none.
type groupMask struct {
	first int
	words []uint64
}

// mask returns the mask of bits from to to-1 of what is split.
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

// distance returns the number of bits of the mask in which two codes differ.
func (m *groupMask) distance(a, b codec.Code) (d int) {
	for i, word := range m.words {
		d += bits.OnesCount64((a[m.first+i] ^ b[m.first+i]) & word)
	}
	return d
}
