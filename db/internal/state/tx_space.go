package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

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
		return false, fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", fault.ErrBusy, number, s.Name)
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
// except the first, the pinned ones, and the latest spaces.Kept of the rest. It replaces sp.Revisions, but
// does not make the revision the latest (SpaceState.Revise). The caller calls Touch.
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
		if r := kept[i]; r.Pinned || r.Revision == 1 {
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

// PinRevision keeps a revision of the space that a caller names, however old it gets, or stops keeping it.
func (tx *Tx) PinRevision(s *CollectionState, number, revision uint32, pinned bool) error {
	sp := s.SpaceNamed(number)
	switch {
	case sp == nil && number == 0:
		return fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, s.Name)
	case sp == nil:
		return fault.NotFound("space %d of collection %q", number, s.Name)
	}
	i := slices.IndexFunc(sp.Revisions, func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision })
	if i < 0 {
		return fault.NotFound("revision %d of space %d of collection %q", revision, sp.ID, s.Name)
	}
	d := *sp.Revisions[i]
	d.Pinned = pinned
	if err := tx.WriteRevisionDescriptor(sp, &d); err != nil {
		return err
	}
	sp.Revisions = slices.Clone(sp.Revisions) // views share the slice
	sp.Revisions[i] = &d
	tx.Committer.Touch(s)
	return nil
}

// WriteCheckpoint replaces the stored statistics of a learner by those of the present revision, and deletes
// the queued retractions with numbers below outbox, which the statistics include. next is the future space,
// not yet shared: if the length of the statistics changes, as with a new label, its descriptor is
// changed and stored. The caller makes next the latest (SpaceState.Revise), sets Numbers.Checkpoint and calls
// Touch.
func (tx *Tx) WriteCheckpoint(s *CollectionState, sp *SpaceState, next *spaces.Space, statistics []byte, outbox uint64) error {
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
	from, to := codec.OutboxKey(sp.collection, sp.ID, 0), codec.OutboxKey(sp.collection, sp.ID, outbox)
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
	b, err := json.Marshal(spaces.Reported{SpaceDescriptor: sp.SpaceDescriptor, Report: report, Collection: s.Descriptor})
	if err != nil {
		return err
	}
	return tx.Batch.Set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), b, nil)
}
