package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// resolve reads everything that applying the request needs, and gives keys to items without one. It finds
// every error: a dropped collection, a conflict, exhausted numbers, a record that is damaged or unreadable.
// It changes nothing stored or visible, and after an error takes the automatic keys back. It returns about
// how many bytes the request will write. Only this transaction may apply the resolved request.
//
// It costs a look-up of each key. For an existing item it also reads the terms, or for a merge the whole
// item, and its lessons.
func (tx *Tx) resolve(r *Request) (bytes int, err error) {
	// Upper bounds of what the request adds to each collection: numbers must not run out.
	newLabels := map[uint32]uint64{}
	newRows := map[uint32]uint64{}
	newCodes := map[uint32]uint64{}
	there := map[itemKey]bool{}    // whether the request so far leaves an item under the key
	taught := map[itemKey]bool{}   // the lessons of the item under the key are known
	numbers := map[uint32]uint64{} // the next automatic keys, before the request
	defer func() {
		if err != nil { // the keys that it has taken are free again
			for id, next := range numbers {
				tx.Committer.States[id].Counters.NextKey = next
			}
		}
	}()
	for _, m := range r.Marks {
		bytes += m.Bytes()
	}
	for _, ch := range r.Changes { // in order: each depends on the result of those before
		s := tx.Committer.States[ch.Collection]
		if s == nil {
			return 0, fault.NotFound("collection %d", ch.Collection)
		}
		if ch.Kind == ExpectItem {
			size, err := tx.expected(s, ch)
			if err != nil {
				return 0, err
			}
			bytes += size
			continue
		}
		if err := s.CheckIndexed(ch.Item.Fields); err != nil { // a field has been indexed since the item was checked
			return 0, fault.OfItem(ch.Item.Key, err)
		}
		newLabels[s.ID] += uint64(len(ch.Item.Labels))
		if newLabels[s.ID]+uint64(len(s.Labels.All())) > record.MaxRows {
			return 0, fmt.Errorf("%w: labels of collection %q", fault.ErrFull, s.Name)
		}
		bytes += ch.Item.Bytes() + s.CodeBytes() + s.TermBytes(ch.Item)
		if ch.Kind == AddLabels {
			continue
		}
		given := ch.Item.Key
		if ch.Item.Key == "" {
			if _, taken := numbers[s.ID]; !taken {
				numbers[s.ID] = s.Counters.NextKey
			}
			if ch.Item.Key, err = tx.freeKey(s, there); err != nil {
				return 0, err
			}
		}
		key := itemKey{s.ID, ch.Item.Key}
		st, err := tx.row(s, ch.Item.Key) // before the request
		if err != nil {
			return 0, err
		}
		found, seen := there[key]
		if !seen {
			if found = st.found; found {
				size, err := tx.fetch(s, st.row, ch.Kind == MergeItem)
				if err != nil {
					return 0, err
				}
				bytes += size
			}
		}
		// Check every change of the key: the first may have been a merge that teaches nothing, for example of
		// the payload.
		if st.found && !taught[key] && (ch.teaches() || s.recodes(st.row)) {
			taught[key] = true
			size, err := tx.FetchTaught(s, st.row)
			if err != nil {
				return 0, err
			}
			bytes += size
		}
		if !s.loaded() {
			return 0, fmt.Errorf("fddhdb: the codes of collection %q are not loaded", s.Name)
		}
		if ch.Kind != DeleteItem {
			newCodes[s.ID]++
			for _, sp := range s.Spaces {
				if err := sp.RoomFor(newCodes[s.ID]); err != nil {
					return 0, fault.Annotate(err, "collection %q", s.Name)
				}
			}
		}
		there[key] = ch.Kind != DeleteItem
		if found || ch.Kind == DeleteItem {
			continue
		}
		if newRows[s.ID]++; newRows[s.ID]+s.Counters.NextRow > record.MaxRows {
			return 0, fmt.Errorf("%w: rows of collection %q", fault.ErrFull, s.Name)
		}
		if s.CodesOnly() && ch.Item.Code == nil {
			return 0, fault.OfItem(given, fault.Invalid("there is no such item to merge with, and a new one needs a code"))
		}
	}
	if bytes > record.MaxBatchBytes {
		return 0, fault.Invalid("a batch that writes %d bytes, at most %d are possible: split it", bytes, record.MaxBatchBytes)
	}
	return bytes, nil
}

// apply applies a request that this transaction has resolved, to memory and to the Tx. It reads nothing from
// the store. Only an unchecked item could cause an error.
func (tx *Tx) apply(r *Request) error {
	for _, m := range r.Marks {
		if err := tx.records.Mark(m); err != nil {
			return err
		}
	}
	for _, ch := range r.Changes {
		if ch.Kind == ExpectItem {
			continue // resolve has seen to it
		}
		s := tx.Committer.States[ch.Collection]
		tx.Committer.Touch(s)
		var err error
		switch ch.Kind {
		case DeleteItem:
			err = tx.delete(s, ch)
		case AddLabels:
			_, err = tx.labelIDs(s, ch.Item.Labels)
		default:
			err = tx.put(s, ch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freeKey returns the next number of the collection's counter that is not the key of an item, also counting
// items that the request has put so far (there). Skipped numbers are not tried again.
func (tx *Tx) freeKey(s *CollectionState, there map[itemKey]bool) (string, error) {
	for s.Counters.NextKey < math.MaxUint64 {
		key := strconv.FormatUint(s.Counters.NextKey, 10)
		s.Counters.NextKey++
		if left, seen := there[itemKey{s.ID, key}]; seen {
			if left {
				continue
			}
			return key, nil // the request deletes it first
		}
		if st, err := tx.row(s, key); err != nil || !st.found {
			return key, err
		}
	}
	return "", fmt.Errorf("%w: automatic keys of collection %q", fault.ErrFull, s.Name)
}

// Adopt makes an item of a row whose records a repair has stored, but which is in no set of rows and is not
// counted. It adds the row to the live rows, to the sets of its terms, and to the modalities whose presence
// has it. It makes no codes. The caller calls Touch.
func (tx *Tx) Adopt(s *CollectionState, row uint32, presence []*roaring.Bitmap, terms record.Terms) {
	tx.setRow(s, &s.Live, codec.SetLive, 0, row, true)
	for t, rows := range presence {
		if rows.Contains(row) {
			tx.setRow(s, &s.Presence[t], codec.SetModality, uint32(t), row, true)
		}
	}
	tx.index(s, row, record.Terms{}, terms)
	s.Counters.Items++
}

// delete applies a resolved DeleteItem. Of the item only its lessons remain, as queued retractions. Its row
// is not reused.
func (tx *Tx) delete(s *CollectionState, ch *Change) error {
	st, err := tx.row(s, ch.Item.Key)
	if err != nil || !st.found {
		return err
	}
	ch.Found = true
	row := st.row
	tx.rows[itemKey{s.ID, ch.Item.Key}] = rowState{}
	tx.index(s, row, tx.before(s, row), record.Terms{})
	delete(tx.items, itemRow{s.ID, row})
	for t := range s.Presence {
		if s.Presence[t].B.Contains(row) {
			if err := tx.Batch.Delete(codec.FeatureKey(s.ID, row, uint16(t)), nil); err != nil {
				return err
			}
			tx.setRow(s, &s.Presence[t], codec.SetModality, uint32(t), row, false)
			tx.changedRow(s, row, t)
			s.putVector(t, row, model.Vector{})
		}
	}
	tx.setRow(s, &s.Live, codec.SetLive, 0, row, false)
	tx.keysBlock(s, row).Clear(byte(row))
	for _, sp := range s.Spaces {
		if tx.departures[spaceRow{s.ID, sp.ID, row}] != nil {
			sp.Written++
		}
		if err := tx.Unlearn(sp, row); err != nil {
			return err
		}
		tx.SetOnline(sp, codec.SetPending, row, false)
		tx.SetOnline(sp, codec.SetRecode, row, false)
		if err := tx.SetCodes(s, sp, row, spaces.Encoding{}); err != nil {
			return err
		}
	}
	s.Counters.Items--
	s.touched(row)
	if err := tx.Batch.Delete(codec.ItemKey(s.ID, ch.Item.Key), nil); err != nil {
		return err
	}
	return tx.Batch.Delete(codec.NumberKey(codec.KindItem, s.ID, row), nil)
}

// put applies a resolved PutItem or MergeItem. It writes the records of the item, updates the sets of rows by
// the differences, queues retractions of its lessons, and sets its codes in all spaces. That includes a space
// being built, so a builder need not come back for it. Codes that the caller made by the present revision are
// used; others are made here.
func (tx *Tx) put(s *CollectionState, ch *Change) error {
	it, encs := ch.Item, ch.Encs
	st, err := tx.row(s, it.Key)
	if err != nil {
		return err
	}
	ch.Found = st.found
	if ch.EncodedBy != s.Labels { // a label has been renamed since
		encs = nil
	}
	if ch.Kind == MergeItem {
		encs = nil
		if st.found {
			it = it.Over(tx.items[itemRow{s.ID, st.row}])
		}
	}
	row := st.row // an overwrite keeps the row, a new item gets an unused one
	var before record.Terms
	if st.found {
		before = tx.before(s, row)
	} else {
		row = uint32(s.Counters.NextRow)
		s.Counters.NextRow++
		s.Counters.Items++
		tx.rows[itemKey{s.ID, it.Key}] = rowState{row, true}
		tx.setRow(s, &s.Live, codec.SetLive, 0, row, true)
		tx.keysBlock(s, row).Set(byte(row), []byte(it.Key))
		if err := tx.records.Key(s.ID, it.Key, row); err != nil {
			return err
		}
	}
	tx.items[itemRow{s.ID, row}] = it
	s.touched(row)

	// Presence says which features the store has, so finding what to delete needs no read.
	for t := range s.Presence {
		x := it.Vector(t)
		if x.Present() || s.Presence[t].B.Contains(row) {
			tx.changedRow(s, row, t)
		}
		if x.Present() {
			err = tx.records.Vector(s.ID, row, uint16(t), x)
		} else if s.Presence[t].B.Contains(row) {
			err = tx.Batch.Delete(codec.FeatureKey(s.ID, row, uint16(t)), nil)
		}
		if err != nil {
			return err
		}
		tx.setRow(s, &s.Presence[t], codec.SetModality, uint32(t), row, x.Present())
		s.putVector(t, row, x)
	}

	ids, err := tx.labelIDs(s, it.Labels)
	if err != nil {
		return err
	}
	s.refuseIndex(row, it)
	after, err := s.filteredAt(row).Terms(ids, it.Fields)
	if err != nil {
		return err
	}
	tx.index(s, row, before, after)
	if err := tx.records.Item(s.ID, row, codec.ItemRecord{Labels: ids, Fields: it.Fields, Payload: it.Payload}); err != nil {
		return err
	}
	for _, sp := range s.Spaces {
		// The lesson of the row is retracted with the replaced features, and its new state waits for the next
		// update.
		if ch.teaches() || sp.Recode.B.Contains(row) {
			learns := sp.LearnsFrom(it)
			if learns || tx.departures[spaceRow{s.ID, sp.ID, row}] != nil {
				sp.Written++
			}
			if err := tx.Unlearn(sp, row); err != nil {
				return err
			}
			tx.SetOnline(sp, codec.SetPending, row, learns)
		}
		tx.SetOnline(sp, codec.SetRecode, row, false)
		enc := encs.Of(sp.Space)
		if enc == nil { // not encoded yet, or the space or revision is new
			made, err := sp.Encode(it.Vectors, ids, it.Code)
			if err != nil {
				return err
			}
			enc = &made
		}
		if err := tx.SetCodes(s, sp, row, *enc); err != nil {
			return err
		}
	}
	return nil
}

// labelIDs returns the ids of distinct labels, ascending. It gives new labels the next ids, in order, and
// stores them.
func (tx *Tx) labelIDs(s *CollectionState, labels []string) ([]uint32, error) {
	ids := make([]uint32, 0, len(labels))
	for _, l := range labels {
		id, isNew := s.Labels.Add(l)
		if isNew {
			if err := tx.records.Label(s.ID, id, l); err != nil {
				return nil, err
			}
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// readItem reads an item of an earlier commit, without its key.
func (tx *Tx) readItem(s *CollectionState, row uint32) (*record.Item, error) {
	rec, err := record.ReadItem(tx.Committer.kv, s.ID, row)
	if err != nil {
		return nil, err
	}
	it := &record.Item{Fields: rec.Fields, Payload: rec.Payload}
	for _, id := range rec.Labels {
		name, ok := s.Labels.Name(id)
		if !ok {
			return nil, fault.Corrupt(fmt.Errorf("id %d", id), "label")
		}
		it.Labels = append(it.Labels, name)
	}
	for t, m := range s.Modalities {
		if !s.Presence[t].B.Contains(row) {
			continue
		}
		if it.Vectors == nil {
			it.Vectors = make([]model.Vector, len(s.Modalities))
		}
		x, found, err := record.ReadVector(tx.Committer.kv, s.ID, row, t, m)
		if err == nil && !found {
			err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, row)
		}
		if err != nil {
			return nil, err
		}
		it.Vectors[t] = x
	}
	if s.CodesOnly() {
		t := s.Active().Codes.Table.Table()
		if n, found := t.CodeOf(row); found {
			it.Code = slices.Clone(t.Code(n))
		}
	}
	return it, nil
}

// CodesBytes estimates the bytes in the batch for one code of an item.
func CodesBytes(bits int, projections bool) int {
	n := codec.RowCodeBytes + codec.CodeEntryBytes(bits) + record.Split(bits).Len()*postingEditBytes
	if projections {
		n += codec.ProjectionBytes(bits)
	}
	return n
}
