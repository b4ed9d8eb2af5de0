package state

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// Activate makes a space of the collection the one that searches use, from this commit on, and
// remembers the one before it.
func (tx *Tx) Activate(s *CollectionState, sp *SpaceState) {
	s.Counters.PreviousSpace, s.Counters.ActiveSpace = s.Counters.ActiveSpace, uint64(sp.ID)
	tx.Committer.Touch(s)
}

// DropSpace deletes a space, which is not the active one, and all that is stored in it: a
// deletion of a range for each kind of its keys, however many there are. Readers that hold an
// older view go on seeing it.
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

// forget drops what the committer counts by keys of a space, as these are deleted.
func (c *Committer) forget(collection, space uint32) {
	var prefixes []string
	for _, kind := range record.Kinds(record.OfSpace) {
		prefixes = append(prefixes, string(codec.NumberKey(kind, collection, space)))
	}
	maps.DeleteFunc(c.edits, func(key string, _ int) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
	})
}

// WriteRevision stores a revision of a space, its descriptor and its projections, and deletes
// those that need not be kept: all but the first one, those that are pinned, and of the others
// the latest spaces.Kept. It replaces sp.Revisions, but does not make the revision the latest
// (SpaceState.Revise). The caller calls Touch.
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

// WriteRevisionDescriptor stores the descriptor of a revision, new or changed. sp.Revisions is
// for the caller.
func (tx *Tx) WriteRevisionDescriptor(sp *SpaceState, d *spaces.RevisionDescriptor) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.Batch.Set(codec.RevisionKey(sp.collection, sp.ID, d.Revision, 0), b, nil)
}

// WriteCheckpoint stores the statistics of a learner, which are those of the present revision,
// in place of those before, and deletes the departures with numbers below outbox, which they
// have taken out. Statistics of a space always have the same length. The caller sets
// Numbers.Checkpoint and calls Touch.
func (tx *Tx) WriteCheckpoint(sp *SpaceState, statistics []byte, outbox uint64) error {
	if err := record.WriteChunks(tx.Batch, codec.NumberKey(codec.KindStatistics, sp.collection, sp.ID), 0, statistics); err != nil {
		return err
	}
	from, to := codec.OutboxKey(sp.collection, sp.ID, 0), codec.OutboxKey(sp.collection, sp.ID, outbox)
	return tx.Batch.DeleteRange(from, to, nil)
}

// codesOnlySpace makes the one space that a codes-only collection has, as part of creating that.
func (tx *Tx) codesOnlySpace(s *CollectionState) error {
	sp, err := spaces.New(spaces.SpaceDescriptor{ID: 1, Bits: s.Bits, Created: spaces.Now()}, nil, nil)
	if err != nil {
		return err
	}
	if err := tx.WriteDescriptor(s, sp, nil); err != nil {
		return err
	}
	s.Spaces = append(s.Spaces, NewSpaceState(s.ID, sp))
	s.Counters.ActiveSpace, s.Counters.NextSpace = 1, 2
	return nil
}

// WriteDescriptor stores the descriptor of a space, with the report of its training and a
// copy of the descriptor of the collection.
func (tx *Tx) WriteDescriptor(s *CollectionState, sp *spaces.Space, report json.RawMessage) error {
	b, err := json.Marshal(spaces.Reported{SpaceDescriptor: sp.SpaceDescriptor, Report: report, Collection: s.Descriptor})
	if err != nil {
		return err
	}
	return tx.Batch.Set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), b, nil)
}
