package repair

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// Four records tell that a row has an item: the record of the item, the key of the row, the row
// of the key, and the live set. A deletion removes all four in one commit. A repair may find any
// of them alone, as others are damaged, or as an older version has come back:
//
//	the record of the item, and any other       kept; a missing key comes from the other way
//	                                            round, or is made up
//	the record of the item alone                left out, as the rest of a deletion
//	no record of the item, but the live set     reported as lost
//	no record of the item, but both of a key    reported as lost
//	one of the two records of a key alone       removed, as the rest of a deletion
//
// A record that cannot be decoded, and a range that could not be read, count as records that may
// have been there. So a repair rather reports too much than passes over a loss. The code is in
// keyMender: readRows reports, nameRest leaves out.

// A collectionMender mends one collection. Each step reads one kind of primary records, deletes
// those that cannot be right, and leaves its findings in the fields for the later steps.
type collectionMender struct {
	*mender
	*record.Descriptor // of the collection; sound

	seen     *seenCollection // what salvage has seen of it
	counters codec.Counters  // as stored, then as they are to be; conclude writes them
	counted  bool            // the counters could be read
	nextKey  uint64          // 1 + the largest automatic key seen, if not counted

	labels   int               // the number of labels; each gets a name
	labelled map[uint32]bool   // the ids that items carry or that have a name
	items    *roaring.Bitmap   // the rows of items that are kept
	damaged  *roaring.Bitmap   // the rows whose record cannot be decoded
	live     *roaring.Bitmap   // the live rows as stored: a row that is not in items is a lost item
	had      []*roaring.Bitmap // by modality: its rows as stored, and the rows of damaged features
	presence []*roaring.Bitmap // by modality: the rows whose features can be decoded
	given    *givenCodes       // of a codes-only collection; else nil
	plan     plan              // what build has to make of it
}

// collection mends all that is stored of a collection except its codes, and adds a plan. The
// order of its steps matters: keys and given codes may drop items, features belong to items, and
// lessons to features.
func (m *mender) collection(d *record.Descriptor) error {
	c := &collectionMender{
		mender: m, Descriptor: d, seen: m.collections[d.ID], labelled: map[uint32]bool{},
		items: roaring.New(), damaged: roaring.New(), live: roaring.New(),
	}
	for range d.Modalities {
		c.presence, c.had = append(c.presence, roaring.New()), append(c.had, roaring.New())
	}
	for _, step := range []func() error{
		c.readCounters, c.readSets, c.readItems, c.mendLabels, c.mendKeys, c.readGiven, c.mendFeatures, c.mendIndexes, c.mendSpaces, c.conclude,
	} {
		// Each step reads what the steps before have written.
		if err := errors.Join(m.flush(), m.ctx.Err()); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return m.flush()
}

// stage reports progress in the collection.
func (c *collectionMender) stage(what string) { c.at(0, "collection %s: %s", c.Name, what) }

// bad reports a finding about a record of the collection, which what names.
func (c *collectionMender) bad(what string, key []byte, format string, args ...any) {
	c.found(about(key, report.Finding{Collection: c.Name, Record: what, Problem: fmt.Sprintf(format, args...)}))
}

// badItem reports a finding about the item in a row.
func (c *collectionMender) badItem(row uint32, format string, args ...any) {
	c.bad(fmt.Sprintf("item in row %d", row), codec.NumberKey(codec.KindItem, c.ID, row), format, args...)
}

// countersKey is the key of the counters of the collection.
func (c *collectionMender) countersKey() []byte { return codec.CollectionKey(codec.KindCounters, c.ID) }

// readCounters sets counters and counted, and reports lost counters.
func (c *collectionMender) readCounters() error {
	b, err := record.Get(c.store, c.countersKey())
	if err != nil {
		return err
	}
	c.counters, err = codec.DecodeCounters(b)
	if c.counted = err == nil; !c.counted {
		c.counters = codec.Counters{}
		c.bad("counters", c.countersKey(), "lost: they are made of what there is; which space was the active one is not known")
	}
	return nil
}

// readSets reads the live rows and the rows of each modality, as evidence of lost items and
// features. It adds sets that cannot be read to the lost ranges.
func (c *collectionMender) readSets() error {
	return record.ForEach(c.store, codec.CollectionKey(codec.KindRows, c.ID), func(key, value []byte) error {
		set, id, container := codec.RowsKeyParts(key)
		var into *roaring.Bitmap
		switch {
		case set == codec.SetLive && id == 0:
			into = c.live
		case set == codec.SetModality && int(id) < len(c.had):
			into = c.had[id]
		default:
			return nil
		}
		// It may have had any row of its container: mayLive asks for the lost range.
		if record.AddRows(into, key, value, container) != nil {
			c.lost = c.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
}

// mayLive reports whether the live set has a row, or is lost where it could have it.
func (c *collectionMender) mayLive(row uint32) bool {
	return c.live.Contains(row) || c.lostAny(codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)))
}

// readItems sets items and damaged, and the labels of items. It deletes damaged records.
func (c *collectionMender) readItems() error {
	c.stage("items")
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			// Values and labels have to suit the descriptor, too: row sets are made of them.
			err = c.CheckValues(rec.Fields)
		}
		if err == nil {
			_, err = c.Terms(rec.Labels, rec.Fields)
		}
		// No finding yet: readRows reports the row with its key, if that is known.
		if err != nil || row >= record.MaxRows-1 {
			c.damaged.Add(row)
			return c.delete(key)
		}
		c.items.Add(row)
		for _, id := range rec.Labels {
			c.labelled[id] = true
		}
		return nil
	})
}

// dropItem deletes the record of an item. Its features go in mendFeatures; the caller deletes
// its keys.
func (c *collectionMender) dropItem(row uint32) error {
	c.items.Remove(row)
	return c.delete(codec.NumberKey(codec.KindItem, c.ID, row))
}

// mendLabels gives each label a name of its own, with ids from 0 on without gaps. It invents lost
// names ("lost+found/ID"), and reports them. An id far beyond the number of labels is damage, and
// is taken out of the items.
func (c *collectionMender) mendLabels() error {
	names := map[uint32]string{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindLabel, c.ID), func(key, value []byte) error {
		id, name := codec.LastNumber(key), string(value)
		if record.CheckLabel(name) == nil || name == record.NoLabel(id) {
			names[id] = name
			c.labelled[id] = true
		}
		return c.delete(key)
	})
	if err != nil {
		return err
	}
	// Accept an id up to twice its rank + 1,024: at least about half of the ids below are known.
	for i, id := range slices.Sorted(maps.Keys(c.labelled)) {
		if int64(id) <= 2*int64(i)+1024 { // ids are given without gaps: a larger one is damaged
			c.labels = int(id) + 1
		}
	}
	taken := map[string]bool{}
	for id := range uint32(c.labels) {
		// If two ids have one name, the lower one keeps it.
		key, name := codec.NumberKey(codec.KindLabel, c.ID, id), names[id]
		if name == "" || taken[name] {
			for name = fmt.Sprintf("lost+found/%d", id); taken[name]; {
				name += "'"
			}
			c.bad(fmt.Sprintf("label %d", id), key, "its name is lost: it is named %q", name)
		}
		taken[name] = true
		if err := c.set(key, []byte(name)); err != nil {
			return err
		}
	}
	for id := range c.labelled {
		if int64(id) >= int64(c.labels) {
			return c.dropLabels()
		}
	}
	return nil
}

// dropLabels takes the damaged label ids, c.labels and above, out of the items.
func (c *collectionMender) dropLabels() error {
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(slices.Clone(rec.Labels), func(id uint32) bool { return int64(id) >= int64(c.labels) })
		if len(known) == len(rec.Labels) {
			return nil
		}
		c.badItem(codec.LastNumber(key), "it has labels of which there is no name: they are left out")
		rec.Labels = known
		b, err := rec.Append(nil)
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
}

// mendFeatures sets presence, deletes features that cannot be decoded or have no item, and
// reports those that are lost: their item is kept without them.
func (c *collectionMender) mendFeatures() error {
	c.stage("features")
	buffers := make([]model.Vector, len(c.Modalities))
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindFeatures, c.ID), func(key, value []byte) error {
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
		// Left are the rows that had features, by their set or by a damaged record, and have an item
		// but no features now.
		rows.AndNot(c.presence[t])
		rows.And(c.items)
		for it := rows.Iterator(); it.HasNext(); {
			row := it.Next()
			c.bad(fmt.Sprintf("features %q of row %d", c.Modalities[t].Name, row), codec.FeatureKey(c.ID, row, uint16(t)), "lost: the item is kept without them")
		}
	}
	return err
}

// conclude completes the counters and writes them, deletes the row sets, which build makes
// again, and adds the plan of the collection.
func (c *collectionMender) conclude() error {
	n := &c.counters
	// No row of an item that was seen is used again, even if the counters are lost or old.
	n.NextRow = max(n.NextRow, c.seen.rows)
	if !c.items.IsEmpty() {
		n.NextRow = max(n.NextRow, uint64(c.items.Maximum())+1)
	}
	n.NextRow = min(n.NextRow, record.MaxRows)
	n.NextKey = max(n.NextKey, c.nextKey)
	// Adopt counts the items again.
	n.Items = 0
	if err := c.deleteAll(codec.CollectionKey(codec.KindRows, c.ID)); err != nil {
		return err
	}
	c.plan.of, c.plan.presence, c.plan.given = c.Descriptor, c.presence, c.given
	c.plans = append(c.plans, c.plan)
	return c.set(c.countersKey(), n.Append(nil))
}

// countKey takes a decimal number for an automatic key, if the counters are lost: nextKey must
// be above it.
func (c *collectionMender) countKey(key []byte) {
	if !c.counted && len(key) > 0 && len(key) <= 20 && key[0] >= '0' && key[0] <= '9' {
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil && n+1 > 0 {
			c.nextKey = max(c.nextKey, n+1)
		}
	}
}
