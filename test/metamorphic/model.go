package metamorphic

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/db"
)

// A world is the right content of the database: collections by name. Worlds share what
// they have in common. Only a collection that edit has returned may be changed.
type world struct {
	collections map[string]*collection
	marks       map[string]string // by name
	sequence    uint64            // number of the commit that made it, if writes are not synced
}

// fork returns a copy that may be changed.
func (w *world) fork() *world {
	for _, c := range w.collections {
		c.shared = true
	}
	return &world{collections: maps.Clone(w.collections), marks: maps.Clone(w.marks)}
}

// edit returns the collection with that name for changes; nil if there is none.
func (w *world) edit(name string) *collection {
	c := w.collections[name]
	if c != nil && c.shared {
		c = c.clone()
		w.collections[name] = c
	}
	return c
}

// A collection is a collection in the model.
type collection struct {
	name    string
	born    int // distinguishes collections with one name
	schema  Schema
	items   map[string]*item
	order   []string // keys by row
	nextRow uint32
	nextKey uint64
	labels  []string // in the order of first appearance; also those that no item has any more

	// unordered: several goroutines have written, and the places of labels that no item had
	// afterwards are not known.
	unordered bool

	spaces           []*space // ascending; a collection of given codes has one, without a model
	last             db.Space // the largest number of a space so far
	active, previous db.Space

	indexes []vectorIndex // in the order of their numbers; one of a modality

	// loose: several goroutines have written, so rows, and the order of codes and
	// labels, may differ from the model's. fresh: and they have not been looked up yet.
	loose, fresh bool
	shared       bool // several worlds have it
	indexOnly    bool // the database does not have the vectors of its items
}

// An item is the content under a key. It does not change once it is in a collection.
type item struct {
	row     uint32
	vectors map[string][]float32
	code    string // of a collection of given codes
	labels  []string
	fields  map[string]any
	payload string
}

func (s *Schema) has(modality string) bool {
	return slices.ContainsFunc(s.Modalities, func(m db.Modality) bool { return m.Name == modality })
}

// allFields returns the fields that items may have.
func (s *Schema) allFields() []db.Field {
	all := slices.Concat(fields, s.Fields)
	for i := range all {
		all[i].Indexed = all[i].Indexed || slices.Contains(s.Index, all[i].Name)
	}
	return all
}

func (s *Schema) hasField(name string) bool {
	return slices.ContainsFunc(s.allFields(), func(f db.Field) bool { return f.Name == name })
}

func newCollection(name string, s *Schema) *collection {
	c := &collection{name: name, schema: *s, items: map[string]*item{}}
	c.schema.Modalities, _ = settled(s.Modalities, 0, s) // the generator makes none that cannot be
	if s.Bits > 0 {
		c.spaces = []*space{{number: 1, bits: s.Bits, settled: true, codes: map[string]*coded{}, ages: map[string]int{}, carried: map[string]int{}}}
		c.active, c.last = 1, 1
	}
	return c
}

func (c *collection) clone() *collection {
	out := *c
	out.shared = false
	out.items, out.order, out.labels = maps.Clone(c.items), slices.Clone(c.order), slices.Clone(c.labels)
	out.spaces = make([]*space, len(c.spaces))
	for i, sp := range c.spaces {
		out.spaces[i] = sp.clone()
	}
	return &out
}

// used returns the labels that items have, in their order.
func (c *collection) used() []string {
	has := map[string]bool{}
	for _, it := range c.items {
		for _, l := range it.labels {
			has[l] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(c.labels), func(l string) bool { return !has[l] })
}

func (c *collection) codesOnly() bool { return c.schema.Bits > 0 }

// made converts an Item of a program into an item of the model.
func (c *collection) made(it *Item) *item {
	out := &item{payload: it.Payload}
	if it.Code != nil && c.codesOnly() {
		out.code = string(codeOf(c.schema.Bits, *it.Code))
	}
	for _, m := range c.schema.Modalities {
		if number, ok := it.Vectors[m.Name]; ok {
			if out.vectors == nil {
				out.vectors = map[string][]float32{}
			}
			out.vectors[m.Name] = vectorOf(m, number)
		}
	}
	for name, text := range it.Fields {
		if !c.schema.hasField(name) {
			continue
		}
		if out.fields == nil {
			out.fields = map[string]any{}
		}
		out.fields[name] = valueOf(name, text)
	}
	for _, l := range it.Labels {
		if !slices.Contains(out.labels, l) {
			out.labels = append(out.labels, l)
		}
	}
	return out
}

// given converts an Item of a program into one for the database.
func (c *collection) given(key string, it *Item) *db.Item {
	made := c.made(it)
	out := &db.Item{Key: key, Labels: it.Labels, Fields: made.fields}
	if it.Code != nil {
		out.Code = codeOf(max(c.schema.Bits, 8), *it.Code) // a learned collection ignores the code
	}
	if it.Unlabel {
		out.Labels = []string{}
	}
	if it.Payload != "" || it.Unload {
		out.Payload = []byte(it.Payload)
	}
	it.spoil(c, out, made)
	if it.Sparse {
		out.Sparse = map[string]db.Sparse{}
		for name, x := range made.vectors {
			out.Sparse[name] = sparseOf(x)
		}
		return out
	}
	out.Vectors = made.vectors
	return out
}

// spoil puts something into an item that the database refuses.
func (it *Item) spoil(c *collection, out *db.Item, made *item) {
	switch it.Bad {
	case "vector":
		if c.codesOnly() {
			out.Code = make([]byte, c.schema.Bits/8+1)
			return
		}
		m := c.schema.Modalities[0]
		x := vectorOf(m, 1)
		x[m.Dim-1] = float32(math.NaN())
		made.vectors = map[string][]float32{m.Name: x}
	case "field":
		out.Fields = map[string]any{"n": "not a number"}
	case "label":
		out.Labels = []string{"a", ""}
	case "modality":
		made.vectors = map[string][]float32{"nowhere": {1}}
	case "name":
		out.Fields = map[string]any{"nowhere": "a"}
	}
}

// refused reports whether a change cannot even be added to a batch.
func (c *collection) refused(op *Op) bool {
	return op.Item != nil && (op.Item.Bad != "" || c.codesOnly() && op.Item.Code == nil && op.Do != "merge" || op.Key == "" && c.isEmpty(op.Item))
}

// isEmpty reports whether an item has nothing in it.
func (c *collection) isEmpty(it *Item) bool {
	made := c.made(it)
	return made.code == "" && len(made.vectors)+len(made.labels)+len(made.fields)+len(made.payload) == 0
}

// over returns the item old after a merge with made.
func (it *Item) over(old, made *item) *item {
	out := *made
	out.vectors, out.fields = maps.Clone(old.vectors), maps.Clone(old.fields)
	if out.vectors == nil {
		out.vectors = map[string][]float32{}
	}
	if out.fields == nil {
		out.fields = map[string]any{}
	}
	maps.Copy(out.vectors, made.vectors)
	maps.Copy(out.fields, made.fields)
	if it.Code == nil {
		out.code = old.code
	}
	if it.Labels == nil && !it.Unlabel {
		out.labels = old.labels
	}
	if it.Payload == "" && !it.Unload {
		out.payload = old.payload
	}
	return &out
}

// put puts or merges an item, and returns its key.
func (c *collection) put(key string, it *Item, merge bool) string {
	made := c.made(it)
	if old := c.items[key]; old != nil && merge {
		made = it.over(old, made)
	}
	return c.place(key, made)
}

// place puts an item, and returns its key. The collection owns the item from then on.
func (c *collection) place(key string, made *item) string {
	if key == "" {
		for key == "" || c.items[key] != nil {
			key = strconv.FormatUint(c.nextKey, 10)
			c.nextKey++
		}
	}
	if old := c.items[key]; old != nil {
		made.row = old.row
	} else {
		made.row = c.nextRow
		c.nextRow++
		c.order = append(c.order, key)
	}
	c.items[key] = made
	c.register(made.labels)
	if c.codesOnly() {
		c.spaces[0].give(key, made.code)
	}
	return key
}

// register gives new labels their numbers.
func (c *collection) register(labels []string) {
	for _, l := range labels {
		if !slices.Contains(c.labels, l) {
			c.labels = append(c.labels, l)
		}
	}
}

func (c *collection) delete(key string) bool {
	if c.items[key] == nil {
		return false
	}
	delete(c.items, key)
	c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
	for _, sp := range c.spaces {
		sp.give(key, "")
		delete(sp.codes, key)
	}
	return true
}

// matching returns the keys of the items that match a filter, by row.
func (c *collection) matching(e *Expr) (keys []string, err error) {
	is, err := e.matcher()
	if err != nil {
		return nil, err
	}
	for _, key := range c.order {
		if is(c.items[key]) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// equal reports whether two items have the same content.
func (a *item) equal(b *item) bool {
	sorted := func(labels []string) []string { return slices.Sorted(slices.Values(labels)) }
	return a.code == b.code && a.payload == b.payload && maps.Equal(a.fields, b.fields) && slices.Equal(sorted(a.labels), sorted(b.labels)) &&
		maps.EqualFunc(a.vectors, b.vectors, slices.Equal[[]float32])
}
