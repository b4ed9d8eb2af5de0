package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
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
		sets, err := d.WithFields(x.indexes, record.Indexed)
		if err != nil {
			return err
		}
		x.making(s, sets)
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
		maps.DeleteFunc(c.edits, func(key string, _ int) bool {
			return strings.HasPrefix(key,
				string(prefix))
		})
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

// Activate makes searches use a space of the collection from this commit on, and remembers the previous one.
func (tx *Tx) Activate(s *CollectionState, sp *SpaceState) {
	s.Counters.PreviousSpace, s.Counters.ActiveSpace = s.Counters.ActiveSpace, uint64(sp.ID)
	tx.Committer.Touch(s)
}

// ActivateSpace is Activate for the space that a caller names, see SpaceNamed. It reports whether the active
// space changes.
func (tx *Tx) ActivateSpace(s *CollectionState, number uint32) (changes bool, err error) {
	sp := s.SpaceNamed(number)
	switch {
	case sp == nil:
		return false, fault.NotFound("space %d of collection %q", number, s.Name)
	case sp.Numbers.Building:
		return false, fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete",
			fault.ErrBusy, number, s.Name)
	case sp == s.Active():
		return false, nil
	}
	tx.Activate(s, sp)
	return true, nil
}

// Rollback activates the previously active space and returns its id.
func (tx *Tx) Rollback(s *CollectionState) (space uint32, err error) {
	sp := s.SpaceByID(uint32(s.Counters.PreviousSpace))
	if sp == nil {
		return 0, fault.Invalid("collection %q: no space was active before this one, or it has been dropped: activate one by its number", s.Name)
	}
	tx.Activate(s, sp)
	return sp.ID, nil
}

// DropSpaceNamed is DropSpace for the space that a caller names by its id.
func (tx *Tx) DropSpaceNamed(s *CollectionState, id uint32) error {
	sp := s.SpaceByID(id)
	switch {
	case id == 0:
		return fault.Invalid("space 0 of collection %q: name the space to drop by its number", s.Name)
	case sp == nil:
		return fault.NotFound("space %d of collection %q", id, s.Name)
	case sp == s.Active():
		return fault.Invalid("space %d of collection %q is the active one: activate another one first, or drop the collection", id, s.Name)
	}
	return tx.DropSpace(s, sp)
}

// DropSpace deletes a space, which is not the active one, with all its records, by one range deletion for
// each kind of key, however many keys there are. Readers with an older view still see it.
func (tx *Tx) DropSpace(s *CollectionState, sp *SpaceState) error {
	for _, kind := range record.Kinds(record.OfSpace) {
		prefix := codec.NumberKey(kind, s.ID, sp.ID)
		if err := tx.Batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
	}
	tx.Committer.forget(s.ID, sp.ID)
	s.Spaces = slices.DeleteFunc(slices.Clone(s.Spaces), func(other *SpaceState) bool { return other == sp })
	if s.Counters.PreviousSpace == uint64(sp.ID) {
		s.Counters.PreviousSpace = 0
	}
	tx.Committer.Touch(s)
	return nil
}

// forget drops the committer's counts by keys of a deleted space.
func (c *Committer) forget(collection, space uint32) {
	var prefixes []string
	for _, kind := range record.Kinds(record.OfSpace) {
		prefixes = append(prefixes, string(codec.NumberKey(kind, collection, space)))
	}
	maps.DeleteFunc(c.edits, func(key string, _ int) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
	})
}

// WriteRevision stores a revision of a space, its descriptor and its projections. It deletes other revisions,
// except the first, and the latest spaces.Kept of the rest. It replaces sp.Revisions, but does not make the
// revision the latest (SpaceState.Revise). The caller calls Touch.
func (tx *Tx) WriteRevision(sp *SpaceState, d *spaces.RevisionDescriptor, projections []byte) error {
	if err := tx.WriteRevisionDescriptor(sp, d); err != nil {
		return err
	}
	prefix := codec.RevisionPrefix(sp.collection, sp.ID, d.Revision)
	if err := record.WriteChunks(tx.Batch, prefix, 1, projections); err != nil {
		return err
	}
	kept := append(slices.Clone(sp.Revisions), d) // views share the slice
	loose := 0
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i].Revision == 1 {
			continue
		}
		if loose++; loose <= spaces.Kept {
			continue
		}
		prefix := codec.RevisionPrefix(sp.collection, sp.ID, kept[i].Revision)
		if err := tx.Batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
		kept = slices.Delete(kept, i, i+1)
	}
	sp.Revisions = kept
	return nil
}

// WriteRevisionDescriptor stores the descriptor of a revision, new or changed. The caller updates
// sp.Revisions.
func (tx *Tx) WriteRevisionDescriptor(sp *SpaceState, d *spaces.RevisionDescriptor) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.Batch.Set(codec.RevisionKey(sp.collection, sp.ID, d.Revision, 0), b, nil)
}

// WriteCheckpoint replaces the stored statistics of a learner by those of the present revision, and deletes
// the queued retractions with numbers below before, which the statistics include. next is the future space,
// not yet shared: if the length of the statistics changes, as with a new label, its descriptor is
// changed and stored. The caller makes next the latest (SpaceState.Revise), sets Numbers.Checkpoint and calls
// Touch.
func (tx *Tx) WriteCheckpoint(s *CollectionState, sp *SpaceState, next *spaces.Space, statistics []byte,
	before uint64) error {
	prefix := codec.NumberKey(codec.KindStatistics, s.ID, sp.ID)
	if err := record.WriteChunks(tx.Batch, prefix, 0, statistics); err != nil {
		return err
	}
	if now := record.ChunksOf(statistics); now != next.Statistics {
		report, err := spaces.ReadReport(tx.Committer.Reader(), s.ID, sp.ID)
		if err != nil {
			return err
		}
		next.Statistics = now
		if err := tx.WriteDescriptor(s, next, report); err != nil {
			return err
		}
		end := binary.BigEndian.AppendUint32(slices.Clip(prefix), now.Chunks)
		if err := tx.Batch.DeleteRange(end, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
	}
	from, to := codec.RetractionKey(sp.collection, sp.ID, 0),
		codec.RetractionKey(sp.collection, sp.ID, before)
	return tx.Batch.DeleteRange(from, to, nil)
}

// codesOnlySpace makes the one space of a new codes-only collection.
func (tx *Tx) codesOnlySpace(s *CollectionState) error {
	sp := spaces.New(spaces.SpaceDescriptor{ID: 1, Bits: s.Bits, Created: spaces.Now()}, nil, nil)
	if err := tx.WriteDescriptor(s, sp, nil); err != nil {
		return err
	}
	s.Spaces = append(s.Spaces, NewSpaceState(s.ID, sp))
	s.Counters.ActiveSpace, s.Counters.NextSpace = 1, 2
	return nil
}

// WriteDescriptor stores the descriptor of a space, with the report of its training and a copy of the
// collection's descriptor.
func (tx *Tx) WriteDescriptor(s *CollectionState, sp *spaces.Space, report json.RawMessage) error {
	b, err := json.Marshal(spaces.Reported{SpaceDescriptor: sp.SpaceDescriptor, Report: report,
		Collection: s.Descriptor})
	if err != nil {
		return err
	}
	return tx.Batch.Set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), b, nil)
}

// Records name labels by id, so renaming a label changes one record; items, codes and models stay as they
// are. A label without items keeps its id in case an item brings it again; callers do not see it.

// LabelInUse returns the id of a label and its rows, in a new bitmap. ErrNotFound: no item has it. r is the
// store as of the last commit.
func (s *CollectionState) LabelInUse(r pebble.Reader,
	name string) (id uint32, rows *roaring.Bitmap, err error) {
	id, known := s.Labels.ID(name)
	if known {
		if rows, err = record.LabelRows(r, s.ID, id); err != nil {
			return 0, nil, err
		}
	}
	if !known || rows.IsEmpty() {
		return 0, nil, fault.NotFound("label %q in collection %q: no item has it", record.Shortened(name),
			s.Name)
	}
	return id, rows, nil
}

// RenameLabel renames a label that items have. ErrExists: items have a label of the new name. If only past
// items had such a label, it loses its name for good, and with it what models have learned of it. Models do
// not know the old name, which becomes free.
func (tx *Tx) RenameLabel(s *CollectionState, old, name string) error {
	id, _, err := s.LabelInUse(tx.Committer.Reader(), old)
	if err != nil {
		return err
	}
	renamed := s.Labels.Renamed(id, name)
	if other, known := s.Labels.ID(name); known && other != id {
		rows, err := record.LabelRows(tx.Committer.Reader(), s.ID, other)
		if err != nil {
			return err
		}
		if n := rows.GetCardinality(); n > 0 {
			return fmt.Errorf("%w: label %q in collection %q has %d items: give them another label first", fault.ErrExists, record.Shortened(name), s.Name, n)
		}
		if err := tx.records.Label(s.ID, other, record.NoLabel(other)); err != nil {
			return err
		}
	}
	if err := tx.records.Label(s.ID, id, name); err != nil {
		return err
	}
	s.Labels = renamed
	tx.Committer.Touch(s)
	return nil
}
