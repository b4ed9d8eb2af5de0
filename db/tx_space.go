package db

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// activate makes a space the one that searches use.
func (tx *tx) activate(s *collectionState, sp *spaceState) {
	s.counters.PreviousSpace, s.counters.ActiveSpace = s.counters.ActiveSpace, uint64(sp.ID)
	tx.c.touch(s)
}

// drop deletes a space and all that is stored in it. Readers that hold an older view
// go on seeing it.
func (tx *tx) drop(s *collectionState, sp *spaceState) error {
	for _, kind := range spaceKinds {
		prefix := codec.NumberKey(kind, s.ID, sp.ID)
		if err := tx.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
	}
	tx.c.forget(s.ID, sp.ID)
	s.spaces = slices.DeleteFunc(slices.Clone(s.spaces), func(other *spaceState) bool { return other == sp })
	if s.counters.PreviousSpace == uint64(sp.ID) {
		s.counters.PreviousSpace = 0
	}
	tx.c.touch(s)
	return nil
}

// spaceKinds are the kinds of keys that a space has.
var spaceKinds = []byte{
	codec.KindSpace, codec.KindModel, codec.KindStatistics, codec.KindRevision,
	codec.KindOnlineRows, codec.KindOutbox, codec.KindLessons,
	codec.KindRowCodes, codec.KindCodes, codec.KindProjection, codec.KindCodeRows, codec.KindSubstring,
}

// forget forgets what the committer knows of the keys of a space, which goes.
func (c *committer) forget(collection, space uint32) {
	prefixes := make([]string, len(spaceKinds))
	for i, kind := range spaceKinds {
		prefixes[i] = string(codec.NumberKey(kind, collection, space))
	}
	maps.DeleteFunc(c.edits, func(key string, _ int) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
	})
}

// writeRevision stores a revision, and deletes those that need not be kept.
func (tx *tx) writeRevision(sp *spaceState, d *spaces.RevisionDescriptor, projections []byte) error {
	if err := tx.writeRevisionDescriptor(sp, d); err != nil {
		return err
	}
	prefix := codec.RevisionPrefix(sp.in, sp.ID, d.Revision)
	if err := record.WriteChunks(tx.batch, prefix, 1, projections); err != nil {
		return err
	}
	kept := append(slices.Clone(sp.revisions), d) // views share the slice
	loose := 0
	for i := len(kept) - 1; i >= 0; i-- {
		if r := kept[i]; r.Pinned || r.Revision == 1 {
			continue
		}
		if loose++; loose <= spaces.Kept {
			continue
		}
		prefix := codec.RevisionPrefix(sp.in, sp.ID, kept[i].Revision)
		if err := tx.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
		kept = slices.Delete(kept, i, i+1)
	}
	sp.revisions = kept
	return nil
}

func (tx *tx) writeRevisionDescriptor(sp *spaceState, d *spaces.RevisionDescriptor) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return tx.batch.Set(codec.RevisionKey(sp.in, sp.ID, d.Revision, 0), b, nil)
}

// writeCheckpoint stores the statistics of a learner, which are those of the present
// revision, in place of those before, with the departures that they need no more.
func (tx *tx) writeCheckpoint(sp *spaceState, statistics []byte, outbox uint64) error {
	if err := record.WriteChunks(tx.batch, codec.NumberKey(codec.KindStatistics, sp.in, sp.ID), 0, statistics); err != nil {
		return err
	}
	from, to := codec.OutboxKey(sp.in, sp.ID, 0), codec.OutboxKey(sp.in, sp.ID, outbox)
	return tx.batch.DeleteRange(from, to, nil)
}

// codesOnlySpace makes the one space that a codes-only collection has.
func (tx *tx) codesOnlySpace(s *collectionState) error {
	sp, err := spaces.New(spaces.Stored{ID: 1, Bits: s.Bits, Created: spaces.Now()}, nil, nil)
	if err != nil {
		return err
	}
	if err := tx.writeDescriptor(s, sp, nil); err != nil {
		return err
	}
	s.spaces = append(s.spaces, newSpaceState(s.ID, sp))
	s.counters.ActiveSpace, s.counters.NextSpace = 1, 2
	return nil
}

// writeDescriptor stores the descriptor of a space, with the report of its training.
func (tx *tx) writeDescriptor(s *collectionState, sp *spaces.Space, report json.RawMessage) error {
	b, err := json.Marshal(spaces.Reported{Stored: sp.Stored, Report: report})
	if err != nil {
		return err
	}
	return tx.batch.Set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), b, nil)
}
