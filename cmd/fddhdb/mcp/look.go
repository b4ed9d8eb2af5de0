package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Texts for models.
const (
	listText = "List the collections: how many items, modalities (kinds of vectors; takes_words: search finds them by words), fields, labels."

	pagesText = "Where more follow, next is there: give it as after to go on."
)

// moreText stands in answers that leave out rows.
const moreText = "these did not fit: go on with after, or give a larger max_bytes"

type listIn struct {
	After *string `json:"after,omitempty" jsonschema:"go on behind the collection of this name"`
	sized
}

// collectionForm is a collection of a list.
type collectionForm struct {
	Name           string         `json:"name"`
	Items          int            `json:"items"`
	Labels         int            `json:"labels"`
	Learned        bool           `json:"learned"` // searches compare learned codes
	Bits           int            `json:"bits,omitempty"`
	IndexOnly      bool           `json:"index_only,omitempty"`
	Modalities     []modalityForm `json:"modalities,omitempty"`
	ModalitiesLeft int            `json:"modalities_left_out,omitempty"`
	Fields         []fieldForm    `json:"fields,omitempty"`
	FieldsLeft     int            `json:"fields_left_out,omitempty"`
}

type modalityForm struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"`
	Items  int    `json:"items"`
	Words  bool   `json:"takes_words"`
}

type fieldForm struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Indexed bool   `json:"indexed,omitempty"`
	Words   bool   `json:"words,omitempty"`
}

func (c *call) listCollections(ctx context.Context, in *listIn) (*draft, error) {
	names, err := c.d.Collections(ctx)
	if err != nil {
		return nil, err
	}
	if only := c.s.opt.Collection; only != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return name != only })
	}
	if in.After != nil {
		i, found := slices.BinarySearch(names, *in.After)
		if found {
			i++
		}
		names = names[i:]
	}
	const most = 200 // of an answer: each is asked for its figures
	more := max(0, len(names)-most)
	var all []collectionForm
	for _, name := range names[:len(names)-more] {
		form, err := c.collectionForm(ctx, name)
		switch {
		case errors.Is(err, db.ErrNotFound): // it has been dropped meanwhile
		case err != nil:
			return nil, err
		default:
			all = append(all, *form)
		}
	}
	return &draft{rows: len(all), form: func(n int, cut *cutter) any {
		out := struct {
			Collections []collectionForm `json:"collections"`
			LeftOut     int              `json:"left_out,omitempty"`
			Next        string           `json:"next,omitempty"`
		}{Collections: []collectionForm{}, LeftOut: len(all) - n + more}
		for _, f := range all[:n] {
			if k := cut.entries; k > 0 {
				f.ModalitiesLeft, f.Modalities = max(0, len(f.Modalities)-k),
					f.Modalities[:min(k, len(f.Modalities))]
				f.FieldsLeft, f.Fields = max(0, len(f.Fields)-k), f.Fields[:min(k, len(f.Fields))]
			}
			out.Collections = append(out.Collections, f)
		}
		if out.LeftOut > 0 && n > 0 {
			out.Next = all[n-1].Name
		}
		return out
	}}, nil
}

func (c *call) collectionForm(ctx context.Context, name string) (*collectionForm, error) {
	t, err := c.target(ctx, &about{Collection: name})
	if err != nil {
		return nil, err
	}
	stats, err := t.Stats(ctx)
	if err != nil {
		return nil, err
	}
	takes, _ := c.worded(t)
	f := &collectionForm{Name: name, Items: stats.Items, Labels: stats.Labels, Learned: stats.Trained,
		Bits: stats.Bits, IndexOnly: stats.IndexOnly}
	for _, m := range stats.Modalities {
		f.Modalities = append(f.Modalities, modalityForm{m.Name, m.Dim, m.Sparse, m.Items,
			slices.Contains(takes, m.Name)})
	}
	for _, x := range stats.Fields {
		f.Fields = append(f.Fields, fieldForm{x.Name, string(x.Type), x.Indexed, x.Words})
	}
	return f, nil
}

type listItemsIn struct {
	Where   *string   `json:"where,omitempty" jsonschema:"only items that match, see search"`
	Args    rest.Args `json:"args,omitempty" jsonschema:"the values of the placeholders ? in where, in order"`
	Limit   *int      `json:"limit,omitempty" jsonschema:"number of items: 10 if left out, up to 100"`
	After   *string   `json:"after,omitempty" jsonschema:"go on behind the item with this key: next of the answer before"`
	Include []string  `json:"include,omitempty" jsonschema:"payload: items come with their texts"`
	about
}

// itemForm is an item of a list.
type itemForm struct {
	Key string `json:"key"`
	parts
}

func (c *call) listItems(ctx context.Context, in *listItemsIn) (*draft, error) {
	limit, err := bounded("limit", in.Limit, defaultRows, 1, mostRows)
	if err != nil {
		return nil, err
	}
	payload, err := included(in.Include, "payload")
	if err != nil {
		return nil, err
	}
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	skip := in.After != nil && *in.After != ""
	if skip {
		if _, err := t.Get(ctx, *in.After); err != nil {
			return nil, fmt.Errorf("after: %s: leave it out to begin again", reason(err))
		}
	}
	var all []*db.Item
	held, follow := 0, false // bytes of texts, and whether more items follow
	for it, err := range t.Items(ctx, value(in.Where), in.Args...) {
		if err != nil {
			return nil, err
		}
		if skip {
			skip = it.Key != *in.After
			continue
		}
		if follow = len(all) == limit || held > 4*mostBytes; follow {
			break
		}
		it.Vectors, it.Sparse = nil, nil
		if !payload {
			it.Payload = nil
		}
		all, held = append(all, it), held+textBytes(it)
	}
	if skip {
		return nil, fmt.Errorf("after: %.200q does not match where: give that of the answer before", *in.After)
	}
	return &draft{rows: len(all), form: func(n int, cut *cutter) any {
		out := struct {
			Items   []itemForm `json:"items"`
			LeftOut int        `json:"left_out,omitempty"`
			Note    string     `json:"note,omitempty"`
			Next    string     `json:"next,omitempty"`
		}{Items: []itemForm{}, LeftOut: len(all) - n}
		for _, it := range all[:n] {
			out.Items = append(out.Items, itemForm{it.Key, cut.newParts(it)})
		}
		if out.LeftOut > 0 {
			out.Note = moreText
		}
		if (follow || out.LeftOut > 0) && n > 0 {
			out.Next = all[n-1].Key
		}
		return out
	}}, nil
}

// textBytes returns about how many bytes an item has that an answer may show.
func textBytes(it *db.Item) int {
	n := len(it.Payload)
	for _, label := range it.Labels {
		n += len(label)
	}
	for _, v := range it.Fields {
		if text, is := v.(string); is {
			n += len(text)
		}
	}
	return n
}

type getIn struct {
	Key     string   `json:"key" jsonschema:"key of the item"`
	Include []string `json:"include,omitempty" jsonschema:"vectors: the item comes with the numbers of its vectors"`
	about
}

// vectorForm is a vector of an item.
type vectorForm struct {
	Modality string    `json:"modality"`
	Numbers  int       `json:"numbers"`
	Index    []uint32  `json:"index,omitempty"` // of a sparse one
	Values   []float32 `json:"values,omitempty"`
}

func (c *call) getItem(ctx context.Context, in *getIn) (*draft, error) {
	vectors, err := included(in.Include, "vectors")
	if err != nil {
		return nil, err
	}
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	it, err := t.Get(ctx, in.Key)
	if errors.Is(err, db.ErrNotFound) {
		return nil, t.noItem(in.Key)
	}
	if err != nil {
		return nil, err
	}
	d := &draft{rows: 1, picture: pictureOf(it), form: func(n int, cut *cutter) any {
		out := struct {
			itemForm
			Vectors  []vectorForm `json:"vectors,omitempty"`
			Code     rest.Hex     `json:"code,omitempty"`
			CodeFrom string       `json:"code_from,omitempty"`
			Note     string       `json:"note,omitempty"`
		}{Code: it.Code, CodeFrom: it.CodeFrom}
		if n == 0 {
			out.Key = cut.cut(it.Key)
			out.Note = "the item does not fit: give a larger max_bytes"
			return out
		}
		out.itemForm = itemForm{it.Key, cut.newParts(it)}
		if cut.entries > 0 && vectors {
			out.Note = "the vectors do not fit: give a larger max_bytes"
		}
		for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
			out.Vectors = append(out.Vectors, vectorForm{Modality: name, Numbers: len(it.Vectors[name])})
			if v := &out.Vectors[len(out.Vectors)-1]; cut.entries == 0 && vectors {
				v.Values = it.Vectors[name]
			}
		}
		for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
			x := it.Sparse[name]
			out.Vectors = append(out.Vectors, vectorForm{Modality: name, Numbers: len(x.Index)})
			if v := &out.Vectors[len(out.Vectors)-1]; cut.entries == 0 && vectors {
				v.Index, v.Values = x.Index, x.Value
			}
		}
		for _, name := range it.Modalities {
			out.Vectors = append(out.Vectors, vectorForm{Modality: name})
		}
		if cut.entries > 0 {
			out.Vectors = out.Vectors[:min(cut.entries, len(out.Vectors))]
		}
		if out.PayloadSize > 0 && pictureOf(it) == nil && out.Note == "" {
			out.Note = "the payload is not shown: it is neither text nor a picture"
		}
		return out
	}}
	return d, nil
}

type countIn struct {
	Where *string   `json:"where,omitempty" jsonschema:"only items that match, see search"`
	Args  rest.Args `json:"args,omitempty" jsonschema:"the values of the placeholders ? in where, in order"`
	about
}

func (c *call) countItems(ctx context.Context, in *countIn) (*draft, error) {
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	n, err := t.Count(ctx, value(in.Where), in.Args...)
	if err != nil {
		return nil, err
	}
	return whole(rest.Count{Count: n}), nil
}

type facetsIn struct {
	By    string    `json:"by" jsonschema:"label, or the name of a field"`
	Where *string   `json:"where,omitempty" jsonschema:"count only items that match, see search"`
	Args  rest.Args `json:"args,omitempty" jsonschema:"the values of the placeholders ? in where, in order"`
	Limit *int      `json:"limit,omitempty" jsonschema:"number of values: 20 if left out, up to 1000"`
	about
}

// facetForm is a value, and the number of items that have it.
type facetForm struct {
	Value any `json:"value"`
	Items int `json:"items"`
}

func (c *call) facets(ctx context.Context, in *facetsIn) (*draft, error) {
	limit, err := bounded("limit", in.Limit, 20, 1, 1000)
	if err != nil {
		return nil, err
	}
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	f, err := t.Facets(ctx, db.FacetQuery{By: in.By, Where: value(in.Where), Args: in.Args, Limit: limit})
	if err != nil {
		return nil, err
	}
	return &draft{rows: len(f.Counts), form: func(n int, cut *cutter) any {
		out := struct {
			Counts   []facetForm `json:"counts"`
			LeftOut  int         `json:"left_out,omitempty"` // values
			Distinct int         `json:"distinct"`
			Missing  int         `json:"items_without"`
			Items    int         `json:"items"`
		}{Counts: []facetForm{}, LeftOut: f.Distinct - n, Distinct: f.Distinct, Missing: f.Missing,
			Items: f.Items}
		for _, x := range f.Counts[:n] {
			out.Counts = append(out.Counts, facetForm{cut.value(x.Value), x.Items})
		}
		return out
	}}, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
