package verify

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
)

// Nearly every fact about items is stored twice: an item names its labels, and a label has the set of its
// rows. To compare such a pair both ways, a check reads one side into bitmaps. Then it walks the other side,
// and takes the row of each record out of the bitmap. A record whose row is not in the bitmap is a finding.
// So is a row that is left.

// A collectionVerifier checks one collection. Its fields have the records read so far; each is complete after
// the named check.
type collectionVerifier struct {
	*verifier
	reporter // of the collection
	*record.Descriptor
	counters *codec.Counters   // nil: unreadable, so the spaces are unknown; readCounters
	nextRow  uint64            // rows from this on are not given out; MaxUint32 if counters is nil
	labels   int               // labels below this have a name; MaxUint32 if unknown; readLabels
	live     *roaring.Bitmap   // rows of the live set; readRows
	presence []*roaring.Bitmap // by modality: rows of its set; readRows
	// by label: rows of its set (readRows), less the rows that checkItems has found in items
	labelled map[uint32]*roaring.Bitmap
	// rows whose item record has been read, even if it cannot be decoded; checkItems
	items   *roaring.Bitmap
	unknown *roaring.Bitmap // of these, the rows whose item record cannot be decoded; checkItems
}

// collection checks all records of a collection. The sets of rows come first, because all other records of
// rows are compared with them.
func (v *verifier) collection(d *record.Descriptor) {
	c := &collectionVerifier{
		verifier: v, reporter: reporter{to: v, collection: d.Name,
			countersKey: codec.CollectionKey(codec.KindCounters, d.ID)},
		Descriptor: d, nextRow: math.MaxUint32,
		live: roaring.New(), labelled: map[uint32]*roaring.Bitmap{}, items: roaring.New(),
		unknown: roaring.New(),
	}
	for range d.Modalities {
		c.presence = append(c.presence, roaring.New())
	}
	known := &knownCollection{name: d.Name}
	v.known[d.ID] = known
	// First the records that others are compared with: counters have the rows and spaces, labels the ids, row
	// sets the rows. Spaces come last: they leave out unreadable items and features.
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

// readCounters reads the counters, and checks which spaces they call active. Without counters the spaces are
// unknown, and none is checked.
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
		c.badCounters("%d spaces, the active one is %d: a collection of given codes has space 1 and no other",
			len(n.Spaces), n.ActiveSpace)
	}
}

// readLabels checks the names of labels: they are numbered without gaps, not empty, and differ.
func (c *collectionVerifier) readLabels() {
	c.begin("labels")
	ids := map[string]uint32{}
	gap := false
	complete := c.walkPrefix(codec.CollectionKey(codec.KindLabel, c.ID), c.about("labels"),
		func(key, value []byte) {
			id, what := codec.LastNumber(key), fmt.Sprintf("label %d", codec.LastNumber(key))
			if int64(id) != int64(c.labels) && !gap { // only the first gap is reported
				gap = true
				c.missing(fmt.Sprintf("label %d", c.labels),
					codec.NumberKey(codec.KindLabel, c.ID, uint32(c.labels)),
					"missing, and there is a label %d",
					id)
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
			c.missing(c.setName(codec.SetModality, uint32(t)),
				codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)),
				"row %d is in it, and not in the live set", row)
		}
	}
	if n := c.counters; n != nil && n.Items != c.live.GetCardinality() &&
		!c.lostAny(codec.RowsPrefix(c.ID, codec.SetLive, 0)) {
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

// entries calls f with every entry of the blocks under prefix and its number, ascending. key is the key of
// the block. f must not keep key or entry. A block that cannot be decoded is reported and lost. complete
// reports whether all blocks under the prefix are known.
func (c *collectionVerifier) entries(prefix []byte, about report.Finding,
	f func(key []byte, n uint32, entry []byte)) (complete bool) {
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

// checkItems checks item records, and compares three pairs, both ways: live rows and items, labels of items
// and sets of labels, values of indexed fields and their sets. It takes each row out of the sets that its
// item names. A row that is left in a set has no such item.
func (c *collectionVerifier) checkItems() {
	c.begin("items")
	fields := newFieldVerifier(c)
	c.walkPrefix(codec.CollectionKey(codec.KindItem, c.ID), c.about("items"), func(key, value []byte) {
		row, what := codec.LastNumber(key), rowName("item", codec.LastNumber(key))
		if !c.live.Contains(row) {
			c.missing(what, codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)),
				"it is not in the live set")
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
				c.missing(what, codec.RowsKey(c.ID, codec.SetLabel, id, uint16(row>>16)),
					"it has label %d, in whose set it is not", id)
			}
		}
		fields.item(row, found)
	})
	fields.end()
	for row := range c.strayRows(c.live, c.items) {
		c.missing(rowName("item", row), codec.NumberKey(codec.KindItem, c.ID, row),
			"missing, and the row is in the live set")
	}
	for _, id := range slices.Sorted(maps.Keys(c.labelled)) {
		for row := range c.strayRows(c.labelled[id], c.unknown) {
			if !c.untold(row) {
				c.bad(c.setName(codec.SetLabel, id), codec.RowsKey(c.ID, codec.SetLabel, id, uint16(row>>16)),
					"row %d is in it, whose item does not have the label", row)
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
	return !c.presence[t].Contains(row) &&
		!c.lost(codec.RowsKey(c.Descriptor.ID, codec.SetModality, uint32(t), uint16(row>>16)))
}

// untold reports whether the labels and fields of an item are unknown, because its record cannot be read, or
// is missing though the row is live. That has been reported, so contradictions with the item are not. While
// checkItems runs, live rows that it has yet to read are untold too.
func (c *collectionVerifier) untold(row uint32) bool {
	return c.unknown.Contains(row) || c.live.Contains(row) && !c.items.Contains(row) ||
		c.lost(codec.NumberKey(codec.KindItem, c.Descriptor.ID, row))
}

// rowName names a record of a row in findings.
func rowName(what string, row uint32) string { return fmt.Sprintf("%s in row %d", what, row) }

// A fieldVerifier compares the sets of rows of indexed fields with items, which checkItems
// hands on in order of rows. For one container of 65,536 rows after the other it reads the
// sets of all fields, takes each row out of the sets that its item has to be in, and reports
// the rows that are left. So it holds the sets of one container. Calls come in this order:
// begin and perhaps item for each row, then end.
type fieldVerifier struct {
	c         *collectionVerifier
	container int // of the rows that are looked at; -1: none yet

	// sets has, by field and then by value or slice as in codec.FieldRowsKey, the low 16 bits of the rows of
	// the container that no item has accounted for yet. The map of a field is nil before the first container,
	// and empty if the field is not indexed.
	sets []map[string]*roaring.Bitmap
}

// newFieldVerifier returns a verifier before its first row.
func newFieldVerifier(c *collectionVerifier) *fieldVerifier {
	return &fieldVerifier{c: c, container: -1, sets: make([]map[string]*roaring.Bitmap, len(c.Fields))}
}

// begin comes before the item of a row, even if the item cannot be decoded. At the first row of a container
// it finishes the container before, reports the sets of containers in between, because these have no items,
// and reads the sets of this one.
func (f *fieldVerifier) begin(row uint32) {
	if container := int(row >> 16); container != f.container {
		f.finish()
		f.load(f.container+1, container, false)
		f.load(container, container+1, true)
		f.container = container
	}
}

// end finishes the last container, reports sets of containers behind it, and sets of fields
// that are not indexed or do not exist.
func (f *fieldVerifier) end() {
	f.finish()
	f.load(f.container+1, math.MaxUint16+1, false)
	for i := range f.c.Fields {
		// the sets of an unfinished index mean nothing
		if field := f.c.Fields[i]; !field.Indexed && !field.Indexing {
			f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(i), 0, ""), f.afterField(i),
				f.c.about("indexed fields"), func(key, _ []byte) {
					f.c.bad(f.name(i, string(key[9:])), key, "the field is not indexed")
				})
		}
	}
	all := codec.CollectionKey(codec.KindFieldRows, f.c.ID)
	f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(len(f.sets)), 0, ""), codec.PrefixEnd(all),
		f.c.about("indexed fields"), func(key, _ []byte) {
			field, _, _ := codec.FieldRowsKeyParts(key)
			f.c.bad(fmt.Sprintf("rows of field %d", field), key, "there is no such field")
		})
}

// afterField returns the first key behind all sets of a field.
func (f *fieldVerifier) afterField(i int) []byte {
	return codec.PrefixEnd(codec.FieldPrefix(f.c.ID, uint16(i)))
}

// load reads the sets of the containers from from to to-1. If keep is set that is one
// container, with items, and its sets are kept for them. Otherwise there are no items, and
// all rows in the sets are reported.
func (f *fieldVerifier) load(from, to int, keep bool) {
	if from >= to {
		return
	}
	for i, field := range f.c.Fields {
		f.sets[i] = map[string]*roaring.Bitmap{}
		if !field.Indexed {
			continue
		}
		end := f.afterField(i)
		if to <= math.MaxUint16 {
			end = codec.FieldRowsKey(f.c.ID, uint16(i), uint16(to), "")
		}
		f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(i), uint16(from), ""), end, f.c.about("indexed fields"),
			func(key, value []byte) {
				_, container, of := codec.FieldRowsKeyParts(key)
				name := f.name(i, string(of))
				if field.Type != record.String && (len(of) != 1 || of[0] >= codec.SliceCount) {
					f.c.bad(name, key, "there is no such slice")
					return
				}
				l, err := codec.DecodeLayer(value)
				switch {
				case err != nil:
					f.c.bad(name, key, "%s", fault.Problem(err))
					f.c.lose(key)
				// No item has a row in this container, so each row in the set is one too many.
				case !keep:
					f.strays(i, string(of), l.Added, container)
				default:
					f.sets[i][string(of)] = l.Added
				}
			})
	}
}

// item takes the row of an item out of the sets of its terms, and reports the sets that lack it.
func (f *fieldVerifier) item(row uint32, t record.Terms) {
	for _, x := range t.Texts {
		if !f.take(int(x.Field), row, x.Text) {
			f.c.bad(f.name(int(x.Field), x.Text), f.key(int(x.Field), row, x.Text),
				"row %d is not in it, and its item says so", row)
		}
	}
	// A number is in slice 0, which says that there is one, and in the slice of each bit of its
	// image that is set (codec/sets.go).
	for _, x := range t.Numbers {
		var not []byte // slices in which it is not
		take := func(slice byte) {
			if !f.take(int(x.Field), row, string([]byte{slice})) {
				not = append(not, slice)
			}
		}
		take(codec.SliceExists)
		for image := x.Image; image != 0; image &= image - 1 {
			take(codec.SliceOf(bits.TrailingZeros64(image)))
		}
		if len(not) > 0 {
			f.c.bad(f.name(int(x.Field), ""), f.key(int(x.Field), row, string(not[:1])),
				"row %d is not in slices %x, and its item says so", row, not)
		}
	}
}

// take takes a row out of a set, and reports whether it was there, or may have been as the set
// could not be read.
func (f *fieldVerifier) take(field int, row uint32, value string) bool {
	rows := f.sets[field][value]
	return rows != nil && rows.CheckedRemove(row&0xffff) || f.c.lost(f.key(field, row, value))
}

// key returns the key of the set of a value, or slice, in the container of a row.
func (f *fieldVerifier) key(field int, row uint32, value string) []byte {
	return codec.FieldRowsKey(f.c.ID, uint16(field), uint16(row>>16), value)
}

// finish reports the rows that are left in the sets of the container, and forgets the sets.
func (f *fieldVerifier) finish() {
	for i, sets := range f.sets {
		if values := slices.Sorted(maps.Keys(sets)); f.c.Fields[i].Type == record.String {
			for _, value := range values {
				f.strays(i, value, sets[value], uint16(f.container))
			}
		} else {
			f.straySlices(i, values)
		}
		f.sets[i] = nil
	}
}

// strays reports rows of a set in which their items do not say they are. low has the low 16
// bits of the rows.
func (f *fieldVerifier) strays(field int, value string, low *roaring.Bitmap, container uint16) {
	for it := low.Iterator(); it.HasNext() && f.c.err == nil; {
		if row := uint32(container)<<16 | it.Next(); !f.c.untold(row) {
			f.c.bad(f.name(field, value), f.key(field, row, value),
				"row %d is in it, and its item does not say so", row)
		}
	}
}

// straySlices is strays for the slices of a field in the current container, with one finding
// for all slices of a row. values are the keys of its sets, sorted.
func (f *fieldVerifier) straySlices(field int, values []string) {
	// One finding for each row. A number is in up to 65 slices, which would be as many findings.
	rows := roaring.New()
	for _, value := range values {
		rows.Or(f.sets[field][value])
	}
	for it := rows.Iterator(); it.HasNext() && f.c.err == nil; {
		low := it.Next()
		row := uint32(f.container)<<16 | low
		if f.c.untold(row) {
			continue
		}
		var in []byte
		for _, value := range values {
			if f.sets[field][value].Contains(low) {
				in = append(in, value...)
			}
		}
		f.c.bad(f.name(field, ""), f.key(field, row, string(in[:1])),
			"row %d is in slices %x, and its item does not say so", row, in)
	}
}

// name names a set in findings; "" as a value means all slices of a field.
func (f *fieldVerifier) name(field int, value string) string {
	switch d := f.c.Fields[field]; {
	case d.Type == record.String:
		return fmt.Sprintf("rows whose field %q is %q", d.Name, value)
	case value == "":
		return fmt.Sprintf("rows by field %q", d.Name)
	default:
		return fmt.Sprintf("rows by field %q, slice %x", d.Name, value)
	}
}

// An index-only collection has no features and no results of learning from them. So these records must be
// absent, and only codes made of labels can be made again.

// checkAbsent reports the records under a prefix, which an index-only collection does not
// have, in one finding about the first of them.
func (c *collectionVerifier) checkAbsent(prefix []byte, about report.Finding) {
	n := 0
	var first []byte
	c.walkPrefix(prefix, about, func(key, _ []byte) {
		if n++; n == 1 {
			first = slices.Clone(key)
		}
	})
	if n > 0 {
		about.Problem = fmt.Sprintf("%d, and the collection is index-only", n)
		c.found(about, first)
	}
}

// checkIndexOnly reports records and counters of a space that an index-only collection does
// not have.
func (s *spaceVerifier) checkIndexOnly() {
	if !s.IndexOnly {
		return
	}
	s.checkAbsent(append(s.prefix(codec.KindOnlineRows), codec.SetPending),
		s.about("rows that the online step has not seen"))
	s.checkAbsent(s.prefix(codec.KindLessons), s.about("lessons"))
	s.checkAbsent(s.prefix(codec.KindRetraction), s.about("retractions"))
	if s.n.Building {
		s.badCounters("the space is being built, and the collection is index-only")
	}
	if s.n.Checkpoint != 0 {
		s.badCounters("the statistics are of revision %d, and the collection is index-only", s.n.Checkpoint)
	}
}

// compareLabels verifies items of an index-only collection deeply. Their codes have one revision. It compares
// codes made of labels, and counts the others as unchecked.
func (s *spaceVerifier) compareLabels(codes *codeVerifier, revision *spaces.Space, items []*verifiedItem) {
	want := codec.NewCode(s.Bits())
	for _, it := range items {
		// Without a known label the code is made of features, and these are not stored.
		labelled := revision.Learned.LabelCode(want, it.labels)
		if s.recode.Contains(it.row) { // a label of it has grown since: its code is outdated
			s.done.CodesUnchecked++
			continue
		}
		if labelled {
			s.done.CodesChecked++
		} else {
			s.done.CodesUnchecked++
		}
		switch {
		case labelled:
			codes.compareCode(it.row, want, codec.ProvenanceLabels, nil)
		case codes.rows.Get(it.row).from == codec.ProvenanceLabels:
			s.bad(fmt.Sprintf("code of row %d", it.row), codes.Block(codec.KindRowCodes, it.row),
				"of labels, and it has none that the model knows")
		}
	}
}
