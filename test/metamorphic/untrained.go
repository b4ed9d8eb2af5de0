package metamorphic

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// untrained checks the answers to a query of a collection that is not trained, or that asks for a recall:
// they are by vectors. It returns errPassed if they are right.
func (s *question) untrained(query *Query) error {
	s.q.MinSimilarity = query.Least
	want, wrongQuery := s.c.byVectors(query, s.q.Rerank)
	q := s.q
	if q.K == 0 {
		q.K = 10
	}
	res, err := s.handle.Search(s.h.ctx, q)
	if wrongQuery != nil {
		if !errors.Is(err, wrongQuery) {
			return fmt.Errorf("the error is %v, not %v", err, wrongQuery)
		}
		return errPassed
	}
	if err != nil {
		return err
	}
	if res.Approximate && len(want) > q.K && len(res.Hits) == q.K {
		s.h.recalled.add(res.Hits, want, s.c.recallOf(query))
	}
	may := s.c.mayLack(query)
	for page, at := res, 0; ; {
		if page.Approximate && !may {
			return errors.New("an approximate answer, and no index that may find it")
		}
		left := len(want) - at
		if at, err = follow(page.Hits, want, at, page.Approximate, s.c.loose); err != nil {
			return err
		}
		// A least similarity spares an index cells that promise less.
		if n := min(q.K, left); len(page.Hits) != n && !(page.Approximate && q.MinSimilarity != 0) {
			return fmt.Errorf("a page of %d hits, approximate: %v, want %d", len(page.Hits), page.Approximate, n)
		}
		if page.Next == "" {
			if at < len(want) && !(page.Approximate && q.MinSimilarity != 0) {
				return fmt.Errorf("the last page ends at %d of %d", at, len(want))
			}
			break
		}
		if len(page.Hits) == 0 {
			return fmt.Errorf("an empty page after %d of %d, and one that follows", at, len(want))
		}
		q.After = page.Next
		if page, err = s.handle.Search(s.h.ctx, q); err != nil {
			return err
		}
	}
	together, err := s.handle.SearchAll(s.h.ctx, []db.Query{s.q})
	if err != nil {
		return err
	}
	if !oracle.SameHits(together[0].Hits, res.Hits) || together[0].Approximate != res.Approximate {
		return fmt.Errorf("among others: %v, alone: %v", together[0].Hits, res.Hits)
	}
	noRadius := db.ErrNoModel
	if s.c.space(s.q.Space) != nil {
		noRadius = db.ErrInvalid
	}
	if _, err := s.handle.SearchRadius(s.h.ctx, s.q, 3); !errors.Is(err, noRadius) {
		return fmt.Errorf("within a radius: %v", err)
	}
	return errPassed
}

// byVectors returns the right answer to such a query, or the error that must come instead.
func (c *collection) byVectors(q *Query, order db.Rerank) ([]db.Hit, error) {
	switch {
	case !q.Where.valid(&c.schema), q.To != "" && !c.schema.has(q.To):
		return nil, db.ErrInvalid
	case c.codesOnly():
		return nil, db.ErrNoModel
	case c.active != 0 && (c.indexOnly || q.Code != nil || order != db.RerankAuto):
		return nil, db.ErrInvalid // it is the recall that asks for vectors
	case c.indexOnly, q.Code != nil:
		return nil, db.ErrNoModel
	case q.From != "" && !c.schema.has(q.From), q.From == "" && (len(c.schema.Modalities) != 1 || q.Key == ""):
		return nil, db.ErrInvalid
	case q.Key != "" && c.items[q.Key] == nil:
		return nil, db.ErrNotFound
	}
	from := q.From
	if from == "" {
		from = c.schema.Modalities[0].Name
	}
	x := []float32(nil)
	if q.Vector != nil {
		x = vectorOf(c.modality(from), *q.Vector)
	} else {
		x = c.items[q.Key].vectors[from]
	}
	metric := c.modality(from).Metric
	if x == nil || metric == "" && !slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		return nil, db.ErrInvalid
	}
	compared := c.schema.comparedWith(from, q.To)
	is, err := q.Where.matcher()
	if err != nil {
		return nil, err
	}
	type placed struct {
		db.Hit
		place float32
	}
	var hits []placed
	for i, key := range c.order {
		it := c.items[key]
		if !is(it) || q.To != "" && it.vectors[q.To] == nil || q.Exclude && key == q.Key {
			continue
		}
		row := it.row
		if c.loose {
			row = uint32(i) // rows are compared by their order alone
		}
		best, found := placed{Hit: db.Hit{Key: key, Row: row, Distance: -1}}, false
		for _, name := range compared {
			if y := it.vectors[name]; y != nil {
				if place, similarity := similar(metric, x, y); !found || place > best.place {
					best.place, best.Similarity, found = place, similarity, true
				}
			}
		}
		if found && (q.Least == 0 || best.Similarity >= q.Least) {
			hits = append(hits, best)
		}
	}
	slices.SortFunc(hits, func(a, b placed) int {
		return cmp.Or(cmp.Compare(b.place, a.place), cmp.Compare(a.Row, b.Row))
	})
	out := make([]db.Hit, len(hits))
	for i, h := range hits {
		out[i] = h.Hit
	}
	return out, nil
}

// cosine returns the cosine between two vectors, 0 if the second is zero.
func cosine(x, y []float32) float32 {
	var xy, xx, yy float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	if yy == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(yy)), 1)))
}
