package metamorphic

import (
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// An answer is the right answer to a query: all items, in order as far as the
// definition sets one.
type answer struct {
	oracle.Answer
	sp   *space
	to   string
	code string
}

// find returns the right answer, or the error that must come instead. encode returns
// what the database makes of a query by a vector: its code, and its projection.
func (c *collection) find(q *Query, encode func(space db.Space, from string, x []float32) (code []byte, z []float64, err error)) (*answer, error) {
	number := c.numberOf(q.Space)
	sp := c.space(number)
	switch {
	case number != 0 && sp == nil:
		return nil, db.ErrNotFound
	case !q.Where.valid(&c.schema), q.To != "" && !c.schema.has(q.To):
		return nil, db.ErrInvalid
	case sp == nil:
		return nil, db.ErrNoModel
	}
	a := &answer{sp: sp, to: q.To}
	a.Self = q.Key
	if err := c.start(a, q, encode); err != nil {
		return nil, err
	}
	is, err := q.Where.matcher()
	if err != nil {
		return nil, err
	}
	for i, key := range c.order {
		it := c.items[key]
		row := it.row
		if c.loose {
			row = uint32(i) // rows are compared by their order alone
		}
		if !is(it) || q.To != "" && it.vectors[q.To] == nil || q.Exclude && key == q.Key {
			continue
		}
		if code, ok := sp.code(key); ok {
			a.Candidates = append(a.Candidates, oracle.Candidate{
				Key: key, Row: row, Code: code, Distance: oracle.Distance(code, a.code), Score: oracle.Score(a.Projection, code), Age: sp.ages[code]})
		}
	}
	a.Exact = a.Projection == nil && sp.ages != nil && !c.loose
	a.Sort()
	return a, nil
}

// start sets what the query starts from: a code, a projection, a vector or an item.
func (c *collection) start(a *answer, q *Query, encode func(space db.Space, from string, x []float32) ([]byte, []float64, error)) error {
	x := []float32(nil)
	switch {
	case q.Code != nil:
		a.code = string(codeOf(a.sp.bits, *q.Code))
		return nil
	case q.Key != "" && c.items[q.Key] == nil:
		return db.ErrNotFound
	case (q.From != "" || q.Vector != nil) && !c.schema.has(q.From):
		return db.ErrInvalid
	case q.Vector != nil:
		x = vectorOf(c.modality(q.From), *q.Vector)
	case !c.indexOnly:
		x = c.items[q.Key].vectors[q.From]
	}
	if x == nil {
		code, ok := a.sp.code(q.Key)
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
	a.code, a.Projection = string(code), z
	return nil
}

// modality returns the modality with that name, or a made-up one if there is none.
func (c *collection) modality(name string) db.Modality {
	for _, m := range c.schema.Modalities {
		if m.Name == name {
			return m
		}
	}
	return db.Modality{Name: name, Dim: 1}
}
