package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Facets are the counts of a set of items by label, or by the value of a field. They have the fields of
// db.Facets.
type Facets struct {
	By       string
	Counts   []FacetCount // by Items, the most first, then by Value
	Distinct int          // values that some item has, including the ones that a limit cuts off
	Missing  int          // items without a label, or without a value of the field
	Items    int          // items counted
}

// A FacetCount is one of the values of Facets.
type FacetCount struct {
	Value any // a string, int64, float64, bool or time.Time; for labels a string
	Items int // items that have it
}

// CountFacets counts rows by label or by a field; nil rows are all live items. by is label or the name of a
// field. A field named label stands in double quotes, as in expressions. limit, unless 0, is the number of
// counts returned. r is the snapshot of the view of cv.
//
// Labels and indexed fields are counted by their sets of rows. Other fields, and every field if there are few
// rows, are counted by reading the items. The memory holds all distinct values.
func CountFacets(ctx context.Context, cv *state.CollectionView, r pebble.Reader, by string, rows *roaring.Bitmap, limit int) (*Facets, error) {
	if limit < 0 {
		return nil, fault.Invalid("a limit of %d counts: 1 or more are possible, 0 is all", limit)
	}
	c := &facetCounter{ctx: ctx, cv: cv, r: r, rows: rows, most: most{limit: limit}}
	if rows == nil {
		c.rows = cv.Live
	}
	out := &Facets{By: by, Items: int(c.rows.GetCardinality())}
	var err error
	if strings.EqualFold(by, "label") {
		err = c.byLabel(out)
	} else {
		err = c.byField(out, unquoted(by))
	}
	if err != nil {
		return nil, err
	}
	out.Counts = c.most.all()
	return out, nil
}

// unquoted returns a name without the double quotes around it, if it has both.
func unquoted(name string) string {
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		if inner, ok = strings.CutSuffix(inner, `"`); ok {
			return inner
		}
	}
	return name
}

// A facetCounter counts rows of a view. It belongs to one call of CountFacets.
type facetCounter struct {
	ctx  context.Context
	cv   *state.CollectionView
	r    pebble.Reader
	rows *roaring.Bitmap // rows to count; do not write to them
	most most

	parts  map[uint16]*roaring.Bitmap // of rows, by container; see part
	looked int                        // layers or items read
}

// part returns the rows of a container as low 16 bits. Do not write to the bitmap.
func (c *facetCounter) part(container uint16) *roaring.Bitmap {
	p := c.parts[container]
	if p == nil {
		if c.parts == nil {
			c.parts = map[uint16]*roaring.Bitmap{}
		}
		p = (&whereRows{container: container}).part(c.rows)
		c.parts[container] = p
	}
	return p
}

// layers calls f with each stored set under a prefix that has some of the rows: its key, its container, and
// its rows among them.
func (c *facetCounter) layers(prefix []byte, containerOf func(key []byte) uint16, f func(key []byte, container uint16, found *roaring.Bitmap) error) error {
	return record.ForEach(c.r, prefix, func(key, value []byte) error {
		if c.looked++; c.looked%1024 == 0 {
			if err := c.ctx.Err(); err != nil {
				return err
			}
		}
		container := containerOf(key)
		part := c.part(container)
		if part.IsEmpty() {
			return nil
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return fault.Corrupt(err, "rows %x", key)
		}
		if l.Added.And(part); l.Added.IsEmpty() {
			return nil
		}
		return f(key, container, l.Added)
	})
}

// byLabel counts by the sets of rows of all labels.
func (c *facetCounter) byLabel(out *Facets) error {
	counts := map[uint32]int{}
	labelled := map[uint16]*roaring.Bitmap{} // by container: rows that have any label
	containerOf := func(key []byte) uint16 {
		_, _, container := codec.RowsKeyParts(key)
		return container
	}
	err := c.layers(codec.SetPrefix(c.cv.ID, codec.SetLabel), containerOf, func(key []byte, container uint16, found *roaring.Bitmap) error {
		_, id, _ := codec.RowsKeyParts(key)
		counts[id] += int(found.GetCardinality())
		if labelled[container] == nil {
			labelled[container] = found
		} else {
			labelled[container].Or(found)
		}
		return nil
	})
	if err != nil {
		return err
	}
	out.Missing = out.Items
	for _, rows := range labelled {
		out.Missing -= int(rows.GetCardinality())
	}
	for id, n := range counts {
		if int(id) >= len(c.cv.Names) {
			return fault.Corrupt(fmt.Errorf("id %d of %d", id, len(c.cv.Names)), "label of collection %q", c.cv.Name)
		}
		c.most.add(n, func() any { return c.cv.Names[id] })
	}
	out.Distinct = len(counts)
	return nil
}

// AnswerRows returns the rows of all items within the radius of Within, including items before the cursor:
// Total counts the same items.
func (s *Searcher) AnswerRows(ctx context.Context) (*roaring.Bitmap, error) {
	all := s.Again()
	all.after = nil
	defer all.Close()
	rows := roaring.New()
	for r, err := range all.runs(ctx) {
		var of []uint32
		if err == nil {
			of, err = all.rowsIn(ctx, r)
		}
		if err != nil {
			return nil, err
		}
		rows.AddMany(of)
	}
	return rows, nil
}

// IsWithin reports whether Within was called, not Nearest.
func (s *Searcher) IsWithin() bool { return s.radius >= 0 }
