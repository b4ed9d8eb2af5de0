package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// CreateCollection makes a collection with the schema d. It sets d.ID and keeps d, which has passed Check.
// For a codes-only collection it makes the one space, too. After an error, such as ErrExists for the name, do
// not commit the transaction.
func (tx *Tx) CreateCollection(d *record.Descriptor) error {
	c := tx.Committer
	if c.Named(d.Name) != nil {
		return fmt.Errorf("%w: collection %q", fault.ErrExists, d.Name)
	}
	next := uint32(1)
	b, err := record.Get(c.kv, codec.DatabaseKey(codec.RecordNextID))
	if err != nil {
		return err
	}
	switch {
	case len(b) == 4:
		next = binary.BigEndian.Uint32(b)
	case b != nil:
		return fault.Corrupt(fmt.Errorf("%d bytes", len(b)), "id of the next collection")
	}
	if next == record.MaxRows {
		return fmt.Errorf("%w: collections", fault.ErrFull)
	}
	d.ID = next
	s := newCollectionState(d)
	value, err := d.Encode()
	if err != nil {
		return err
	}
	for _, kv := range [][2][]byte{
		{codec.DatabaseKey(codec.RecordNextID), binary.BigEndian.AppendUint32(nil, next+1)},
		{codec.NameKey(d.Name), binary.BigEndian.AppendUint32(nil, d.ID)},
		{codec.CollectionKey(codec.KindCollection, d.ID), value},
	} {
		if err := tx.Batch.Set(kv[0], kv[1], nil); err != nil {
			return err
		}
	}
	if d.CodesOnly() {
		if err := tx.codesOnlySpace(s); err != nil {
			return err
		}
	}
	c.States[d.ID] = s
	c.Touch(s)
	return nil
}

// AlterCollection gives a collection the descriptor d. d has the old modalities and fields in the same order,
// and may append others, or change metrics, spaces or indexed fields. Items stay as they are. Views keep
// their descriptor.
func (tx *Tx) AlterCollection(s *CollectionState, d *record.Descriptor) error {
	value, err := d.Encode()
	if err != nil {
		return err
	}
	reports := make([]json.RawMessage, len(s.Spaces))
	for i, sp := range s.Spaces {
		if reports[i], err = spaces.ReadReport(tx.Committer.kv, s.ID, sp.ID); err != nil {
			return err
		}
	}
	if err := tx.Batch.Set(codec.CollectionKey(codec.KindCollection, d.ID), value, nil); err != nil {
		return err
	}
	// Blocks and item records stay: they number modalities and fields by position.
	s.Descriptor = d // views keep theirs
	if x := s.indexing; x != nil {
		if x.sets, err = d.WithFields(x.fields, record.FieldIndexed); err != nil {
			return err
		}
	}
	for i, sp := range s.Spaces { // which store copies of it
		if err := tx.WriteDescriptor(s, sp.Space, reports[i]); err != nil {
			return err
		}
	}
	s.haveModalities(len(d.Modalities))
	tx.Committer.Touch(s)
	return nil
}

// DropCollection deletes a collection with all its records, by one range deletion for each kind of key,
// however many keys there are. Readers with an older view still see it. The caller closes s.Gone after the
// commit. The id is not reused.
func (tx *Tx) DropCollection(s *CollectionState) error {
	c := tx.Committer
	if err := tx.Batch.Delete(codec.NameKey(s.Name), nil); err != nil {
		return err
	}
	for _, kind := range record.Kinds(record.OfCollection) {
		prefix := codec.CollectionKey(kind, s.ID)
		if err := tx.Batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
		maps.DeleteFunc(c.edits, func(key string, _ int) bool { return strings.HasPrefix(key, string(prefix)) })
	}
	delete(c.States, s.ID)
	c.Touch(s)
	return nil
}

// Sweep deletes records whose merged edits are empty: blocks without entries, sets without rows, postings
// without codes. It checks up to sweepKeys keys of the store from a key on, and returns where to continue;
// nil at the end. The next compaction removes them from disk.
func (tx *Tx) Sweep(from []byte) (next []byte, err error) {
	it, err := tx.Committer.kv.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, fault.ReadError(err, "keys from %x", from)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "keys from %x", from)
		}
	}()
	// One seek skips a kind that is not merged.
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		if seen++; seen > sweepKeys {
			return slices.Clone(it.Key()), nil
		}
		key := it.Key()
		if !codec.Merged(key[0]) {
			// This kind is not merged: continue with the next.
			if key[0] == 0xff || !it.SeekGE([]byte{key[0] + 1}) {
				return nil, nil
			}
			key = it.Key()
			if !codec.Merged(key[0]) {
				return slices.Clone(key), nil
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, fault.ReadError(err, "key %x", key)
		}
		if codec.EmptySum(key, value) {
			if err := tx.Batch.Delete(key, nil); err != nil {
				return nil, err
			}
			delete(tx.Committer.edits, string(key))
		}
	}
	return nil, nil
}

// sweepKeys is the number of keys that one Sweep checks while writers wait.
const sweepKeys = 4096
