package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/instant"
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
func CountFacets(ctx context.Context, cv *state.CollectionView, r pebble.Reader, by string,
	rows *roaring.Bitmap, limit int) (*Facets, error) {
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
func (c *facetCounter) layers(prefix []byte, containerOf func(key []byte) uint16,
	f func(key []byte, container uint16, found *roaring.Bitmap) error) error {
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
	err := c.layers(codec.SetPrefix(c.cv.ID, codec.SetLabel), containerOf,
		func(key []byte, container uint16, found *roaring.Bitmap) error {
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
			return fault.Corrupt(fmt.Errorf("id %d of %d", id, len(c.cv.Names)), "label of collection %q",
				c.cv.Name)
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

// A most keeps the first of the counts added, in the order of compareCounts.
type most struct {
	limit  int          // how many; 0: all
	counts []FacetCount // with the first counts so far
	last   *FacetCount  // the limit-th count at the last cut; nil: never cut
}

// compareCounts orders the most items first, then the least value.
func compareCounts(a, b FacetCount) int {
	return cmp.Or(cmp.Compare(b.Items, a.Items), compareValues(a.Value, b.Value))
}

// add adds a count. It makes the value only if the count may stay.
func (m *most) add(items int, value func() any) {
	if m.last != nil && items < m.last.Items {
		return
	}
	n := FacetCount{value(), items}
	if m.last != nil && compareCounts(n, *m.last) > 0 {
		return
	}
	m.counts = append(m.counts, n)
	if m.limit > 0 && len(m.counts)-m.limit >= m.limit {
		m.cut()
	}
}

func (m *most) cut() {
	slices.SortFunc(m.counts, compareCounts)
	if m.limit > 0 && len(m.counts) >= m.limit {
		m.counts = m.counts[:m.limit]
		last := m.counts[m.limit-1]
		m.last = &last
	}
}

// all returns the first counts, in order.
func (m *most) all() []FacetCount {
	m.cut()
	return m.counts
}

// compareValues orders two values of one type.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	return cmp.Compare(codec.BoolImage(a.(bool)), codec.BoolImage(b.(bool)))
}

// Value returns a stored value of a field in its public form: a codec.Time becomes a time.Time, in UTC.
func Value(stored any) any {
	if t, is := stored.(codec.Time); is {
		return instant.Time(int64(t))
	}
	return stored
}

// textCounts counts by texts. It copies a text only when it first sees it.
type textCounts struct {
	at     map[string]int // positions in counts
	counts []int
}

func (t *textCounts) add(text []byte, n int) {
	at, there := t.at[string(text)]
	if !there {
		at = len(t.counts)
		t.at[string(text)], t.counts = at, append(t.counts, 0)
	}
	t.counts[at] += n
}

// byField counts by the values of a field.
func (c *facetCounter) byField(out *Facets, name string) error {
	i := slices.IndexFunc(c.cv.Fields, func(f record.Field) bool { return f.Name == name })
	if i < 0 {
		there := "which has no fields"
		if len(c.cv.Fields) > 0 {
			there = "whose fields are " + record.Names(c.cv.Fields)
		}
		return fault.Invalid("facets by %q: label, or a field of collection %q is possible, %s",
			record.Shortened(name), c.cv.Name, there)
	}
	f, texts, images := c.cv.Fields[i], textCounts{at: map[string]int{}}, map[uint64]int{}
	var err error
	switch {
	case !f.Indexed, c.rows.GetCardinality() <= fewItems:
		err = c.byReading(i, &texts, images)
	case f.Type == record.String:
		err = c.byTexts(i, &texts)
	default:
		err = c.bySlices(i, images)
	}
	if err != nil {
		return err
	}
	out.Distinct, out.Missing = len(texts.at)+len(images), out.Items
	for text, at := range texts.at {
		n := texts.counts[at]
		c.most.add(n, func() any { return text })
		out.Missing -= n
	}
	for image, n := range images {
		c.most.add(n, func() any { return Value(record.OfImage(f.Type, image)) })
		out.Missing -= n
	}
	return nil
}

// fewItems items are faster to read than all sets of a field, which may have one for each item.
const fewItems = 100

// containerOfField returns the container of a key of codec.KindFieldRows.
func containerOfField(key []byte) uint16 {
	_, container, _ := codec.FieldRowsKeyParts(key)
	return container
}

// fieldPrefix returns the prefix of the sets of rows of a field.
func (c *facetCounter) fieldPrefix(field int) []byte {
	key := codec.FieldRowsKey(c.cv.ID, uint16(field), 0, "")
	return key[:len(key)-2] // without the container
}

// byTexts counts by the sets of rows of all values of a string field.
func (c *facetCounter) byTexts(field int, texts *textCounts) error {
	return c.layers(c.fieldPrefix(field), containerOfField,
		func(key []byte, _ uint16, found *roaring.Bitmap) error {
			_, _, value := codec.FieldRowsKeyParts(key)
			texts.add(value, int(found.GetCardinality()))
			return nil
		})
}

// bySlices counts by the slices of a field of numbers, bools or times. It combines the slices of a container
// to the image of each row, and counts images.
func (c *facetCounter) bySlices(field int, counts map[uint64]int) error {
	images := make([]uint64, 1<<16) // by low 16 bits of rows: bits that not all rows of the container have
	all := uint64(0)                // bits that all rows of the container have
	var have *roaring.Bitmap        // rows of the container that have a value; nil: none yet
	at := uint16(0)
	end := func() {
		if have == nil {
			return
		}
		for it := have.Iterator(); it.HasNext(); {
			row := it.Next()
			counts[all|images[row]]++
			images[row] = 0
		}
		have, all = nil, 0
	}
	err := c.layers(c.fieldPrefix(field), containerOfField,
		func(key []byte, container uint16, found *roaring.Bitmap) error {
			if container != at {
				end()
				at = container
			}
			_, _, value := codec.FieldRowsKeyParts(key)
			if len(value) != 1 || value[0] >= codec.SliceCount ||
				(value[0] == codec.SliceExists) == (have != nil) {
				return fault.Corrupt(fmt.Errorf("slice %x", value), "rows %x", key)
			}
			if have == nil {
				have = found
				return nil
			}
			if found.AndCardinality(have) != found.GetCardinality() {
				return fault.Corrupt(errors.New("rows that have no value"), "rows %x", key)
			}
			bit := uint64(1) << (64 - value[0])
			if found.GetCardinality() == have.GetCardinality() {
				all |= bit
				return nil
			}
			for it := found.Iterator(); it.HasNext(); {
				images[it.Next()] |= bit
			}
			return nil
		})
	end()
	return err
}

// byReading counts the values of a field by reading each item up to the field.
func (c *facetCounter) byReading(field int, texts *textCounts, images map[uint64]int) (err error) {
	if c.rows.IsEmpty() {
		return nil
	}
	items, err := c.r.NewIter(&pebble.IterOptions{
		LowerBound: codec.NumberKey(codec.KindItem, c.cv.ID, c.rows.Minimum()),
		UpperBound: append(codec.NumberKey(codec.KindItem, c.cv.ID, c.rows.Maximum()), 0),
	})
	if err != nil {
		return fault.ReadError(err, "items")
	}
	defer func() {
		if cerr := items.Close(); err == nil {
			err = fault.ReadError(cerr, "items")
		}
	}()
	items.First()
	for it := c.rows.Iterator(); it.HasNext(); {
		if c.looked++; c.looked%1024 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		row := it.Next()
		if err := seekItem(items, c.cv.ID, row); err != nil {
			return err
		}
		value, err := items.ValueAndErr()
		if err != nil {
			return fault.ReadError(err, "item in row %d", row)
		}
		if err := c.countOne(value, field, texts, images); err != nil {
			return fault.Corrupt(err, "item in row %d", row)
		}
	}
	return nil
}

// countOne counts the value of a field in the record of an item, if it has one.
func (c *facetCounter) countOne(item []byte, field int, texts *textCounts, images map[uint64]int) error {
	fields := codec.FieldsOf(item)
	for fields.Next() {
		if fields.ID < uint32(field) {
			continue
		}
		if fields.ID > uint32(field) {
			break
		}
		want := &c.cv.Fields[field]
		if record.StoredType(fields.Type) != want.Type {
			return fmt.Errorf("field %q is of type %s, its value of type %s", want.Name, want.Type,
				record.StoredType(fields.Type))
		}
		switch want.Type {
		case record.String:
			texts.add(fields.Text, 1)
		case record.Int, record.Time:
			images[codec.IntImage(int64(fields.Bits))]++
		case record.Float:
			images[codec.FloatImage(math.Float64frombits(fields.Bits))]++
		default:
			images[codec.BoolImage(fields.Bits == 1)]++
		}
		break
	}
	return fields.Err()
}
