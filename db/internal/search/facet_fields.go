package search

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// byField counts by the values of a field.
func (c *facetCounter) byField(out *Facets, name string) error {
	i := slices.IndexFunc(c.cv.Fields, func(f record.Field) bool { return f.Name == name })
	if i < 0 {
		there := "which has no fields"
		if len(c.cv.Fields) > 0 {
			there = "whose fields are " + record.Names(c.cv.Fields)
		}
		return fault.Invalid("facets by %q: label, or a field of collection %q is possible, %s", record.Shortened(name), c.cv.Name, there)
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
	return c.layers(c.fieldPrefix(field), containerOfField, func(key []byte, _ uint16, found *roaring.Bitmap) error {
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
	err := c.layers(c.fieldPrefix(field), containerOfField, func(key []byte, container uint16, found *roaring.Bitmap) error {
		if container != at {
			end()
			at = container
		}
		_, _, value := codec.FieldRowsKeyParts(key)
		if len(value) != 1 || value[0] >= codec.SliceCount || (value[0] == codec.SliceExists) == (have != nil) {
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
			return fmt.Errorf("field %q is of type %s, its value of type %s", want.Name, want.Type, record.StoredType(fields.Type))
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
