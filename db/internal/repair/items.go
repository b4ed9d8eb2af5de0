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

// A collectionMender is what is known of the collection that is being mended. Each step
// reads records that nothing else tells, deletes those that cannot be right, and leaves
// what it has found out to the next.
type collectionMender struct {
	*mender
	*record.Descriptor
	seen     *seenCollection
	counters codec.Counters
	counted  bool // the counters could be read
	nextKey  uint64

	labels   int               // of which there are names
	labelled map[uint32]bool   // labels that items have
	items    *roaring.Bitmap   // rows whose record can be read
	damaged  *roaring.Bitmap   // rows whose record cannot be read
	live     *roaring.Bitmap   // as it is stored: it tells of items that are lost
	had      []*roaring.Bitmap // rows that have a modality, as it is stored
	presence []*roaring.Bitmap // and as features tell
	given    *givenCodes       // of a codes-only collection
	plan     plan
}

// collection mends everything that is stored of a collection but the codes.
func (m *mender) collection(d *record.Descriptor) error {
	c := &collectionMender{
		mender: m, Descriptor: d, seen: m.collections[d.ID], labelled: map[uint32]bool{},
		items: roaring.New(), damaged: roaring.New(), live: roaring.New(),
	}
	for range d.Modalities {
		c.presence, c.had = append(c.presence, roaring.New()), append(c.had, roaring.New())
	}
	for _, step := range []func() error{
		c.readCounters, c.readSets, c.readItems, c.mendLabels, c.mendKeys, c.readGiven, c.mendFeatures, c.mendSpaces, c.conclude,
	} {
		if err := errors.Join(m.flush(), m.ctx.Err()); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return m.flush()
}

func (c *collectionMender) stage(what string) { c.at(0, "collection %s: %s", c.Name, what) }

// bad reports something that is lost.
func (c *collectionMender) bad(what string, key []byte, format string, args ...any) {
	c.found(about(key, report.Finding{Collection: c.Name, Record: what, Problem: fmt.Sprintf(format, args...)}))
}

// badItem reports something about the item in a row.
func (c *collectionMender) badItem(row uint32, format string, args ...any) {
	c.bad(fmt.Sprintf("item in row %d", row), codec.NumberKey(codec.KindItem, c.ID, row), format, args...)
}

func (c *collectionMender) countersKey() []byte { return codec.CollectionKey(codec.KindCounters, c.ID) }

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

// readSets reads the live set and those of modalities, as far as they can be.
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
		if record.AddRows(into, key, value, container) != nil {
			c.lost = c.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
}

// mayLive reports whether the live set has a row, or may have had it.
func (c *collectionMender) mayLive(row uint32) bool {
	return c.live.Contains(row) || c.lostAny(codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)))
}

// readItems finds the rows whose record can be read.
func (c *collectionMender) readItems() error {
	c.stage("items")
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			err = c.CheckValues(rec.Fields)
		}
		if err == nil {
			_, err = c.Terms(rec.Labels, rec.Fields)
		}
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

// dropItem deletes what is stored of an item besides features and what finds it.
func (c *collectionMender) dropItem(row uint32) error {
	c.items.Remove(row)
	return c.delete(codec.NumberKey(codec.KindItem, c.ID, row))
}

// mendLabels makes sure that labels have names, without gaps and different ones.
func (c *collectionMender) mendLabels() error {
	names := map[uint32]string{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindLabel, c.ID), func(key, value []byte) error {
		if record.CheckLabel(string(value)) == nil {
			names[codec.LastNumber(key)] = string(value)
			c.labelled[codec.LastNumber(key)] = true
		}
		return c.delete(key)
	})
	if err != nil {
		return err
	}
	for i, id := range slices.Sorted(maps.Keys(c.labelled)) {
		if int64(id) <= 2*int64(i)+1024 { // else the number is damaged
			c.labels = int(id) + 1
		}
	}
	taken := map[string]bool{}
	for id := range uint32(c.labels) {
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

// dropLabels takes labels out of items of which there is no name, as their numbers are damaged.
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

// mendFeatures finds the features that can be read.
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
		rows.AndNot(c.presence[t])
		rows.And(c.items)
		for it := rows.Iterator(); it.HasNext(); {
			row := it.Next()
			c.bad(fmt.Sprintf("features %q of row %d", c.Modalities[t].Name, row), codec.FeatureKey(c.ID, row, uint16(t)), "lost: the item is kept without them")
		}
	}
	return err
}

// conclude writes the counters, in which those of spaces are, and leaves the sets of rows to
// be made when the store is open.
func (c *collectionMender) conclude() error {
	n := &c.counters
	n.NextRow = max(n.NextRow, c.seen.rows)
	if !c.items.IsEmpty() {
		n.NextRow = max(n.NextRow, uint64(c.items.Maximum())+1)
	}
	n.NextRow = min(n.NextRow, record.MaxRows)
	n.NextKey = max(n.NextKey, c.nextKey)
	n.Items = 0
	if err := c.deleteAll(codec.CollectionKey(codec.KindRows, c.ID)); err != nil {
		return err
	}
	c.plan.of, c.plan.presence, c.plan.given = c.Descriptor, c.presence, c.given
	c.plans = append(c.plans, c.plan)
	return c.set(c.countersKey(), n.Append(nil))
}

// countKey takes note of an automatic key.
func (c *collectionMender) countKey(key []byte) {
	if !c.counted && len(key) > 0 && len(key) <= 20 && key[0] >= '0' && key[0] <= '9' {
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil && n+1 > 0 {
			c.nextKey = max(c.nextKey, n+1)
		}
	}
}
