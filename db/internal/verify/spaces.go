package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// A space may be damaged in part. Codes can be compared with their rows and postings without a
// model, and lessons without codes. So a check that cannot read what it needs is left out, and the
// others go on (readable, Trained == nil).

// A spaceVerifier looks at one space of a collection. Its bitmaps are rows that have been read
// so far; the check that completes each is named.
type spaceVerifier struct {
	*collectionVerifier
	reporter                               // of the space
	*spaces.Space                          // in the revision in use; without a model if that cannot be read
	n             codec.SpaceCounters      // of the space
	readable      bool                     // model, and revision in use, can be read; and fit the statistics
	kept          map[uint32]*spaces.Space // revisions that can be read, for recompute: 1 and the one in use, with Deep all

	taught            *roaring.Bitmap // rows that have a lesson; checkLessons
	pending, recode   *roaring.Bitmap // rows that the updater has to look at, and has to code again; checkOnline
	coded, unlabelled *roaring.Bitmap // rows that have a code; and one that is not of labels; checkCodes

	lastProjections struct { // block of projections that compareProjection has read last
		key   []byte
		block codec.Block
	}
}

// checkSpaces looks at all spaces that the counters name, and returns what strangers has to
// know of them.
func (c *collectionVerifier) checkSpaces() map[uint32]bool {
	known := map[uint32]bool{}
	for _, n := range c.counters.Spaces {
		if c.err != nil {
			break
		}
		known[uint32(n.ID)] = c.checkSpace(n)
	}
	return known
}

// checkSpace looks at one space: its model, what rows have taught, codes, and projections. With
// Deep it makes statistics, codes and projections again. It returns whether the space may have projections.
func (c *collectionVerifier) checkSpace(n codec.SpaceCounters) (projections bool) {
	s := &spaceVerifier{
		collectionVerifier: c, reporter: c.ofSpace(uint32(n.ID)), n: n, kept: map[uint32]*spaces.Space{},
		taught: roaring.New(), pending: roaring.New(), recode: roaring.New(), coded: roaring.New(), unlabelled: roaring.New(),
	}
	s.begin("model")
	if !s.readSpace() {
		return true // that cannot be told
	}
	// The order matters: lessons are compared with the pending rows, codes with the rows to be
	// coded again, and projections with the codes.
	s.checkChunks()
	s.checkRevisions()
	s.checkCounters()
	s.checkOnline()
	s.checkLessons()
	s.checkOutbox()
	s.checkIndexOnly()
	codes := s.checkCodes()
	s.checkProjections()
	if c.opt.Deep && s.readable && s.Learned != nil && c.err == nil {
		if !s.IndexOnly && s.HasStatistics() {
			s.checkStatistics()
		}
		s.recompute(codes)
	}
	return !c.CodesOnly()
}

// readSpace reads the descriptor, the model and the revision in use, and sets Space, readable
// and kept. It returns false if not even the descriptor says how codes are stored: then
// nothing of the space can be looked at. If only the model cannot be read, codes can be looked
// at without it.
func (s *spaceVerifier) readSpace() bool {
	id, revision := uint32(s.n.ID), uint32(s.n.Revision)
	key := codec.NumberKey(codec.KindSpace, s.ID(), id)
	trained, err := spaces.Read(s.snap, s.Descriptor, id, 1)
	if err == nil {
		s.Space, s.readable = trained, true
		s.kept[1] = trained
		if trained.Learned == nil || revision == 1 {
			return true
		}
		m, err := spaces.ReadRevision(s.snap, s.ID(), trained, revision)
		if err != nil {
			s.readable = false
			s.bad("revision in use", codec.RevisionKey(s.ID(), id, revision, 0), "%s", fault.Problem(err))
			return true
		}
		s.Space = trained.Revised(revision, m)
		s.kept[revision] = s.Space
		return true
	}
	s.bad("space", key, "%s", fault.Problem(err))
	// Codes can be verified if the descriptor has their length.
	// spaces.Read does more than that, so the descriptor is read once more.
	b, err := record.Get(s.snap, key)
	var d spaces.SpaceDescriptor
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil || codec.CheckBits(d.Bits) != nil || d.ID != id || s.CodesOnly() && d.Bits != s.Descriptor.Bits {
		return false
	}
	s.Space = &spaces.Space{SpaceDescriptor: d, Revision: revision}
	return true
}

// ID returns the number of the collection. Both descriptors that are embedded have such a
// field.
func (s *spaceVerifier) ID() uint32 { return s.Descriptor.ID }

// spaceID returns the number of the space. It is known also if the space cannot be read.
func (s *spaceVerifier) spaceID() uint32 { return uint32(s.n.ID) }

// prefix returns what the keys of a kind of the space begin with.
func (s *spaceVerifier) prefix(kind byte) []byte {
	return codec.NumberKey(kind, s.ID(), s.spaceID())
}

// checkCounters checks what the counters say of the space by themselves. How many items have
// codes, and have taught, is compared where these are read.
func (s *spaceVerifier) checkCounters() {
	switch n := s.n; {
	case n.Activate && !n.Building:
		s.badCounters("the space is to become active when it is built, and is not being built")
	case n.Built > 0 && !n.Building:
		s.badCounters("rows below %d have been coded, and the space is not being built", n.Built)
	case n.Revision == 0:
		s.badCounters("the space has no revision")
	case s.readable && s.HasStatistics() && !s.IndexOnly && n.Checkpoint == 0:
		s.badCounters("the statistics are of no revision")
	}
}

// checkChunks checks that model and statistics have no more chunks than the descriptor says,
// and that the statistics can be decoded and belong to the model. readSpace has read the
// chunks of the model. If model and statistics do not belong together nobody knows which is
// wrong, and codes are not made again.
func (s *spaceVerifier) checkChunks() {
	for _, x := range []struct {
		what string
		kind byte
		cut  record.Chunked
	}{{"model", codec.KindModel, s.Model}, {"statistics", codec.KindStatistics, s.Statistics}} {
		s.walkPrefix(s.prefix(x.kind), s.about(x.what), func(key, _ []byte) {
			if i := codec.LastNumber(key); i >= x.cut.Chunks {
				s.bad(x.what, key, "there is a chunk %d of %d", i, x.cut.Chunks)
			}
		})
	}
	if s.CodesOnly() || s.IndexOnly || s.Statistics.Bytes == 0 && !(s.readable && s.HasStatistics()) {
		return
	}
	key := s.prefix(codec.KindStatistics)
	b, err := record.ReadChunks(s.snap, key, 0, s.Statistics)
	var statistics *model.Statistics
	if err == nil {
		statistics, err = model.UnmarshalStatistics(b)
	}
	// Merge changes the empty statistics and not the stored ones. It compares fingerprints and
	// shapes.
	if err == nil && s.readable {
		err = model.NewStatistics(s.Learned).Merge(statistics) // fails unless they belong together
	}
	if err != nil && !s.lostAny(key) {
		s.bad("statistics", codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0), "%s", fault.Problem(err))
	}
	if err != nil {
		s.readable = s.readable && !errors.Is(err, model.ErrMismatch)
		s.lose(codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0))
	}
}

// checkRevisions looks at the revisions that are kept: each can be read and names a parent
// before it, and the latest spaces.Kept are there. With Deep it keeps their models.
func (s *spaceVerifier) checkRevisions() {
	// Under a revision stand its descriptor, as number 0, and the chunks of its model from 1
	// on. Revision 1 has no chunks, as its model is that of the space.
	type stored struct {
		first  bool   // its descriptor is there
		chunks uint32 // number of the last chunk
	}
	all := map[uint32]*stored{}
	var order []uint32
	s.walkPrefix(s.prefix(codec.KindRevision), s.about("revisions"), func(key, _ []byte) {
		revision, chunk := codec.RevisionKeyParts(key)
		r := all[revision]
		if r == nil {
			r = new(stored)
			all[revision], order = r, append(order, revision)
		}
		if r.first = r.first || chunk == 0; chunk > 0 {
			r.chunks = max(r.chunks, chunk)
		}
	})
	for _, revision := range order {
		what := fmt.Sprintf("revision %d", revision)
		key := codec.RevisionKey(s.ID(), s.spaceID(), revision, 0)
		r := all[revision]
		if revision == 0 || uint64(revision) > s.n.Revision || s.CodesOnly() {
			s.bad(what, key, "the revision in use is %d", s.n.Revision)
		}
		d, err := spaces.ReadRevisionDescriptor(s.snap, s.ID(), s.spaceID(), revision)
		if err != nil {
			s.missing(what, key, "%s", fault.Problem(err))
			continue
		}
		switch {
		case d.Parent >= revision && revision > 1:
			s.bad(what, key, "its parent is revision %d", d.Parent)
		case d.Outbox > s.n.NextOutbox:
			s.bad(what, key, "it knows departures before %d, the next one is %d", d.Outbox, s.n.NextOutbox)
		case r.chunks > d.Model.Chunks:
			s.bad(what, codec.RevisionKey(s.ID(), s.spaceID(), revision, r.chunks), "there is a chunk %d of %d", r.chunks, d.Model.Chunks)
		}
		if revision == 1 || s.Space == nil || s.Trained == nil || s.kept[revision] != nil {
			continue
		}
		m, err := spaces.ReadRevision(s.snap, s.ID(), s.Space, revision)
		if err != nil {
			if uint64(revision) != s.n.Revision { // else reported
				s.missing(what, key, "%s", fault.Problem(err))
			}
			continue
		}
		if s.opt.Deep { // else one model after the other is forgotten
			s.kept[revision] = s.Revised(revision, m)
		}
	}
	if s.CodesOnly() {
		return
	}
	latest := s.n.Revision
	for n := max(2, latest-min(latest, spaces.Kept-1)); n <= latest && s.err == nil; n++ {
		if revision := uint32(n); all[revision] == nil && (n != latest || s.readable) { // else reported
			s.missing(fmt.Sprintf("revision %d", n), codec.RevisionKey(s.ID(), s.spaceID(), revision, 0), "missing, and it is one of the latest %d", spaces.Kept)
		}
	}
}

// learnsFromRow reports whether a row has features that the model of the space knows, or may
// have them.
func (s *spaceVerifier) learnsFromRow(row uint32) bool {
	return slices.ContainsFunc(s.Positions, func(t int) bool { return !s.lacks(row, t) })
}
