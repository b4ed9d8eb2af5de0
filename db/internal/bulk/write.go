package bulk

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// This file writes all records of a bulk load except codes. Each method is a task with a stream of its own
// and writes one kind of record, by ascending key. A Tx would write the same records item by item. Keys that
// may already be stored, such as layers and blocks that other rows share, are merged; all others are set.
//
//	writeKeys      row of each key              codec.KindKey
//	writeRowKeys   key of each row, in blocks   codec.KindRowKeys
//	writeItems     labels, fields, payload      codec.KindItem
//	writeFeatures  vectors                      codec.KindFeatures
//	writeSets      live, modalities, labels     codec.KindRows
//	writeFields    values of indexed fields     codec.KindFieldRows
//	writeWords     terms of fields with words   codec.KindFieldWords
//	writePending   rows for the updater         codec.KindOnlineRows
//	writeCounters  sequence, labels, counters,  codec.KindDatabase, KindLabel, KindCounters, KindMark
//	               marks
//
// spaceCodes and codeRecords write the rest: projections, codes, their rows and postings.

// row returns the row of item i.
func (l *load) row(i int) uint32 { return l.firstRow + uint32(i) }

// writeCounters writes what a commit has once: its sequence, the new labels, the marks, and the
// counters, which need the keys and the numbers of codes.
func (l *load) writeCounters(t *store.Stream) error {
	if err := t.Wait(l.keyed); err != nil {
		return err
	}
	for _, codes := range l.spaces {
		if err := codes.waitNumbered(t); err != nil {
			return err
		}
	}
	err := l.tables.WriteSequence(t)
	for i, name := range l.labels.names {
		if err == nil {
			err = t.Records.Label(l.s.ID, uint32(l.labels.next+i), name)
		}
	}
	if err != nil {
		return err
	}
	if err := t.Records.Counters(l.s.ID, l.counters()); err != nil {
		return err
	}
	return l.writeMarks(t)
}

// writeMarks writes the last mark of each name.
func (l *load) writeMarks(t *store.Stream) error {
	last := map[string]record.Mark{}
	for _, m := range l.batch.Marks {
		last[m.Name] = m
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if err := t.Records.Mark(last[name]); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys writes the row of each key.
func (l *load) writeKeys(t *store.Stream) error {
	if err := t.Wait(l.keyed); err != nil {
		return err
	}
	if l.counted {
		return l.writeCountedKeys(t)
	}
	for _, k := range l.order {
		if err := t.Records.Key(l.s.ID, l.keys[k.item], l.row(int(k.item))); err != nil {
			return err
		}
	}
	return nil
}

// writeItems writes an item record for each row, also if it has no labels, fields or
// payload.
func (l *load) writeItems(t *store.Stream) error {
	var ids []uint32
	return l.each(0, l.n, func(i int, e *entry) error {
		rec, err := e.decodeRecord()
		if err != nil {
			return err
		}
		ids = l.labelIDs(ids[:0], e)
		rec.Labels = ids
		return t.Records.Item(l.s.ID, l.row(i), rec)
	})
}

// writeFeatures writes the vectors, by row and then by modality.
func (l *load) writeFeatures(t *store.Stream) error {
	if l.batch.changes.flags&hasVectors == 0 {
		return nil
	}
	return l.each(0, l.n, func(i int, e *entry) error {
		return e.eachVector(func(m int, features []byte) error {
			return t.Records.Features(l.s.ID, l.row(i), uint16(m), features)
		})
	})
}

// writeRowKeys writes the key of each row, in blocks: the reverse of writeKeys.
func (l *load) writeRowKeys(t *store.Stream) error {
	if err := t.Wait(l.keyed); err != nil {
		return err
	}
	b := newBlockStream(t, codec.NumberKey(codec.KindRowKeys, l.s.ID, 0), -1, l.s.FreshRow)
	var entry []byte
	for i := range l.n {
		if entry = entry[:0]; l.counted {
			entry = strconv.AppendUint(entry, l.firstKey+uint64(i), 10)
		} else {
			entry = append(entry, l.keys[i]...)
		}
		if err := b.set(l.row(i), entry); err != nil {
			return err
		}
	}
	return b.flush()
}

// writeSets adds the rows to the sets of live rows, of each modality and of each label. It
// holds the rows of all labels in memory, as bitmaps.
func (l *load) writeSets(t *store.Stream) error {
	live := roaring.New()
	live.AddRange(uint64(l.firstRow), uint64(l.firstRow)+uint64(l.n))
	if err := l.writeSet(t, codec.SetLive, 0, live); err != nil {
		return err
	}
	for m, rows := range l.presence {
		if err := l.writeSet(t, codec.SetModality, uint32(m), rows); err != nil {
			return err
		}
	}
	labelled := map[uint32]*roaring.Bitmap{}
	if l.batch.changes.flags&hasLabels == 0 {
		return nil
	}
	var ids []uint32
	err := l.each(0, l.n, func(i int, e *entry) error {
		ids = l.labelIDs(ids[:0], e)
		for _, id := range ids {
			rows := labelled[id]
			if rows == nil {
				rows = roaring.New()
				labelled[id] = rows
			}
			rows.Add(l.row(i))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(labelled)) {
		if err := l.writeSet(t, codec.SetLabel, id, labelled[id]); err != nil {
			return err
		}
	}
	return nil
}

// writeSet adds rows to the set of a kind (codec.SetLive and its kin) with an id, a layer
// for each container.
func (l *load) writeSet(t *store.Stream, set byte, id uint32, rows *roaring.Bitmap) error {
	return record.ByContainer(rows, func(container uint16, layer codec.Layer) error {
		return l.putRows(t, codec.RowsKey(l.s.ID, set, id, container), container, layer)
	})
}

// writePending adds the rows to the pending rows of each space.
func (l *load) writePending(t *store.Stream) error {
	for _, sp := range l.s.Spaces {
		err := record.ByContainer(l.pending(sp), func(container uint16, layer codec.Layer) error {
			return l.putRows(t, codec.OnlineRowsKey(l.s.ID, sp.ID, codec.SetPending, container), container,
				layer)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putRows adds rows of a container to the set under key. A container in which no row was
// ever used has no layer yet, so there is nothing to merge with.
func (l *load) putRows(t *store.Stream, key []byte, container uint16, layer codec.Layer) error {
	return putLayer(t, key, layer, uint64(container)<<16 >= l.s.FreshRow)
}

// writeFields writes the rows of each value of the indexed fields. Keys ascend by field,
// container and value, so it reads the records again for each field, and holds the values
// of one field in one container at a time.
func (l *load) writeFields(t *store.Stream) error {
	for f, field := range l.s.Fields {
		if !field.Indexed {
			continue
		}
		write := l.writeSlices
		if field.Type == record.String {
			write = l.writeTexts
		}
		if err := l.byContainer(t, uint16(f), write); err != nil {
			return err
		}
	}
	return nil
}

// byContainer calls write for the items of each container of rows.
func (l *load) byContainer(t *store.Stream, field uint16,
	write func(t *store.Stream, field, container uint16, from, to int) error) error {
	for from := 0; from < l.n; {
		to := min(l.n, from+int(1<<16-l.row(from)&(1<<16-1)))
		if err := write(t, field, uint16(l.row(from)>>16), from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// writeWords writes the rows of each term of the fields with an index of words, in the order of writeFields.
// It holds the rows of all terms of one container as bitmaps.
func (l *load) writeWords(t *store.Stream) error {
	for f, field := range l.s.Fields {
		if field.Words {
			if err := l.byContainer(t, uint16(f), l.writeTerms); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTerms writes the rows of each term of a field among the items from to to-1, all of whose rows are in
// the container.
func (l *load) writeTerms(t *store.Stream, field, container uint16, from, to int) error {
	rows := map[string]codec.Layer{}
	err := l.each(from, to, func(i int, e *entry) error {
		found, err := l.terms(t, i, e)
		for _, v := range found.Words {
			if v.Field != field {
				continue
			}
			layer, there := rows[v.Text]
			if !there {
				layer = codec.NewLayer()
				rows[v.Text] = layer
			}
			layer.Added.Add(l.row(i) & (1<<16 - 1))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, term := range slices.Sorted(maps.Keys(rows)) {
		key := codec.FieldWordsKey(l.s.ID, field, container, term)
		if err := l.putRows(t, key, container, rows[term]); err != nil {
			return err
		}
	}
	return nil
}

// terms returns the terms of item i, without labels. Fields may have been indexed since it was checked.
func (l *load) terms(t *store.Stream, i int, e *entry) (record.Terms, error) {
	it, err := e.decodeRecord()
	if err != nil {
		return record.Terms{}, err
	}
	err = l.s.CheckIndexed(it.Fields)
	if err == nil {
		return l.s.Terms(nil, it.Fields)
	}
	if err := t.Wait(l.keyed); err != nil {
		return record.Terms{}, err
	}
	if l.counted {
		return record.Terms{}, fault.OfItem(strconv.FormatUint(l.firstKey+uint64(i), 10), err)
	}
	return record.Terms{}, fault.OfItem(l.keys[i], err)
}

// writeTexts writes the rows of each value of a string field among the items from to to-1,
// all of whose rows are in the container.
func (l *load) writeTexts(t *store.Stream, field, container uint16, from, to int) error {
	type textRow struct {
		text string
		low  uint16
	}
	var rows []textRow
	err := l.each(from, to, func(i int, e *entry) error {
		found, err := l.terms(t, i, e)
		for _, v := range found.Texts {
			if v.Field == field {
				rows = append(rows, textRow{v.Text, uint16(l.row(i))})
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b textRow) int { return strings.Compare(a.text, b.text) })
	for len(rows) > 0 {
		layer, text := codec.NewLayer(), rows[0].text
		for len(rows) > 0 && rows[0].text == text {
			layer.Added.Add(uint32(rows[0].low))
			rows = rows[1:]
		}
		if err := l.putRows(t, codec.FieldRowsKey(l.s.ID, field, container, text), container,
			layer); err != nil {
			return err
		}
	}
	return nil
}

// writeSlices is writeTexts for a field that is bit-sliced: of numbers, bools or times.
func (l *load) writeSlices(t *store.Stream, field, container uint16, from, to int) error {
	var slices state.FieldSlices
	err := l.each(from, to, func(i int, e *entry) error {
		found, err := l.terms(t, i, e)
		for _, v := range found.Numbers {
			if v.Field == field {
				slices.Put(codec.SliceExists, uint16(l.row(i)), true)
				slices.Change(uint16(l.row(i)), v.Image, true)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, layer := range slices {
		if layer.Added == nil {
			continue
		}
		key := codec.FieldRowsKey(l.s.ID, field, container, string([]byte{byte(i)}))
		if err := l.putRows(t, key, container, layer); err != nil {
			return err
		}
	}
	return nil
}
