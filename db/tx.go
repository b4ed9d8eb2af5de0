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
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// A change is one item to put, merge or delete.
type change struct {
	collection uint32
	kind       changeKind
	item       *record.Item     // of a delete and an expectation only the key, of addLabels only the labels
	old        *record.Item     // of an expectation: the item that must be there; nil: none
	encs       spaces.Encodings // of a put: made by the caller, for the spaces it saw
	found      bool             // out: the item was there before
}

type changeKind int

const (
	putItem    changeKind = iota
	mergeItem             // set only what is given
	deleteItem            // nothing happens where there is none
	addLabels             // give ids to item.labels, in order
	expectItem            // go on only if what is stored is old
)

// A tx is what one commit writes, while it is being made. Blocks and layers
// are collected on the side, one edit each, however many rows they change.
type tx struct {
	c        *committer
	batch    *pebble.Batch
	empty    bool // an operation says that there is nothing to commit
	sync     bool
	blocks   map[string]*blockEdit
	layers   map[string]codec.Layer
	slices   map[fieldContainer]*fieldSlices // layers, too
	postings []postingChange
	sets     []*codeSet // that these are of

	// What the store says, read by resolve, and then what the transaction has made of it.
	rows  map[itemKey]rowState
	items map[itemRow]*record.Item
	terms map[itemRow]record.Terms // only what the store says; items come first

	// What rows have taught that the transaction changes; nil: nothing, or nothing any more.
	taught map[spaceRow]*codec.Departure
}

// blockEdit is the edit of one block in a transaction.
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

func newTx(c *committer) *tx {
	return &tx{
		c: c, batch: c.store.NewBatch(),
		blocks: map[string]*blockEdit{}, layers: map[string]codec.Layer{},
		slices: map[fieldContainer]*fieldSlices{},
		terms:  map[itemRow]record.Terms{}, taught: map[spaceRow]*codec.Departure{},
		rows: map[itemKey]rowState{}, items: map[itemRow]*record.Item{},
	}
}

// resolve reads everything about a request that applying it will need, gives keys
// to items that have none, and finds everything that is wrong with it. It changes
// nothing. It returns about how many bytes the request will write.
func (tx *tx) resolve(r *request) (bytes int, err error) {
	newLabels := map[uint32]uint64{}
	newRows := map[uint32]uint64{}
	newCodes := map[uint32]uint64{}
	there := map[itemKey]bool{}    // whether the request so far leaves an item under the key
	taught := map[itemKey]bool{}   // what the item under the key has taught is known
	numbers := map[uint32]uint64{} // the next automatic keys, before the request
	defer func() {
		if err != nil { // those that it has taken are free again
			for id, next := range numbers {
				tx.c.states[id].counters.NextKey = next
			}
		}
	}()
	for _, ch := range r.changes {
		s := tx.c.states[ch.collection]
		if s == nil {
			return 0, fault.NotFound("collection %d", ch.collection)
		}
		if ch.kind == expectItem {
			size, err := tx.expected(s, ch)
			if err != nil {
				return 0, err
			}
			bytes += size
			continue
		}
		newLabels[s.ID] += uint64(len(ch.item.Labels))
		if newLabels[s.ID]+uint64(len(s.labels.all())) > record.MaxRows {
			return 0, fmt.Errorf("%w: labels of collection %q", fault.ErrFull, s.Name)
		}
		bytes += ch.item.Bytes() + s.codeBytes() + s.TermBytes(ch.item)
		if ch.kind == addLabels {
			continue
		}
		given := ch.item.Key
		if ch.item.Key == "" {
			if _, taken := numbers[s.ID]; !taken {
				numbers[s.ID] = s.counters.NextKey
			}
			if ch.item.Key, err = tx.freeKey(s, there); err != nil {
				return 0, err
			}
		}
		key := itemKey{s.ID, ch.item.Key}
		st, err := tx.row(s, ch.item.Key) // before the request
		if err != nil {
			return 0, err
		}
		found, seen := there[key]
		if !seen {
			if found = st.found; found {
				size, err := tx.fetch(s, st.row, ch.kind == mergeItem)
				if err != nil {
					return 0, err
				}
				bytes += size
			}
		}
		// Not only where it comes first: a merge of something else may have.
		if st.found && !taught[key] && (ch.teaches() || s.recodes(st.row)) {
			taught[key] = true
			size, err := tx.fetchTaught(s, st.row)
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
					return 0, fault.Annotate(err, "collection %q", s.Name)
				}
			}
		}
		there[key] = ch.kind != deleteItem
		if found || ch.kind == deleteItem {
			continue
		}
		if newRows[s.ID]++; newRows[s.ID]+s.counters.NextRow > record.MaxRows {
			return 0, fmt.Errorf("%w: rows of collection %q", fault.ErrFull, s.Name)
		}
		if s.CodesOnly() && ch.item.Code == nil {
			return 0, fault.OfItem(given, fault.Invalid("there is no such item to merge with, and a new one needs a code"))
		}
	}
	if bytes > record.MaxBatchBytes {
		return 0, fault.Invalid("a batch that writes %d bytes, at most %d are possible: split it", bytes, record.MaxBatchBytes)
	}
	return bytes, nil
}

// codeBytes estimates what the codes of an item take in the batch.
func (s *collectionState) codeBytes() int {
	bytes := 0
	for _, sp := range s.spaces {
		bytes += codesBytes(sp.Bits, len(sp.sets), sp.ProjectionBytes() > 0)
	}
	return bytes
}

// roomFor refuses more new codes than a space has numbers for.
func (s *spaceState) roomFor(codes uint64) error {
	for _, set := range s.sets {
		if codes+uint64(set.table.Table().Next()) >= record.MaxRows-1 {
			return fmt.Errorf("%w: codes of space %d: train again, or export and import", fault.ErrFull, s.ID)
		}
	}
	return nil
}

// row returns where the item with the key is, as the transaction leaves it.
func (tx *tx) row(s *collectionState, key string) (rowState, error) {
	k := itemKey{s.ID, key}
	if st, ok := tx.rows[k]; ok {
		return st, nil
	}
	row, found, err := record.RowOf(tx.c.store, s.ID, key)
	if err != nil {
		return rowState{}, err
	}
	st := rowState{row, found}
	tx.rows[k] = st
	return st, nil
}

// fetch reads the terms of a row, or with whole its item, unless the transaction knows
// them. It returns about how many bytes they are.
func (tx *tx) fetch(s *collectionState, row uint32, whole bool) (bytes int, err error) {
	if !whole {
		return tx.fetchTerms(s, row)
	}
	at := itemRow{s.ID, row}
	it := tx.items[at]
	if it == nil {
		if it, err = tx.stored(s, row); err != nil {
			return 0, err
		}
		if _, err := s.Descriptor.Terms(nil, it.Fields); err != nil {
			return 0, fault.Corrupt(err, "item in row %d", row)
		}
		tx.items[at] = it
	}
	return it.Bytes() + s.TermBytes(it), nil
}

// freeKey returns the next number of the collection's counter that no item has
// as its key, also counting those that the request has put so far.
func (tx *tx) freeKey(s *collectionState, there map[itemKey]bool) (string, error) {
	for s.counters.NextKey < math.MaxUint64 {
		key := strconv.FormatUint(s.counters.NextKey, 10)
		s.counters.NextKey++
		if left, seen := there[itemKey{s.ID, key}]; seen {
			if left {
				continue
			}
			return key, nil // the request deletes it before
		}
		if st, err := tx.row(s, key); err != nil || !st.found {
			return key, err
		}
	}
	return "", fmt.Errorf("%w: automatic keys of collection %q", fault.ErrFull, s.Name)
}

// apply applies a request that has been resolved. An error would leave the state in
// memory undefined; only a batch that cannot grow could be the reason.
func (tx *tx) apply(r *request) error {
	for _, ch := range r.changes {
		if ch.kind == expectItem {
			continue // resolve has seen to it
		}
		s := tx.c.states[ch.collection]
		tx.c.touch(s)
		var err error
		switch ch.kind {
		case deleteItem:
			err = tx.delete(s, ch)
		case addLabels:
			_, err = tx.labelIDs(s, ch.item.Labels)
		default:
			err = tx.put(s, ch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block returns the edit of the block under key.
func (tx *tx) block(key []byte, width int, fresh bool) *codec.BlockEdit {
	e := tx.blocks[string(key)]
	if e == nil {
		e = &blockEdit{codec.NewBlockEdit(width), fresh}
		tx.blocks[string(key)] = e
	}
	return e.BlockEdit
}

// keysBlock returns the edit of the block with the key of a row.
func (tx *tx) keysBlock(s *collectionState, row uint32) *codec.BlockEdit {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= s.freshRow
	return tx.block(codec.NumberKey(codec.KindRowKeys, s.ID, block), -1, fresh)
}

// layer returns the change to the set under key.
func (tx *tx) layer(key []byte) codec.Layer {
	l, ok := tx.layers[string(key)]
	if !ok {
		l = codec.NewLayer()
		tx.layers[string(key)] = l
	}
	return l
}

// setRow adds a row to a set of the collection, or takes it out.
func (tx *tx) setRow(s *collectionState, into *sharedBitmap, set byte, id, row uint32, in bool) {
	if into.b.Contains(row) == in {
		return
	}
	l := tx.layer(codec.RowsKey(s.ID, set, id, uint16(row>>16)))
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

func (tx *tx) delete(s *collectionState, ch *change) error {
	st, err := tx.row(s, ch.item.Key)
	if err != nil || !st.found {
		return err
	}
	ch.found = true
	row := st.row
	tx.rows[itemKey{s.ID, ch.item.Key}] = rowState{}
	tx.index(s, row, tx.before(s, row), record.Terms{})
	delete(tx.items, itemRow{s.ID, row})
	for t := range s.presence {
		if s.presence[t].b.Contains(row) {
			if err := tx.batch.Delete(codec.FeatureKey(s.ID, row, uint16(t)), nil); err != nil {
				return err
			}
			tx.setRow(s, &s.presence[t], codec.SetModality, uint32(t), row, false)
		}
	}
	tx.setRow(s, &s.live, codec.SetLive, 0, row, false)
	tx.keysBlock(s, row).Clear(byte(row))
	for _, sp := range s.spaces {
		if tx.taught[spaceRow{s.ID, sp.ID, row}] != nil {
			sp.written++
		}
		if err := tx.unlearn(sp, row); err != nil {
			return err
		}
		tx.setOnline(sp, codec.SetPending, row, false)
		tx.setOnline(sp, codec.SetRecode, row, false)
		if err := tx.setCodes(s, sp, row, spaces.Encoding{}); err != nil {
			return err
		}
	}
	s.counters.Items--
	s.touched(row)
	if err := tx.batch.Delete(codec.ItemKey(s.ID, ch.item.Key), nil); err != nil {
		return err
	}
	return tx.batch.Delete(codec.NumberKey(codec.KindItem, s.ID, row), nil)
}

func (tx *tx) put(s *collectionState, ch *change) error {
	it, encs := ch.item, ch.encs
	st, err := tx.row(s, it.Key)
	if err != nil {
		return err
	}
	ch.found = st.found
	if ch.kind == mergeItem {
		encs = nil
		if st.found {
			it = it.Over(tx.items[itemRow{s.ID, st.row}])
		}
	}
	row := st.row
	var before record.Terms
	if st.found {
		before = tx.before(s, row)
	} else {
		row = uint32(s.counters.NextRow)
		s.counters.NextRow++
		s.counters.Items++
		tx.rows[itemKey{s.ID, it.Key}] = rowState{row, true}
		tx.setRow(s, &s.live, codec.SetLive, 0, row, true)
		tx.keysBlock(s, row).Set(byte(row), []byte(it.Key))
		if err := tx.batch.Set(codec.ItemKey(s.ID, it.Key), binary.BigEndian.AppendUint32(nil, row), nil); err != nil {
			return err
		}
	}
	tx.items[itemRow{s.ID, row}] = it
	s.touched(row)

	for t := range s.presence {
		x := it.Vector(t)
		key := codec.FeatureKey(s.ID, row, uint16(t))
		if x.Present() {
			err = tx.batch.Set(key, record.AppendVector(nil, x), nil)
		} else if s.presence[t].b.Contains(row) {
			err = tx.batch.Delete(key, nil)
		}
		if err != nil {
			return err
		}
		tx.setRow(s, &s.presence[t], codec.SetModality, uint32(t), row, x.Present())
	}

	ids, err := tx.labelIDs(s, it.Labels)
	if err != nil {
		return err
	}
	after, err := s.Descriptor.Terms(ids, it.Fields)
	if err != nil {
		return err
	}
	tx.index(s, row, before, after)
	b, err := (&codec.ItemRecord{Labels: ids, Fields: it.Fields, Payload: it.Payload}).Append(nil)
	if err != nil {
		return err
	}
	if err := tx.batch.Set(codec.NumberKey(codec.KindItem, s.ID, row), b, nil); err != nil {
		return err
	}
	for _, sp := range s.spaces {
		if ch.teaches() || sp.recode.b.Contains(row) {
			learns := sp.LearnsFrom(it)
			if learns || tx.taught[spaceRow{s.ID, sp.ID, row}] != nil {
				sp.written++
			}
			if err := tx.unlearn(sp, row); err != nil {
				return err
			}
			tx.setOnline(sp, codec.SetPending, row, learns)
		}
		tx.setOnline(sp, codec.SetRecode, row, false)
		enc := encs.Of(sp.Space)
		if enc == nil { // not encoded yet, or space or revision are new
			made, err := sp.Encode(it.Vectors, ids, it.Code)
			if err != nil {
				return err
			}
			enc = &made
		}
		if err := tx.setCodes(s, sp, row, *enc); err != nil {
			return err
		}
	}
	return nil
}

// labelIDs returns the ids of labels, ascending, giving new ones to those that
// the collection has not seen.
func (tx *tx) labelIDs(s *collectionState, labels []string) ([]uint32, error) {
	ids := make([]uint32, 0, len(labels))
	for _, l := range labels {
		id, isNew := s.labels.add(l)
		if isNew {
			if err := tx.batch.Set(codec.NumberKey(codec.KindLabel, s.ID, id), []byte(l), nil); err != nil {
				return nil, err
			}
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// stored reads back an item that an earlier commit has written.
func (tx *tx) stored(s *collectionState, row uint32) (*record.Item, error) {
	rec, err := record.ReadItem(tx.c.store, s.ID, row)
	if err != nil {
		return nil, err
	}
	it := &record.Item{Fields: rec.Fields, Payload: rec.Payload}
	for _, id := range rec.Labels {
		name, ok := s.labels.name(id)
		if !ok {
			return nil, fault.Corrupt(fmt.Errorf("id %d", id), "label")
		}
		it.Labels = append(it.Labels, name)
	}
	for t, m := range s.Modalities {
		if !s.presence[t].b.Contains(row) {
			continue
		}
		if it.Vectors == nil {
			it.Vectors = make([]model.Vector, len(s.Modalities))
		}
		x, found, err := record.ReadVector(tx.c.store, s.ID, row, t, m)
		if err == nil && !found {
			err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, row)
		}
		if err != nil {
			return nil, err
		}
		it.Vectors[t] = x
	}
	if s.CodesOnly() {
		t := s.active().sets[0].table.Table()
		if n, found := t.CodeOf(row); found {
			it.Code = slices.Clone(t.Code(n))
		}
	}
	return it, nil
}
