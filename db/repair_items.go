package db

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A collectionMender is what is known of the collection that is being mended.
type collectionMender struct {
	*mender
	*record.Descriptor
	seen     *seenCollection
	counters codec.Counters
	counted  bool // the counters could be read

	labels   int // of which there are names
	items    *roaring.Bitmap
	damaged  *roaring.Bitmap // rows whose record cannot be read
	live     *roaring.Bitmap // as it is stored
	presence []*roaring.Bitmap
	had      []*roaring.Bitmap // presence, as it is stored
	parts    []*roaring.Bitmap // by modality: containers of that which can be read
	given    *givenCodes       // of a codes-only collection
	nextKey  uint64
}

// collection mends everything that is stored of a collection.
func (m *mender) collection(d *record.Descriptor) error {
	c := &collectionMender{
		mender: m, Descriptor: d, seen: m.collections[d.ID],
		items: roaring.New(), damaged: roaring.New(), live: roaring.New(),
	}
	for range d.Modalities {
		c.presence, c.had, c.parts = append(c.presence, roaring.New()), append(c.had, roaring.New()), append(c.parts, roaring.New())
	}
	for _, step := range []func() error{
		c.readCounters, c.mendLabels, c.readSets, c.readItems, c.mendKeys, c.readGiven, c.mendFeatures, c.makeSets, c.mendSpaces, c.writeCounters,
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

// mendLabels makes sure that labels have names, without gaps and different ones.
func (c *collectionMender) mendLabels() error {
	names := map[uint32]string{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindLabel, c.ID), func(key, value []byte) error {
		if record.CheckLabel(string(value)) == nil {
			names[codec.LastNumber(key)] = string(value)
		}
		return c.delete(key)
	})
	if err != nil {
		return err
	}
	// Sets say of other labels that there are some.
	evidence := maps.Clone(names)
	err = record.ForEach(c.store, append(codec.CollectionKey(codec.KindRows, c.ID), codec.SetLabel), func(key, value []byte) error {
		_, id, _ := codec.RowsKeyParts(key)
		if l, err := codec.DecodeLayer(value); err == nil && !l.Added.IsEmpty() {
			evidence[id] = names[id]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range slices.Sorted(maps.Keys(evidence)) {
		if int(id) <= 2*i+1024 { // else the number is damaged
			c.labels = int(id) + 1
		}
	}
	taken := map[string]bool{}
	for id := range uint32(c.labels) {
		name := names[id]
		if name == "" || taken[name] {
			lost := fmt.Sprintf("lost+found/%d", id)
			for name = lost; taken[name]; {
				name += "'"
			}
			c.bad(fmt.Sprintf("label %d", id), codec.NumberKey(codec.KindLabel, c.ID, id), "its name is lost: it is named %q", name)
		}
		taken[name] = true
		if err := c.set(codec.NumberKey(codec.KindLabel, c.ID, id), []byte(name)); err != nil {
			return err
		}
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
		l, err := codec.DecodeLayer(value)
		if err != nil {
			c.lost = c.lost.add(key, after(key))
			return nil
		}
		addContainer(into, l.Added, container)
		if set == codec.SetModality {
			c.parts[id].Add(uint32(container))
		}
		return nil
	})
}

// mayLive reports whether the live set has a row, or may have had it.
func (c *collectionMender) mayLive(row uint32) bool {
	return c.live.Contains(row) || c.lostAny(codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)))
}

// values checks values of fields.
func (c *collectionMender) values(fields []codec.Field) error {
	return (&collectionVerifier{Descriptor: c.Descriptor}).checkValues(fields)
}

// readItems finds the rows whose record can be read.
func (c *collectionMender) readItems() error {
	c.stage("items")
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			err = c.values(rec.Fields)
		}
		if err == nil {
			_, err = c.Terms(rec.Labels, rec.Fields)
		}
		if err != nil || row >= record.MaxRows-1 {
			c.damaged.Add(row)
			return c.delete(key)
		}
		c.items.Add(row)
		known := slices.DeleteFunc(slices.Clone(rec.Labels), func(id uint32) bool { return int64(id) >= int64(c.labels) })
		if len(known) == len(rec.Labels) {
			return nil
		}
		c.bad(rowName("item", row), key, "it has labels of which there is no name: they are left out")
		rec.Labels = known
		b, err := rec.Append(nil)
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
}

// dropItem deletes what is stored of an item besides features and what finds it.
func (c *collectionMender) dropItem(row uint32) error {
	c.items.Remove(row)
	return c.delete(codec.NumberKey(codec.KindItem, c.ID, row))
}

// mendFeatures finds the features that can be read.
func (c *collectionMender) mendFeatures() error {
	c.stage("features")
	if c.IndexOnly {
		return c.keepPresence()
	}
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
			c.bad((&collectionVerifier{Descriptor: c.Descriptor}).featuresName(row, t), codec.FeatureKey(c.ID, row, uint16(t)), "lost: the item is kept without them")
		}
	}
	return err
}

// makeSets makes the sets of rows that have an item, a modality, a label, and a value of
// an indexed field.
func (c *collectionMender) makeSets() error {
	c.stage("sets of rows")
	if err := c.deleteAll(codec.CollectionKey(codec.KindRows, c.ID)); err != nil {
		return err
	}
	labelled := map[uint32]*roaring.Bitmap{}
	fields := fieldMaker{c: c, container: -1}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil || !c.items.Contains(row) {
			return err
		}
		for _, id := range rec.Labels {
			rows := labelled[id]
			if rows == nil {
				rows = roaring.New()
				labelled[id] = rows
			}
			rows.Add(row)
		}
		return fields.add(row, rec)
	})
	if err == nil {
		err = fields.flush()
	}
	if err == nil {
		err = c.writeRows(codec.SetLive, 0, c.items)
	}
	for t, rows := range c.presence {
		if err == nil {
			err = c.writeRows(codec.SetModality, uint32(t), rows)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(labelled)) {
		if err == nil {
			err = c.writeRows(codec.SetLabel, id, labelled[id])
		}
	}
	return err
}

func (c *collectionMender) writeRows(set byte, id uint32, rows *roaring.Bitmap) error {
	return record.ByContainer(rows, func(container uint16, l codec.Layer) error {
		return c.writeLayer(codec.RowsKey(c.ID, set, id, container), l)
	})
}

func (m *mender) writeLayer(key []byte, l codec.Layer) error {
	b, err := l.Append(nil, true)
	if err != nil {
		return err
	}
	return m.set(key, b)
}

// A fieldMaker makes the sets of rows of indexed fields, one container after the other.
type fieldMaker struct {
	c         *collectionMender
	container int // -1: none yet
	texts     map[record.Text]codec.Layer
	slices    map[uint16]*state.FieldSlices
}

func (f *fieldMaker) add(row uint32, rec *codec.ItemRecord) error {
	if int(row>>16) != f.container {
		if err := f.flush(); err != nil {
			return err
		}
		f.container, f.texts, f.slices = int(row>>16), map[record.Text]codec.Layer{}, map[uint16]*state.FieldSlices{}
	}
	t, err := f.c.Terms(nil, rec.Fields)
	if err != nil {
		return err
	}
	for _, x := range t.Texts {
		l, has := f.texts[x]
		if !has {
			l = codec.NewLayer()
			f.texts[x] = l
		}
		l.Add(uint16(row))
	}
	for _, x := range t.Numbers {
		s := f.slices[x.Field]
		if s == nil {
			s = new(state.FieldSlices)
			f.slices[x.Field] = s
		}
		s.Put(codec.SliceExists, uint16(row), true)
		s.Change(uint16(row), x.Image, true)
	}
	return nil
}

// flush writes the sets of the container.
func (f *fieldMaker) flush() error {
	write := func(field uint16, value string, l codec.Layer) error {
		return f.c.writeLayer(codec.FieldRowsKey(f.c.ID, field, uint16(f.container), value), l)
	}
	for _, x := range slices.SortedFunc(maps.Keys(f.texts), record.Text.Compare) {
		if err := write(x.Field, x.Text, f.texts[x]); err != nil {
			return err
		}
	}
	for field, layers := range f.slices {
		for i, l := range layers {
			if l.Added == nil {
				continue
			}
			if err := write(field, string([]byte{byte(i)}), l); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeCounters writes the counters; those of spaces are there already.
func (c *collectionMender) writeCounters() error {
	n := &c.counters
	n.NextRow = max(n.NextRow, c.seen.rows)
	if !c.items.IsEmpty() {
		n.NextRow = max(n.NextRow, uint64(c.items.Maximum())+1)
	}
	n.NextRow = min(n.NextRow, record.MaxRows)
	n.NextKey = max(n.NextKey, c.nextKey)
	n.Items = c.items.GetCardinality()
	return c.set(c.countersKey(), n.Append(nil))
}

// countKey takes note of an automatic key.
func (c *collectionMender) countKey(key []byte) {
	if len(key) > 0 && len(key) <= 20 && key[0] >= '0' && key[0] <= '9' {
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil && !c.counted && n+1 > 0 {
			c.nextKey = max(c.nextKey, n+1)
		}
	}
}
