package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rest"
)

const putText = "Store items, all of them or none. An item with a known key is replaced, or with merge keeps what is not given. " +
	"text is kept as it is; words become a vector by which search finds the item. To remember something give both."

type putIn struct {
	Items []putItem `json:"items" jsonschema:"1 to 100 items"`
	Merge bool      `json:"merge,omitempty" jsonschema:"true: items that are there keep what is not given here"`
	about
}

type putItem struct {
	Key     string                 `json:"key,omitempty" jsonschema:"key; left out: the next free number"`
	Labels  []string               `json:"labels,omitempty" jsonschema:"names of what the item is of"`
	Fields  rest.Fields            `json:"fields,omitempty" jsonschema:"values by the name of the field; list_collections has the fields"`
	Text    *string                `json:"text,omitempty" jsonschema:"text of the item, as get_item returns it"`
	Words   map[string]string      `json:"words,omitempty" jsonschema:"by modality: text of which the vector is made"`
	Vectors map[string]rest.Vector `json:"vectors,omitempty" jsonschema:"by modality: array of numbers"`
}

// item returns the item to store.
func (c *call) item(ctx context.Context, t *target, in *putItem, at string) (*db.Item, error) {
	it := &db.Item{Key: in.Key, Labels: in.Labels, Fields: in.Fields, Vectors: map[string][]float32{},
		Sparse: map[string]db.Sparse{}}
	if in.Text != nil {
		it.Payload = []byte(*in.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Vectors)) {
		argument := at + ".vectors"
		if _, err := t.modality(argument, name); err != nil {
			return nil, err
		}
		switch x := in.Vectors[name]; {
		case x.IsZero():
			return nil, fmt.Errorf("%s.%.60s: an array of numbers is expected, not null", argument, name)
		case x.Sparse != nil:
			it.Sparse[name] = *x.Sparse
		default:
			it.Vectors[name] = x.Dense
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Words)) {
		argument := at + ".words"
		if _, twice := in.Vectors[name]; twice {
			return nil, fmt.Errorf("%s: %.60q has a vector in vectors, too: give one of both", argument, name)
		}
		if _, err := t.modality(argument, name); err != nil {
			return nil, err
		}
		_, x, err := c.encode(ctx, t, fmt.Sprintf("%s.%.60s", argument, name), name, in.Words[name])
		if err != nil {
			return nil, err
		}
		if x.Sparse != nil {
			it.Sparse[name] = *x.Sparse
		} else {
			it.Vectors[name] = x.Dense
		}
	}
	return it, nil
}

func (c *call) putItems(ctx context.Context, in *putIn) (*draft, error) {
	if len(in.Items) == 0 || len(in.Items) > mostRows {
		return nil, fmt.Errorf("items: %d items: 1 to %d are possible", len(in.Items), mostRows)
	}
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	b, unfound := c.d.NewBatch(), 0
	for i := range in.Items {
		at := fmt.Sprintf("items[%d]", i)
		it, err := c.item(ctx, t, &in.Items[i], at)
		if err != nil {
			return nil, err
		}
		if it.Payload != nil && !in.Merge && len(it.Vectors)+len(it.Sparse) == 0 {
			unfound++
		}
		put := b.Put
		if in.Merge {
			put = b.Merge
		}
		if err := put(t.Collection, it); err != nil {
			return nil, fmt.Errorf("%s: %s", at, reason(err))
		}
	}
	if err := b.Commit(ctx); err != nil {
		return nil, err
	}
	keys, note := b.Keys(), ""
	if takes, _ := c.worded(t); unfound > 0 && len(takes) > 0 {
		note = fmt.Sprintf("search does not find %d of them by words: they have text and neither words nor vectors",
			unfound)
	}
	return &draft{rows: len(keys), form: func(n int, _ *cutter) any {
		out := struct {
			Stored  int      `json:"stored"`
			Keys    []string `json:"keys"`
			LeftOut int      `json:"keys_left_out,omitempty"`
			Note    string   `json:"note,omitempty"`
		}{len(keys), append([]string{}, keys[:n]...), len(keys) - n, note}
		return out
	}}, nil
}

type deleteIn struct {
	Keys []string `json:"keys" jsonschema:"keys of the items, up to 1000"`
	about
}

func (c *call) deleteItems(ctx context.Context, in *deleteIn) (*draft, error) {
	if len(in.Keys) == 0 || len(in.Keys) > mostKeys {
		return nil, fmt.Errorf("keys: %d keys: 1 to %d are possible", len(in.Keys), mostKeys)
	}
	for i, key := range in.Keys {
		if key == "" || len(key) > db.MaxKeyBytes {
			return nil, fmt.Errorf("keys[%d]: a key has 1 to %d bytes", i, db.MaxKeyBytes)
		}
	}
	t, err := c.target(ctx, &in.about)
	if err != nil {
		return nil, err
	}
	n, err := t.Delete(ctx, in.Keys...)
	if err != nil {
		return nil, err
	}
	return whole(struct {
		Deleted int `json:"deleted"`
		Missing int `json:"not_there,omitempty"`
	}{n, max(0, len(in.Keys)-n)}), nil
}
