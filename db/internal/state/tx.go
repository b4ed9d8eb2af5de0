package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// put and delete write the records of one item at a time, and package bulk writes many new items, both
// through a record.Writer:
//
//	codec.KindKey, KindRowKeys   from its key to its row and back
//	KindItem, KindFeatures       what it is: labels, fields and payload; a vector for each modality
//	KindRows, KindFieldRows,     the sets of rows that it is in: live, modalities, labels, values and words
//	KindFieldWords               of fields
//	KindRowCodes, KindCodes,     its code in each space (SetCodes)
//	KindCodeRows, KindSubstring
//	KindProjection               its projection in each space (SetCodes)
//	KindLessons, KindRetraction,     what it has taught and has to teach each space (Unlearn, SetOnline)
//	KindOnlineRows
//
// A new kind of item record needs code in both.

// A Change puts, merges or deletes one item, or is a condition for the changes after it. It belongs to a
// Request. The committer sets Item.Key if it is "", and Found.
type Change struct {
	Collection uint32 // id
	Kind       ChangeKind
	Found      bool         // set by apply, of a put, merge or delete: the item existed before
	Item       *record.Item // of a delete or an expectation only the key, of AddLabels only the labels
	Old        *record.Item // of an expectation: the item that must exist; nil: none
	// of a put: made by the caller for the spaces that it saw, to spare the committer
	Encs spaces.Encodings
	// of a put: the labels that Encs were made with; in other Labels ids may differ
	EncodedBy *Labels
}

// A ChangeKind says what a Change does.
type ChangeKind byte

const (
	PutItem ChangeKind = iota // replace the item under the key as a whole
	// replace only the given parts, see record.Item.Over; without an old item it is a put
	MergeItem
	DeleteItem // do nothing if there is no item
	AddLabels  // give ids to Item.Labels, in order
	ExpectItem // refuse the request, with an ErrConflict, unless the stored item is Old
)

// A Tx collects the writes of one commit, from one or more requests. It belongs to the committer: requests
// get it, and must not keep it. It changes the states in memory at once, so if it then cannot be committed,
// the database fails. Blocks, layers and postings are collected apart, one edit each, however many rows they
// change. finish adds them to the batch.
type Tx struct {
	Committer *Committer    // its maker; operations use its States and Reader
	Batch     *pebble.Batch // all records that are written whole; do not read them back
	Empty     bool          // set by an operation: there is nothing to commit

	records *record.Writer // writes to Batch

	blocks   map[string]*blockEdit           // by key
	Layers   map[string]codec.Layer          // changes to sets of rows, by key
	slices   map[fieldContainer]*FieldSlices // changes to the bit slices of indexed fields
	postings []posting                       // to be deleted, in the order in which they came
	sets     []*CodeSet                      // sets of the postings, see posting.set

	// Records that the transaction has read, by resolve and its helpers, and then its own changes of them. A
	// change is resolved and applied against the earlier changes of the transaction, which the store does not
	// have yet.
	rows  map[itemKey]rowState     // rows of items
	items map[itemRow]*record.Item // items that were read or written whole
	terms map[itemRow]record.Terms // stored terms of items; items take precedence

	// retractions has the lessons of rows that the transaction changes, with the features stored before it.
	// nil: no lesson, or no longer one.
	retractions map[spaceRow]*codec.Retraction
}

// blockEdit is the edit of one block in a transaction.
type blockEdit struct {
	*codec.BlockEdit
	fresh bool // its key has never been written, so it is stored whole
}

// An itemKey is the key of an item in its collection.
type itemKey struct {
	collection uint32
	key        string
}

// An itemRow is a row of a collection.
type itemRow struct{ collection, row uint32 }

// A spaceRow is a row of a collection in one of its spaces.
type spaceRow struct{ collection, space, row uint32 }

// A rowState says whether a key has an item, and in which row.
type rowState struct {
	row   uint32
	found bool
}

// newTx returns an empty transaction. Close its batch.
func newTx(c *Committer) *Tx {
	batch := c.kv.NewBatch()
	c.records.Reset(batchSink{batch})
	return &Tx{
		Committer: c, Batch: batch, records: &c.records,
		blocks: map[string]*blockEdit{}, Layers: map[string]codec.Layer{},
		slices: map[fieldContainer]*FieldSlices{},
		terms:  map[itemRow]record.Terms{}, retractions: map[spaceRow]*codec.Retraction{},
		rows: map[itemKey]rowState{}, items: map[itemRow]*record.Item{},
	}
}

// A batchSink makes a batch the sink of a record.Writer.
type batchSink struct{ b *pebble.Batch }

func (s batchSink) Delete(key []byte) error       { return s.b.Delete(key, nil) }
func (s batchSink) Set(key, value []byte) error   { return s.b.Set(key, value, nil) }
func (s batchSink) Merge(key, value []byte) error { return s.b.Merge(key, value, nil) }

// CodeBytes estimates the bytes in the batch for the codes of an item, in all spaces of the collection.
func (s *CollectionState) CodeBytes() int {
	bytes := 0
	for _, sp := range s.Spaces {
		bytes += CodesBytes(sp.Bits, sp.ProjectionBytes() > 0)
	}
	return bytes
}

// RoomFor returns an ErrFull if the space lacks numbers for so many new codes. Numbers of deleted codes are
// not reused, so a space with few codes may run out of them.
func (s *SpaceState) RoomFor(codes uint64) error {
	if codes+uint64(s.Codes.Table.Table().Next()) >= record.MaxRows-1 {
		return fmt.Errorf("%w: codes of space %d: train again, or export and import", fault.ErrFull, s.ID)
	}
	return nil
}

// write resolves requests, calls admit after each with an estimate of all bytes so far, and then applies all
// of them. After an error of resolve or admit nothing has changed. After an error of apply the memory is
// unreliable, so write fails the database. Every request reaches the Tx through write. Of several requests
// none may depend on another.
func (tx *Tx) write(admit func(bytes int) error, requests ...*Request) error {
	bytes := 0
	for _, r := range requests {
		size, err := tx.resolve(r)
		if err != nil {
			return err
		}
		bytes += size
		if err := admit(bytes); err != nil {
			return err
		}
	}
	for _, r := range requests {
		if err := tx.apply(r); err != nil {
			tx.Committer.Log.Fail(err)
			return tx.Committer.Log.Err()
		}
	}
	return nil
}

// row returns the row of the item with the key, as the transaction has left it so far.
func (tx *Tx) row(s *CollectionState, key string) (rowState, error) {
	k := itemKey{s.ID, key}
	if st, ok := tx.rows[k]; ok {
		return st, nil
	}
	row, found, err := record.RowOf(tx.Committer.kv, s.ID, key)
	if err != nil {
		return rowState{}, err
	}
	st := rowState{row, found}
	tx.rows[k] = st
	return st, nil
}

// fetch reads the terms of a row with an item, or with whole the item itself, unless the transaction knows
// them. It returns about how many bytes they are.
func (tx *Tx) fetch(s *CollectionState, row uint32, whole bool) (bytes int, err error) {
	if !whole {
		return tx.fetchTerms(s, row)
	}
	at := itemRow{s.ID, row}
	it := tx.items[at]
	if it == nil {
		if it, err = tx.readItem(s, row); err != nil {
			return 0, err
		}
		if _, err := s.filteredAt(row).Terms(nil, it.Fields); err != nil {
			return 0, fault.Corrupt(err, "item in row %d", row)
		}
		tx.items[at] = it
	}
	return it.Bytes() + s.TermBytes(it), nil
}

// Block returns the edit of the block under key, to be changed; the transaction has one for each key. width
// is the width of all entries of the kind, negative if they differ. fresh says that the key has never been
// written. Both count only in the first call for a key.
func (tx *Tx) Block(key []byte, width int, fresh bool) *codec.BlockEdit {
	e := tx.blocks[string(key)]
	if e == nil {
		e = &blockEdit{tx.Committer.blockEdit(width), fresh}
		tx.blocks[string(key)] = e
	}
	return e.BlockEdit
}

// keysBlock returns the edit of the block for the key of a row's item.
func (tx *Tx) keysBlock(s *CollectionState, row uint32) *codec.BlockEdit {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= s.FreshRow
	return tx.Block(codec.NumberKey(codec.KindRowKeys, s.ID, block), -1, fresh)
}

// layer returns the transaction's change to the set of rows under key, to be changed.
func (tx *Tx) layer(key []byte) codec.Layer {
	l, ok := tx.Layers[string(key)]
	if !ok {
		l = codec.NewLayer()
		tx.Layers[string(key)] = l
	}
	return l
}

// setRow adds a row to a set of the collection, in memory (into) and in the store (set and id), or takes it
// out. If nothing changes, it costs nothing.
func (tx *Tx) setRow(s *CollectionState, into *sharedBitmap, set byte, id, row uint32, in bool) {
	if into.B.Contains(row) == in {
		return
	}
	l := tx.layer(codec.RowsKey(s.ID, set, id, uint16(row>>16)))
	if in {
		into.Edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.Edit().Remove(row)
		l.Delete(uint16(row))
	}
}

// touched tells running trainings, builders, updates and watches that their views have an old state of the
// row.
func (s *CollectionState) touched(row uint32) {
	for _, w := range s.watches {
		w.Add(row)
	}
	if s.Changed != nil {
		s.Changed.Add(row)
	}
	for _, sp := range s.Spaces {
		if sp.Changed != nil {
			sp.Changed.Add(row)
		}
	}
}

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
		// a field has been indexed since the item was checked
		if err := s.CheckIndexed(ch.Item.Fields); err != nil {
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
			return 0, fault.OfItem(given,
				fault.Invalid("there is no such item to merge with, and a new one needs a code"))
		}
	}
	if bytes > record.MaxBatchBytes {
		return 0, fault.Invalid("a batch that writes %d bytes, at most %d are possible: split it", bytes,
			record.MaxBatchBytes)
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
		if tx.retractions[spaceRow{s.ID, sp.ID, row}] != nil {
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
	if err := tx.records.Item(s.ID, row, codec.ItemRecord{Labels: ids, Fields: it.Fields,
		Payload: it.Payload}); err != nil {
		return err
	}
	for _, sp := range s.Spaces {
		// The lesson of the row is retracted with the replaced features, and its new state waits for the next
		// update.
		if ch.teaches() || sp.Recode.B.Contains(row) {
			learns := sp.LearnsFrom(it)
			if learns || tx.retractions[spaceRow{s.ID, sp.ID, row}] != nil {
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

// postingEditBytes estimates what one edit of a posting takes in a batch.
const postingEditBytes = 32

// CodesBytes estimates the bytes that are written for one code of an item, with its postings.
func CodesBytes(bits int, projections bool) int {
	n := codec.RowCodeBytes + codec.CodeEntryBytes(bits) + record.Split(bits).Len()*postingEditBytes
	if projections {
		n += codec.ProjectionBytes(bits)
	}
	return n
}

// DeleteItems deletes the n items of a collection whose rows and keys each yields, and returns n. The
// transaction does nothing else. Rows and keys must be of the present state. More than one commit can hold is
// an ErrInvalid. After any error but ErrFailed, also one of each or of the context, nothing has changed.
func (tx *Tx) DeleteItems(ctx context.Context, s *CollectionState, n int,
	each func(f func(row uint32, key string) error) error) (int, error) {
	tooMany := fault.Invalid("%d items, with what they have taught (docs/VERSIONING.md), are too many to delete in one commit: narrow the expression", n)
	// at least, before anything is read
	if n*((&record.Item{}).Bytes()+s.CodeBytes()) > record.MaxBatchBytes {
		return 0, tooMany
	}
	changes := make([]*Change, 0, n)
	err := each(func(row uint32, key string) error {
		tx.rows[itemKey{s.ID, key}] = rowState{row, true}
		changes = append(changes, &Change{Collection: s.ID, Kind: DeleteItem, Item: &record.Item{Key: key}})
		return ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	var parts []*Request // so that the context is checked now and then
	for part := range slices.Chunk(changes, 1024) {
		parts = append(parts, &Request{Changes: part})
	}
	features := n * 16 * len(s.Modalities) // bytes of deletion records
	err = tx.write(func(bytes int) error {
		if features+bytes > record.MaxBatchBytes {
			return tooMany
		}
		return ctx.Err()
	}, parts...)
	if err != nil {
		return 0, err
	}
	return n, nil
}

// expected resolves an ExpectItem. It returns an ErrConflict unless the item under the key is Old, bit for
// bit, or is absent if Old is nil, as the requests before this one leave it. It returns about how many bytes
// it has read.
func (tx *Tx) expected(s *CollectionState, ch *Change) (bytes int, err error) {
	conflict := func(how string) (int, error) {
		return 0, fmt.Errorf("%w: item %q in collection %q %s: read it again", fault.ErrConflict, ch.Item.Key,
			s.Name, how)
	}
	if !s.loaded() {
		return 0, fmt.Errorf("fddhdb: the codes of collection %q are not loaded", s.Name)
	}
	st, err := tx.row(s, ch.Item.Key)
	switch {
	case err != nil:
		return 0, err
	case ch.Old == nil && st.found:
		return conflict("is there already")
	case ch.Old == nil:
		return 0, nil
	case !st.found:
		return conflict("is gone")
	}
	if bytes, err = tx.fetch(s, st.row, true); err != nil {
		return 0, err
	}
	if !tx.items[itemRow{s.ID, st.row}].Equal(ch.Old) {
		return conflict("has changed")
	}
	return bytes, nil
}
