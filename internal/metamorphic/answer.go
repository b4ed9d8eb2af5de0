package metamorphic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// An answer is what a query must find: all items, in order as far as it is known.
type answer struct {
	sp     *space
	to     string
	code   string
	z      []float64 // nil: the query is by code
	vector []float32 // that it starts from, if it does
	hits   []ranked  // by (distance, -score, age of the code, row)
	exact  bool      // that is the whole order
}

// A ranked is an item of an answer.
type ranked struct {
	key      string
	row      uint32
	code     string
	distance int
	score    float64
	age      int
}

// find returns what must be found, or the error that must come instead. encode says
// what the database makes of a query by a vector.
func (c *collection) find(q *Query, encode func(space uint32, from string, x []float32) (code []byte, z []float64, err error)) (*answer, error) {
	number := c.numberOf(q.Space)
	sp := c.space(number)
	switch {
	case number != 0 && sp == nil:
		return nil, db.ErrNotFound
	case !q.Where.valid(&c.schema), q.To != "" && !c.schema.has(q.To):
		return nil, db.ErrInvalid
	case sp == nil:
		return nil, db.ErrNoModel
	case sp.targets != nil && q.To == "":
		return nil, db.ErrInvalid
	case sp.targets != nil && !slices.Contains(sp.targets, q.To):
		return nil, db.ErrNoModel
	}
	a := &answer{sp: sp, to: q.To}
	if err := c.start(a, q, encode); err != nil {
		return nil, err
	}
	matching, having := 0, 0
	for i, key := range c.order {
		it := c.items[key]
		row := it.row
		if c.loose {
			row = uint32(i) // in that order, whatever the numbers are
		}
		if !q.Where.match(it) || q.To != "" && it.vectors[q.To] == nil {
			continue
		}
		if matching++; it.vectors[q.From] != nil {
			having++
		}
		if code, ok := sp.code(key, q.To); ok {
			a.hits = append(a.hits, ranked{key, row, code, distance(code, a.code), score(a.z, code), sp.ages[code]})
		}
	}
	if q.Rerank == "features" && (c.indexOnly || a.vector == nil || having == 0 && (matching > 0 || q.Where == nil && len(c.order) == 0)) {
		return nil, db.ErrInvalid
	}
	a.exact = a.z == nil && sp.ages != nil && !c.loose
	slices.SortFunc(a.hits, func(x, y ranked) int {
		s := 0
		if a.z != nil {
			s = cmp.Compare(y.score, x.score)
		}
		return cmp.Or(cmp.Compare(x.distance, y.distance), s, cmp.Compare(x.age, y.age), cmp.Compare(x.code, y.code), cmp.Compare(x.row, y.row))
	})
	return a, nil
}

// start says what the query starts from.
func (c *collection) start(a *answer, q *Query, encode func(space uint32, from string, x []float32) ([]byte, []float64, error)) error {
	x := []float32(nil)
	switch {
	case q.Code != nil:
		a.code = string(codeOf(a.sp.bits, *q.Code))
		return nil
	case q.Key != "" && c.items[q.Key] == nil:
		return db.ErrNotFound
	case q.From != "" && !c.schema.has(q.From):
		return db.ErrInvalid
	case q.Vector != nil:
		x = vectorOf(c.modality(q.From), *q.Vector)
	case !c.indexOnly:
		x = c.items[q.Key].vectors[q.From]
	}
	if x == nil {
		code, ok := a.sp.ownCode(q.Key, q.To)
		if a.code = code; !ok {
			return db.ErrInvalid
		}
		return nil
	}
	if !slices.Contains(a.sp.modalities, q.From) {
		return db.ErrNoModel
	}
	code, z, err := encode(a.sp.number, q.From, x)
	if err != nil {
		return err
	}
	a.code, a.z, a.vector = string(code), z, x
	return nil
}

// modality returns the modality of that name, or one that there is not.
func (c *collection) modality(name string) db.Modality {
	for _, m := range c.schema.Modalities {
		if m.Name == name {
			return m
		}
	}
	return db.Modality{Name: name, Dim: 1}
}

// within returns how many items are within a radius; a negative one means all.
func (a *answer) within(radius int) int {
	n := 0
	for _, h := range a.hits {
		if radius < 0 || h.distance <= radius {
			n++
		}
	}
	return n
}

// rounding is how far two computations of a score may be apart.
const rounding = 1e-9

// check compares the first k hits of an answer within a radius with what must be found:
// no other items and none twice, at their distances, with their scores; in order; the
// items of one code together, and by row where nothing else tells them apart.
func (a *answer) check(got []db.Hit, k, radius int, rerank string) error {
	within := a.within(radius)
	if len(got) != min(k, within) {
		return fmt.Errorf("%d hits for k = %d of %d", len(got), k, within)
	}
	if a.exact {
		for i, h := range got {
			if w := a.hits[i]; h.Key != w.key || h.Row != w.row || h.Distance != w.distance || !math.IsNaN(h.Score) {
				return fmt.Errorf("hit %d is %+v, want %q in row %d at %d", i, h, w.key, w.row, w.distance)
			}
		}
		return nil
	}
	byScore := rerank == "asymmetric" && a.z != nil
	byRow := rerank == "none" || a.z == nil // inside a code
	all, carry := map[string]ranked{}, map[string]int{}
	for _, h := range a.hits {
		if radius < 0 || h.distance <= radius {
			all[h.key] = h
			carry[h.code]++
		}
	}
	tolerance := rounding
	for _, z := range a.z {
		tolerance += rounding * math.Abs(z)
	}
	better := func(x, y ranked) bool { // x has to come before y
		switch {
		case !byScore && x.distance != y.distance:
			return x.distance < y.distance
		case a.z == nil:
			return false
		}
		return x.score > y.score+tolerance
	}
	var last ranked
	seen, ended := map[string]bool{}, map[string]bool{}
	run := 0
	for i, h := range got {
		w, ok := all[h.Key]
		switch {
		case !ok || seen[h.Key]:
			return fmt.Errorf("hit %d is %+v, which is none, or there twice", i, h)
		case h.Distance != w.distance:
			return fmt.Errorf("hit %d is %+v, want distance %d", i, h, w.distance)
		case a.z == nil && !math.IsNaN(h.Score), a.z != nil && !(math.Abs(h.Score-w.score) <= tolerance):
			return fmt.Errorf("hit %d is %+v, want score %g", i, h, w.score)
		}
		seen[h.Key] = true
		if i > 0 && better(w, last) {
			return fmt.Errorf("hit %d, %+v, comes behind %q, which is worse", i, h, last.key)
		}
		if i == 0 || w.code != last.code {
			if i > 0 {
				if ended[last.code] = true; run != carry[last.code] {
					return fmt.Errorf("hit %d: %d items of code %x come together, of %d", i, run, last.code, carry[last.code])
				}
			}
			if run = 0; ended[w.code] {
				return fmt.Errorf("hit %d, %+v: code %x comes twice", i, h, w.code)
			}
		} else if byRow && w.row < last.row {
			return fmt.Errorf("hit %d, %+v: %q of the same code is of a later row and comes before", i, h, last.key)
		}
		run++
		last = w
	}
	if len(got) > 0 {
		for key, w := range all {
			if !seen[key] && (better(w, last) || byRow && w.code == last.code && w.row < last.row) {
				return fmt.Errorf("%q at distance %d, score %g, is missing; the last is %q at %d, %g", key, w.distance, w.score, last.key, last.distance, last.score)
			}
		}
	}
	return nil
}

// sameHits reports whether two answers are the same.
func sameHits(a, b []db.Hit) bool {
	return slices.EqualFunc(a, b, func(x, y db.Hit) bool {
		return x.Key == y.Key && x.Row == y.Row && x.Distance == y.Distance &&
			(x.Score == y.Score || math.IsNaN(x.Score) && math.IsNaN(y.Score))
	})
}

// featured returns the hits with the first of them in the order of their features.
func (c *collection) featured(hits []db.Hit, window int, from string, x []float32) []db.Hit {
	out := slices.Clone(hits)
	squared := func(h db.Hit) float64 {
		y := c.items[h.Key].vectors[from]
		if y == nil {
			return math.Inf(1)
		}
		sum := 0.0
		for j := range x {
			sum += (float64(x[j]) - float64(y[j])) * (float64(x[j]) - float64(y[j]))
		}
		return sum
	}
	slices.SortStableFunc(out[:min(window, len(out))], func(a, b db.Hit) int { return cmp.Compare(squared(a), squared(b)) })
	return out
}
