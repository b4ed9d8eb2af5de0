package db

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// makeSets makes the sets of rows that have an item, a modality, a label, and a value of
// an indexed field. Items lose labels of which there is no name.
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
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(slices.Clone(rec.Labels), func(id uint32) bool { return int64(id) >= int64(c.labels) })
		if len(known) < len(rec.Labels) {
			c.badItem(row, "it has labels of which there is no name: they are left out")
			rec.Labels = known
			b, err := rec.Append(nil)
			if err != nil {
				return err
			}
			if err := c.set(key, b); err != nil {
				return err
			}
		}
		for _, id := range known {
			if labelled[id] == nil {
				labelled[id] = roaring.New()
			}
			labelled[id].Add(row)
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
	for id, rows := range labelled {
		if err == nil {
			err = c.writeRows(codec.SetLabel, id, rows)
		}
	}
	return err
}

func (c *collectionMender) writeRows(set byte, id uint32, rows *roaring.Bitmap) error {
	return byContainer(rows, func(container uint16, l codec.Layer) error {
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
