package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// A change is one item to put, merge or delete.
type change struct {
	collection uint32
	kind       changeKind
	item       *checked  // of a delete and an expectation only the key, of addLabels only the labels
	old        *checked  // of an expectation: the item that must be there; nil: none
	encs       encodings // of a put: made by the caller, for the spaces it saw
	found      bool      // out: the item was there before
}

type changeKind int

const (
	putItem    changeKind = iota
	mergeItem             // set only what is given
	deleteItem            // nothing happens where there is none
	addLabels             // give ids to item.labels, in order
	expectItem            // go on only if what is stored is old
)

// A group is what one commit writes, while it is being made. Blocks and layers
// are collected on the side, one edit each, however many rows they change.
type group struct {
	c        *committer
	batch    *pebble.Batch
	sync     bool
	blocks   map[string]*blockEdit
	layers   map[string]codec.Layer
	slices   map[fieldContainer]*fieldSlices // layers, too
	postings []postingChange
	sets     []*codeSet // that these are of

	// What the store says, read by resolve, and then what the group has made of it.
	rows  map[itemKey]rowState
	items map[itemRow]*checked
	terms map[itemRow]terms // only what the store says; items come first

	// What rows have taught that the group changes; nil: nothing, or nothing any more.
	taught map[spaceRow]*codec.Departure
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

type spaceRow struct{ collection, space, row uint32 }

type rowState struct {
	row   uint32
	found bool
}

func newGroup(c *committer) *group {
	return &group{
		c: c, batch: c.store.NewBatch(),
		blocks: map[string]*blockEdit{}, layers: map[string]codec.Layer{},
		slices: map[fieldContainer]*fieldSlices{},
		terms:  map[itemRow]terms{}, taught: map[spaceRow]*codec.Departure{},
		rows: map[itemKey]rowState{}, items: map[itemRow]*checked{},
	}
}

// resolve reads everything about a request that applying it will need, gives keys
// to items that have none, and finds everything that is wrong with it. It changes
// nothing. It returns about how many bytes the request will write.
func (g *group) resolve(r *request) (bytes int, err error) {
	newLabels := map[uint32]uint64{}
	newRows := map[uint32]uint64{}
	newCodes := map[uint32]uint64{}
	there := map[itemKey]bool{}    // whether the request so far leaves an item under the key
	taught := map[itemKey]bool{}   // what the item under the key has taught is known
	numbers := map[uint32]uint64{} // the next automatic keys, before the request
	defer func() {
		if err != nil { // those that it has taken are free again
			for id, next := range numbers {
				g.c.states[id].counters.NextKey = next
			}
		}
	}()
	for _, ch := range r.changes {
		s := g.c.states[ch.collection]
		if s == nil {
			return 0, notFound("collection %d", ch.collection)
		}
		if ch.kind == expectItem {
			size, err := g.expected(s, ch)
			if err != nil {
				return 0, err
			}
			bytes += size
			continue
		}
		newLabels[s.ID] += uint64(len(ch.item.labels))
		if newLabels[s.ID]+uint64(len(s.labels.all())) > maxRows {
			return 0, fmt.Errorf("%w: labels of collection %q", ErrFull, s.Name)
		}
		bytes += ch.item.bytes() + s.codeBytes() + s.termBytes(ch.item)
		if ch.kind == addLabels {
			continue
		}
		given := ch.item.key
		if ch.item.key == "" {
			if _, taken := numbers[s.ID]; !taken {
				numbers[s.ID] = s.counters.NextKey
			}
			if ch.item.key, err = g.freeKey(s, there); err != nil {
				return 0, err
			}
		}
		key := itemKey{s.ID, ch.item.key}
		st, err := g.row(s, ch.item.key) // before the request
		if err != nil {
			return 0, err
		}
		found, seen := there[key]
		if !seen {
			if found = st.found; found {
				size, err := g.fetch(s, st.row, ch.kind == mergeItem)
				if err != nil {
					return 0, err
				}
				bytes += size
			}
		}
		// Not only where it comes first: a merge of something else may have.
		if st.found && !taught[key] && (ch.teaches() || s.recodes(st.row)) {
			taught[key] = true
			size, err := g.fetchTaught(s, st.row)
			if err != nil {
				return 0, err
			}
			bytes += size
		}
		if !s.loaded() {
			return 0, fmt.Errorf("fddhdb: the codes of collection %q are not loaded", s.Name)
		}
		if ch.kind != deleteItem {
			newCodes[s.ID]++
			for _, sp := range s.spaces {
				if err := sp.roomFor(newCodes[s.ID]); err != nil {
					return 0, annotate(err, "collection %q", s.Name)
				}
			}
		}
		there[key] = ch.kind != deleteItem
		if found || ch.kind == deleteItem {
			continue
		}
		if newRows[s.ID]++; newRows[s.ID]+s.counters.NextRow > maxRows {
			return 0, fmt.Errorf("%w: rows of collection %q", ErrFull, s.Name)
		}
		if s.codesOnly() && ch.item.code == nil {
			return 0, itemError(given, invalid("there is no such item to merge with, and a new one needs a code"))
		}
	}
	if bytes > MaxBatchBytes {
		return 0, invalid("a batch that writes %d bytes, at most %d are possible: split it", bytes, MaxBatchBytes)
	}
	return bytes, nil
}

// codeBytes estimates what the codes of an item take in the batch.
func (s *collectionState) codeBytes() int {
	bytes := 0
	for _, sp := range s.spaces {
		bytes += codesBytes(sp.Bits, len(sp.sets), sp.projectionBytes() > 0)
	}
	return bytes
}

// roomFor refuses more new codes than a space has numbers for.
func (s *spaceState) roomFor(codes uint64) error {
	for _, set := range s.sets {
		if codes+uint64(set.table.Table().Next()) >= maxRows-1 {
			return fmt.Errorf("%w: codes of space %d: train again, or export and import", ErrFull, s.ID)
		}
	}
	return nil
}

// row returns where the item with the key is, as the group leaves it.
func (g *group) row(s *collectionState, key string) (rowState, error) {
	k := itemKey{s.ID, key}
	if st, ok := g.rows[k]; ok {
		return st, nil
	}
	row, found, err := rowOf(g.c.store, s.ID, key)
	if err != nil {
		return rowState{}, err
	}
	st := rowState{row, found}
	g.rows[k] = st
	return st, nil
}

// fetch reads the terms of a row, or with whole its item, unless the group knows
// them. It returns about how many bytes they are.
func (g *group) fetch(s *collectionState, row uint32, whole bool) (bytes int, err error) {
	if !whole {
		return g.fetchTerms(s, row)
	}
	at := itemRow{s.ID, row}
	it := g.items[at]
	if it == nil {
		if it, err = g.stored(s, row); err != nil {
			return 0, err
		}
		if _, err := s.descriptor.terms(nil, it.fields); err != nil {
			return 0, corrupt(err, "item in row %d", row)
		}
		g.items[at] = it
	}
	return it.bytes() + s.termBytes(it), nil
}

// freeKey returns the next number of the collection's counter that no item has
// as its key, also counting those that the request has put so far.
func (g *group) freeKey(s *collectionState, there map[itemKey]bool) (string, error) {
	for s.counters.NextKey < math.MaxUint64 {
		key := strconv.FormatUint(s.counters.NextKey, 10)
		s.counters.NextKey++
		if left, seen := there[itemKey{s.ID, key}]; seen {
			if left {
				continue
			}
			return key, nil // the request deletes it before
		}
		if st, err := g.row(s, key); err != nil || !st.found {
			return key, err
		}
	}
	return "", fmt.Errorf("%w: automatic keys of collection %q", ErrFull, s.Name)
}

// apply applies a request that has been resolved. An error would leave the state in
// memory undefined; only a batch that cannot grow could be the reason.
func (g *group) apply(r *request) error {
	for _, ch := range r.changes {
		if ch.kind == expectItem {
			continue // resolve has seen to it
		}
		s := g.c.states[ch.collection]
		g.c.touch(s)
		var err error
		switch ch.kind {
		case deleteItem:
			err = g.delete(s, ch)
		case addLabels:
			_, err = g.labelIDs(s, ch.item.labels)
		default:
			err = g.put(s, ch)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// layer returns the change to the set under key.
func (g *group) layer(key []byte) codec.Layer {
	l, ok := g.layers[string(key)]
	if !ok {
		l = codec.NewLayer()
		g.layers[string(key)] = l
	}
	return l
}

// setRow adds a row to a set of the collection, or takes it out.
func (g *group) setRow(s *collectionState, into *sharedBitmap, set byte, id, row uint32, in bool) {
	if into.b.Contains(row) == in {
		return
	}
	l := g.layer(codec.RowsKey(s.ID, set, id, uint16(row>>16)))
	if in {
		into.edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.edit().Remove(row)
		l.Delete(uint16(row))
	}
}

// touched tells a training and a builder that are going on that the row is not what
// they have seen.
func (s *collectionState) touched(row uint32) {
	if s.changed != nil {
		s.changed.Add(row)
	}
	for _, sp := range s.spaces {
		if sp.changed != nil {
			sp.changed.Add(row)
		}
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
	g.index(s, row, g.before(s, row), terms{})
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
	for _, sp := range s.spaces {
		if g.taught[spaceRow{s.ID, sp.ID, row}] != nil {
			sp.written++
		}
		if err := g.unlearn(sp, row); err != nil {
			return err
		}
		g.setOnline(sp, codec.SetPending, row, false)
		g.setOnline(sp, codec.SetRecode, row, false)
		if err := g.setCodes(s, sp, row, encoding{}); err != nil {
			return err
		}
	}
	s.counters.Items--
	s.touched(row)
	if err := g.batch.Delete(codec.ItemKey(s.ID, ch.item.key), nil); err != nil {
		return err
	}
	return g.batch.Delete(codec.NumberKey(codec.KindItem, s.ID, row), nil)
}

func (g *group) put(s *collectionState, ch *change) error {
	it, encs := ch.item, ch.encs
	st, err := g.row(s, it.key)
	if err != nil {
		return err
	}
	ch.found = st.found
	if ch.kind == mergeItem {
		encs = nil
		if st.found {
			it = it.over(g.items[itemRow{s.ID, st.row}])
		}
	}
	row := st.row
	var before terms
	if st.found {
		before = g.before(s, row)
	} else {
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
		x := it.vector(t)
		key := codec.FeatureKey(s.ID, row, uint16(t))
		if x.Present() {
			err = g.batch.Set(key, appendVector(nil, x), nil)
		} else if s.presence[t].b.Contains(row) {
			err = g.batch.Delete(key, nil)
		}
		if err != nil {
			return err
		}
		g.setRow(s, &s.presence[t], codec.SetModality, uint32(t), row, x.Present())
	}

	ids, err := g.labelIDs(s, it.labels)
	if err != nil {
		return err
	}
	after, err := s.descriptor.terms(ids, it.fields)
	if err != nil {
		return err
	}
	g.index(s, row, before, after)
	b, err := (&codec.ItemRecord{Labels: ids, Fields: it.fields, Payload: it.payload}).Append(nil)
	if err != nil {
		return err
	}
	if err := g.batch.Set(codec.NumberKey(codec.KindItem, s.ID, row), b, nil); err != nil {
		return err
	}
	for _, sp := range s.spaces {
		if ch.teaches() || sp.recode.b.Contains(row) {
			learns := sp.learnsFrom(it)
			if learns || g.taught[spaceRow{s.ID, sp.ID, row}] != nil {
				sp.written++
			}
			if err := g.unlearn(sp, row); err != nil {
				return err
			}
			g.setOnline(sp, codec.SetPending, row, learns)
		}
		g.setOnline(sp, codec.SetRecode, row, false)
		enc := encs.of(sp.space)
		if enc == nil { // not encoded yet, or space or revision are new
			made, err := sp.encode(it.vectors, ids, it.code)
			if err != nil {
				return err
			}
			enc = &made
		}
		if err := g.setCodes(s, sp, row, *enc); err != nil {
			return err
		}
	}
	return nil
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
			it.vectors = make([]model.Vector, len(s.Modalities))
		}
		x, found, err := readVector(g.c.store, s.ID, row, t, m)
		if err == nil && !found {
			err = corrupt(errors.New("missing"), "features %q of row %d", m.Name, row)
		}
		if err != nil {
			return nil, err
		}
		it.vectors[t] = x
	}
	if s.codesOnly() {
		t := s.active().sets[0].table.Table()
		if n, found := t.CodeOf(row); found {
			it.code = slices.Clone(t.Code(n))
		}
	}
	return it, nil
}
