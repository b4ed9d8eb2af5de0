package state

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// The records of an item are written by put and delete, one item after the other, and by
// package bulk for many new items at once, both through a record.Writer:
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
// A new kind of record of items belongs into both.

// A Change is one item to put, merge or delete, or a condition that the changes after it
// depend on. It belongs to a Request; the committer sets Item.Key where that is "", and Found.
type Change struct {
	Collection uint32 // id
	Kind       ChangeKind
	Found      bool             // set by Apply, of a put, merge or delete: the item was there before
	Item       *record.Item     // of a delete and an expectation only the key, of AddLabels only the labels
	Old        *record.Item     // of an expectation: the item that must be there; nil: none
	Encs       spaces.Encodings // of a put: made by the caller, for the spaces that it saw, so that the committer need not
	EncodedBy  *Labels          // of a put: the names by which Encs were made; others may have other ids
}

// A ChangeKind says what a Change does.
type ChangeKind byte

const (
	PutItem    ChangeKind = iota // make Item all that there is under its key
	MergeItem                    // replace only what Item gives, see record.Item.Over; where there is none it is a put
	DeleteItem                   // nothing happens where there is none
	AddLabels                    // give ids to Item.Labels, in order
	ExpectItem                   // refuse the request, with an ErrConflict, unless what is stored is Old
)

// A Tx is what one commit writes, while it is being made, by one or more requests. It belongs
// to the committer: requests get it, and must not keep it. What it changes is changed at once
// in the states in memory: if it cannot be committed then, the database fails. Blocks, layers
// and postings are collected on the side, one edit each, however many rows they change, and go
// into the batch at the end (finish).
type Tx struct {
	Committer *Committer    // that makes it; for operations, which read its States and Store
	Batch     *pebble.Batch // of all records that are written whole; what it has is not to be read back
	Empty     bool          // set by an operation: there is nothing to commit

	records *record.Writer // writes to Batch

	blocks   map[string]*blockEdit           // by key
	Layers   map[string]codec.Layer          // changes to sets of rows, by key
	slices   map[fieldContainer]*FieldSlices // changes to the bit slices of indexed fields
	postings []postingChange                 // in the order in which they came
	sets     []*CodeSet                      // that the postings are of, see postingChange.set

	// What the transaction has read, by resolve and its kin, and then what it has made of
	// that. A change is resolved and applied by what those before it in the transaction have
	// left, which the store does not have yet.
	rows  map[itemKey]rowState     // where items are
	items map[itemRow]*record.Item // what they are, where all of it has been read or written
	terms map[itemRow]record.Terms // what the store says of them; items come first

	// departures is what rows have taught that the transaction changes, with the features that
	// were stored before it; nil: nothing, or nothing any more.
	departures map[spaceRow]*codec.Departure
}

// blockEdit is the edit of one block in a transaction.
type blockEdit struct {
	*codec.BlockEdit
	fresh bool // nothing has been written under its key before, so that it is stored whole
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

// A rowState says whether there is an item under a key, and in which row.
type rowState struct {
	row   uint32
	found bool
}

// newTx returns a transaction that writes nothing yet. Its batch is to be closed.
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

// A batchSink is a batch as the sink of a record.Writer.
type batchSink struct{ b *pebble.Batch }

func (s batchSink) Delete(key []byte) error       { return s.b.Delete(key, nil) }
func (s batchSink) Set(key, value []byte) error   { return s.b.Set(key, value, nil) }
func (s batchSink) Merge(key, value []byte) error { return s.b.Merge(key, value, nil) }

// CodeBytes estimates how many bytes the codes of an item take in the batch, in all spaces of
// the collection.
func (s *CollectionState) CodeBytes() int {
	bytes := 0
	for _, sp := range s.Spaces {
		bytes += CodesBytes(sp.Bits, sp.ProjectionBytes() > 0)
	}
	return bytes
}

// RoomFor returns an ErrFull if so many new codes are more than the space has numbers for.
// Numbers of codes that are gone are not used again, so a space may run out of them with few
// codes.
func (s *SpaceState) RoomFor(codes uint64) error {
	if codes+uint64(s.Codes.Table.Table().Next()) >= record.MaxRows-1 {
		return fmt.Errorf("%w: codes of space %d: train again, or export and import", fault.ErrFull, s.ID)
	}
	return nil
}

// write resolves requests, asks admit after each of them, with about how many bytes all so far
// will write, and then applies them all. With an error of resolve or of admit nothing has
// changed. After an error of apply nobody knows what is in memory, so that write fails the
// database. This is the one way from a request to the Tx. Of several requests none may depend
// on another.
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

// row returns where the item with the key is, as the transaction leaves it so far.
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

// fetch reads the terms of a row that has an item, or with whole its item, unless the
// transaction knows them. It returns about how many bytes they are.
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

// Block returns the edit of the block under key, to be changed; there is one for each key of
// the transaction. width is that of all entries of the kind, negative where they differ. fresh
// says that nothing has been written under the key before. Both count in the first call for a
// key.
func (tx *Tx) Block(key []byte, width int, fresh bool) *codec.BlockEdit {
	e := tx.blocks[string(key)]
	if e == nil {
		e = &blockEdit{tx.Committer.blockEdit(width), fresh}
		tx.blocks[string(key)] = e
	}
	return e.BlockEdit
}

// keysBlock returns the edit of the block that has, or is to have, the key of the item of a row.
func (tx *Tx) keysBlock(s *CollectionState, row uint32) *codec.BlockEdit {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= s.FreshRow
	return tx.Block(codec.NumberKey(codec.KindRowKeys, s.ID, block), -1, fresh)
}

// layer returns the change of this transaction to the set of rows under key, to be changed.
func (tx *Tx) layer(key []byte) codec.Layer {
	l, ok := tx.Layers[string(key)]
	if !ok {
		l = codec.NewLayer()
		tx.Layers[string(key)] = l
	}
	return l
}

// setRow adds a row to a set of the collection, in memory (into) and in the store (set and
// id), or takes it out. A row that is in it already, or is not, costs nothing.
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

// touched tells a training, a builder, an update and watches that are going on that the row is
// not what their views have.
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
