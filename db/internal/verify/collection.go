package verify

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// Nearly all that is stored of items is stored from two ends: an item names its labels, and a label
// has the set of its rows. To compare such a pair both ways, one side is read into bitmaps, then the
// other side is walked, and each record takes its row out of the bitmap. A record that finds no row
// to take out is one finding. A row that is left is another.

// A collectionVerifier looks at one collection. Its fields are what has been read of it so
// far; each is complete after the check that is named.
type collectionVerifier struct {
	*verifier
	reporter // of the collection
	*record.Descriptor
	counters *codec.Counters            // nil: cannot be read, so that spaces are unknown; readCounters
	nextRow  uint64                     // rows from this on are not given out; MaxUint32 if counters is nil
	labels   int                        // labels below this have a name; MaxUint32 if that cannot be told; readLabels
	live     *roaring.Bitmap            // rows of the live set; readRows
	presence []*roaring.Bitmap          // by modality: rows of its set; readRows
	labelled map[uint32]*roaring.Bitmap // by label: rows of its set (readRows), less those that checkItems has found in items
	items    *roaring.Bitmap            // rows whose item record has been read, also if it says nothing; checkItems
	unknown  *roaring.Bitmap            // of these, the rows whose item record cannot be decoded; checkItems
}

// collection looks at everything that is stored of a collection. The sets of rows come first,
// as all other records of rows are compared with them.
func (v *verifier) collection(d *record.Descriptor) {
	c := &collectionVerifier{
		verifier: v, reporter: reporter{to: v, collection: d.Name, countersKey: codec.CollectionKey(codec.KindCounters, d.ID)},
		Descriptor: d, nextRow: math.MaxUint32,
		live: roaring.New(), labelled: map[uint32]*roaring.Bitmap{}, items: roaring.New(), unknown: roaring.New(),
	}
	for range d.Modalities {
		c.presence = append(c.presence, roaring.New())
	}
	known := &knownCollection{name: d.Name}
	v.known[d.ID] = known
	// First what the rest is compared with: counters give the rows and spaces that there are, labels
	// the ids, row sets the rows. Spaces come last: they leave out items and features that could
	// not be read.
	c.readCounters()
	c.readLabels()
	c.readRows()
	c.checkKeys()
	c.checkItems()
	c.checkFeatures()
	c.checkIndexes()
	c.labelled = nil // frees the memory before the spaces take theirs
	if c.counters != nil {
		known.spaces = c.checkSpaces()
	}
	v.done.Items += int(c.live.GetCardinality())
}

// readCounters reads the counters, and checks which spaces they call active. Without counters
// nobody knows how many spaces there are, and none is looked at.
func (c *collectionVerifier) readCounters() {
	b, err := record.Get(c.snap, c.countersKey)
	if err == nil && b == nil {
		err = errors.New("missing")
	}
	var n codec.Counters
	if err == nil {
		n, err = codec.DecodeCounters(b)
	}
	if err != nil {
		c.badCounters("%s: the spaces of the collection are not looked at", fault.Problem(err))
		c.lose(c.countersKey)
		return
	}
	c.counters, c.nextRow = &n, n.NextRow
	spaces := map[uint64]*codec.SpaceCounters{}
	for i := range n.Spaces {
		spaces[n.Spaces[i].ID] = &n.Spaces[i]
	}
	// A space that is being built cannot be searched, so it must be neither.
	check := func(what string, id uint64) {
		switch sp := spaces[id]; {
		case id == 0:
		case sp == nil:
			c.badCounters("the %s is %d, which does not exist", what, id)
		case sp.Building:
			c.badCounters("the %s is %d, which is being built", what, id)
		}
	}
	check("active space", n.ActiveSpace)
	check("space that was active before", n.PreviousSpace)
	if c.CodesOnly() && (len(n.Spaces) != 1 || n.ActiveSpace != 1) {
		c.badCounters("%d spaces, the active one is %d: a collection of given codes has space 1 and no other", len(n.Spaces), n.ActiveSpace)
	}
}

// readLabels checks the names of labels: they are numbered without gaps, not empty, and differ.
func (c *collectionVerifier) readLabels() {
	c.begin("labels")
	ids := map[string]uint32{}
	gap := false
	complete := c.walkPrefix(codec.CollectionKey(codec.KindLabel, c.ID), c.about("labels"), func(key, value []byte) {
		id, what := codec.LastNumber(key), fmt.Sprintf("label %d", codec.LastNumber(key))
		if int64(id) != int64(c.labels) && !gap { // only the first gap is reported
			gap = true
			c.missing(fmt.Sprintf("label %d", c.labels), codec.NumberKey(codec.KindLabel, c.ID, uint32(c.labels)), "missing, and there is a label %d", id)
		}
		if other, is := ids[string(value)]; is {
			c.bad(what, key, "it is named %q, as is label %d", value, other)
		}
		if len(value) == 0 {
			c.bad(what, key, "it has no name")
		}
		ids[string(value)] = id
		c.labels = int(id) + 1
	})
	if !complete {
		c.labels = math.MaxUint32 // no label of an item is reported as unknown
	}
}

// readRows reads the sets of rows: rows that have an item, a modality, a label. It checks that
// live rows have been given out, and that rows with a modality are live.
func (c *collectionVerifier) readRows() {
	c.begin("sets of rows")
	c.walkPrefix(codec.CollectionKey(codec.KindRows, c.ID), c.about("sets of rows"), func(key, value []byte) {
		set, id, container := codec.RowsKeyParts(key)
		var into *roaring.Bitmap
		switch {
		case set == codec.SetLive && id == 0:
			into = c.live
		case set == codec.SetModality && int64(id) < int64(len(c.presence)):
			into = c.presence[id]
		case set == codec.SetLabel && int64(id) < int64(c.labels):
			if into = c.labelled[id]; into == nil {
				into = roaring.New()
				c.labelled[id] = into
			}
		default:
			c.bad(fmt.Sprintf("rows of set %d, number %d", set, id), key, "there is no such set")
			return
		}
		c.addRows(into, c.setName(set, id), key, value, container)
	})
	c.checkRows(c.setName(codec.SetLive, 0), codec.RowsKey(c.ID, codec.SetLive, 0, 0), c.live)
	for t, rows := range c.presence {
		for row := range c.strayRows(rows, c.live) {
			c.missing(c.setName(codec.SetModality, uint32(t)), codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)), "row %d is in it, and not in the live set", row)
		}
	}
	if n := c.counters; n != nil && n.Items != c.live.GetCardinality() && !c.lostAny(codec.RowsPrefix(c.ID, codec.SetLive, 0)) {
		c.badCounters("%d items, the live set has %d", n.Items, c.live.GetCardinality())
	}
}

// setName names a set in findings.
func (c *collectionVerifier) setName(set byte, id uint32) string {
	switch set {
	case codec.SetLive:
		return "live rows"
	case codec.SetModality:
		return fmt.Sprintf("rows with modality %q", c.Modalities[id].Name)
	}
	return fmt.Sprintf("rows with label %d", id)
}

// addRows adds the rows of a stored layer to a set, what. A layer that cannot be decoded is
// reported and lost.
func (c *collectionVerifier) addRows(into *roaring.Bitmap, what string, key, value []byte, container uint16) {
	l, err := codec.DecodeLayer(value)
	if err != nil {
		c.bad(what, key, "%s", fault.Problem(err))
		c.lose(key)
		return
	}
	addContainer(into, l.Added, container)
}

// addContainer adds the rows of a container, given by their low 16 bits, to a set.
func addContainer(into, low *roaring.Bitmap, container uint16) {
	for it := low.Iterator(); it.HasNext(); {
		into.Add(uint32(container)<<16 | it.Next())
	}
}

// checkRows reports the largest row of a set, if it has not been given out yet.
func (c *collectionVerifier) checkRows(what string, key []byte, rows *roaring.Bitmap) {
	if !rows.IsEmpty() && uint64(rows.Maximum()) >= c.nextRow {
		c.bad(what, key, "row %d is in it, the next row is %d", rows.Maximum(), c.nextRow)
	}
}

// strayRows yields the rows of a set that are not in another one, ascending, until the
// verification ends.
func (c *collectionVerifier) strayRows(rows, others *roaring.Bitmap) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for it := roaring.AndNot(rows, others).Iterator(); it.HasNext() && c.err == nil; {
			if !yield(it.Next()) {
				return
			}
		}
	}
}

// entries calls f with every entry of the blocks under prefix and its number, ascending. key
// is that of the block. f must not keep key or entry. A block that cannot be decoded is
// reported and lost. complete says whether all blocks under the prefix are known.
func (c *collectionVerifier) entries(prefix []byte, about report.Finding, f func(key []byte, n uint32, entry []byte)) (complete bool) {
	all := c.walkPrefix(prefix, about, func(key, value []byte) {
		block := codec.LastNumber(key)
		b, err := codec.DecodeBlock(value)
		if err == nil && block > math.MaxUint32/codec.BlockRows {
			err = fmt.Errorf("there is no block %d", block)
		}
		if err != nil {
			about.Problem = fault.Problem(err)
			c.found(about, key)
			c.lose(key)
			return
		}
		for i := 0; i < b.Len() && c.err == nil; i++ {
			f(key, block*codec.BlockRows+uint32(b.Offset(i)), b.Entry(i))
		}
	})
	return all && !c.lostAny(prefix)
}

// checkItems looks at item records, and compares three pairs, both ways: live rows and items,
// labels of items and the sets of labels, values of indexed fields and their sets. It takes
// each row out of the sets that it has to be in. A row that is left in a set has no item that
// says so.
func (c *collectionVerifier) checkItems() {
	c.begin("items")
	fields := newFieldVerifier(c)
	c.walkPrefix(codec.CollectionKey(codec.KindItem, c.ID), c.about("items"), func(key, value []byte) {
		row, what := codec.LastNumber(key), rowName("item", codec.LastNumber(key))
		if !c.live.Contains(row) {
			c.missing(what, codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)), "it is not in the live set")
		}
		if uint64(row) >= c.nextRow {
			c.bad(what, key, "the next row is %d", c.nextRow)
		}
		// Also an item that cannot be decoded: the row is not missing then.
		c.items.Add(row)
		fields.begin(row)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			err = c.CheckValues(rec.Fields)
		}
		var found record.Terms
		if err == nil {
			found, err = c.Terms(rec.Labels, rec.Fields)
		}
		if err != nil {
			c.bad(what, key, "%s", fault.Problem(err))
			c.lose(key)
			c.unknown.Add(row)
			return
		}
		for _, id := range rec.Labels {
			if int64(id) >= int64(c.labels) {
				c.bad(what, key, "it has label %d, of which there is no name", id)
			} else if rows := c.labelled[id]; rows == nil || !rows.CheckedRemove(row) {
				c.missing(what, codec.RowsKey(c.ID, codec.SetLabel, id, uint16(row>>16)), "it has label %d, in whose set it is not", id)
			}
		}
		fields.item(row, found)
	})
	fields.end()
	for row := range c.strayRows(c.live, c.items) {
		c.missing(rowName("item", row), codec.NumberKey(codec.KindItem, c.ID, row), "missing, and the row is in the live set")
	}
	for _, id := range slices.Sorted(maps.Keys(c.labelled)) {
		for row := range c.strayRows(c.labelled[id], c.unknown) {
			if !c.untold(row) {
				c.bad(c.setName(codec.SetLabel, id), codec.RowsKey(c.ID, codec.SetLabel, id, uint16(row>>16)), "row %d is in it, whose item does not have the label", row)
			}
		}
	}
}

// dead reports whether a row certainly has no item: it is not in the live set, and the part of
// the set that would have it can be read.
func (c *collectionVerifier) dead(row uint32) bool {
	return !c.live.Contains(row) && !c.lost(codec.RowsKey(c.Descriptor.ID, codec.SetLive, 0, uint16(row>>16)))
}

// lacks reports whether a row certainly lacks a modality, by the set of that modality.
func (c *collectionVerifier) lacks(row uint32, t int) bool {
	return !c.presence[t].Contains(row) && !c.lost(codec.RowsKey(c.Descriptor.ID, codec.SetModality, uint32(t), uint16(row>>16)))
}

// untold reports whether the labels and fields of an item are not known, because its record cannot be read,
// or is missing though the row is live. That has been reported, so contradictions with the item are not.
// While checkItems runs, live rows that it has yet to read are untold too.
func (c *collectionVerifier) untold(row uint32) bool {
	return c.unknown.Contains(row) || c.live.Contains(row) && !c.items.Contains(row) || c.lost(codec.NumberKey(codec.KindItem, c.Descriptor.ID, row))
}

// rowName names a record of a row in findings.
func rowName(what string, row uint32) string { return fmt.Sprintf("%s in row %d", what, row) }
