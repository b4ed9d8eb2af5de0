package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// A collectionMender mends one collection. Each step reads one kind of primary records, deletes impossible
// ones, and leaves its findings in the fields for the later steps.
type collectionMender struct {
	*mender
	*record.Descriptor // of the collection; sound

	seen     *seenCollection // evidence of it that salvage has found
	counters codec.Counters  // as stored, then as mended; conclude writes them
	counted  bool            // the counters could be read
	nextKey  uint64          // 1 + the largest automatic key seen, if not counted

	items    *roaring.Bitmap   // the rows of items that are kept
	damaged  *roaring.Bitmap   // the rows whose record cannot be decoded
	live     *roaring.Bitmap   // the live rows as stored: a row that is not in items is a lost item
	had      []*roaring.Bitmap // by modality: its rows as stored, and the rows of damaged features
	presence []*roaring.Bitmap // by modality: the rows whose features can be decoded
	plan     plan              // for build
}

// collection mends all records of a collection except its codes, and adds a plan. The order of its steps
// matters: keys and given codes may drop items, and features belong to items.
func (m *mender) collection(d *record.Descriptor) error {
	c := &collectionMender{mender: m, Descriptor: d, seen: m.collections[d.ID],
		items: roaring.New(), damaged: roaring.New(), live: roaring.New()}
	for range d.Modalities {
		c.presence, c.had = append(c.presence, roaring.New()), append(c.had, roaring.New())
	}
	for _, step := range []func() error{c.readCounters, c.readSets, c.mendItems, c.mendKeys, c.readGiven,
		c.mendFeatures, c.readIndexes, c.mendSpaces, c.conclude} {
		if err := step(); err != nil {
			return err
		}
	}
	return m.flush()
}

// stage reports progress in the collection.
func (c *collectionMender) stage(what string) { c.at(0, "collection %s: %s", c.Descriptor.Name, what) }

// bad reports a finding about the record under key; n is the row or number that is meant.
func (c *collectionMender) bad(key []byte, n uint32, format string, args ...any) {
	c.mender.bad(c.Descriptor, key, n, format, args...)
}

// badItem reports a finding about the item in a row.
func (c *collectionMender) badItem(row uint32, format string, args ...any) {
	c.bad(codec.NumberKey(codec.KindItem, c.ID, row), row, format, args...)
}

// key returns the key of a kind that the collection has once, or the prefix of one that it has often.
func (c *collectionMender) key(kind byte) []byte { return codec.CollectionKey(kind, c.ID) }

// readCounters sets counters and counted, and reports lost counters.
func (c *collectionMender) readCounters() error {
	b, err := record.Get(c.store, c.key(codec.KindCounters))
	if err != nil {
		return err
	}
	c.counters, err = codec.DecodeCounters(b)
	if c.counted = err == nil; !c.counted {
		c.counters = codec.Counters{}
		c.bad(c.key(codec.KindCounters), 0,
			"lost: they are made of what there is; which space was the active one is not known")
	}
	return nil
}

// readSets reads the live rows and the rows of each modality, as evidence of lost items and
// features, and deletes them: build makes them again.
func (c *collectionMender) readSets() error {
	err := c.each(c.key(codec.KindRows), func(key, value []byte) error {
		set, id, container := codec.RowsKeyParts(key)
		into := c.live
		if set == codec.SetModality && int64(id) < int64(len(c.had)) {
			into = c.had[id]
		} else if set != codec.SetLive {
			return nil
		}
		if record.AddRows(into, key, value, container) != nil {
			c.lost = c.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.deleteAll(c.key(codec.KindRows))
}

// mayLive reports whether the live set had a row, or is lost where it could have had it.
func (c *collectionMender) mayLive(row uint32) bool {
	return c.live.Contains(row) || c.lost.Has(codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)))
}

// mendItems deletes damaged items, and gives each label a name of its own, with ids from 0 on without gaps.
// It invents lost names ("lost+found/ID"), and reports them.
func (c *collectionMender) mendItems() error {
	c.stage("items")
	names := map[uint32]string{}
	err := c.each(c.key(codec.KindLabel), func(key, value []byte) error {
		if id, name := codec.LastNumber(key), string(value); record.CheckLabel(name) == nil ||
			name == record.NoLabel(id) {
			names[id] = name
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Ids are given without gaps. A number far beyond all names is damage.
	most := 2*uint64(len(names)) + 1<<16
	last := int64(-1)
	for id := range names {
		if uint64(id) < most {
			last = max(last, int64(id))
		}
	}
	err = c.each(c.key(codec.KindItem), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			// Values and labels have to suit the descriptor, too: row sets are made of them.
			err = c.CheckValues(rec.Fields)
		}
		if err == nil {
			_, err = c.Terms(rec.Labels, rec.Fields)
		}
		// mendKeys reports the row with its key, if that is known.
		if err != nil || row >= record.MaxRows-1 ||
			slices.ContainsFunc(rec.Labels, func(id uint32) bool { return uint64(id) >= most }) {
			c.damaged.Add(row)
			return c.delete(key)
		}
		c.items.Add(row)
		for _, id := range rec.Labels {
			last = max(last, int64(id))
		}
		return nil
	})
	if err == nil {
		err = c.deleteAll(c.key(codec.KindLabel))
	}
	taken := map[string]bool{}
	for id := uint32(0); err == nil && int64(id) <= last; id++ {
		// If two ids have one name, the lower one keeps it.
		key, name := codec.NumberKey(codec.KindLabel, c.ID, id), names[id]
		if name == "" || taken[name] {
			for name = fmt.Sprintf("lost+found/%d", id); taken[name]; {
				name += "'"
			}
			c.bad(key, 0, "its name is lost: it is named %q", name)
		}
		taken[name] = true
		err = c.set(key, []byte(name))
	}
	return err
}

// dropItem deletes the record of an item, and its entry in the keys of rows. The caller deletes the record of
// its key, and mendFeatures its features.
func (c *collectionMender) dropItem(row uint32) error {
	c.items.Remove(row)
	if err := c.setEntry(c.keysOf(row), row, nil); err != nil {
		return err
	}
	return c.delete(codec.NumberKey(codec.KindItem, c.ID, row))
}

// keysOf returns the key of the block that has the key of a row.
func (c *collectionMender) keysOf(row uint32) []byte {
	return codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
}

// keyOf returns the key of a row; "": it has none.
func (c *collectionMender) keyOf(row uint32) (key string, err error) {
	err = record.BlockEntry(c.batch, c.keysOf(row), row, func(entry []byte) error {
		key = string(entry)
		return nil
	})
	return key, err
}

// Four records tell that a row has an item: the record of the item, the key of the row, the row
// of the key, and the live set. A deletion removes all four in one commit. A repair may find any
// of them alone, as others are damaged, or as an older version has come back:
//
//	the record of the item, and any other    kept; a missing key comes from the other way
//	                                         round, or is made up
//	the record of the item alone             left out, as the rest of a deletion
//	no record of the item                    reported as lost, unless the row of a key is all that tells of it
//
// A repair rather reports too much than passes over a loss.

// mendKeys makes sure that each item has one key and each key one item, and reports the items
// that are lost.
func (c *collectionMender) mendKeys() error {
	c.stage("keys")
	lost := map[uint32]string{} // the keys of rows that have no item
	for _, rows := range []*roaring.Bitmap{roaring.AndNot(c.live, c.items), c.damaged} {
		for it := rows.Iterator(); it.HasNext(); {
			if row := it.Next(); row < record.MaxRows-1 && (!c.counted || uint64(row) < c.counters.NextRow) {
				lost[row] = ""
			}
		}
	}
	keyed := roaring.New()
	// The keys of rows. Of two rows with one key the later one keeps it: the earlier one was deleted.
	err := c.entries(c.key(codec.KindRowKeys), func(block []byte, row uint32, entry []byte) error {
		if record.CheckKey(string(entry)) != nil || len(entry) == 0 {
			return c.setEntry(block, row, nil)
		}
		if !c.items.Contains(row) {
			lost[row] = string(entry)
			return c.setEntry(block, row, nil)
		}
		key := codec.ItemKey(c.ID, string(entry))
		b, err := record.Get(c.batch, key)
		if err != nil {
			return err
		}
		if len(b) == 4 && binary.BigEndian.Uint32(b) != row {
			other := binary.BigEndian.Uint32(b)
			of, err := c.keyOf(other)
			if err != nil {
				return err
			}
			if other < row && keyed.Contains(other) && of == string(entry) {
				c.badItem(other, "its key %q is that of another item", entry)
				keyed.Remove(other)
				if err := c.setEntry(c.keysOf(other), other, nil); err != nil {
					return err
				}
			}
		}
		return c.giveKey(keyed, row, entry)
	})
	if err != nil {
		return err
	}
	// The rows of keys, which stand in for lost keys of rows.
	err = c.each(c.key(codec.KindKey), func(key, value []byte) error {
		if len(value) != 4 || record.CheckKey(string(key[5:])) != nil {
			return c.delete(key)
		}
		row := binary.BigEndian.Uint32(value)
		if !c.items.Contains(row) {
			if of, is := lost[row]; is && of == "" {
				lost[row] = string(key[5:])
			}
			return c.delete(key)
		}
		of, err := c.keyOf(row)
		switch {
		case err != nil || of == string(key[5:]):
			return err
		case !keyed.Contains(row):
			return c.giveKey(keyed, row, slices.Clone(key[5:]))
		}
		c.badItem(row, "the key %q leads to it, and it has another, which it keeps", key[5:])
		return c.delete(key)
	})
	if err != nil {
		return err
	}
	for _, row := range slices.Sorted(maps.Keys(lost)) {
		name := "its key is not known"
		if lost[row] != "" {
			name = fmt.Sprintf("its key is %q", lost[row])
		}
		c.badItem(row, "lost: its record is missing or damaged; %s", name)
	}
	for it := roaring.AndNot(c.items, keyed).Iterator(); it.HasNext(); {
		row := it.Next()
		if !c.mayLive(row) && !c.lost.Has(c.keysOf(row)) {
			c.badItem(row, "it has no key and is in no set: it is taken for the rest of one that was deleted, and left out")
			if err := c.dropItem(row); err != nil {
				return err
			}
			continue
		}
		name := fmt.Sprintf("lost+found/%d", row)
		// A user may have given another item this very key.
		for of, err := record.Get(c.batch, codec.ItemKey(c.ID, name)); of != nil || err != nil; {
			if err != nil {
				return err
			}
			name += "'"
			of, err = record.Get(c.batch, codec.ItemKey(c.ID, name))
		}
		c.badItem(row, "its key is lost: it gets the key %q", name)
		if err := c.giveKey(keyed, row, []byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// giveKey makes an item and its key lead to each other. If the counters are lost, it takes a decimal number
// for an automatic key: nextKey must be above it.
func (c *collectionMender) giveKey(keyed *roaring.Bitmap, row uint32, key []byte) error {
	keyed.Add(row)
	if !c.counted && key[0] >= '0' && key[0] <= '9' {
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil && n+1 > 0 {
			c.nextKey = max(c.nextKey, n+1)
		}
	}
	if of, err := c.keyOf(row); err != nil {
		return err
	} else if of != string(key) {
		if err := c.setEntry(c.keysOf(row), row, key); err != nil {
			return err
		}
	}
	of, err := record.Get(c.batch, codec.ItemKey(c.ID, string(key)))
	if err == nil && (len(of) != 4 || binary.BigEndian.Uint32(of) != row) {
		err = c.set(codec.ItemKey(c.ID, string(key)), binary.BigEndian.AppendUint32(nil, row))
	}
	return err
}

// mendFeatures sets presence, deletes features that cannot be decoded or have no item, and reports lost ones:
// their item is kept without them.
func (c *collectionMender) mendFeatures() error {
	c.stage("features")
	buffers := make([]model.Vector, len(c.Modalities))
	err := c.each(c.key(codec.KindFeatures), func(key, value []byte) error {
		row, t := codec.FeatureKeyParts(key)
		if int(t) >= len(c.Modalities) || !c.items.Contains(row) {
			return c.delete(key)
		}
		if err := c.Modalities[t].DecodeVector(&buffers[t], value); err != nil {
			c.had[t].Add(row)
			return c.delete(key)
		}
		c.presence[t].Add(row)
		return nil
	})
	for t, rows := range c.had {
		rows.AndNot(c.presence[t])
		rows.And(c.items)
		for it := rows.Iterator(); it.HasNext(); {
			row := it.Next()
			c.bad(codec.FeatureKey(c.ID, row, uint16(t)), row, "lost: the item is kept without them")
		}
	}
	return err
}

// readIndexes notes the indexes of vectors, which build makes again.
func (c *collectionMender) readIndexes() error {
	err := c.each(c.key(codec.KindIndex), func(key, value []byte) error {
		id := codec.LastNumber(key)
		delete(c.seen.indexes, id)
		x, err := record.DecodeIndex(value, c.Descriptor, id)
		if err != nil {
			c.bad(key, 0, "lost: %s: make it again", fault.Problem(err))
		} else if x.Complete && !c.presence[x.Modality].IsEmpty() {
			c.plan.indexes = append(c.plan.indexes, x)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id := range c.seen.indexes {
		c.bad(codec.NumberKey(codec.KindIndex, c.ID, id), 0, "lost: make it again")
	}
	return c.deleteAll(c.key(codec.KindIndex))
}

// conclude completes the counters and writes them, and adds the plan of the collection.
func (c *collectionMender) conclude() error {
	n := &c.counters
	// No row of an item that was seen is used again, even if the counters are lost or old.
	for _, rows := range []*roaring.Bitmap{c.items, c.damaged, c.live} {
		if !rows.IsEmpty() && rows.Maximum() < record.MaxRows-1 {
			n.NextRow = max(n.NextRow, uint64(rows.Maximum())+1)
		}
	}
	n.NextRow = min(n.NextRow, record.MaxRows)
	n.NextKey = max(n.NextKey, c.nextKey)
	n.Items = 0 // Adopt counts the items again
	c.plan.of, c.plan.presence = c.Descriptor, c.presence
	c.plans = append(c.plans, c.plan)
	return c.set(c.key(codec.KindCounters), n.Append(nil))
}

// In a codes-only collection nothing else tells the code of an item: there is no model that could
// make it again. Three kinds of records say which row has which code, and repeat each other.

// givenCodes are the codes that the items of a codes-only collection have brought. They are
// primary, but their numbers and postings are derived. So readGiven takes them into memory,
// mendGiven deletes their records, and storeGiven stores them again as new codes.
type givenCodes struct {
	rows  []uint32    // ascending
	codes codec.Codes // the code of each of rows
}

// readGiven reads the codes of a codes-only collection. The record of a row says which code
// number it has; if that is lost, the rows beside the code do (KindCodes, KindCodeRows). An item
// whose code is lost is lost, and reported. It holds all codes in memory.
func (c *collectionMender) readGiven() error {
	if !c.CodesOnly() {
		return nil
	}
	c.stage("codes")
	k := record.CodeKeys{Collection: c.ID, Space: 1, Bits: c.Bits}
	// The codes come first, as the two other passes name them by number. Then each pass replaces
	// what the one before said of a row, from the least to the most reliable.
	// by row, and by code number: 1 + the index of the code in all; 0: none
	var of, numbers record.ByBlock[uint32]
	all, code := codec.NewCodes(c.Bits, 0), codec.NewCode(c.Bits)
	err := c.entries(k.Prefix(codec.KindCodes), func(_ []byte, n uint32, entry []byte) error {
		row, err := codec.DecodeCodeEntry(code, c.Bits, entry)
		if err != nil {
			return nil
		}
		all.Append(code)
		*numbers.Put(n) = uint32(all.Len())
		if row != codec.ManyRows {
			*of.Put(row) = uint32(all.Len())
		}
		return nil
	})
	if err != nil {
		return err
	}
	carries := func(row, n uint32) {
		if at := numbers.Get(n); at != nil && *at > 0 {
			*of.Put(row) = *at
		}
	}
	err = c.each(k.Prefix(codec.KindCodeRows), func(key, value []byte) error {
		n, container := codec.CodeRowsKeyParts(key)
		rows := roaring.New()
		if record.AddRows(rows, key, value, container) == nil {
			for it := rows.Iterator(); it.HasNext(); {
				carries(it.Next(), n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.entries(k.Prefix(codec.KindRowCodes), func(_ []byte, row uint32, entry []byte) error {
		if rc, err := codec.DecodeRowCode(entry); err == nil {
			carries(row, rc.Code)
		}
		return nil
	})
	if err != nil {
		return err
	}
	g := &givenCodes{codes: codec.NewCodes(c.Bits, int(c.items.GetCardinality()))}
	for it := c.items.Clone().Iterator(); it.HasNext(); { // dropItem removes rows from items
		row := it.Next()
		if at := of.Get(row); at != nil && *at > 0 {
			g.rows = append(g.rows, row)
			g.codes.Append(all.At(int(*at) - 1))
			continue
		}
		key, err := c.keyOf(row)
		if err != nil {
			return err
		}
		c.badItem(row, "lost: its code is; its key is %q", key)
		if err := errors.Join(c.delete(codec.ItemKey(c.ID, key)), c.dropItem(row)); err != nil {
			return err
		}
	}
	c.plan.given = g
	return nil
}

// A space keeps its model and its revisions. What items have taught it, and the statistics, which are the sum
// of that, are not kept: all items with vectors teach again in the next update. Codes, projections and
// postings are made again by build. The cost of a lost record:
//
//	model                     the space, with its codes
//	descriptor                when and how it was trained; the model tells the rest
//	a revision that is kept   its projections: it gets the ones of the revision before it
//	an older revision         nothing but itself
//	counters                  which space was active: the latest complete one is

// mendSpaces mends all spaces, and completes the counters. It leaves each learned space as being built and
// without codes, the state after a crash in the middle of a reindexing; build completes it. The plan names
// the spaces to activate then: a space that was complete before, as close to the stored choice as possible.
func (c *collectionMender) mendSpaces() error {
	stored := map[uint64]codec.SpaceCounters{}
	for _, n := range c.counters.Spaces {
		if n.ID > 0 && n.ID < record.MaxRows-1 {
			stored[n.ID] = n
			c.seen.spaces[uint32(n.ID)] = true
		}
	}
	active, previous, next := c.counters.ActiveSpace, c.counters.PreviousSpace, c.counters.NextSpace
	// No space is active while build makes the codes: it activates the spaces of the plan when all are
	// complete.
	c.counters.Spaces, c.counters.ActiveSpace, c.counters.PreviousSpace = nil, 0, 0
	if c.CodesOnly() {
		return c.mendGiven()
	}
	complete := map[uint64]bool{}
	newest, wanted := uint64(0), uint64(0) // the latest complete space; the unfinished one to be activated
	for _, id := range slices.Sorted(maps.Keys(c.seen.spaces)) {
		was, known := stored[uint64(id)]
		kept := false
		// A space that sound counters do not name, and have named, was dropped.
		if id > 0 && id < record.MaxRows-1 && (known || !c.counted || uint64(id) >= next) {
			var err error
			if kept, err = c.mendSpace(codec.SpaceCounters{ID: uint64(id), Revision: was.Revision,
				NextRetraction: was.NextRetraction}, known); err != nil {
				return err
			}
			// No number is used again, even for a lost space.
			c.counters.NextSpace = max(c.counters.NextSpace, uint64(id)+1)
		}
		switch {
		case !kept:
			if err := c.dropSpace(id); err != nil {
				return err
			}
		case !was.Building:
			complete[uint64(id)], newest = true, uint64(id)
		case was.Activate:
			wanted = uint64(id)
		}
	}
	// If the active space is lost, the one that was active before takes over, else the latest
	// complete one.
	if !complete[previous] || previous == active {
		previous = 0
	}
	if was := active; !complete[active] {
		if active = newest; previous != 0 {
			active, previous = previous, 0
		}
		if was != 0 || active != 0 && c.counted {
			c.bad(c.key(codec.KindCounters), 0, "the active space was %d: %d is now", was, active)
		}
	}
	// Each activation makes the active space the previous one.
	for _, id := range []uint64{previous, active, wanted} {
		if id != 0 {
			c.plan.activate = append(c.plan.activate, uint32(id))
		}
	}
	return nil
}

// dropSpace deletes all records of a space.
func (c *collectionMender) dropSpace(id uint32) error {
	for _, kind := range record.Kinds(record.OfSpace) {
		if err := c.deleteAll(codec.NumberKey(kind, c.ID, id)); err != nil {
			return err
		}
	}
	return nil
}
