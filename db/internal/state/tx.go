package state

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// put and delete write the records of one item at a time, and package bulk writes many new items, both
// through a record.Writer:
//
//	codec.KindKey, KindRowKeys   from its key to its row and back
//	KindItem, KindFeatures       what it is: labels, fields and payload; a vector for each modality
//	KindRows, KindFieldRows      the sets of rows that it is in: live, modalities, labels, values of fields
//	KindRowCodes, KindCodes,     its code in each space (SetCodes)
//	KindCodeRows, KindSubstring
//	KindProjection               its projection in each space (SetCodes)
//	KindLessons, KindOutbox,     what it has taught and has to teach each space (Unlearn, SetOnline)
//	KindOnlineRows
//
// A new kind of item record needs code in both.

// A Change puts, merges or deletes one item, or is a condition for the changes after it. It belongs to a
// Request. The committer sets Item.Key if it is "", and Found.
type Change struct {
	Collection uint32 // id
	Kind       ChangeKind
	Found      bool             // set by apply, of a put, merge or delete: the item existed before
	Item       *record.Item     // of a delete or an expectation only the key, of AddLabels only the labels
	Old        *record.Item     // of an expectation: the item that must exist; nil: none
	Encs       spaces.Encodings // of a put: made by the caller for the spaces that it saw, to spare the committer
	EncodedBy  *Labels          // of a put: the labels that Encs were made with; in other Labels ids may differ
}

// A ChangeKind says what a Change does.
type ChangeKind byte

const (
	PutItem    ChangeKind = iota // replace the item under the key as a whole
	MergeItem                    // replace only the given parts, see record.Item.Over; without an old item it is a put
	DeleteItem                   // do nothing if there is no item
	AddLabels                    // give ids to Item.Labels, in order
	ExpectItem                   // refuse the request, with an ErrConflict, unless the stored item is Old
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
	postings []postingChange                 // in the order in which they came
	sets     []*CodeSet                      // sets of the postings, see postingChange.set

	// Records that the transaction has read, by resolve and its helpers, and then its own changes of them. A
	// change is resolved and applied against the earlier changes of the transaction, which the store does not
	// have yet.
	rows  map[itemKey]rowState     // rows of items
	items map[itemRow]*record.Item // items that were read or written whole
	terms map[itemRow]record.Terms // stored terms of items; items take precedence

	// departures has the lessons of rows that the transaction changes, with the features stored before it.
	// nil: no lesson, or no longer one.
	departures map[spaceRow]*codec.Departure
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
		terms:  map[itemRow]record.Terms{}, departures: map[spaceRow]*codec.Departure{},
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
