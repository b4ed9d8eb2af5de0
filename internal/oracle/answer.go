package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// A Candidate is an item that a search may return.
type Candidate struct {
	Key      string
	Row      uint32
	Code     string
	Distance int
	Score    float64 // NaN where the query has no projection
	Age      int     // age of the code, if it is known
}

// An Answer is the right answer to a query: all items, in order as far as the
// definition sets one.
type Answer struct {
	Candidates []Candidate // after Sort: by (distance, -score, age, code, not Self, row)
	Projection []float64   // projection of the query; nil: the query is a code
	Exact      bool        // the order is fully determined
	// key of the item that the query starts from, which is the first of its code; "": none
	Self string
}

// Sort sorts the candidates.
func (a *Answer) Sort() {
	slices.SortFunc(a.Candidates, func(x, y Candidate) int {
		s := 0
		if a.Projection != nil {
			s = cmp.Compare(y.Score, x.Score)
		}
		return cmp.Or(cmp.Compare(x.Distance, y.Distance), s, cmp.Compare(x.Age, y.Age),
			cmp.Compare(x.Code, y.Code), a.inCode(x, y))
	})
}

// inCode compares two candidates with the same code, as far as their order does not
// depend on cosines.
func (a *Answer) inCode(x, y Candidate) int {
	switch {
	case x.Key == y.Key:
		return 0
	case a.Self != "" && x.Key == a.Self:
		return -1
	case a.Self != "" && y.Key == a.Self:
		return 1
	}
	return cmp.Compare(x.Row, y.Row)
}

// Within returns the number of items within a radius. A negative radius means all
// items.
func (a *Answer) Within(radius int) int {
	n := 0
	for _, c := range a.Candidates {
		if radius < 0 || c.Distance <= radius {
			n++
		}
	}
	return n
}

// rounding is the largest difference between two computations of a score.
const rounding = 1e-9

// Check compares got, the first k hits of an answer within a radius, with the right
// answer. A negative radius means any distance. No other items may occur and none
// twice; distances and scores have to be right; and so has the order. Items with the
// same code stand together, and in order of rows if nothing else tells them apart.
func (a *Answer) Check(got []db.Hit, k, radius int, order db.Rerank) error {
	within := a.Within(radius)
	if len(got) != min(k, within) {
		return fmt.Errorf("%d hits, want %d of %d%s", len(got), min(k, within), within,
			a.difference(got, radius))
	}
	if a.Exact {
		for i, h := range got {
			if w := a.Candidates[i]; h.Key != w.Key || h.Row != w.Row || h.Distance != w.Distance ||
				!math.IsNaN(h.Score) {
				return fmt.Errorf("hit %d is %+v, want %q in row %d at %d", i, h, w.Key, w.Row, w.Distance)
			}
		}
		return nil
	}
	byScore := order == db.RerankAsymmetric && a.Projection != nil
	byRow := order == db.RerankNone || a.Projection == nil // rows decide within a code
	all, carry := map[string]Candidate{}, map[string]int{}
	for _, c := range a.Candidates {
		if radius < 0 || c.Distance <= radius {
			all[c.Key] = c
			carry[c.Code]++
		}
	}
	tolerance := rounding
	for _, z := range a.Projection {
		tolerance += rounding * math.Abs(z)
	}
	better := func(x, y Candidate) bool { // reports whether x has to come before y
		switch {
		case !byScore && x.Distance != y.Distance:
			return x.Distance < y.Distance
		case a.Projection == nil:
			return false
		}
		return x.Score > y.Score+tolerance
	}
	var last Candidate
	seen, ended := map[string]bool{}, map[string]bool{}
	run := 0
	for i, h := range got {
		w, ok := all[h.Key]
		switch {
		case !ok || seen[h.Key]:
			return fmt.Errorf("hit %d is %+v, which is none, or there twice", i, h)
		case h.Distance != w.Distance:
			return fmt.Errorf("hit %d is %+v, want distance %d", i, h, w.Distance)
		case a.Projection == nil && !math.IsNaN(h.Score),
			a.Projection != nil && !(math.Abs(h.Score-w.Score) <= tolerance):
			return fmt.Errorf("hit %d is %+v, want score %g", i, h, w.Score)
		}
		seen[h.Key] = true
		if i > 0 && better(w, last) {
			return fmt.Errorf("hit %d, %+v, comes behind %q, which is worse", i, h, last.Key)
		}
		if i == 0 || w.Code != last.Code {
			if i > 0 {
				if ended[last.Code] = true; run != carry[last.Code] {
					return fmt.Errorf("hit %d: %d items of code %x come together, of %d", i, run, last.Code,
						carry[last.Code])
				}
			}
			if run = 0; ended[w.Code] {
				return fmt.Errorf("hit %d, %+v: code %x comes twice", i, h, w.Code)
			}
		} else if (byRow || a.Self != "" && h.Key == a.Self) && a.inCode(w, last) < 0 {
			return fmt.Errorf("hit %d, %+v: %q of the same code comes before", i, h, last.Key)
		}
		run++
		last = w
	}
	if len(got) > 0 {
		for _, w := range a.Candidates {
			if _, ok := all[w.Key]; ok && !seen[w.Key] &&
				(better(w, last) || (byRow || a.Self != "" && w.Key == a.Self) && w.Code == last.Code &&
					a.inCode(w, last) < 0) {
				return fmt.Errorf("%q at distance %d, score %g, is missing; the last is %q at %d, %g", w.Key,
					w.Distance, w.Score, last.Key, last.Distance, last.Score)
			}
		}
	}
	return nil
}

// difference describes the first hit that must not be there, or else the first missing
// item.
func (a *Answer) difference(got []db.Hit, radius int) string {
	within := func(c Candidate) bool { return radius < 0 || c.Distance <= radius }
	for i, h := range got {
		if !slices.ContainsFunc(a.Candidates, func(c Candidate) bool { return c.Key == h.Key && within(c) }) {
			return fmt.Sprintf("; hit %d, %q at distance %d, must not be there", i, h.Key, h.Distance)
		}
	}
	for _, c := range a.Candidates {
		if within(c) && !slices.ContainsFunc(got, func(h db.Hit) bool { return h.Key == c.Key }) {
			return fmt.Sprintf("; %q at distance %d is missing", c.Key, c.Distance)
		}
	}
	return ""
}

// SameHits reports whether two answers are equal.
func SameHits(a, b []db.Hit) bool {
	return slices.EqualFunc(a, b, func(x, y db.Hit) bool {
		return x.Key == y.Key && x.Row == y.Row && x.Distance == y.Distance &&
			(x.Score == y.Score || math.IsNaN(x.Score) && math.IsNaN(y.Score))
	})
}

// Distance returns the Hamming distance of two codes.
func Distance(a, b string) int {
	n := 0
	for i := range len(a) {
		for x := a[i] ^ b[i]; x != 0; x &= x - 1 {
			n++
		}
	}
	return n
}

// Score returns the inner product of the projection z with the code, whose bits count
// as +-1; NaN if z is nil.
func Score(z []float64, code string) float64 {
	if z == nil {
		return math.NaN()
	}
	sum := 0.0
	for j, x := range z {
		if code[j/8]>>(j%8)&1 == 1 {
			sum += x
		} else {
			sum -= x
		}
	}
	return sum
}

// Signs checks that the bits of a code are the signs of a projection.
func Signs(code string, z []float64) error {
	for j, z := range z {
		if bit := code[j/8]>>(j%8)&1 == 1; bit != (z >= 0) && z != 0 {
			return fmt.Errorf("bit %d of the code of the query is %v, its projection %g", j, bit, z)
		}
	}
	return nil
}
