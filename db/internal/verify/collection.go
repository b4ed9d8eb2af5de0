package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// A collectionVerifier checks one collection. Its fields have the records read so far; each is complete after
// the named check.
type collectionVerifier struct {
	*verifier
	*record.Descriptor
	counters *codec.Counters   // nil: unreadable, so the spaces are unknown; readCounters
	nextRow  uint64            // rows from this on are not given out; MaxUint32 if counters is nil
	labels   int               // labels below this have a name; MaxUint32 if unknown; readLabels
	live     *roaring.Bitmap   // rows of the live set; checkRows
	presence []*roaring.Bitmap // by modality: rows of its set; checkRows
}

// collection checks all records of a collection. The sets of rows come first, because all other records of
// rows are compared with them.
func (v *verifier) collection(d *record.Descriptor) {
	c := &collectionVerifier{verifier: v, Descriptor: d, nextRow: math.MaxUint32, live: roaring.New()}
	for range d.Modalities {
		c.presence = append(c.presence, roaring.New())
	}
	// First the records that others are compared with: counters have the rows and spaces, labels the ids, row
	// sets the rows. Spaces come last: they leave out unreadable items and features.
	c.readCounters()
	c.readLabels()
	c.checkRows()
	c.checkFeatures()
	c.checkIndexes()
	if c.counters != nil {
		v.known[d.ID].spaces = map[uint32]bool{}
		for _, n := range c.counters.Spaces {
			v.known[d.ID].spaces[uint32(n.ID)] = true
			c.checkSpace(n)
		}
	}
	if c.IndexOnly {
		c.begin("records for learning")
		for _, kind := range record.Kinds(record.OfCollection) {
			if record.KindOf(kind).ForLearning {
				c.absent(codec.CollectionKey(kind, c.ID))
			}
		}
	}
	v.done.Items += int(c.live.GetCardinality())
}

// begin sets the stage of progress: the records that are looked at from now on.
func (c *collectionVerifier) begin(what string) { c.at("collection %s: %s", c.Name, what) }

// absent reports the records under a prefix, which an index-only collection does not have, in one finding.
func (c *collectionVerifier) absent(prefix []byte) {
	var first []byte
	n := 0
	c.walk(prefix, func(key, _ []byte) {
		if n++; n == 1 {
			first = slices.Clone(key)
		}
	})
	if n > 0 {
		c.bad(first, 0, "%d records, and the collection is index-only", n)
	}
}

// key returns the key of a kind that the collection has once, or the prefix of one that it has often.
func (c *collectionVerifier) key(kind byte) []byte { return codec.CollectionKey(kind, c.ID) }

// The keys of records of a row.
func (c *collectionVerifier) liveAt(row uint32) []byte {
	return codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16))
}

func (c *collectionVerifier) itemAt(row uint32) []byte {
	return codec.NumberKey(codec.KindItem, c.ID, row)
}

func (c *collectionVerifier) keyAt(row uint32) []byte {
	return codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
}

func (c *collectionVerifier) featuresAt(t int) func(row uint32) []byte {
	return func(row uint32) []byte { return codec.FeatureKey(c.ID, row, uint16(t)) }
}

func (c *collectionVerifier) presenceAt(t int) func(row uint32) []byte {
	return func(row uint32) []byte {
		return codec.RowsKey(c.ID, codec.SetModality, uint32(t), uint16(row>>16))
	}
}

// badCounters reports that the counters are wrong.
func (c *collectionVerifier) badCounters(format string, args ...any) {
	c.bad(c.key(codec.KindCounters), 0, format, args...)
}

// readCounters reads the counters, and checks which spaces they call active. Without counters the spaces are
// unknown, and none is checked.
func (c *collectionVerifier) readCounters() {
	b, err := record.Get(c.snap, c.key(codec.KindCounters))
	if err == nil && b == nil {
		err = errors.New("missing")
	}
	var n codec.Counters
	if err == nil {
		n, err = codec.DecodeCounters(b)
	}
	if err != nil {
		c.undecoded(c.key(codec.KindCounters), 0,
			fmt.Errorf("%w: the spaces of the collection are not looked at", err))
		return
	}
	c.counters, c.nextRow = &n, n.NextRow
	// A space that is being built cannot be searched, so it must be neither.
	check := func(what string, id uint64) {
		i := slices.IndexFunc(n.Spaces, func(s codec.SpaceCounters) bool { return s.ID == id })
		switch {
		case id == 0:
		case i < 0:
			c.badCounters("the %s is %d, which does not exist", what, id)
		case n.Spaces[i].Building:
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
	complete := c.walk(c.key(codec.KindLabel), func(key, value []byte) {
		id := codec.LastNumber(key)
		if missing := codec.NumberKey(codec.KindLabel, c.ID, uint32(c.labels)); int64(id) != int64(
			c.labels) &&
			!gap && !c.lost(missing) { // only the first gap is reported
			gap = true
			c.bad(missing, 0, "missing, and there is a label %d", id)
		}
		if other, is := ids[string(value)]; is {
			c.bad(key, 0, "it is named %q, as is label %d", value, other)
		}
		if len(value) == 0 {
			c.bad(key, 0, "it has no name")
		}
		ids[string(value)] = id
		c.labels = int(id) + 1
	})
	if !complete {
		c.labels = math.MaxUint32 // no label of an item is reported as unknown
	}
}

// checkRows reads which rows there are: sets of rows, keys and items. It compares keys of rows with rows of
// keys, and the labels, and the values and words of indexed fields, of items with the sets of their rows.
func (c *collectionVerifier) checkRows() {
	seed := maphash.MakeSeed()
	keyed, items := roaring.New(), roaring.New()
	c.compare(func(f *comparison) {
		c.begin("sets of rows")
		c.walk(c.key(codec.KindRows), func(key, value []byte) { c.readSet(f, key, value) })
		c.begin("keys")
		c.entries(c.key(codec.KindRowKeys), func(key []byte, row uint32, entry []byte) {
			keyed.Add(row)
			f.tell(byPrimary, fact{codec.KindKey, row, maphash.Bytes(seed, entry)}, func() (_, _ place) {
				return place{key, row}, place{codec.ItemKey(c.ID, string(entry)), 0}
			})
			if len(entry) == 0 {
				c.bad(key, row, "it is empty")
			}
		})
		c.walk(c.key(codec.KindKey), func(key, value []byte) {
			if len(value) != 4 {
				c.undecoded(key, 0, fmt.Errorf("%d bytes, not 4", len(value)))
				return
			}
			row := binary.BigEndian.Uint32(value)
			f.tell(byDerived, fact{codec.KindKey, row, maphash.Bytes(seed, key[5:])}, func() (_, _ place) {
				return place{c.keyAt(row), row}, place{key, 0}
			})
		})
		c.begin("items")
		c.walk(c.key(codec.KindItem), func(key, value []byte) {
			items.Add(codec.LastNumber(key)) // also one that cannot be decoded: the row is not missing then
			c.readItem(f, seed, key, value)
		})
		c.readFieldRows(f, seed)
		c.readFieldWords(f, seed)
		c.sameRows(items, c.live, c.itemAt, c.liveAt)
		c.sameRows(keyed, c.live, c.keyAt, c.liveAt)
	})
	for t, rows := range c.presence {
		c.lacking(rows, c.live, c.presenceAt(t), c.liveAt)
	}
	for _, x := range []struct {
		rows *roaring.Bitmap
		at   func(row uint32) []byte
	}{{c.live, c.liveAt}, {items, c.itemAt}, {keyed, c.keyAt}} {
		if !x.rows.IsEmpty() && uint64(x.rows.Maximum()) >= c.nextRow {
			c.bad(x.at(x.rows.Maximum()), x.rows.Maximum(), "row %d is in it, the next row is %d",
				x.rows.Maximum(), c.nextRow)
		}
	}
	if n := c.counters; n != nil && n.Items != c.live.GetCardinality() &&
		!c.lostAny(codec.RowsPrefix(c.ID, codec.SetLive, 0)) {
		c.badCounters("%d items, the live set has %d", n.Items, c.live.GetCardinality())
	}
}

// readSet reads a container of a set of rows.
func (c *collectionVerifier) readSet(f *comparison, key, value []byte) {
	set, id, container := codec.RowsKeyParts(key)
	known := set == codec.SetLive && id == 0 || set == codec.SetModality && int64(id) < int64(
		len(c.presence)) ||
		set == codec.SetLabel && int64(id) < int64(c.labels)
	if !known {
		c.bad(key, 0, "there is no such set")
		return
	}
	rows := c.layer(key, value, container)
	switch {
	case rows == nil:
	case set == codec.SetLive:
		c.live.Or(rows)
	case set == codec.SetModality:
		c.presence[id].Or(rows)
	default:
		for it := rows.Iterator(); it.HasNext(); {
			c.tellLabel(f, byDerived, it.Next(), id)
		}
	}
}

// tellLabel tells that a row has a label.
func (c *collectionVerifier) tellLabel(f *comparison, side int, row, id uint32) {
	f.tell(side, fact{codec.KindRows, row, uint64(id)}, func() (_, _ place) {
		return place{c.itemAt(row), 0}, place{codec.RowsKey(c.ID, codec.SetLabel, id, uint16(row>>16)), 0}
	})
}

// readItem checks an item, and tells its labels and the values of its indexed fields.
func (c *collectionVerifier) readItem(f *comparison, seed maphash.Seed, key, value []byte) {
	row := codec.LastNumber(key)
	rec, err := codec.DecodeItemRecord(value)
	if err == nil {
		err = c.CheckValues(rec.Fields)
	}
	var terms record.Terms
	if err == nil {
		terms, err = c.Terms(rec.Labels, rec.Fields)
	}
	if err != nil {
		c.undecoded(key, 0, err)
		return
	}
	for _, id := range rec.Labels {
		if int64(id) >= int64(c.labels) {
			c.bad(key, 0, "it has label %d, of which there is no name", id)
		} else {
			c.tellLabel(f, byPrimary, row, id)
		}
	}
	for _, x := range terms.Texts {
		c.tellField(f, byPrimary, row, x.Field, x.Text, maphash.String(seed, x.Text))
	}
	for _, x := range terms.Words {
		c.tellWord(f, byPrimary, row, x.Field, x.Text, maphash.String(seed, x.Text))
	}
	// A number is in slice 0, which says that there is one, and in the slice of each bit of its
	// image that is set (codec/sets.go).
	for _, x := range terms.Numbers {
		c.tellField(f, byPrimary, row, x.Field, sliceNames[codec.SliceExists], codec.SliceExists)
		for image := x.Image; image != 0; image &= image - 1 {
			slice := codec.SliceOf(bits.TrailingZeros64(image))
			c.tellField(f, byPrimary, row, x.Field, sliceNames[slice], uint64(slice))
		}
	}
}

// sliceNames has the slices of numbers as they end the keys of their rows.
var sliceNames = func() (names [codec.SliceCount]string) {
	for i := range names {
		names[i] = string([]byte{byte(i)})
	}
	return names
}()

// tellField tells that a row has a value in an indexed field, or is in a slice of it; x is its hash or
// number.
func (c *collectionVerifier) tellField(f *comparison, side int, row uint32, field uint16, value string,
	x uint64) {
	f.tell(side, fact{codec.KindFieldRows, row, mixed(uint64(field)) ^ x}, func() (_, _ place) {
		return place{c.itemAt(row), 0}, place{codec.FieldRowsKey(c.ID, field, uint16(row>>16), value), 0}
	})
}

// tellWord tells that the text of a row in a field has a term, of which x is the hash.
func (c *collectionVerifier) tellWord(f *comparison, side int, row uint32, field uint16, term string,
	x uint64) {
	f.tell(side, fact{codec.KindFieldWords, row, mixed(uint64(field)) ^ x}, func() (_, _ place) {
		return place{c.itemAt(row), 0}, place{codec.FieldWordsKey(c.ID, field, uint16(row>>16), term), 0}
	})
}

// readFieldWords tells the rows of terms of fields with an index of words, as readFieldRows.
func (c *collectionVerifier) readFieldWords(f *comparison, seed maphash.Seed) {
	strange := map[uint16]bool{}
	c.walk(c.key(codec.KindFieldWords), func(key, value []byte) {
		field, container, of := codec.FieldRowsKeyParts(key)
		switch {
		case int(field) < len(c.Fields) && c.Fields[field].IndexingWords:
			return
		case int(field) >= len(c.Fields) || !c.Fields[field].Words:
			if !strange[field] {
				strange[field] = true
				c.bad(key, 0, "the field has no index of words")
			}
			return
		}
		rows := c.layer(key, value, container)
		if rows == nil {
			return
		}
		term, x := string(of), maphash.Bytes(seed, of)
		for it := rows.Iterator(); it.HasNext(); {
			c.tellWord(f, byDerived, it.Next(), field, term, x)
		}
	})
}

// readFieldRows tells the rows of values of indexed fields. The rows of an unfinished index mean nothing.
func (c *collectionVerifier) readFieldRows(f *comparison, seed maphash.Seed) {
	strange := map[uint16]bool{}
	c.walk(c.key(codec.KindFieldRows), func(key, value []byte) {
		field, container, of := codec.FieldRowsKeyParts(key)
		switch {
		case int(field) < len(c.Fields) && c.Fields[field].Indexing:
			return
		case int(field) >= len(c.Fields) || !c.Fields[field].Indexed:
			if !strange[field] {
				strange[field] = true
				c.bad(key, 0, "the field is not indexed")
			}
			return
		}
		text := c.Fields[field].Type == record.String
		if !text && (len(of) != 1 || of[0] >= codec.SliceCount) {
			c.bad(key, 0, "there is no such slice")
			return
		}
		rows := c.layer(key, value, container)
		if rows == nil {
			return
		}
		name := string(of)
		x := maphash.Bytes(seed, of)
		if !text {
			x = uint64(of[0])
		}
		for it := rows.Iterator(); it.HasNext(); {
			c.tellField(f, byDerived, it.Next(), field, name, x)
		}
	})
}

// dead reports whether a row certainly has no item: it is not in the live set, and the part of
// the set that would have it can be read.
func (c *collectionVerifier) dead(row uint32) bool {
	return !c.live.Contains(row) && !c.lost(c.liveAt(row))
}

// Features are the bulk of most databases, so they are read once, and decoded into the same memory. Only a
// deep verification can tell by the code whether they belong to this item.

// checkFeatures decodes all feature records, and compares the rows that have one with the set
// of each modality.
func (c *collectionVerifier) checkFeatures() {
	if c.IndexOnly {
		return
	}
	c.begin("features")
	buffers := make([]model.Vector, len(c.Modalities))
	have := make([]*roaring.Bitmap, len(c.Modalities))
	for t := range have {
		have[t] = roaring.New()
	}
	c.walk(c.key(codec.KindFeatures), func(key, value []byte) {
		row, t := codec.FeatureKeyParts(key)
		if int(t) >= len(c.Modalities) {
			c.bad(key, 0, "there is no modality %d", t)
			return
		}
		have[t].Add(row)
		if err := c.Modalities[t].DecodeVector(&buffers[t], value); err != nil {
			c.undecoded(key, 0, err)
		}
	})
	for t, rows := range have {
		c.sameRows(rows, c.presence[t], c.featuresAt(t), c.presenceAt(t))
	}
}

// An index of vectors has an entry for each row that has the modality, is below the end of the index, and is
// not stale. An entry follows from the vector, the seed and the centre of its cell. The check believes the
// entry's cell, because the nearest of several equally near centres is not certain.

// checkIndexes checks the indexes of vectors, with Deep also their entries against the vectors.
func (c *collectionVerifier) checkIndexes() {
	if c.IndexOnly {
		return
	}
	c.begin("indexes of vectors")
	known := map[uint32]bool{}
	complete := c.walk(c.key(codec.KindIndex), func(key, value []byte) {
		id := codec.LastNumber(key)
		known[id] = true
		x, err := record.DecodeIndex(value, c.Descriptor, id)
		if err != nil {
			c.undecoded(key, 0, fmt.Errorf("%w: its entries are not looked at", err))
			return
		}
		c.checkIndex(x, slices.Clone(key))
	})
	for _, kind := range []byte{codec.KindCentre, codec.KindEntries, codec.KindStale} {
		c.walk(c.key(kind), func(key, _ []byte) {
			if id := codec.LastNumber(key[:9]); complete && !known[id] {
				known[id] = true // once
				c.bad(codec.NumberKey(codec.KindIndex, c.ID, id), 0, "there is no such index")
			}
		})
	}
}

// checkIndex looks at one index; key is that of its descriptor.
func (c *collectionVerifier) checkIndex(x *record.VectorIndex, key []byte) {
	if x.Covered > c.nextRow {
		c.bad(key, 0, "it covers %d rows, the next row is %d", x.Covered, c.nextRow)
	}
	centres, err := x.ReadCentres(c.snap, c.ID)
	if err != nil {
		c.undecoded(key, 0, fmt.Errorf("%w: its entries are not looked at", err))
		return
	}
	prefix := codec.NumberKey(codec.KindStale, c.ID, x.ID)
	stale := roaring.New()
	staleKnown := c.walk(prefix, func(key, value []byte) {
		container := codec.LastNumber(key)
		if container > math.MaxUint16 {
			c.bad(key, 0, "there is no container %d", container)
		} else if rows := c.layer(key, value, uint16(container)); rows != nil {
			stale.Or(rows)
		}
	})
	if !stale.IsEmpty() && uint64(stale.Maximum()) >= x.Covered {
		row := stale.Maximum()
		c.bad(codec.ChunkKey(codec.KindStale, c.ID, x.ID, row>>16), 0, "row %d is in it, the index covers %d",
			row, x.Covered)
	}
	want := roaring.And(c.live, c.presence[x.Modality])
	want.RemoveRange(x.Covered, 1<<32)
	want.AndNot(stale)
	have := roaring.New()
	var vector model.Vector
	var made cells.Entry
	y := make([]float32, centres.Size())
	c.entries(codec.NumberKey(codec.KindEntries, c.ID, x.ID), func(key []byte, row uint32, b []byte) {
		e, err := cells.DecodeEntry(b, x.Dim)
		switch {
		case err != nil:
			c.undecoded(key, row, err)
			return
		case centres.Of(e.Cell) == nil:
			c.bad(key, row, "in cell %d, which has no centre", e.Cell)
			have.Add(row)
			return
		case uint64(row) >= x.Covered:
			c.bad(key, row, "the index covers %d rows", x.Covered)
			return
		}
		if !stale.Contains(row) {
			have.Add(row)
		}
		if !c.opt.Deep || !want.Contains(row) {
			return
		}
		stored, err := record.Get(c.snap, codec.FeatureKey(c.ID, row, uint16(x.Modality)))
		if err != nil || stored == nil || c.Modalities[x.Modality].DecodeVector(&vector, stored) != nil {
			return // checkFeatures reports it
		}
		centres.Place(y, vector.Value)
		centres.Encode(&made, y, e.Cell)
		if !made.Equal(&e) {
			c.bad(key, row, "it is not that of the vector")
		}
	})
	if !staleKnown {
		return
	}
	at := func(row uint32) []byte {
		return codec.ChunkKey(codec.KindEntries, c.ID, x.ID,
			row/codec.BlockRows)
	}
	c.lacking(want, have, c.presenceAt(x.Modality), at)
	for it := roaring.AndNot(have, want).Iterator(); it.HasNext() && c.err == nil; {
		if row := it.Next(); !c.lost(c.presenceAt(x.Modality)(row)) {
			c.bad(at(row), row, "the row has no vector")
		}
	}
}
