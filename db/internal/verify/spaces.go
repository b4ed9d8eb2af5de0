package verify

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// A space may be damaged in part. Codes can be compared with their rows and postings without a model, and
// lessons without codes. So only the checks whose input is unreadable are left out (readable, Trained ==
// nil).

// A spaceVerifier checks one space of a collection. Its bitmaps have the rows read so far; the check that
// completes each is named.
type spaceVerifier struct {
	*collectionVerifier
	reporter                          // of the space
	*spaces.Space                     // in the revision in use; without a model if that is unreadable
	n             codec.SpaceCounters // of the space
	readable      bool                // model, and revision in use, are readable and fit the statistics
	// readable revisions, for recompute: 1 and the one in use, with Deep all
	kept map[uint32]*spaces.Space

	taught *roaring.Bitmap // rows that have a lesson; checkLessons
	// rows that the updater has to look at, and rows whose code it has to make again; checkOnline
	pending, recode *roaring.Bitmap
	// rows with a code; and rows whose code is not made of labels; checkCodes
	coded, unlabelled *roaring.Bitmap

	lastProjections struct { // block of projections that compareProjection has read last
		key   []byte
		block codec.Block
	}
}

// checkSpaces checks all spaces that the counters name, and returns for strangers which may have projections.
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
		taught: roaring.New(), pending: roaring.New(), recode: roaring.New(), coded: roaring.New(),
		unlabelled: roaring.New(),
	}
	s.begin("model")
	if !s.readSpace() {
		return true // unknown, so it may
	}
	// The order matters: lessons are compared with the pending rows, codes with the rows to be
	// coded again, and projections with the codes.
	s.checkChunks()
	s.checkRevisions()
	s.checkCounters()
	s.checkOnline()
	s.checkLessons()
	s.checkRetractions()
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

// readSpace reads the descriptor, the model and the revision in use, and sets Space, readable and kept. It
// returns false if the descriptor does not even tell how codes are stored: then nothing of the space can be
// checked. Without a readable model, codes can still be checked.
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
	// Codes can be verified if the descriptor has their length, even if spaces.Read fails, which needs more.
	// So read the descriptor alone.
	b, err := record.Get(s.snap, key)
	var d spaces.SpaceDescriptor
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil || codec.CheckBits(d.Bits) != nil || d.ID != id ||
		s.CodesOnly() && d.Bits != s.Descriptor.Bits {
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

// prefix returns the common prefix of the keys of a kind of the space.
func (s *spaceVerifier) prefix(kind byte) []byte {
	return codec.NumberKey(kind, s.ID(), s.spaceID())
}

// checkCounters checks the counters of the space without other records. The numbers of items with codes and
// with lessons are compared where these are read.
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

// checkChunks checks that model and statistics have no more chunks than the descriptor says, and that the
// statistics can be decoded and belong to the model. readSpace has read the chunks of the model. If model and
// statistics do not belong together, either may be wrong, and codes are not made again.
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
		s.bad("statistics", codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0), "%s",
			fault.Problem(err))
	}
	if err != nil {
		s.readable = s.readable && !errors.Is(err, model.ErrMismatch)
		s.lose(codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0))
	}
}

// checkRevisions looks at the revisions that are kept: each can be read and names a parent
// before it, and the latest spaces.Kept are there. With Deep it keeps their models.
func (s *spaceVerifier) checkRevisions() {
	// Under a revision stand its descriptor, as number 0, and the chunks of its model from 1 on. Revision 1
	// has no chunks, because it uses the model of the space.
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
		case d.Retracted > s.n.NextRetraction:
			s.bad(what, key, "it knows retractions before %d, the next one is %d", d.Retracted,
				s.n.NextRetraction)
		case r.chunks > d.Model.Chunks:
			s.bad(what, codec.RevisionKey(s.ID(), s.spaceID(), revision, r.chunks),
				"there is a chunk %d of %d", r.chunks, d.Model.Chunks)
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
			s.missing(fmt.Sprintf("revision %d", n), codec.RevisionKey(s.ID(), s.spaceID(), revision, 0),
				"missing, and it is one of the latest %d", spaces.Kept)
		}
	}
}

// learnsFromRow reports whether a row has features that the model of the space knows, or may
// have them.
func (s *spaceVerifier) learnsFromRow(row uint32) bool {
	return slices.ContainsFunc(s.Positions, func(t int) bool { return !s.lacks(row, t) })
}

// A projection is stored for each row with features that the model knows, unless it is zero. It does not
// matter whether the code was made of labels: projections order the items that share a code.

// checkProjections checks the projections of rows: their form, that the row has features, and
// that a row has one if its code was made of features. The checks of codes have run before.
func (s *spaceVerifier) checkProjections() {
	if s.CodesOnly() {
		return // strangers reports keys of that kind
	}
	s.begin("projections")
	have := roaring.New()
	s.entries(s.prefix(codec.KindProjection), s.about("projections"),
		func(key []byte, row uint32, entry []byte) {
			what := fmt.Sprintf("projection of row %d", row)
			have.Add(row)
			err := checkProjection(entry, s.Bits())
			switch {
			case err != nil:
				s.bad(what, key, "%s", fault.Problem(err))
			case s.dead(row):
				s.bad(what, key, "the row has no item")
			case s.Trained != nil && !s.learnsFromRow(row):
				s.bad(what, key, "the row has no features that the model knows")
			}
		})
	for row := range s.strayRows(s.unlabelled, have) {
		s.missing(fmt.Sprintf("projection of row %d", row), s.projectionKey(row),
			"missing, and the code of the row was made of features")
	}
}

// projectionKey returns the key of the block that has the projection of a row.
func (s *spaceVerifier) projectionKey(row uint32) []byte {
	return codec.SpaceBlockKey(codec.KindProjection, s.ID(), s.spaceID(), row/codec.BlockRows)
}

// checkProjection checks that an entry is one that codec.AppendProjection makes of q numbers:
// the inverse of the length of the vector, as a float32, and numbers of 8 bits, scaled so that
// the largest is 127 or -127.
func checkProjection(entry []byte, q int) error {
	if len(entry) != codec.ProjectionBytes(q) {
		return fmt.Errorf("%d bytes, not %d", len(entry), codec.ProjectionBytes(q))
	}
	sum, largest := 0, 0
	for _, b := range entry[4:] {
		v := int(int8(b))
		sum += v * v
		largest = max(largest, v, -v)
	}
	if largest != 127 {
		return fmt.Errorf("the largest number is %d, not 127", largest)
	}
	if inverse := float32(1 / math.Sqrt(float64(sum))); math.Float32bits(
		inverse) != binary.LittleEndian.Uint32(entry) {
		return errors.New("its length is not that of its numbers")
	}
	return nil
}

// Features are the bulk of most databases, so they are read once, and decoded into the same memory. Only a
// deep verification can tell by the code whether they belong to this item.

// checkFeatures decodes all feature records, and compares the rows that have one with the set
// of each modality, both ways.
func (c *collectionVerifier) checkFeatures() {
	c.begin("features")
	if c.IndexOnly {
		c.checkAbsent(codec.CollectionKey(codec.KindFeatures, c.ID), c.about("features"))
		return
	}
	buffers := make([]model.Vector, len(c.Modalities))
	left := cloneBitmaps(c.presence)
	c.walkPrefix(codec.CollectionKey(codec.KindFeatures, c.ID), c.about("features"), func(key, value []byte) {
		row, t := codec.FeatureKeyParts(key)
		if int(t) >= len(c.Modalities) {
			c.bad(fmt.Sprintf("features %d of row %d", t, row), key, "there is no modality %d", t)
			return
		}
		what := c.featuresName(row, int(t))
		if !left[t].CheckedRemove(row) {
			c.missing(what, codec.RowsKey(c.ID, codec.SetModality, uint32(t), uint16(row>>16)),
				"the row is not in the set of the modality")
		}
		if err := c.Modalities[t].DecodeVector(&buffers[t], value); err != nil {
			c.bad(what, key, "%s", fault.Problem(err))
			c.lose(key)
		}
	})
	for t, rows := range left {
		for it := rows.Iterator(); it.HasNext() && c.err == nil; {
			row := it.Next()
			c.missing(c.featuresName(row, t), codec.FeatureKey(c.ID, row, uint16(t)),
				"missing, and the row is in the set of the modality")
		}
	}
}

// featuresName names the features of a row in findings.
func (c *collectionVerifier) featuresName(row uint32, t int) string {
	return fmt.Sprintf("features %q of row %d", c.Modalities[t].Name, row)
}

// cloneBitmaps returns copies that can be changed.
func cloneBitmaps(sets []*roaring.Bitmap) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(sets))
	for i, s := range sets {
		out[i] = s.Clone()
	}
	return out
}

// The updater keeps for each row whether it has yet to teach (pending), whether its code is outdated
// (recode), what it has taught (a lesson), and what it had taught before it changed (a retraction). A row is
// never both pending and with a lesson. It may be neither: if it has no features that the model knows, or if
// a restored revision has forgotten it.

// checkOnline reads the sets of rows that the updater works from, pending and recode, and
// checks that their rows have items, and pending ones features that the model knows.
func (s *spaceVerifier) checkOnline() {
	s.begin("what rows have taught")
	// Pending rows have changed since the updater last looked at them. Rows to be coded again do not have the
	// codes of their labels yet.
	names := [...]string{codec.SetPending: "rows that the online step has not seen",
		codec.SetRecode: "rows to be coded again"}
	sets := [...]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode}
	s.walkPrefix(s.prefix(codec.KindOnlineRows), s.about("rows of the online step"), func(key, value []byte) {
		set, container := codec.OnlineRowsKeyParts(key)
		if int(set) >= len(sets) {
			s.bad(fmt.Sprintf("rows of set %d", set), key, "there is no such set")
			return
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			s.bad(names[set], key, "%s", fault.Problem(err))
			s.lose(key)
			return
		}
		addContainer(sets[set], l.Added, container)
	})
	for set, rows := range sets {
		for it := rows.Iterator(); it.HasNext() && s.err == nil; {
			row := it.Next()
			key := codec.OnlineRowsKey(s.ID(), s.spaceID(), byte(set), uint16(row>>16))
			switch {
			case s.CodesOnly():
				s.bad(names[set], key, "row %d is in it, and there is no model", row)
			case s.dead(row):
				s.bad(names[set], key, "row %d is in it, and has no item", row)
			case set == codec.SetPending && s.Trained != nil && !s.HasStatistics():
				s.bad(names[set], key, "row %d is in it, and the model was learned without labels: no row teaches it", row)
			case set == codec.SetPending && s.Trained != nil && !s.learnsFromRow(row):
				s.bad(names[set], key, "row %d is in it, and has no features to learn from", row)
			}
		}
	}
}

// checkLessons checks that each lesson is possible, and that its row has features and is not pending any
// more. pending must be known.
func (s *spaceVerifier) checkLessons() {
	prefix := s.prefix(codec.KindLessons)
	complete := s.entries(prefix, s.about("lessons"), func(key []byte, row uint32, entry []byte) {
		what := fmt.Sprintf("lesson of row %d", row)
		s.taught.Add(row)
		l, err := codec.DecodeLesson(s.Bits(), entry)
		if err == nil {
			err = s.CheckLesson(l, s.n.Revision)
		}
		switch {
		case err != nil:
			s.bad(what, key, "%s", fault.Problem(err))
			s.lose(key) // nor do the statistics follow from it
		case s.CodesOnly():
			s.bad(what, key, "there is no model")
		case s.dead(row):
			s.bad(what, key, "the row has no item")
		case s.Trained != nil && !s.learnsFromRow(row):
			s.bad(what, key, "the row has no features to teach with")
		case s.pending.Contains(row):
			s.bad(what, key, "the row is among those that the online step has not seen")
		}
	})
	if complete && s.n.Taught != s.taught.GetCardinality() {
		s.badCounters("%d rows have taught, it says %d", s.taught.GetCardinality(), s.n.Taught)
	}
}

// Bits returns the length of the codes of the space. Both descriptors that are embedded have a
// field of that name.
func (s *spaceVerifier) Bits() int { return s.Space.Bits }

// checkRetractions checks retractions. They are numbered without gaps up to the next one. The first ones may
// be gone, because a checkpoint deletes the retractions that it has taken in.
func (s *spaceVerifier) checkRetractions() {
	prefix := s.prefix(codec.KindRetraction)
	expected, any := uint64(0), false
	buffers := make([]model.Vector, len(s.Modalities))
	complete := s.walkPrefix(prefix, s.about("retractions"), func(key, value []byte) {
		n := codec.RetractionNumber(key)
		what := fmt.Sprintf("retraction %d", n)
		if any && n != expected {
			s.missing(fmt.Sprintf("retraction %d", expected),
				codec.RetractionKey(s.ID(), s.spaceID(), expected), "missing, and there is a retraction %d",
				n)
		}
		if n >= s.n.NextRetraction {
			s.bad(what, key, "the next one is %d", s.n.NextRetraction)
		}
		expected, any = n+1, true
		if err := s.checkRetraction(value, buffers); err != nil {
			s.bad(what, key, "%s", fault.Problem(err))
			s.lose(key)
		}
	})
	if complete && any && expected < s.n.NextRetraction {
		s.missing(fmt.Sprintf("retraction %d", expected), codec.RetractionKey(s.ID(), s.spaceID(), expected),
			"missing, the next one is %d", s.n.NextRetraction)
	}
}

// checkRetraction decodes a retraction, and its features into buffers, by modality.
func (s *spaceVerifier) checkRetraction(value []byte, buffers []model.Vector) error {
	d, err := codec.DecodeRetraction(s.Bits(), value)
	if err == nil {
		err = s.CheckLesson(d.Lesson, s.n.Revision)
	}
	if err != nil {
		return err
	}
	for _, f := range d.Features {
		if int(f.Modality) >= len(s.Modalities) {
			return fmt.Errorf("it has features of modality %d of %d", f.Modality, len(s.Modalities))
		}
		if err := s.Modalities[f.Modality].DecodeVector(&buffers[f.Modality], f.Record); err != nil {
			return fmt.Errorf("features %q: %w", s.Modalities[f.Modality].Name, err)
		}
	}
	return nil
}
