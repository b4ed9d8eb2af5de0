package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// Model, revisions and lessons of a space are primary, and so are the rows that have yet to teach. Codes,
// projections, postings, statistics and retractions follow from these and the items. The cost of a lost
// record:
//
//	model                     the space, with its codes
//	descriptor                when and how it was trained; the model tells the rest
//	a revision that is kept   its projections: it gets the ones of the revision before it
//	an older revision         nothing but itself
//	a lesson                  nothing: the rows that may have had it teach again
//	codes, statistics         nothing: they are made again
//	counters                  which space was active: the latest complete one is

// mendSpaces mends all spaces, and completes the counters. It leaves each learned space as being built and
// without codes, the state after a crash in the middle of a reindexing; build completes it. The plan names
// the spaces to activate then: a space that was complete before, as close to the stored choice as possible.
func (c *collectionMender) mendSpaces() error {
	if c.CodesOnly() {
		return c.mendGiven()
	}
	all, active, previous := c.storedSpaces(), c.counters.ActiveSpace, c.counters.PreviousSpace
	last := uint32(0)
	// No number is used again, even for a lost space.
	for id := range c.seen.spaces {
		if id < record.MaxRows-1 {
			last = max(last, id)
		}
	}
	c.counters.NextSpace = max(c.counters.NextSpace, uint64(last)+1)
	// No space is active while build makes the codes: it activates the spaces of the plan when all are
	// complete.
	c.counters.Spaces, c.counters.ActiveSpace, c.counters.PreviousSpace = nil, 0, 0
	complete, kept := map[uint64]bool{}, map[uint32]bool{}
	newest, wanted := uint64(0), uint64(0) // the latest complete space; the unfinished one to be activated
	for _, n := range all {
		c.counters.NextSpace = max(c.counters.NextSpace, n.ID+1)
		// mendSpace marks each space as being built. Only the stored counters tell whether it was complete.
		was := n
		n, ok, err := c.mendSpace(n)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		kept[uint32(n.ID)] = true
		c.plan.spaces = append(c.plan.spaces, uint32(n.ID))
		c.counters.Spaces = append(c.counters.Spaces, n)
		switch {
		case !was.Building:
			complete[n.ID], newest = true, max(newest, n.ID)
		case was.Activate:
			wanted = n.ID
		}
	}
	// If the active space is lost, the one that was active before takes over, else the latest
	// complete one.
	if !complete[previous] || previous == active {
		previous = 0
	}
	if !complete[active] {
		was := active
		if active = newest; previous != 0 {
			active, previous = previous, 0
		}
		if was != 0 || active != 0 && c.counted {
			now := "there is none now"
			if active != 0 {
				now = fmt.Sprintf("space %d is now", active)
			}
			c.bad("counters", c.countersKey(), "the active space was %d: %s", was, now)
		}
	}
	// Each activation makes the active space the previous one.
	for _, id := range []uint64{previous, active, wanted} {
		if id != 0 {
			c.plan.activate = append(c.plan.activate, uint32(id))
		}
	}
	return c.dropSpaces(kept)
}

// storedSpaces returns the counters of the spaces, by ascending number. If some may be lost, it
// adds counters with only a number for each space that any record names.
func (c *collectionMender) storedSpaces() []codec.SpaceCounters {
	possible := func(id uint64) bool { return id > 0 && id < record.MaxRows-1 }
	all, whole := map[uint64]codec.SpaceCounters{}, c.counted && !c.lostAny(c.countersKey())
	for _, n := range c.counters.Spaces {
		if possible(n.ID) {
			all[n.ID] = n
		} else {
			whole = false
		}
	}
	for id := range c.seen.spaces {
		// If the counters are whole, a space that they do not name was dropped, and its records are
		// rests.
		if _, known := all[uint64(id)]; !whole && !known && possible(uint64(id)) {
			all[uint64(id)] = codec.SpaceCounters{ID: uint64(id)}
		}
	}
	out := make([]codec.SpaceCounters, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[id])
	}
	return out
}

// dropSpaces deletes all records of the spaces that are not kept: lost ones, and rests of spaces
// that were dropped.
func (c *collectionMender) dropSpaces(kept map[uint32]bool) error {
	for id := range c.seen.spaces {
		if kept[id] {
			continue
		}
		for _, kind := range record.Kinds(record.OfSpace) {
			if err := c.deleteAll(codec.NumberKey(kind, c.ID, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSpace stores the descriptor of a space, with a copy of the descriptor of the collection.
func (c *collectionMender) writeSpace(d spaces.SpaceDescriptor, report json.RawMessage) error {
	b, err := json.Marshal(spaces.Reported{SpaceDescriptor: d, Report: report, Collection: c.Descriptor})
	if err != nil {
		return err
	}
	return c.set(codec.NumberKey(codec.KindSpace, c.ID, d.ID), b)
}

// A spaceMender mends one learned space. Its steps: readModel, mendRevisions, mendLessons,
// makeStatistics.
type spaceMender struct {
	*collectionMender
	n      codec.SpaceCounters // as stored, then as mended
	known  bool                // n was stored
	first  *spaces.Space       // revision 1, as it was trained
	space  *spaces.Space       // the latest revision mended so far; after mendRevisions the present one
	report json.RawMessage     // the report of its training; nil: lost, or there is none

	taught  *roaring.Bitmap // the rows that have a lesson
	pending *roaring.Bitmap // the rows that have yet to teach
	recode  *roaring.Bitmap // the rows whose lesson is of an outdated code
}

// id is the number of the space.
func (s *spaceMender) id() uint32 { return uint32(s.n.ID) }

// prefix is the prefix of the keys of a kind that the space has.
func (s *spaceMender) prefix(kind byte) []byte { return codec.NumberKey(kind, s.ID, s.id()) }

// bad reports a finding about a record of the space, which what names.
func (s *spaceMender) bad(what string, key []byte, format string, args ...any) {
	s.found(about(key, report.Finding{Collection: s.Name, Space: report.Space(s.id()), Record: what,
		Problem: fmt.Sprintf(format, args...)}))
}

// mendSpace mends a learned space, and returns its counters, for a space without codes.
// kept is false if its model is lost, and the space with it.
func (c *collectionMender) mendSpace(n codec.SpaceCounters) (_ codec.SpaceCounters, kept bool, err error) {
	c.stage(fmt.Sprintf("space %d", n.ID))
	s := &spaceMender{
		collectionMender: c, n: n, known: n.Revision > 0,
		taught: roaring.New(), pending: roaring.New(), recode: roaring.New(),
	}
	for _, step := range []func() error{s.readModel, s.mendRevisions, s.mendLessons, s.makeStatistics} {
		err := step()
		if errors.Is(err, errNoModel) {
			return n, false, nil
		}
		if err == nil {
			err = c.flush()
		}
		if err != nil {
			return n, false, err
		}
	}
	// see wants them where the descriptor is lost
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCodes, codec.KindCodeRows} {
		if err := c.deleteAll(s.prefix(kind)); err != nil {
			return n, false, err
		}
	}
	// As createSpace of db/internal/learn leaves a space: a builder does the rest.
	s.n.Building, s.n.Activate, s.n.Built, s.n.CodeCounters = true, false, 0, codec.CodeCounters{}
	return s.n, true, nil
}

// errNoModel says that the model of a space is lost.
var errNoModel = errors.New("no model")

// readModel reads the descriptor and the model of the space, and sets first, space and report. If
// the descriptor is lost, the model tells bits and modalities, but not when and how it was
// trained. errNoModel: the model is lost; it is reported if there is evidence that the space was
// not dropped.
func (s *spaceMender) readModel() error {
	key := s.prefix(codec.KindSpace)
	b, err := record.Get(s.store, key)
	if err != nil {
		return err
	}
	var stored spaces.Reported
	decoded := json.Unmarshal(b, &stored) == nil && stored.ID == s.id()
	if decoded {
		s.report = stored.Report
	} else {
		stored.SpaceDescriptor = spaces.SpaceDescriptor{ID: s.id(), Created: spaces.Now()}
	}
	if s.first, err = spaces.Read(s.store, s.Descriptor, s.id(), 1); err != nil {
		// The descriptor or the model is damaged. Try the model by itself.
		whole := s.storedChunks()
		var told error
		if s.first, told = s.conclude(stored.SpaceDescriptor, whole); told != nil {
			if b != nil || s.known || s.lostAny(key) || whole != nil {
				s.bad("space", key, "its model is lost: the space is dropped, with its codes; items stay: %s",
					fault.Problem(err))
			}
			return errNoModel
		}
		if !decoded {
			s.bad("space", key, "its descriptor is lost, and with it when and how it was trained: the model tells the rest")
		}
	}
	s.space = s.first
	// Delete chunks behind the model.
	prefix := s.prefix(codec.KindModel)
	return s.written(s.batch.DeleteRange(codec.ChunkKey(codec.KindModel, s.ID, s.id(), s.first.Model.Chunks),
		codec.PrefixEnd(prefix), nil))
}

// storedChunks returns the chunks of the model in one piece, up to the first that is missing.
func (s *spaceMender) storedChunks() []byte {
	var b []byte
	for i := uint32(0); ; i++ {
		chunk, err := record.Get(s.store, codec.ChunkKey(codec.KindModel, s.ID, s.id(), i))
		if err != nil || chunk == nil {
			return b
		}
		b = append(b, chunk...)
	}
}

// conclude makes the space from the binary form b of its model, and from the known part d of its
// descriptor.
func (s *spaceMender) conclude(d spaces.SpaceDescriptor, b []byte) (*spaces.Space, error) {
	m, err := model.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	modalities, err := s.Match(m)
	if err != nil {
		return nil, err
	}
	d.Bits, d.Model = m.Bits(), record.ChunksOf(b)
	return spaces.New(d, m, modalities), nil
}

// mendRevisions mends the revisions of the space, ascending, and deletes those beyond the present
// one. The first, and the latest spaces.Kept, have to be there: a lost one of these gets the
// projections of the one before it. Any other is dropped if it is damaged.
func (s *spaceMender) mendRevisions() error {
	all := map[uint32]bool{1: true}
	err := record.ForEach(s.store, s.prefix(codec.KindRevision), func(key, _ []byte) error {
		revision, _ := codec.RevisionKeyParts(key)
		all[revision] = true
		return nil
	})
	if err != nil {
		return err
	}
	// The counters name the present revision. If they are lost it is the highest that has a record.
	latest := uint32(0)
	if s.n.Revision < record.MaxRows-1 { // else it is damaged
		latest = uint32(s.n.Revision)
	}
	if latest == 0 {
		for revision := range all {
			if revision < record.MaxRows-1 {
				latest = max(latest, revision)
			}
		}
	}
	s.n.Revision = uint64(latest)
	oldest := uint32(max(2, int64(latest)-(spaces.Kept-1))) // the first of the latest that have to be there
	for revision := oldest; revision <= latest; revision++ {
		all[revision] = true
	}
	for _, revision := range slices.Sorted(maps.Keys(all)) {
		if revision == 0 || revision > latest {
			err = s.deleteAll(codec.RevisionPrefix(s.ID, s.id(), revision))
		} else {
			err = s.mendRevision(revision, revision == 1 || revision >= oldest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mendRevision mends a revision, and makes it s.space. If it is lost it is dropped, or, if it is
// needed, replaced by the revision before it. A parent that is no earlier revision is replaced.
func (s *spaceMender) mendRevision(revision uint32, needed bool) error {
	d, err := spaces.ReadRevisionDescriptor(s.store, s.ID, s.id(), revision)
	var m *model.Model
	if err == nil {
		m, err = spaces.ReadRevision(s.store, s.ID, s.first, revision)
	}
	if err == nil {
		s.space = s.first.Revised(revision, m)
		s.n.NextRetraction = max(s.n.NextRetraction, d.Retracted)
		from, end := codec.RevisionKey(s.ID, s.id(), revision, d.Model.Chunks+1),
			codec.PrefixEnd(codec.RevisionPrefix(s.ID, s.id(), revision))
		if err := s.written(s.batch.DeleteRange(from, end, nil)); err != nil || d.Parent < revision ||
			revision == 1 {
			return err
		}
		d.Parent = revision - 1
		return s.writeRevision(d, nil)
	}
	// The revision is lost. Its chunks go first: a new descriptor must not find old ones behind its
	// own.
	what, key := fmt.Sprintf("revision %d", revision), codec.RevisionKey(s.ID, s.id(), revision, 0)
	if derr := s.deleteAll(codec.RevisionPrefix(s.ID, s.id(), revision)); derr != nil {
		return derr
	}
	if !needed {
		s.bad(what, key, "lost: %s", fault.Problem(err))
		return nil
	}
	d = &spaces.RevisionDescriptor{RevisionInfo: report.RevisionInfo{Revision: revision,
		Created: s.first.Created}}
	// Revision 1 has no projections of its own, because it uses the model of the space. Only its descriptor
	// is lost.
	if revision == 1 {
		s.bad(what, key, "its descriptor is lost, and with it how far items were from it")
		return s.writeRevision(d, nil)
	}
	before := s.space.Revision
	s.bad(what, key, "lost: it has the projections of revision %d now: %s", before, fault.Problem(err))
	// s.space is the revision before it: revisions are mended in ascending order.
	projections, err := s.space.Learned.MarshalRevision(s.first.Learned)
	if err != nil {
		return err
	}
	s.space = s.first.Revised(revision, s.space.Learned)
	d.Created, d.Parent, d.Teacher, d.Model = spaces.Now(), before, spaces.Restored,
		record.ChunksOf(projections)
	return s.writeRevision(d, projections)
}

// writeRevision stores the descriptor of a revision, and its projections unless they are nil.
func (s *spaceMender) writeRevision(d *spaces.RevisionDescriptor, projections []byte) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := s.set(codec.RevisionKey(s.ID, s.id(), d.Revision, 0), b); err != nil {
		return err
	}
	return s.written(record.WriteChunks(s.batch, codec.RevisionPrefix(s.ID, s.id(), d.Revision), 1,
		projections))
}

// Lessons, and the features of their rows, are primary: they are copied. Statistics are their
// sum, and are added up again. So retractions are not needed, and their queue is empty.

// mendLessons reads the lessons of the space, and sets taught, pending and recode. It removes
// lessons that are damaged or of rows without features. If any is lost, all rows with features
// and without a lesson become pending, to teach again.
func (s *spaceMender) mendLessons() error {
	if err := s.readOnlineRows(); err != nil {
		return err
	}
	learnable, prefix, lost := roaring.New(), s.prefix(codec.KindLessons), false
	if s.space.HasStatistics() {
		learnable = record.UnionOf(s.presence, s.space.Positions)
	}
	err := s.blocks(prefix, func(key []byte, first uint32, b codec.Block) error {
		var gone []byte
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			l, err := codec.DecodeLesson(s.space.Bits, b.Entry(i))
			if err == nil {
				err = s.space.CheckLesson(l, s.n.Revision)
			}
			if err == nil && learnable.Contains(row) {
				s.taught.Add(row)
				continue
			}
			gone = append(gone, b.Offset(i))
			// Without its item a lesson is no loss: it would not be in the statistics any more.
			lost = lost || s.items.Contains(row)
		}
		return s.clearBlock(key, gone...)
	})
	if err != nil {
		return err
	}
	// Which lessons are lost is not known, so all rows that could have had one teach again.
	if lost || s.lostAny(prefix) || s.known && s.taught.GetCardinality() < s.n.Taught {
		s.bad("statistics", s.prefix(codec.KindStatistics),
			"what some rows had taught is lost: they are made again of what %d rows have taught, and others are to teach again", s.taught.GetCardinality())
		s.pending.Or(learnable)
	} else if s.lostAny(s.prefix(codec.KindOnlineRows)) {
		s.pending.Or(learnable)
	}
	// Invariants of the sets: a pending row has features that the model knows, and no lesson; a row
	// to recode has an item.
	s.pending.And(learnable)
	s.pending.AndNot(s.taught)
	s.recode.And(s.items)
	s.n.Taught = s.taught.GetCardinality()
	return s.writeOnlineRows()
}

// readOnlineRows reads the pending rows and the rows to recode. It adds sets that cannot be read
// to the lost ranges.
func (s *spaceMender) readOnlineRows() error {
	sets := map[byte]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode}
	return record.ForEach(s.store, s.prefix(codec.KindOnlineRows), func(key, value []byte) error {
		set, container := codec.OnlineRowsKeyParts(key)
		if rows := sets[set]; rows != nil && record.AddRows(rows, key, value, container) != nil {
			s.lost = s.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
}

// writeOnlineRows writes the pending rows and the rows to recode. The latter get their new code
// from the builder, as all rows do. They stay in the set because the lesson of their earlier
// code has to depart yet, as recoding in db/internal/learn does.
func (s *spaceMender) writeOnlineRows() error {
	if err := s.deleteAll(s.prefix(codec.KindOnlineRows)); err != nil {
		return err
	}
	for set, rows := range map[byte]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode} {
		err := record.ByContainer(rows, func(container uint16, l codec.Layer) error {
			return s.writeLayer(codec.OnlineRowsKey(s.ID, s.id(), set, container), l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeLayer stores a container of a row set.
func (m *mender) writeLayer(key []byte, l codec.Layer) error {
	b, err := l.Append(nil, true)
	if err != nil {
		return err
	}
	return m.set(key, b)
}

// makeStatistics sums the statistics from all lessons, stores them, and stores the descriptor of
// the space, which has their size and checksum. The sum costs as much as model.Online.Relearn,
// on all processors. A model that was learned without labels has none.
func (s *spaceMender) makeStatistics() error {
	if !s.space.HasStatistics() {
		s.n.Checkpoint = 0
		d := s.first.SpaceDescriptor
		d.Statistics = record.Chunked{}
		return s.writeSpace(d, s.report)
	}
	m := s.space.Learned
	// Beginning with nothing: the stored statistics are derived, and have not been copied.
	online, err := model.NewOnline(m, model.NewStatistics(m))
	if err != nil {
		return err
	}
	online.Workers = work.All()
	done := 0
	err = s.space.ForEachLesson(s.ctx, s.store, s.Descriptor, nil,
		func(rows []uint32, items []model.Example, lessons []model.Lesson) error {
			s.at(done, "collection %s: statistics of space %d", s.Name, s.id())
			done += len(rows)
			return online.Relearn(s.ctx, items, lessons)
		})
	if err != nil {
		return err
	}
	b, err := online.Statistics().MarshalBinary()
	if err != nil {
		return err
	}
	if err := s.written(record.WriteChunks(s.batch, s.prefix(codec.KindStatistics), 0, b)); err != nil {
		return err
	}
	// All lessons are in these statistics, and there are no retractions: the sum needs nothing else.
	s.n.Checkpoint = s.n.Revision
	d := s.first.SpaceDescriptor
	d.Statistics = record.ChunksOf(b)
	return s.writeSpace(d, s.report)
}

// mendIndexes keeps the indexes of vectors whose descriptor can be read, and some centres. It copies no
// entries: an index starts again, and takes in rows when the database is open, while searches compare
// vectors. An index without its descriptor or centres is given up.
func (c *collectionMender) mendIndexes() error {
	seen := map[uint32]bool{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindIndex, c.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		seen[id] = true
		x, err := record.DecodeIndex(value, c.Descriptor, id)
		if err == nil && !x.Complete {
			return c.dropIndex(id) // as opening would
		}
		centres := 0
		if err == nil {
			if centres, err = c.mendCentres(x); err != nil {
				return err
			}
			if centres == 0 {
				err = errors.New("no centre can be read")
			}
		}
		if err != nil {
			return c.loseIndex(id, fault.Problem(err))
		}
		x.Covered, x.Churn = 0, record.MaxRows // it is made again
		b, err := x.Encode()
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
	if err != nil {
		return err
	}
	return record.ForEach(c.store, codec.CollectionKey(codec.KindCentre, c.ID), func(key, _ []byte) error {
		id := codec.LastNumber(key[:9])
		if seen[id] {
			return nil
		}
		seen[id] = true
		return c.loseIndex(id, "its descriptor is missing")
	})
}

// mendCentres deletes the centres of an index that cannot be read, whose vectors go to others, and
// returns how many are left.
func (c *collectionMender) mendCentres(x *record.VectorIndex) (left int, err error) {
	size := x.Geometry().Size()
	err = record.ForEach(c.store, codec.NumberKey(codec.KindCentre, c.ID, x.ID),
		func(key, value []byte) error {
			cell := codec.LastNumber(key)
			if _, err := record.DecodeCell(value, cell, size); err != nil || cell >= record.MaxCells {
				return c.delete(key)
			}
			left++
			return nil
		})
	return left, err
}

// loseIndex gives up an index, and tells why.
func (c *collectionMender) loseIndex(id uint32, why string) error {
	c.bad(fmt.Sprintf("index %d of vectors", id), codec.NumberKey(codec.KindIndex, c.ID, id),
		"lost: %s: make it anew", why)
	return c.dropIndex(id)
}

// dropIndex deletes an index.
func (c *collectionMender) dropIndex(id uint32) error {
	for _, kind := range []byte{codec.KindIndex, codec.KindCentre} {
		if err := c.deleteAll(codec.NumberKey(kind, c.ID, id)); err != nil {
			return err
		}
	}
	return nil
}
