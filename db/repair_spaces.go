package db

import (
	"encoding/binary"
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
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// mendSpaces mends all spaces and completes the counters by what there is of them.
func (c *collectionMender) mendSpaces() error {
	stored := map[uint32]codec.SpaceCounters{}
	for _, n := range c.counters.Spaces {
		stored[uint32(n.ID)] = n
	}
	last := uint32(0)
	for id := range c.seen.spaces {
		if id > 0 && id < record.MaxRows-1 {
			last = max(last, id)
		}
	}
	ids := map[uint32]bool{} // those that stay
	all := c.spaceIDs()
	active, previous := c.counters.ActiveSpace, c.counters.PreviousSpace
	c.counters.Spaces = nil
	for _, id := range all {
		c.counters.NextSpace = max(c.counters.NextSpace, uint64(id)+1)
		n, known := stored[id]
		if !known {
			n = codec.SpaceCounters{ID: uint64(id)}
		}
		var kept bool
		var err error
		if c.CodesOnly() {
			if kept = id == 1; kept {
				continue // below
			}
		} else {
			n, kept, err = c.mendSpace(n, known)
		}
		if err != nil {
			return err
		}
		if kept {
			c.counters.Spaces = append(c.counters.Spaces, n)
		}
		ids[id] = kept
	}
	if c.CodesOnly() {
		n, err := c.writeGiven()
		if err != nil {
			return err
		}
		ids[1], c.counters.Spaces = true, []codec.SpaceCounters{n}
	}
	// What belongs to no space is left over from some that are gone.
	for id := range c.seen.spaces {
		if !ids[id] {
			for _, kind := range spaceKinds {
				if err := c.deleteAll(codec.NumberKey(kind, c.ID, id)); err != nil {
					return err
				}
			}
		}
	}
	c.counters.NextSpace = max(c.counters.NextSpace, uint64(last)+1)
	c.chooseActive(active, previous)
	return nil
}

// spaceIDs returns the spaces that the counters tell of, in ascending order, and where they
// are lost those that anything is stored of.
func (c *collectionMender) spaceIDs() []uint32 {
	ids := map[uint32]bool{}
	for _, n := range c.counters.Spaces {
		ids[uint32(n.ID)] = true
	}
	if !c.counted || c.lostAny(c.countersKey()) {
		for id := range c.seen.spaces {
			if id > 0 && id < record.MaxRows-1 {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// chooseActive makes sure that the active space, and the one before, are there.
func (c *collectionMender) chooseActive(active, previous uint64) {
	newest := uint64(0)
	complete := map[uint64]bool{}
	for _, n := range c.counters.Spaces {
		if !n.Building {
			complete[n.ID] = true
			newest = max(newest, n.ID)
		}
	}
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
	c.counters.ActiveSpace, c.counters.PreviousSpace = active, previous
}

// A spaceMender is what is known of the learned space that is being mended.
type spaceMender struct {
	*collectionMender
	n      codec.SpaceCounters
	space  *spaces.Space            // as its present revision has it
	kept   map[uint32]*spaces.Space // revisions
	other  map[uint32]bool          // of these, those that are lost and have the projections of another one
	known  bool                     // the counters were stored
	report json.RawMessage          // of its training

	targets         []*targetMender
	recode          *roaring.Bitmap
	uncodable       *roaring.Bitmap // rows whose features give no code
	taught, pending *roaring.Bitmap
}

func (s *spaceMender) id() uint32              { return uint32(s.n.ID) }
func (s *spaceMender) prefix(kind byte) []byte { return codec.NumberKey(kind, s.ID, s.id()) }

func (s *spaceMender) bad(what string, key []byte, format string, args ...any) {
	s.found(Finding{Collection: s.Name, Space: s.id(), Record: what, Problem: fmt.Sprintf(format, args...)}.at(key))
}

// mendSpace mends a learned space; kept is false where it is dropped.
func (c *collectionMender) mendSpace(n codec.SpaceCounters, known bool) (_ codec.SpaceCounters, kept bool, err error) {
	c.stage(fmt.Sprintf("space %d", n.ID))
	s := &spaceMender{
		collectionMender: c, n: n, known: known, kept: map[uint32]*spaces.Space{}, other: map[uint32]bool{},
		recode: roaring.New(), uncodable: roaring.New(), taught: roaring.New(), pending: roaring.New(),
	}
	if c.IndexOnly { // such a space could not be completed
		s.n.Building, s.n.Built, s.n.Activate = false, 0, false
	}
	for _, step := range []func() error{s.readModel, s.mendRevisions, s.readOnlineRows, s.mendCodes, s.mendOnline} {
		if err := step(); err != nil {
			if errors.Is(err, errNoModel) {
				err = nil
			}
			return n, false, err
		}
		if err := c.flush(); err != nil {
			return n, false, err
		}
	}
	return s.n, true, nil
}

var errNoModel = errors.New("no model")

// readModel reads descriptor and model of the space. Where the descriptor is lost the
// model says what stood there.
func (s *spaceMender) readModel() error {
	key := s.prefix(codec.KindSpace)
	trained, err := spaces.Read(s.store, s.Descriptor, s.id(), 1)
	b, rerr := record.Get(s.store, key)
	if rerr != nil {
		return rerr
	}
	var all struct {
		spaces.Stored
		Report json.RawMessage `json:"report"`
	}
	decoded := json.Unmarshal(b, &all) == nil && all.Version == 0 && all.ID == s.id()
	if decoded {
		s.report = all.Report
	}
	if err != nil {
		d := spaces.Stored{ID: s.id(), Created: spaces.Now()}
		if decoded {
			d.Created, d.Parent, d.Statistics = all.Created, all.Parent, all.Statistics
		}
		var merr error
		if trained, merr = s.conclude(d); merr != nil {
			if b != nil || s.known || s.lostAny(key) || s.storedChunks(s.ID, s.id()) != nil {
				s.bad("space", key, "its model is lost: the space is dropped, with its codes; items stay: %s", fault.Problem(err))
			}
			return errNoModel
		}
		if !decoded {
			s.bad("space", key, "its descriptor is lost, and with it when and how it was trained: the model tells the rest")
		}
	}
	s.kept[1] = trained
	s.space = trained
	// Chunks that do not belong to the model.
	return record.ForEach(s.store, s.prefix(codec.KindModel), func(key, _ []byte) error {
		if codec.LastNumber(key) >= trained.Model.Chunks {
			return s.delete(key)
		}
		return nil
	})
}

// conclude makes the space of what its model says.
func (s *spaceMender) conclude(d spaces.Stored) (*spaces.Space, error) {
	b := s.storedChunks(s.ID, s.id())
	m, err := model.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	modalities, err := s.Match(m)
	if err != nil {
		return nil, err
	}
	d.Bits, d.Model = m.Bits(), record.ChunksOf(b)
	trained, err := spaces.New(d, m, modalities)
	if err != nil {
		return nil, err
	}
	return trained, s.writeSpace(trained.Stored, s.report)
}

// writeSpace stores the descriptor of a space.
func (c *collectionMender) writeSpace(d spaces.Stored, report json.RawMessage) error {
	b, err := json.Marshal(struct {
		spaces.Stored
		Report json.RawMessage `json:"report,omitempty"`
	}{d, report})
	if err != nil {
		return err
	}
	if err := c.set(codec.NumberKey(codec.KindSpace, c.ID, d.ID), b); err != nil {
		return err
	}
	return c.flush()
}

// WriteChunks stores a large value in chunks, from first on, and deletes what follows.
func (m *mender) writeChunks(prefix []byte, first uint32, b []byte) error {
	if err := m.deleteRange(binary.BigEndian.AppendUint32(slices.Clip(prefix), first), codec.PrefixEnd(prefix)); err != nil {
		return err
	}
	for i := range record.ChunksOf(b).Chunks {
		n := min(record.ChunkBytes, len(b))
		if err := m.set(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i), b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// mendRevisions makes sure that all revisions are there that have to be. One that is
// lost has the projections of the one before it.
func (s *spaceMender) mendRevisions() error {
	chunks := map[uint32]uint32{} // the last one of each revision
	err := record.ForEach(s.store, s.prefix(codec.KindRevision), func(key, _ []byte) error {
		revision, chunk := codec.RevisionKeyParts(key)
		chunks[revision] = max(chunks[revision], chunk)
		return nil
	})
	if err != nil {
		return err
	}
	latest := uint32(s.n.Revision)
	if !s.known || latest == 0 {
		latest = 1
		for revision := range chunks {
			if revision < record.MaxRows-1 {
				latest = max(latest, revision)
			}
		}
	}
	s.n.Revision = uint64(latest)
	oldest := max(2, int64(latest)-(keptRevisions-1))
	for revision := range chunks {
		if revision == 0 || revision > latest {
			if err := s.deleteAll(codec.RevisionPrefix(s.ID, s.id(), revision)); err != nil {
				return err
			}
			delete(chunks, revision)
		}
	}
	for n := oldest; n <= int64(latest); n++ {
		chunks[uint32(n)] += 0 // it has to be there
	}
	if err := s.mendFirst(); err != nil {
		return err
	}
	before := uint32(1)
	for _, revision := range slices.Sorted(maps.Keys(chunks)) {
		if revision == 1 {
			continue
		}
		if err := s.mendRevision(revision, chunks[revision], before, int64(revision) >= oldest); err != nil {
			return err
		}
		if s.kept[revision] != nil {
			before = revision
		}
	}
	s.space = s.kept[latest]
	return nil
}

// mendFirst makes sure that there is a descriptor of revision 1.
func (s *spaceMender) mendFirst() error {
	key := codec.RevisionKey(s.ID, s.id(), 1, 0)
	first, err := spaces.ReadRevisionDescriptor(s.store, s.ID, s.id(), 1)
	if err == nil {
		s.n.NextOutbox = max(s.n.NextOutbox, first.Outbox)
		return s.writeChunks(codec.RevisionPrefix(s.ID, s.id(), 1), 1, nil)
	}
	s.bad("revision 1", key, "its descriptor is lost, and with it how far items were from it")
	return s.writeRevision(report.RevisionInfo{Revision: 1, Created: s.space.Created}, nil)
}

// writeRevision stores a revision.
func (s *spaceMender) writeRevision(info report.RevisionInfo, projections []byte) error {
	d := spaces.RevisionDescriptor{RevisionInfo: info}
	if projections != nil {
		d.Model = record.ChunksOf(projections)
	}
	b, err := json.Marshal(&d)
	if err != nil {
		return err
	}
	if err := s.set(codec.RevisionKey(s.ID, s.id(), info.Revision, 0), b); err != nil {
		return err
	}
	return s.writeChunks(codec.RevisionPrefix(s.ID, s.id(), info.Revision), 1, projections)
}

// mendRevision mends a revision that is not the first one. before is one that is sound.
func (s *spaceMender) mendRevision(revision, last, before uint32, needed bool) error {
	what, key := fmt.Sprintf("revision %d", revision), codec.RevisionKey(s.ID, s.id(), revision, 0)
	d, err := spaces.ReadRevisionDescriptor(s.store, s.ID, s.id(), revision)
	var m *model.Model
	if err == nil {
		m, err = spaces.ReadRevision(s.store, s.ID, s.kept[1], revision)
	}
	switch {
	case err == nil:
		s.kept[revision] = s.kept[1].Revised(revision, m)
		s.n.NextOutbox = max(s.n.NextOutbox, d.Outbox)
		for i := d.Model.Chunks + 1; i <= last; i++ {
			if err := s.delete(codec.RevisionKey(s.ID, s.id(), revision, i)); err != nil {
				return err
			}
		}
		if d.Parent >= revision {
			d.Parent = before
			b, err := json.Marshal(d)
			if err != nil {
				return err
			}
			return s.set(key, b)
		}
		return nil
	case !needed:
		s.bad(what, key, "lost: %s", fault.Problem(err))
		return s.deleteAll(codec.RevisionPrefix(s.ID, s.id(), revision))
	}
	codes := "are made again"
	if s.IndexOnly {
		codes = "stay as they are"
	}
	s.bad(what, key, "lost: it has the projections of revision %d now, and codes that it made %s: %s", before, codes, fault.Problem(err))
	m = s.kept[before].Learned
	projections, err := m.MarshalRevision(s.kept[1].Learned)
	if err != nil {
		return err
	}
	s.kept[revision], s.other[revision] = s.kept[1].Revised(revision, m), true
	return s.writeRevision(report.RevisionInfo{Revision: revision, Parent: before, Created: spaces.Now(), Teacher: teacherRestored}, projections)
}

// verifier returns what reads items, and compares statistics, as Verify does.
func (s *spaceMender) verifier(found func(Finding) error) (v *spaceVerifier, done func() error) {
	snap := s.store.NewSnapshot()
	return &spaceVerifier{
		collectionVerifier: &collectionVerifier{
			verifier:   &verifier{ctx: s.ctx, snap: snap, report: found, opt: VerifyOptions{Deep: true}, known: map[uint32]*knownCollection{}},
			Descriptor: s.Descriptor, presence: s.presence, live: s.items,
		},
		Space: s.space, n: s.n, kept: s.kept, readable: true,
	}, snap.Close
}
