package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
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
	schema  program.Schema
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

func newCollection(name string, s *program.Schema) *collection {
	c := &collection{name: name, schema: *s, items: map[string]*item{}}
	c.schema.Modalities, _ = settled(s.Modalities, 0, s) // the generator makes none that cannot be
	if s.Bits > 0 {
		c.spaces = []*space{{number: 1, bits: s.Bits, settled: true, codes: map[string]*coded{},
			ages: map[string]int{}, carried: map[string]int{}}}
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
func (c *collection) made(it *program.Item) *item {
	out := &item{payload: it.Payload}
	if it.Code != nil && c.codesOnly() {
		out.code = string(program.CodeOf(c.schema.Bits, *it.Code))
	}
	for _, m := range c.schema.Modalities {
		if number, ok := it.Vectors[m.Name]; ok {
			if out.vectors == nil {
				out.vectors = map[string][]float32{}
			}
			out.vectors[m.Name] = program.VectorOf(m, number)
		}
	}
	for name, text := range it.Fields {
		if !c.schema.HasField(name) {
			continue
		}
		if out.fields == nil {
			out.fields = map[string]any{}
		}
		out.fields[name] = program.ValueOf(name, text)
	}
	for _, l := range it.Labels {
		if !slices.Contains(out.labels, l) {
			out.labels = append(out.labels, l)
		}
	}
	return out
}

// given converts an Item of a program into one for the database.
func (c *collection) given(key string, it *program.Item) *db.Item {
	made := c.made(it)
	out := &db.Item{Key: key, Labels: it.Labels, Fields: made.fields}
	if it.Code != nil {
		out.Code = program.CodeOf(max(c.schema.Bits, 8), *it.Code) // a learned collection ignores the code
	}
	if it.Unlabel {
		out.Labels = []string{}
	}
	if it.Payload != "" || it.Unload {
		out.Payload = []byte(it.Payload)
	}
	spoil(it, c, out, made)
	if it.Sparse {
		out.Sparse = map[string]db.Sparse{}
		for name, x := range made.vectors {
			out.Sparse[name] = program.SparseOf(x)
		}
		return out
	}
	out.Vectors = made.vectors
	return out
}

// spoil puts something into an item that the database refuses.
func spoil(it *program.Item, c *collection, out *db.Item, made *item) {
	switch it.Bad {
	case "vector":
		if c.codesOnly() {
			out.Code = make([]byte, c.schema.Bits/8+1)
			return
		}
		m := c.schema.Modalities[0]
		x := program.VectorOf(m, 1)
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
func (c *collection) refused(op *program.Op) bool {
	return op.Item != nil && (op.Item.Bad != "" || c.codesOnly() && op.Item.Code == nil && op.Do != "merge" ||
		op.Key == "" && c.isEmpty(op.Item))
}

// isEmpty reports whether an item has nothing in it.
func (c *collection) isEmpty(it *program.Item) bool {
	made := c.made(it)
	return made.code == "" && len(made.vectors)+len(made.labels)+len(made.fields)+len(made.payload) == 0
}

// over returns the item old after a merge with made.
func over(it *program.Item, old, made *item) *item {
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
func (c *collection) put(key string, it *program.Item, merge bool) string {
	made := c.made(it)
	if old := c.items[key]; old != nil && merge {
		made = over(it, old, made)
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
func (c *collection) matching(e *program.Expr) (keys []string, err error) {
	is, err := matcher(e)
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
	return a.code == b.code && a.payload == b.payload && maps.Equal(a.fields, b.fields) &&
		slices.Equal(sorted(a.labels), sorted(b.labels)) &&
		maps.EqualFunc(a.vectors, b.vectors, slices.Equal[[]float32])
}

// settle notes the codes of items that were just written: the codes of their labels, or
// what the present projections make of their vectors.
func (h *history) settle(w *world, name string, keys []string) error {
	c := w.edit(name)
	if c == nil || c.codesOnly() {
		return nil
	}
	handle, err := h.d.Collection(name)
	if err != nil {
		return err
	}
	for _, sp := range c.spaces {
		if err := h.settleIn(c, sp, handle, keys); err != nil {
			return err
		}
	}
	return nil
}

// settleIn is settle for one space.
func (h *history) settleIn(c *collection, sp *space, handle *db.Collection, keys []string) error {
	in, err := handle.InSpace(sp.number, 0)
	if err != nil {
		return err
	}
	for _, key := range keys {
		it := c.items[key]
		if it == nil {
			delete(sp.codes, key)
			continue
		}
		if sp.codes[key], err = h.codedOf(sp, in, it); err != nil {
			return fmt.Errorf("item %q in space %d: %w", key, sp.number, err)
		}
	}
	return nil
}

// codedOf returns the code that an item gets if it is written now.
func (h *history) codedOf(sp *space, in *db.Collection, it *item) (*coded, error) {
	if !sp.settled {
		return &coded{}, nil
	}
	if set := sp.labelSet(it); set != "" {
		code, seen := sp.labelCodes[set]
		return &coded{code: code, has: true, labelled: true, settled: seen}, nil
	}
	if h.learns() || sp.moving {
		return &coded{}, nil // a background update may have changed the projections
	}
	vectors := map[string][]float32{}
	for _, m := range sp.modalities {
		if x := it.vectors[m]; x != nil {
			vectors[m] = x
		}
	}
	if len(vectors) == 0 {
		return &coded{settled: true}, nil
	}
	code, _, err := in.Encode(&db.Item{Vectors: vectors})
	switch {
	case errors.Is(err, db.ErrInvalid): // the vector is far from all anchors
		return &coded{settled: true}, nil
	case err != nil:
		return nil, err
	}
	return &coded{code: string(code), has: true, settled: true}, nil
}

// same compares an item with the item got that the database returns, as the space sp
// shows it. got is nil if the database has none. It notes codes that only the database
// can know.
func (c *collection) same(sp *space, key string, got *db.Item) error {
	it := c.items[key]
	if got.Key != key {
		return fmt.Errorf("item %q is called %q", key, got.Key)
	}
	if err := c.sameContent(it, got); err != nil {
		return fmt.Errorf("item %q: %w", key, err)
	}
	if sp == nil {
		if got.Code != nil {
			return fmt.Errorf("item %q has code %x, and there is no space", key, got.Code)
		}
		return nil
	}
	if err := c.sameCode(sp, key, got); err != nil {
		return fmt.Errorf("item %q in space %d: %w", key, sp.number, err)
	}
	return nil
}

func (c *collection) sameContent(it *item, got *db.Item) error {
	if string(got.Payload) != it.payload {
		return fmt.Errorf("payload %q, want %q", got.Payload, it.payload)
	}
	if !maps.Equal(got.Fields, it.fields) {
		return fmt.Errorf("fields %v, want %v", got.Fields, it.fields)
	}
	if a, b := slices.Sorted(slices.Values(got.Labels)),
		slices.Sorted(slices.Values(it.labels)); !slices.Equal(a, b) {
		return fmt.Errorf("labels %q, want %q", a, b)
	}
	if c.indexOnly {
		if has := slices.Sorted(maps.Keys(it.vectors)); len(got.Vectors)+len(got.Sparse) != 0 ||
			!slices.Equal(slices.Sorted(slices.Values(got.Modalities)), has) {
			return fmt.Errorf("vectors %v, %v, and modalities %q of an index-only collection, want %q",
				got.Vectors, got.Sparse, got.Modalities, has)
		}
		return nil
	}
	if len(got.Vectors)+len(got.Sparse) != len(it.vectors) {
		return fmt.Errorf("%d and %d vectors, want %d", len(got.Vectors), len(got.Sparse), len(it.vectors))
	}
	for name, x := range it.vectors {
		y := got.Vectors[name]
		if m := c.modality(name); m.Sparse {
			s, ok := got.Sparse[name]
			if !ok {
				return fmt.Errorf("no sparse vector %q", name)
			}
			y = make([]float32, m.Dim)
			for e, j := range s.Index {
				y[j] = s.Value[e]
			}
		}
		if !slices.Equal(x, y) {
			return fmt.Errorf("vector %q is %v, want %v", name, y, x)
		}
	}
	return nil
}

// sameCode compares the code of an item.
func (c *collection) sameCode(sp *space, key string, got *db.Item) error {
	it, want := c.items[key], sp.codes[key]
	if want == nil {
		want = &coded{}
	}
	code, from := string(got.Code), got.CodeFrom
	if code != "" {
		_, isModality := it.vectors[from]
		ok := from == "given" && c.codesOnly() || from == "labels" && len(it.labels) > 0 || from == "fused" ||
			isModality
		if !ok || sp.settled && !c.codesOnly() && (from == "labels") != (sp.labelSet(it) != "") {
			return fmt.Errorf("the code comes from %q", from)
		}
	}
	if want.settled {
		if code != want.code {
			return fmt.Errorf("code %x, want %x", code, want.code)
		}
		return nil
	}
	if want.labelled { // the first item with these labels
		if code == "" {
			return errors.New("no code, and it has known labels")
		}
		set := sp.labelSet(it)
		if known, seen := sp.labelCodes[set]; seen && known != code {
			return fmt.Errorf("code %x, others with the labels %q have %x", code, set, known)
		}
		sp.labelCodes[set] = code
	}
	sp.codes[key] = &coded{code: code, has: code != "", labelled: want.labelled, settled: true}
	return nil
}

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
func (c *collection) find(q *program.Query, encode func(from string, x []float32) (code []byte,
	z []float64, err error)) (*answer, error) {
	number := c.numberOf(q.Space)
	sp := c.space(number)
	switch {
	case !q.Where.Valid(&c.schema), q.To != "" && !c.schema.Has(q.To):
		return nil, db.ErrInvalid
	case sp == nil:
		return nil, db.ErrNoModel
	}
	a := &answer{sp: sp, to: q.To}
	a.Self = q.Key
	if err := c.start(a, q, encode); err != nil {
		return nil, err
	}
	is, err := matcher(q.Where)
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
				Key: key, Row: row, Code: code, Distance: oracle.Distance(code, a.code),
				Score: oracle.Score(a.Projection, code), Age: sp.ages[code]})
		}
	}
	a.Exact = a.Projection == nil && sp.ages != nil && !c.loose
	a.Sort()
	return a, nil
}

// start sets what the query starts from: a code, a projection, a vector or an item.
func (c *collection) start(a *answer, q *program.Query,
	encode func(from string, x []float32) ([]byte, []float64, error)) error {
	x := []float32(nil)
	switch {
	case q.Code != nil:
		a.code = string(program.CodeOf(a.sp.bits, *q.Code))
		return nil
	case q.Key != "" && c.items[q.Key] == nil:
		return db.ErrNotFound
	case (q.From != "" || q.Vector != nil) && !c.schema.Has(q.From):
		return db.ErrInvalid
	case q.Vector != nil:
		x = program.VectorOf(c.modality(q.From), *q.Vector)
	case !c.indexOnly:
		x = c.items[q.Key].vectors[q.From]
	}
	if x == nil {
		code, ok := a.sp.code(q.Key)
		if a.code = code; !ok {
			return db.ErrInvalid
		}
		if q.From != "" || c.indexOnly || len(c.schema.Modalities) != 1 {
			return nil
		}
		only := c.schema.Modalities[0].Name // whose vector orders the items of a code
		if x = c.items[q.Key].vectors[only]; x != nil && slices.Contains(a.sp.modalities, only) {
			var err error
			if _, a.Projection, err = encode(only, x); err != nil && !errors.Is(err, db.ErrInvalid) {
				return err // a vector too far away has no projection
			}
		}
		return nil
	}
	if !slices.Contains(a.sp.modalities, q.From) {
		return db.ErrNoModel
	}
	code, z, err := encode(q.From, x)
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

// matcher returns a function that tells whether the filter is true for an item.
func matcher(e *program.Expr) (func(*item) bool, error) {
	is, err := oracle.Where(e.String(), nil, program.Everything)
	return func(it *item) bool {
		return is(&db.Item{Vectors: it.vectors, Labels: it.labels, Fields: it.fields})
	}, err
}
