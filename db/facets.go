package db

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/internal/jsonform"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A FacetQuery asks how many items have each label, or each value of a field.
type FacetQuery struct {
	// By is label, or the name of a field, indexed or not. A field of the name label stands in
	// double quotes, as in Where.
	By string

	// Where, if not empty, counts only the items that match, see Query.Where; Args are the values
	// of its placeholders, see Query.Args.
	Where string
	Args  []any

	// Limit is how many counts come back, those of the most items; 0 is all. All are counted.
	Limit int
}

// Facets are the counts of items by label, or by the values of a field. An item counts for each of
// its labels.
type Facets struct {
	By       string       `json:"by"`       // label, or a field, as it was asked for
	Counts   []FacetCount `json:"counts"`   // the most items first; of as many, the least value
	Distinct int          `json:"distinct"` // values that items have, also those that a limit has cut off
	Missing  int          `json:"missing"`  // items without a label, or without a value of the field
	Items    int          `json:"items"`    // of which the counts are
}

// A FacetCount says how many items have a value.
type FacetCount struct {
	Value any // a string, int64, float64, bool or time.Time, by the type of the field; a label is a string
	Items int // that have it
}

// facetForm is the JSON of a FacetCount.
type facetForm struct {
	Value any `json:"value"`
	Items int `json:"items"`
}

// MarshalJSON implements json.Marshaler: {"value", "items"}. A float has a point or an exponent,
// as in fields of an Item.
func (c FacetCount) MarshalJSON() ([]byte, error) {
	value := jsonform.Fields(map[string]any{"value": c.Value})["value"]
	return jsonform.Marshal(facetForm{value, c.Items})
}

// UnmarshalJSON implements json.Unmarshaler. A time becomes its text, as JSON does not tell them apart.
func (c *FacetCount) UnmarshalJSON(b []byte) error {
	var f facetForm
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return err
	}
	values, err := jsonform.Values(map[string]any{"value": f.Value})
	*c = FacetCount{values["value"], f.Items}
	return err
}

// Facets counts the items that match q.Where by label, or by the values of a field, exactly.
// Query.Facets counts within an answer.
//
// Labels and indexed fields are counted by the sets of rows that filters read: all sets of the
// labels, or of the field, are read. For a field without an index each item that matches is read, and
// so they are for any field where they are few. The memory is that of all distinct values. A field that
// there is not is an ErrInvalid, a mistake in Where a *WhereError.
func (c *Collection) Facets(ctx context.Context, q FacetQuery) (*Facets, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (*Facets, error) {
		rows, err := search.Matching(ctx, cv, v.Snap, q.Where, q.Args)
		if err != nil {
			return nil, err
		}
		return facetsOf(ctx, v, cv, q.By, rows, q.Limit)
	})
}

// facetsOf counts rows of a view; nil are all items.
func facetsOf(ctx context.Context, v *state.View, cv *state.CollectionView, by string, rows *roaring.Bitmap, limit int) (*Facets, error) {
	found, err := search.CountFacets(ctx, cv, v.Snap, by, rows, limit)
	if err != nil {
		return nil, err
	}
	out := &Facets{By: found.By, Distinct: found.Distinct, Missing: found.Missing, Items: found.Items}
	out.Counts = make([]FacetCount, len(found.Counts))
	for i, n := range found.Counts {
		out.Counts[i] = FacetCount(n)
	}
	return out, nil
}

// wanted is what a Query wants to know besides the order of hits.
type wanted struct {
	include    Include
	cursors    bool
	facets     []string
	facetLimit int
}

func (q *Query) wanted() wanted { return wanted{q.Include, q.Cursors, q.Facets, q.FacetLimit} }

// count counts the items of an answer: all within a radius, else the hits.
func (w wanted) count(ctx context.Context, s *search.Searcher, hits []Hit) ([]Facets, error) {
	if len(w.facets) == 0 {
		return nil, nil
	}
	rows := roaring.New()
	if s.IsWithin() {
		var err error
		if rows, err = s.AnswerRows(ctx); err != nil {
			return nil, err
		}
	} else {
		for i := range hits {
			rows.Add(hits[i].Row)
		}
	}
	all := make([]Facets, len(w.facets))
	for i, by := range w.facets {
		f, err := facetsOf(ctx, s.V, s.Cv, by, rows, w.facetLimit)
		if err != nil {
			return nil, err
		}
		all[i] = *f
	}
	return all, nil
}
