package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rest"
)

const searchText = "Find the items nearest to words, to an item (key), to a code or to a vector: give one of the four, or in_fields. " + pagesText +
	" In a learned collection distance counts differing bits of codes, which know what labels say; recall compares vectors instead. similarity is higher for nearer items."

type searchIn struct {
	InFields      *string     `json:"in_fields,omitempty" jsonschema:"words to find in the texts of fields with an index of words; alone, or beside one of the others: then both answers are merged by rank"`
	Words         *string     `json:"words,omitempty" jsonschema:"find what these words mean; for collections of which a modality takes words"`
	Key           *string     `json:"key,omitempty" jsonschema:"find items like the item with this key, which is left out"`
	Code          rest.Hex    `json:"code,omitempty" jsonschema:"find items near a code, in hexadecimal digits"`
	Vector        rest.Vector `json:"vector,omitempty" jsonschema:"find items near a vector of the modality from: an array of numbers"`
	From          *string     `json:"from,omitempty" jsonschema:"modality of the words or the vector, or of the item of key"`
	To            *string     `json:"to,omitempty" jsonschema:"find only items that have this modality"`
	K             *int        `json:"k,omitempty" jsonschema:"number of hits: 10 if left out, up to 100"`
	Where         *string     `json:"where,omitempty" jsonschema:"only items that match: label = 'cat' AND year >= 2020 AND NOT (price > 9.5 OR has(image)). Comparisons = != < <= > >= of a field; IN ('a', 'b'); BETWEEN 1 AND 9; name CONTAINS 'word' in any case; LIKE and ILIKE with % and _; IS NULL; IS NOT NULL; has(NAME) of a field or modality; has(label). Text and times ('2024-05-01') in single quotes. Better: ? for each value, which args gives"`
	Args          rest.Args   `json:"args,omitempty" jsonschema:"the values of the placeholders ? in where, in order"`
	MinSimilarity *float32    `json:"min_similarity,omitempty" jsonschema:"only hits of this similarity or more"`
	Radius        *int        `json:"radius,omitempty" jsonschema:"only hits within this number of bits; total counts them; for learned collections"`
	Recall        *float64    `json:"recall,omitempty" jsonschema:"compare vectors, and find this share of the nearest: 1 is all, 0.9 is faster where there is an index"`
	Include       []string    `json:"include,omitempty" jsonschema:"payload: hits come with their texts"`
	After         *string     `json:"after,omitempty" jsonschema:"next of the answer to the same query: go on behind it"`
	about
}

// hitForm is a hit of an answer.
type hitForm struct {
	Key        string   `json:"key"`
	Distance   *int     `json:"distance,omitempty"` // bits
	Similarity *float32 `json:"similarity,omitempty"`
	parts
}

// query returns the query of the arguments.
func (c *call) query(ctx context.Context, t *target, in *searchIn) (q db.Query, err error) {
	var by []string
	for name, given := range map[string]bool{"words": in.Words != nil, "key": in.Key != nil,
		"code": in.Code != nil, "vector": !in.Vector.IsZero()} {
		if given {
			by = append(by, name)
		}
	}
	if len(by) > 1 || len(by) == 0 && in.InFields == nil {
		given := map[bool]string{true: "none is", false: strings.Join(by, " and ") + " are"}[len(by) == 0]
		return q, fmt.Errorf("give one of words, key, code and vector, or in_fields: %s given", given)
	}
	q = db.Query{From: value(in.From), To: value(in.To), Where: value(in.Where), Args: in.Args,
		After: value(in.After), Key: value(in.Key), Code: in.Code, Vector: in.Vector.Dense,
		Sparse: in.Vector.Sparse, Words: value(in.InFields), ExcludeSelf: in.Key != nil,
		Include: db.IncludeLabels | db.IncludeFields | db.IncludeCursor}
	for argument, name := range map[string]string{"from": q.From, "to": q.To} {
		if name != "" {
			if _, err := t.modality(argument, name); err != nil {
				return q, err
			}
		}
	}
	if payload, err := included(in.Include, "payload"); err != nil {
		return q, err
	} else if payload {
		q.Include |= db.IncludePayload
	}
	if q.K, err = bounded("k", in.K, defaultRows, 1, mostRows); err != nil {
		return q, err
	}
	if in.Recall != nil {
		if q.Recall = *in.Recall; q.Recall <= 0 || q.Recall > 1 {
			return q, fmt.Errorf("recall: %g: more than 0, up to 1 is possible", q.Recall)
		}
	}
	switch strings.Join(by, "") { // one, or none beside in_fields
	case "key":
		if err := c.start(ctx, t, &q); err != nil {
			return q, err
		}
	case "vector":
		if q.From == "" {
			return q, errors.New("from is missing: it names the modality of the vector")
		}
	case "words":
		m, x, err := c.encode(ctx, t, "words", q.From, *in.Words)
		if err != nil {
			return q, err
		}
		q.From, q.Vector, q.Sparse = m.Name, x.Dense, x.Sparse
	}
	if in.MinSimilarity != nil && *in.MinSimilarity != 0 {
		stats, err := t.Stats(ctx)
		if err != nil {
			return q, err
		}
		q.MinSimilarity = *in.MinSimilarity
		if stats.Trained && q.Recall == 0 { // codes have a similarity in this order
			q.Rerank = db.RerankProjection
		}
	}
	return q, nil
}

// start chooses the modality in which a query by an item starts, where vectors are compared: that of the
// items to find if it has one, else its first.
func (c *call) start(ctx context.Context, t *target, q *db.Query) error {
	if q.Key == "" {
		return errors.New("key: the key of an item is expected")
	}
	if q.From != "" {
		return nil
	}
	stats, err := t.Stats(ctx)
	if err != nil || stats.Trained && q.Recall == 0 { // its code is the query
		return err
	}
	it, err := t.Get(ctx, q.Key)
	if errors.Is(err, db.ErrNotFound) {
		return t.noItem(q.Key)
	}
	if err != nil {
		return err
	}
	for _, m := range t.schema.Modalities {
		_, dense := it.Vectors[m.Name]
		if _, sparse := it.Sparse[m.Name]; (dense || sparse) && (q.From == "" || m.Name == q.To) {
			q.From = m.Name
		}
	}
	if q.From == "" {
		return fmt.Errorf("key: item %.200q has no vector to start from", q.Key)
	}
	return nil
}

// noItem returns the error of a key that no item has.
func (t *target) noItem(key string) error {
	return fmt.Errorf("key: collection %q has no item %.200q: list_items and search find keys", t.Name(), key)
}

func (c *call) search(ctx context.Context, in *searchIn) (*draft, error) {
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	q, err := c.query(ctx, t, in)
	if err != nil {
		return nil, err
	}
	var r *db.Result
	if in.Radius != nil {
		r, err = t.SearchRadius(ctx, q, *in.Radius)
	} else {
		r, err = t.Search(ctx, q)
	}
	switch {
	case errors.Is(err, db.ErrNotFound) && in.Key != nil:
		return nil, t.noItem(*in.Key)
	case errors.Is(err, db.ErrNoModel):
		return nil, fmt.Errorf("%w; leave out code and radius: search compares vectors then", err)
	case err != nil:
		return nil, err
	}
	return &draft{rows: len(r.Hits), form: func(n int, cut *cutter) any {
		out := struct {
			Hits        []hitForm `json:"hits"`
			LeftOut     int       `json:"left_out,omitempty"`
			Note        string    `json:"note,omitempty"`
			Next        string    `json:"next,omitempty"`
			Total       *int      `json:"total,omitempty"`
			Approximate bool      `json:"approximate,omitempty"` // items may be missing
		}{Hits: []hitForm{}, LeftOut: len(r.Hits) - n, Next: r.Next, Approximate: r.Approximate}
		for _, h := range r.Hits[:n] {
			f := hitForm{Key: h.Key, Similarity: finite(h.Similarity), parts: cut.newParts(h.Item)}
			if h.Distance >= 0 {
				f.Distance = &h.Distance
			}
			out.Hits = append(out.Hits, f)
		}
		if out.LeftOut > 0 {
			out.Note, out.Next = moreText, ""
			if n > 0 {
				out.Next = r.Hits[n-1].Cursor
			}
		}
		if in.Radius != nil {
			out.Total = &r.Total
		}
		return out
	}}, nil
}
