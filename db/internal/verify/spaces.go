package verify

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
// lessons without codes. So only the checks whose input is unreadable are left out (readable).

// A spaceVerifier checks one space of a collection. Its bitmaps have the rows read so far; the check that
// completes each is named.
type spaceVerifier struct {
	*collectionVerifier
	id       uint32              // of the space
	sp       *spaces.Space       // in the revision in use; without a model if that is unreadable
	n        codec.SpaceCounters // of the space
	readable bool                // model, and revision in use, are readable and fit the statistics
	// readable revisions: 1 and the one in use, with Deep all
	kept map[uint32]*spaces.Space

	taught *roaring.Bitmap // rows that have a lesson; checkLessons
	// rows that the updater has to look at, and rows whose code it has to make again; checkOnline
	pending, recode *roaring.Bitmap
	coded           *roaring.Bitmap            // rows with a code; checkCodes
	revisions       map[uint32]*roaring.Bitmap // by revision: the rows whose code it has made; checkCodes
	unlabelled      *roaring.Bitmap            // rows whose code is not made of labels; checkCodes
}

// checkSpace looks at one space: its model, what rows have taught, codes, and projections. With
// Deep it makes statistics, codes and projections again.
func (c *collectionVerifier) checkSpace(n codec.SpaceCounters) {
	s := &spaceVerifier{
		collectionVerifier: c, id: uint32(n.ID), n: n, kept: map[uint32]*spaces.Space{},
		taught: roaring.New(), pending: roaring.New(), recode: roaring.New(), coded: roaring.New(),
		revisions: map[uint32]*roaring.Bitmap{}, unlabelled: roaring.New(),
	}
	s.begin("model")
	if c.err != nil || !s.readSpace() {
		return
	}
	// The order matters: lessons are compared with the pending rows, codes with the rows to be
	// coded again, and projections with the codes.
	s.checkChunks()
	s.checkRevisions()
	s.checkCounters()
	s.checkOnline()
	s.checkLessons()
	s.checkRetractions()
	s.checkCodes()
	s.checkProjections()
	if c.opt.Deep && s.readable && s.sp.Learned != nil && c.err == nil {
		if !s.IndexOnly && s.sp.HasStatistics() {
			s.checkStatistics()
		}
		s.recompute()
	}
}

// begin sets the stage of progress.
func (s *spaceVerifier) begin(what string) {
	s.at("collection %s, space %d: %s", s.Name, s.id, what)
}

// key returns the key of a kind that the space has once, or the prefix of one that it has often.
func (s *spaceVerifier) key(kind byte) []byte { return codec.NumberKey(kind, s.ID, s.id) }

// readSpace reads the descriptor, the model and the revision in use. It returns false if the descriptor does
// not even tell how codes are stored: then nothing of the space can be checked.
func (s *spaceVerifier) readSpace() bool {
	revision := uint32(s.n.Revision)
	trained, err := spaces.Read(s.snap, s.Descriptor, s.id, 1)
	if err == nil {
		s.sp, s.readable = trained, true
		s.kept[1] = trained
		if trained.Learned == nil || revision == 1 {
			return true
		}
		m, err := spaces.ReadRevision(s.snap, s.ID, trained, revision)
		if err != nil {
			s.readable = false
			s.bad(codec.RevisionKey(s.ID, s.id, revision, 0), 0, "it is in use: %s", fault.Problem(err))
			return true
		}
		s.sp = trained.Revised(revision, m)
		s.kept[revision] = s.sp
		return true
	}
	s.bad(s.key(codec.KindSpace), 0, "%s", fault.Problem(err))
	// Codes can be verified if the descriptor has their length, even if spaces.Read fails, which needs more.
	b, err := record.Get(s.snap, s.key(codec.KindSpace))
	var d spaces.SpaceDescriptor
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil || codec.CheckBits(d.Bits) != nil || d.ID != s.id || s.CodesOnly() && d.Bits != s.Bits {
		return false
	}
	s.sp = &spaces.Space{SpaceDescriptor: d, Revision: revision}
	return true
}

// checkCounters checks the counters of the space without other records. The numbers of items with codes and
// with lessons are compared where these are read.
func (s *spaceVerifier) checkCounters() {
	switch n := s.n; {
	case n.Activate && !n.Building:
		s.badCounters("space %d is to become active when it is built, and is not being built", s.id)
	case n.Built > 0 && !n.Building:
		s.badCounters("rows below %d of space %d have been coded, and it is not being built", n.Built, s.id)
	case n.Revision == 0:
		s.badCounters("space %d has no revision", s.id)
	case s.readable && s.sp.HasStatistics() && !s.IndexOnly && n.Checkpoint == 0:
		s.badCounters("the statistics of space %d are of no revision", s.id)
	case s.IndexOnly && (n.Building || n.Checkpoint != 0):
		s.badCounters("space %d is being built, or has statistics, and the collection is index-only", s.id)
	}
}

// checkChunks checks that model and statistics have no more chunks than the descriptor says, and that the
// statistics can be decoded and belong to the model. readSpace has read the chunks of the model. If model and
// statistics do not belong together, either may be wrong, and codes are not made again.
func (s *spaceVerifier) checkChunks() {
	for kind, cut := range map[byte]record.Chunked{codec.KindModel: s.sp.Model,
		codec.KindStatistics: s.sp.Statistics} {
		s.walk(s.key(kind), func(key, _ []byte) {
			if i := codec.LastNumber(key); i >= cut.Chunks {
				s.bad(key, 0, "there is a chunk %d of %d", i, cut.Chunks)
			}
		})
	}
	if s.CodesOnly() || s.IndexOnly || s.sp.Statistics.Bytes == 0 && !(s.readable && s.sp.HasStatistics()) {
		return
	}
	statistics, err := s.readStatistics()
	// Merge changes the empty statistics and not the stored ones. It compares fingerprints and
	// shapes.
	if err == nil && s.readable {
		err = model.NewStatistics(s.sp.Learned).Merge(statistics) // fails unless they belong together
	}
	if err != nil {
		s.readable = s.readable && !errors.Is(err, model.ErrMismatch)
		if key := s.key(codec.KindStatistics); !s.lostAny(key) {
			s.undecoded(binary.BigEndian.AppendUint32(key, 0), 0, err)
		}
	}
}

// readStatistics reads the stored statistics.
func (s *spaceVerifier) readStatistics() (*model.Statistics, error) {
	b, err := record.ReadChunks(s.snap, s.key(codec.KindStatistics), 0, s.sp.Statistics)
	if err != nil {
		return nil, err
	}
	return model.UnmarshalStatistics(b)
}

// checkRevisions looks at the revisions that are kept: each can be read and names a parent
// before it, and the latest spaces.Kept are there. With Deep it keeps their models.
func (s *spaceVerifier) checkRevisions() {
	// Under a revision stand its descriptor, as number 0, and the chunks of its model from 1 on. Revision 1
	// has no chunks, because it uses the model of the space.
	last := map[uint32]uint32{} // by revision: the number of the last chunk
	s.walk(s.key(codec.KindRevision), func(key, _ []byte) {
		revision, chunk := codec.RevisionKeyParts(key)
		last[revision] = chunk
	})
	for _, revision := range slices.Sorted(maps.Keys(last)) {
		key := codec.RevisionKey(s.ID, s.id, revision, 0)
		if revision == 0 || uint64(revision) > s.n.Revision || s.CodesOnly() {
			s.bad(key, 0, "the revision in use is %d", s.n.Revision)
		}
		d, err := spaces.ReadRevisionDescriptor(s.snap, s.ID, s.id, revision)
		switch {
		case s.lost(key):
			continue
		case err != nil:
			s.bad(key, 0, "%s", fault.Problem(err))
			continue
		case d.Parent >= revision && revision > 1:
			s.bad(key, 0, "its parent is revision %d", d.Parent)
		case d.Retracted > s.n.NextRetraction:
			s.bad(key, 0, "it knows retractions before %d, the next one is %d", d.Retracted,
				s.n.NextRetraction)
		case last[revision] > d.Model.Chunks:
			s.bad(codec.RevisionKey(s.ID, s.id, revision, last[revision]), 0, "there is a chunk %d of %d",
				last[revision], d.Model.Chunks)
		}
		if revision == 1 || s.sp.Trained == nil || s.kept[revision] != nil ||
			uint64(revision) == s.n.Revision { // has been read
			continue
		}
		m, err := spaces.ReadRevision(s.snap, s.ID, s.sp, revision)
		if err != nil {
			s.bad(key, 0, "%s", fault.Problem(err))
		} else if s.opt.Deep { // else one model after the other is forgotten
			s.kept[revision] = s.sp.Revised(revision, m)
		}
	}
	if s.CodesOnly() {
		return
	}
	latest := s.n.Revision
	for n := max(2, latest-min(latest, spaces.Kept-1)); n <= latest && s.err == nil; n++ {
		_, there := last[uint32(n)]
		key := codec.RevisionKey(s.ID, s.id, uint32(n), 0)
		if !there && (n != latest || s.readable) && !s.lost(key) { // else reported
			s.bad(key, 0, "missing, and it is one of the latest %d", spaces.Kept)
		}
	}
}

// learnsFromRow reports whether a row has features that the model of the space knows, or may
// have them.
func (s *spaceVerifier) learnsFromRow(row uint32) bool {
	return slices.ContainsFunc(s.sp.Positions, func(t int) bool {
		return s.presence[t].Contains(row) || s.lost(s.presenceAt(t)(row))
	})
}

// The updater keeps for each row whether it has yet to teach (pending), whether its code is outdated
// (recode), what it has taught (a lesson), and what it had taught before it changed (a retraction). A row is
// never both pending and with a lesson. It may be neither: if it has no features that the model knows, or if
// a restored revision has forgotten it.

// checkOnline reads the sets of rows that the updater works from, pending and recode, and
// checks that their rows have items, and pending ones features that the model knows.
func (s *spaceVerifier) checkOnline() {
	s.begin("what rows have taught")
	sets := [...]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode}
	s.walk(s.key(codec.KindOnlineRows), func(key, value []byte) {
		set, container := codec.OnlineRowsKeyParts(key)
		if int(set) >= len(sets) {
			s.bad(key, 0, "there is no such set")
		} else if rows := s.layer(key, value, container); rows != nil {
			sets[set].Or(rows)
		}
	})
	if s.IndexOnly {
		s.absent(append(s.key(codec.KindOnlineRows), codec.SetPending))
	}
	for set, rows := range sets {
		pending := set == codec.SetPending && s.sp.Trained != nil
		for it := rows.Iterator(); it.HasNext() && s.err == nil; {
			row, why := it.Next(), ""
			switch {
			case s.CodesOnly():
				why = "there is no model"
			case s.dead(row):
				why = "it has no item"
			case pending && !s.sp.HasStatistics():
				why = "the model was learned without labels: no row teaches it"
			case pending && !s.learnsFromRow(row):
				why = "it has no features to learn from"
			default:
				continue
			}
			s.bad(codec.OnlineRowsKey(s.ID, s.id, byte(set), uint16(row>>16)), 0, "row %d is in it, and %s",
				row,
				why)
		}
	}
}

// checkLessons checks that each lesson is possible, and that its row has features and is not pending any
// more. pending must be known.
func (s *spaceVerifier) checkLessons() {
	complete := s.entries(s.key(codec.KindLessons), func(key []byte, row uint32, entry []byte) {
		s.taught.Add(row)
		l, err := codec.DecodeLesson(s.sp.Bits, entry)
		if err == nil {
			err = s.sp.CheckLesson(l, s.n.Revision)
		}
		switch {
		case err != nil:
			s.undecoded(key, row, err) // nor do the statistics follow from it
		case s.CodesOnly():
			s.bad(key, row, "there is no model")
		case s.dead(row):
			s.bad(key, row, "the row has no item")
		case s.sp.Trained != nil && !s.learnsFromRow(row):
			s.bad(key, row, "the row has no features to teach with")
		case s.pending.Contains(row):
			s.bad(key, row, "the row is among those that the online step has not seen")
		}
	})
	if complete && s.n.Taught != s.taught.GetCardinality() {
		s.badCounters("%d rows have taught space %d, it says %d", s.taught.GetCardinality(), s.id, s.n.Taught)
	}
}

// checkRetractions checks retractions. They are numbered without gaps up to the next one. The first ones may
// be gone, because a checkpoint deletes the retractions that it has taken in.
func (s *spaceVerifier) checkRetractions() {
	expected, any := uint64(0), false
	complete := s.walk(s.key(codec.KindRetraction), func(key, value []byte) {
		n := codec.RetractionNumber(key)
		if any && n != expected {
			s.bad(codec.RetractionKey(s.ID, s.id, expected), 0, "missing, and there is a retraction %d", n)
		}
		if n >= s.n.NextRetraction {
			s.bad(key, 0, "the next one is %d", s.n.NextRetraction)
		}
		expected, any = n+1, true
		d, _, err := s.retraction(value)
		if err == nil {
			err = s.sp.CheckLesson(d.Lesson, s.n.Revision)
		}
		if err != nil {
			s.undecoded(key, 0, err)
		}
	})
	if complete && any && expected < s.n.NextRetraction {
		s.bad(codec.RetractionKey(s.ID, s.id, expected), 0, "missing, the next one is %d", s.n.NextRetraction)
	}
}

// retraction decodes a retraction and its features, by modality of the collection.
func (s *spaceVerifier) retraction(value []byte) (*codec.Retraction, []model.Vector, error) {
	d, err := codec.DecodeRetraction(s.sp.Bits, value)
	if err != nil {
		return nil, nil, err
	}
	vectors, err := s.DecodeFeatures(d.Features)
	return d, vectors, err
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
	s.entries(s.key(codec.KindProjection), func(key []byte, row uint32, entry []byte) {
		have.Add(row)
		err := checkProjection(entry, s.sp.Bits)
		switch {
		case err != nil:
			s.bad(key, row, "%s", fault.Problem(err))
		case s.dead(row):
			s.bad(key, row, "the row has no item")
		case s.sp.Trained != nil && !s.learnsFromRow(row):
			s.bad(key, row, "the row has no features that the model knows")
		}
	})
	s.lacking(s.unlabelled, have, s.blockAt(codec.KindRowCodes), s.blockAt(codec.KindProjection))
}

// blockAt returns the function from a number to the key of its block, of a kind that a space has.
func (s *spaceVerifier) blockAt(kind byte) func(n uint32) []byte {
	return func(n uint32) []byte { return codec.SpaceBlockKey(kind, s.ID, s.id, n/codec.BlockRows) }
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

// The statistics of a modality are sums over the rows that have taught (model.Statistics). A checkpoint
// stores them now and then. Later changes are stored as lessons and retractions, so the sums can be made
// again from rows and retractions.

// checkStatistics compares the stored statistics, the checkpoint, with the lessons. In general
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - retractions whose lessons are of revisions up to the checkpoint
//
// where the statistics are the sum of all lessons. So the checkpoint is the sum of the lessons of revisions
// up to it: of present rows, and of such retractions, for rows that have changed or gone since. Later lessons
// would come to both sides.
//
// It reads the features of all rows that have taught, and adds up in float64, in another order
// than the checkpoint: see statisticsTolerance.
func (s *spaceVerifier) checkStatistics() {
	s.begin("statistics")
	// With one lesson, retraction or vector missing the sum would be wrong; the gap has been reported.
	for _, prefix := range [][]byte{s.key(codec.KindLessons), s.key(codec.KindRetraction),
		s.key(codec.KindStatistics), s.collectionVerifier.key(codec.KindFeatures)} {
		if s.lostAny(prefix) {
			return
		}
	}
	err := s.sumStatistics()
	if s.err = cmp.Or(s.err, s.ctx.Err()); s.err == nil && err != nil {
		s.bad(codec.ChunkKey(codec.KindStatistics, s.ID, s.id, 0), 0, "%s", fault.Problem(err))
	}
}

// sumStatistics makes the sum of checkStatistics and compares. Its error is a finding, or ends with s.err.
func (s *spaceVerifier) sumStatistics() error {
	online, err := model.NewOnline(s.sp.Learned, model.NewStatistics(s.sp.Learned))
	if err != nil {
		return err
	}
	counts := func(l codec.Lesson) bool {
		// A row costs as much as its features squared, and a record of lessons has 256 rows.
		if s.done.Records++; s.done.Records%lookEveryRows == 0 && s.err == nil {
			s.look()
		}
		return uint64(l.Revision) <= s.n.Checkpoint
	}
	err = s.sp.ForEachLesson(s.ctx, s.snap, s.Descriptor, counts,
		func(_ []uint32, items []model.Example, lessons []model.Lesson) error {
			return online.Relearn(s.ctx, items, lessons)
		})
	if err != nil {
		return err
	}
	s.walk(s.key(codec.KindRetraction), func(_, value []byte) {
		d, vectors, rerr := s.retraction(value)
		if rerr != nil || err != nil || !counts(d.Lesson) {
			err = cmp.Or(err, rerr)
			return
		}
		item := s.sp.Example(vectors, nil)
		lesson, lerr := s.sp.Lesson(d.Lesson, item)
		if err = lerr; err == nil {
			err = online.Relearn(s.ctx, []model.Example{item}, []model.Lesson{lesson})
		}
	})
	if err != nil || s.err != nil {
		return err
	}
	statistics, err := s.readStatistics()
	if err == nil {
		if err = online.Statistics().Same(statistics, statisticsTolerance); err != nil {
			err = fmt.Errorf("they are not what rows have taught: %w", err)
		}
	}
	return err
}

// statisticsTolerance is how far numbers of statistics may be off, as a part of the largest
// number of their matrix: items have come and gone in another order, and rounding differs.
const statisticsTolerance = 1e-9

// lookEveryRows is the number of rows that are added up between two looks at the context.
const lookEveryRows = 16
