package repair

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A spaceMender mends one learned space.
type spaceMender struct {
	*collectionMender
	id    uint32
	n     codec.SpaceCounters // as stored, then as mended
	first *spaces.Space       // revision 1, as it was trained
	space *spaces.Space       // the latest revision mended so far
}

// key returns the key of a kind that the space has once, or the prefix of one that it has often.
func (s *spaceMender) key(kind byte) []byte { return codec.NumberKey(kind, s.ID, s.id) }

// mendSpace mends a learned space, and adds its counters and plan. kept is false if its model is lost, and
// the space with it, which is reported if the counters have known the space, or its descriptor is there.
func (c *collectionMender) mendSpace(n codec.SpaceCounters, known bool) (kept bool, err error) {
	c.stage(fmt.Sprintf("space %d", n.ID))
	s := &spaceMender{collectionMender: c, id: uint32(n.ID), n: n}
	b, err := record.Get(s.batch, s.key(codec.KindSpace))
	if err != nil {
		return false, err
	}
	var d spaces.Reported
	decoded := json.Unmarshal(b, &d) == nil && d.ID == s.id
	if !decoded {
		d = spaces.Reported{SpaceDescriptor: spaces.SpaceDescriptor{ID: s.id, Created: spaces.Now()}}
	}
	if err := s.readModel(d.SpaceDescriptor); err != nil {
		if known || b != nil {
			s.bad(s.key(codec.KindSpace), 0,
				"its model is lost: the space is dropped, with its codes; items stay: %s",
				fault.Problem(err))
		}
		return false, nil
	}
	if !decoded {
		s.bad(s.key(codec.KindSpace), 0,
			"its descriptor is lost, and with it when and how it was trained: the model tells the rest")
	}
	if err := s.mendRevisions(); err != nil {
		return false, err
	}
	// Codes have been copied where the descriptor of the collection is lost (see).
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCodes, codec.KindCodeRows} {
		if err := s.deleteAll(s.key(kind)); err != nil {
			return false, err
		}
	}
	d.SpaceDescriptor = s.first.SpaceDescriptor
	if d.Statistics, err = s.forget(); err != nil {
		return false, err
	}
	// As createSpace of db/internal/learn leaves a space: a builder does the rest.
	s.n.Building = true
	c.counters.Spaces = append(c.counters.Spaces, s.n)
	c.plan.spaces = append(c.plan.spaces, s.id)
	return true, c.writeSpace(d)
}

// readModel reads the model from its chunks, as far as there are any, and sets first and space. d is what the
// descriptor says; the model knows its bits and modalities.
func (s *spaceMender) readModel(d spaces.SpaceDescriptor) error {
	var b []byte
	for i := uint32(0); ; i++ {
		chunk, err := record.Get(s.batch, codec.ChunkKey(codec.KindModel, s.ID, s.id, i))
		if err != nil {
			return err
		}
		if chunk == nil || d.Model.Chunks > 0 && i >= d.Model.Chunks {
			break
		}
		b = append(b, chunk...)
	}
	m, err := model.Unmarshal(b)
	if err != nil {
		return err
	}
	modalities, err := s.Match(m)
	if err != nil {
		return err
	}
	d.Bits, d.Model = m.Bits(), record.ChunksOf(b)
	s.first = spaces.New(d, m, modalities)
	s.space = s.first
	return s.written(s.batch.DeleteRange(codec.ChunkKey(codec.KindModel, s.ID, s.id, d.Model.Chunks),
		codec.PrefixEnd(s.key(codec.KindModel)), nil))
}

// mendRevisions mends the revisions of the space, ascending. The first, and the latest spaces.Kept, have to
// be there: a lost one of these gets the projections of the one before it. Any other is dropped if it is
// damaged.
func (s *spaceMender) mendRevisions() error {
	all := map[uint32]bool{1: true}
	err := s.each(s.key(codec.KindRevision), func(key, _ []byte) error {
		revision, _ := codec.RevisionKeyParts(key)
		all[revision] = true
		return nil
	})
	if err != nil {
		return err
	}
	// The counters name the present revision. If they are lost it is the highest that has a record.
	latest := uint32(min(s.n.Revision, record.MaxRows))
	if latest == 0 || latest >= record.MaxRows-1 {
		latest = slices.Max(slices.Collect(maps.Keys(all)))
	}
	s.n.Revision = uint64(latest)
	oldest := uint32(max(2, int64(latest)-(spaces.Kept-1))) // the first of the latest that have to be there
	for revision := oldest; revision <= latest; revision++ {
		all[revision] = true
	}
	for _, revision := range slices.Sorted(maps.Keys(all)) {
		if revision == 0 || revision > latest {
			err = s.deleteAll(codec.RevisionPrefix(s.ID, s.id, revision))
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
// needed, replaced by the revision before it.
func (s *spaceMender) mendRevision(revision uint32, needed bool) error {
	prefix, key := codec.RevisionPrefix(s.ID, s.id, revision), codec.RevisionKey(s.ID, s.id, revision, 0)
	d, err := spaces.ReadRevisionDescriptor(s.batch, s.ID, s.id, revision)
	var m *model.Model
	if err == nil {
		m, err = spaces.ReadRevision(s.batch, s.ID, s.first, revision)
	}
	if err == nil && d.Parent >= revision && revision > 1 {
		err = fmt.Errorf("its parent is revision %d", d.Parent)
	}
	if err == nil {
		s.space = s.first.Revised(revision, m)
		s.n.NextRetraction = max(s.n.NextRetraction, d.Retracted)
		end := codec.RevisionKey(s.ID, s.id, revision, d.Model.Chunks+1)
		return s.written(s.batch.DeleteRange(end, codec.PrefixEnd(prefix), nil))
	}
	// Its chunks go first: a new descriptor must not find old ones behind its own.
	if derr := s.deleteAll(prefix); derr != nil {
		return derr
	}
	if !needed {
		s.bad(key, 0, "lost: %s", fault.Problem(err))
		return nil
	}
	// Revision 1 has no projections of its own, because it uses the model of the space.
	before := s.space.Revision
	d = &spaces.RevisionDescriptor{RevisionInfo: report.RevisionInfo{Revision: revision,
		Created: s.first.Created}}
	var projections []byte
	if revision == 1 {
		s.bad(key, 0, "its descriptor is lost, and with it how far items were from it")
	} else {
		s.bad(key, 0, "lost: it has the projections of revision %d now: %s", before, fault.Problem(err))
		if projections, err = s.space.Learned.MarshalRevision(s.first.Learned); err != nil {
			return err
		}
		d.Created, d.Parent, d.Teacher, d.Model = spaces.Now(), before, spaces.Restored,
			record.ChunksOf(projections)
	}
	s.space = s.first.Revised(revision, s.space.Learned)
	b, err := json.Marshal(d)
	if err == nil {
		err = s.set(key, b)
	}
	if err != nil {
		return err
	}
	return s.written(record.WriteChunks(s.batch, prefix, 1, projections))
}

// forget makes statistics of no item, and all rows pending that can teach. A model that was learned without
// labels has neither.
func (s *spaceMender) forget() (record.Chunked, error) {
	if !s.space.HasStatistics() {
		return record.Chunked{}, nil
	}
	b, err := model.NewStatistics(s.space.Learned).MarshalBinary()
	if err != nil {
		return record.Chunked{}, err
	}
	s.n.Checkpoint = s.n.Revision
	if err := record.WriteChunks(s.batch, s.key(codec.KindStatistics), 0, b); err != nil {
		return record.Chunked{}, err
	}
	err = record.ByContainer(record.UnionOf(s.presence, s.space.Positions),
		func(container uint16, l codec.Layer) error {
			b, err := l.Append(nil, true)
			if err != nil {
				return err
			}
			return s.set(codec.OnlineRowsKey(s.ID, s.id, codec.SetPending, container), b)
		})
	return record.ChunksOf(b), err
}

// writeSpace stores the descriptor of a space, with a copy of the descriptor of the collection.
func (c *collectionMender) writeSpace(d spaces.Reported) error {
	d.Collection = c.Descriptor
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return c.set(codec.NumberKey(codec.KindSpace, c.ID, d.ID), b)
}

// mendGiven writes the one space that a codes-only collection has, as active and without codes.
func (c *collectionMender) mendGiven() error {
	d := spaces.SpaceDescriptor{ID: 1, Bits: c.Bits, Created: spaces.Now()}
	// A descriptor that can be read keeps the date of the space.
	if sp, err := spaces.Read(c.batch, c.Descriptor, 1, 1); err == nil {
		d = sp.SpaceDescriptor
	}
	// The codes go with the space: storeGiven stores them again, from memory.
	for id := range c.seen.spaces {
		if err := c.dropSpace(id); err != nil {
			return err
		}
	}
	c.counters.ActiveSpace, c.counters.NextSpace = 1, max(c.counters.NextSpace, 2)
	c.counters.Spaces = []codec.SpaceCounters{{ID: 1, Revision: 1}}
	return c.writeSpace(spaces.Reported{SpaceDescriptor: d})
}
