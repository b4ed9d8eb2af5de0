package db

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// A change is one item to put, merge or delete.
type change struct {
	collection uint32
	kind       changeKind
	item       *checked // of a delete only the key, of addLabels only the labels
	enc        encoding // of a put: made by the caller, for the space it saw
	found      bool     // out: the item was there before
}

type changeKind int

const (
	putItem    changeKind = iota
	mergeItem             // set only what is given
	deleteItem            // nothing happens where there is none
	addLabels             // give ids to item.labels, in order
)

// A group is what one commit writes, while it is being made. Blocks and layers
// are collected on the side, one edit each, however many rows they change.
type group struct {
	c      *committer
	batch  *pebble.Batch
	blocks map[string]*blockEdit
	layers map[string]codec.Layer
	rows   map[itemKey]rowState // of the keys that the group has touched
	items  map[itemRow]*checked // that the group has written
}

// blockEdit is the edit of one block in a group.
type blockEdit struct {
	*codec.BlockEdit
	fresh bool // nothing has been written under its key before
}

type itemKey struct {
	collection uint32
	key        string
}

type itemRow struct{ collection, row uint32 }

type rowState struct {
	row   uint32
	found bool
}

func newGroup(c *committer) *group {
	return &group{
		c: c, batch: c.store.NewBatch(),
		blocks: map[string]*blockEdit{}, layers: map[string]codec.Layer{},
		rows: map[itemKey]rowState{}, items: map[itemRow]*checked{},
	}
}

// apply applies a request. ok is false where the state in memory is undefined
// afterwards; else an error means that nothing was changed.
func (g *group) apply(r *request) (ok bool, err error) {
	if r.exclusive != nil {
		return true, r.exclusive(g)
	}
	if ok, err := g.check(r); err != nil {
		return ok, err
	}
	for _, ch := range r.changes {
		s := g.c.states[ch.collection]
		s.dirty = true
		switch ch.kind {
		case deleteItem:
			err = g.delete(s, ch)
		case addLabels:
			_, err = g.labelIDs(s, ch.item.labels)
		default:
			err = g.put(s, ch)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// check finds everything that is wrong with a request, so that apply cannot
// fail halfway.
func (g *group) check(r *request) (ok bool, err error) {
	newLabels := map[uint32]uint64{}
	rows := map[uint32]uint64{}
	created := map[itemKey]bool{} // whether the request leaves an item under the key
	for _, ch := range r.changes {
		s := g.c.states[ch.collection]
		if s == nil {
			return true, notFound("collection %d has been dropped", ch.collection)
		}
		if ch.kind == putItem || ch.kind == mergeItem {
			rows[s.ID]++
		}
		newLabels[s.ID] += uint64(len(ch.item.labels))
		if rows[s.ID]+s.counters.NextRow > maxRows || newLabels[s.ID]+uint64(len(s.labels.all())) > maxRows {
			return true, fmt.Errorf("%w: collection %q", ErrFull, s.Name)
		}
		if !s.codesOnly() || ch.kind == addLabels {
			continue
		}
		key := itemKey{s.ID, ch.item.key}
		if ch.kind == mergeItem && ch.item.code == nil {
			found, seen := created[key]
			if !seen && key.key != "" {
				st, err := g.row(s, key.key)
				if err != nil {
					return false, err
				}
				found = st.found
			}
			if !found {
				return true, itemError(key.key, invalid("there is no such item to merge with, and a new one needs a code"))
			}
		}
		created[key] = ch.kind != deleteItem
	}
	return true, nil
}

// row returns where the item with the key is, as the group leaves it.
func (g *group) row(s *collectionState, key string) (rowState, error) {
	k := itemKey{s.ID, key}
	if st, ok := g.rows[k]; ok {
		return st, nil
	}
	row, found, err := rowOf(g.c.store, s.ID, key)
	return rowState{row, found}, err
}

// block returns the edit of the block under key.
func (g *group) block(key []byte, width int, fresh bool) *codec.BlockEdit {
	e := g.blocks[string(key)]
	if e == nil {
		e = &blockEdit{codec.NewBlockEdit(width), fresh}
		g.blocks[string(key)] = e
	}
	return e.BlockEdit
}

// keysBlock returns the edit of the block with the key of a row.
func (g *group) keysBlock(s *collectionState, row uint32) *codec.BlockEdit {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= s.freshRow
	return g.block(codec.NumberKey(codec.KindRowKeys, s.ID, block), -1, fresh)
}

// spaceBlock returns the edit of a block of the active space: n is a code number
// for KindCodes, else a row.
func (g *group) spaceBlock(kind byte, s *collectionState, n uint32, width int) *codec.BlockEdit {
	block := n / codec.BlockRows
	first := s.freshRow
	if kind == codec.KindCodes {
		first = s.freshCode
	}
	fresh := s.freshSpace || uint64(block)*codec.BlockRows >= first
	return g.block(codec.SpaceBlockKey(kind, s.ID, s.space.ID, 0, block), width, fresh)
}

// setRow adds a row to a set of the collection, or takes it out.
func (g *group) setRow(s *collectionState, into *sharedBitmap, set byte, id, row uint32, in bool) {
	if into.b.Contains(row) == in {
		return
	}
	key := string(codec.RowsKey(s.ID, set, id, uint16(row>>16)))
	l, ok := g.layers[key]
	if !ok {
		l = codec.NewLayer()
		g.layers[key] = l
	}
	if in {
		into.edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.edit().Remove(row)
		l.Delete(uint16(row))
	}
}

// touched tells a training that is going on that it has to look at the row again.
func (s *collectionState) touched(row uint32) {
	if s.changed != nil {
		s.changed.Add(row)
	}
}

func (g *group) delete(s *collectionState, ch *change) error {
	st, err := g.row(s, ch.item.key)
	if err != nil || !st.found {
		return err
	}
	ch.found = true
	row := st.row
	g.rows[itemKey{s.ID, ch.item.key}] = rowState{}
	delete(g.items, itemRow{s.ID, row})
	for t := range s.presence {
		if s.presence[t].b.Contains(row) {
			if err := g.batch.Delete(codec.FeatureKey(s.ID, row, uint16(t)), nil); err != nil {
				return err
			}
			g.setRow(s, &s.presence[t], codec.SetModality, uint32(t), row, false)
		}
	}
	g.setRow(s, &s.live, codec.SetLive, 0, row, false)
	g.keysBlock(s, row).Clear(byte(row))
	if err := g.setCode(s, row, encoding{}, true); err != nil {
		return err
	}
	s.counters.Items--
	s.touched(row)
	if err := g.batch.Delete(codec.ItemKey(s.ID, ch.item.key), nil); err != nil {
		return err
	}
	return g.batch.Delete(codec.NumberKey(codec.KindItem, s.ID, row), nil)
}

func (g *group) put(s *collectionState, ch *change) error {
	it, enc := ch.item, ch.enc
	var st rowState
	var err error
	if it.key == "" {
		if it.key, err = g.freeKey(s); err != nil {
			return err
		}
	} else if st, err = g.row(s, it.key); err != nil {
		return err
	}
	ch.found = st.found
	if ch.kind == mergeItem {
		enc = encoding{}
		if st.found {
			if it, err = g.merged(s, st.row, it); err != nil {
				return err
			}
		}
	}
	row := st.row
	if !st.found {
		row = uint32(s.counters.NextRow)
		s.counters.NextRow++
		s.counters.Items++
		g.rows[itemKey{s.ID, it.key}] = rowState{row, true}
		g.setRow(s, &s.live, codec.SetLive, 0, row, true)
		g.keysBlock(s, row).Set(byte(row), []byte(it.key))
		if err := g.batch.Set(codec.ItemKey(s.ID, it.key), binary.BigEndian.AppendUint32(nil, row), nil); err != nil {
			return err
		}
	}
	g.items[itemRow{s.ID, row}] = it
	s.touched(row)

	for t := range s.presence {
		var x []float32
		if it.vectors != nil {
			x = it.vectors[t]
		}
		key := codec.FeatureKey(s.ID, row, uint16(t))
		if x != nil {
			err = g.batch.Set(key, codec.AppendFeatures(nil, x), nil)
		} else if s.presence[t].b.Contains(row) {
			err = g.batch.Delete(key, nil)
		}
		if err != nil {
			return err
		}
		g.setRow(s, &s.presence[t], codec.SetModality, uint32(t), row, x != nil)
	}

	ids, err := g.labelIDs(s, it.labels)
	if err != nil {
		return err
	}
	b, err := (&codec.ItemRecord{Labels: ids, Fields: it.fields, Payload: it.payload}).Append(nil)
	if err != nil {
		return err
	}
	if err := g.batch.Set(codec.NumberKey(codec.KindItem, s.ID, row), b, nil); err != nil {
		return err
	}
	if s.space == nil {
		return nil
	}
	if enc.space != s.space { // not encoded yet, or the model has changed since
		if enc, err = s.space.encode(it.vectors, ids, it.code); err != nil {
			return err
		}
	}
	return g.setCode(s, row, enc, st.found)
}

// setCode makes enc the code of the row; an empty one takes the code away. had
// says that the row may have one already.
func (g *group) setCode(s *collectionState, row uint32, enc encoding, had bool) error {
	if s.space == nil {
		return nil
	}
	codes := g.spaceBlock(codec.KindRowCodes, s, row, codec.RowCodeBytes)
	if had {
		old, found, err := g.rowCode(s, codes, row)
		if err != nil {
			return err
		}
		if found {
			s.table.Remove(old.Code, row)
			codes.Clear(byte(row))
		}
	}
	if enc.code != nil {
		n, isNew, err := s.table.Number(enc.code)
		if err != nil {
			return err
		}
		if isNew {
			g.spaceBlock(codec.KindCodes, s, n, codec.Bytes(s.space.Bits)).
				Set(byte(n), enc.code.AppendBytes(nil, s.space.Bits))
		}
		s.table.Add(n, row)
		codes.Set(byte(row), codec.RowCode{Code: n, Provenance: enc.from, Revision: s.space.Revision}.Append(nil))
	}
	if width := s.space.projectionBytes(); width > 0 && (had || enc.projection != nil) {
		projections := g.spaceBlock(codec.KindProjection, s, row, width)
		if enc.projection != nil {
			projections.Set(byte(row), enc.projection)
		} else {
			projections.Clear(byte(row))
		}
	}
	return nil
}

// rowCode returns the code of a row as the group leaves it.
func (g *group) rowCode(s *collectionState, edit *codec.BlockEdit, row uint32) (rc codec.RowCode, found bool, err error) {
	entry, known := edit.Lookup(byte(row))
	switch {
	case !known:
		return rowCode(g.c.store, s.ID, s.space, row)
	case entry == nil:
		return rc, false, nil
	}
	rc, err = codec.DecodeRowCode(entry)
	return rc, err == nil, err
}

// labelIDs returns the ids of labels, ascending, giving new ones to those that
// the collection has not seen.
func (g *group) labelIDs(s *collectionState, labels []string) ([]uint32, error) {
	ids := make([]uint32, 0, len(labels))
	for _, l := range labels {
		id, isNew := s.labels.add(l)
		if isNew {
			if err := g.batch.Set(codec.NumberKey(codec.KindLabel, s.ID, id), []byte(l), nil); err != nil {
				return nil, err
			}
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// freeKey returns the next number of the collection's counter that no item has
// as its key.
func (g *group) freeKey(s *collectionState) (string, error) {
	for s.counters.NextKey < math.MaxUint64 {
		key := strconv.FormatUint(s.counters.NextKey, 10)
		s.counters.NextKey++
		if st, err := g.row(s, key); err != nil || !st.found {
			return key, err
		}
	}
	return "", fmt.Errorf("%w: automatic keys of collection %q", ErrFull, s.Name)
}

// merged returns the item in the row with what is given in it replaced.
func (g *group) merged(s *collectionState, row uint32, it *checked) (*checked, error) {
	old, ok := g.items[itemRow{s.ID, row}]
	if !ok {
		var err error
		if old, err = g.stored(s, row); err != nil {
			return nil, err
		}
	}
	out := *old
	out.key = it.key
	if it.vectors != nil {
		out.vectors = slices.Clone(old.vectors)
		if out.vectors == nil {
			out.vectors = make([][]float32, len(s.Modalities))
		}
		for t, x := range it.vectors {
			if x != nil {
				out.vectors[t] = x
			}
		}
	}
	if it.code != nil {
		out.code = it.code
	}
	if it.labels != nil {
		out.labels = it.labels
	}
	if it.payload != nil {
		out.payload = it.payload
	}
	if it.fields != nil {
		out.fields = slices.Clone(it.fields)
		for _, f := range old.fields {
			if !slices.ContainsFunc(it.fields, func(n codec.Field) bool { return n.ID == f.ID }) {
				out.fields = append(out.fields, f)
			}
		}
		slices.SortFunc(out.fields, func(a, b codec.Field) int { return int(a.ID) - int(b.ID) })
	}
	return &out, nil
}

// stored reads back an item that an earlier commit has written.
func (g *group) stored(s *collectionState, row uint32) (*checked, error) {
	rec, err := readRecord(g.c.store, s.ID, row)
	if err != nil {
		return nil, err
	}
	it := &checked{fields: rec.Fields, payload: rec.Payload}
	for _, id := range rec.Labels {
		name, ok := s.labels.name(id)
		if !ok {
			return nil, corrupt(fmt.Errorf("id %d", id), "label")
		}
		it.labels = append(it.labels, name)
	}
	for t, m := range s.Modalities {
		if !s.presence[t].b.Contains(row) {
			continue
		}
		if it.vectors == nil {
			it.vectors = make([][]float32, len(s.Modalities))
		}
		if it.vectors[t], _, err = readVector(g.c.store, s.ID, row, t, m.Dim); err != nil {
			return nil, err
		}
	}
	if s.codesOnly() {
		rc, found, err := rowCode(g.c.store, s.ID, s.space, row)
		if err != nil {
			return nil, err
		}
		if found {
			it.code = slices.Clone(s.table.Code(rc.Code))
		}
	}
	return it, nil
}
