package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// This file makes what was learned a revision.

// commit makes what was learned a revision, and stores what taught it.
func (u *updater) commit(ctx context.Context) error {
	changes := len(u.rows) > 0 || u.forgotten > 0 || u.checkpoint
	if !changes && u.seen.IsEmpty() {
		return nil
	}
	var next *spaces.Space
	var d *spaces.RevisionDescriptor
	var projections, statistics []byte
	if changes {
		m, err := u.l.online.Revision()
		if err != nil {
			return u.learning(err)
		}
		sp := u.cv.space
		next = sp.Revised(sp.Revision+1, m)
		if projections, err = m.MarshalRevision(sp.Trained); err != nil {
			return u.learning(err)
		}
		if d, err = u.descriptor(m, next.Revision, projections); err != nil {
			return err
		}
		u.l.ahead += len(u.rows)
		if u.checkpoint = u.checkpoint || u.l.ahead >= checkpointItems && !u.l.shrunk(); u.checkpoint {
			if statistics, err = u.l.online.Statistics().MarshalBinary(); err != nil {
				return u.learning(err)
			}
		}
	}
	bytes := len(projections) + len(statistics) + len(u.rows)*(5+codec.Bytes(u.cv.space.Bits))
	err := u.inSpace(ctx, bytes, func(tx *tx, s *collectionState, sp *spaceState) error {
		if next == nil {
			tx.notPending(sp, u.seen)
			tx.c.touch(s)
			return nil
		}
		if next.Revision == record.MaxRows {
			return fmt.Errorf("%w: revisions of space %d", fault.ErrFull, sp.ID)
		}
		departures, err := u.departures(sp)
		if err != nil {
			return err
		}
		recode, err := carriers(tx.c.store, s.ID, u.recode)
		if err != nil {
			return err
		}
		if err := tx.writeRevision(sp, d, projections); err != nil {
			return err
		}
		if statistics != nil {
			if err := tx.writeCheckpoint(sp, statistics, u.l.outbox); err != nil {
				return err
			}
			sp.numbers.Checkpoint = uint64(next.Revision)
		}
		for i, row := range u.rows {
			if departures[row] == nil {
				tx.learn(sp, row, codec.Lesson{Revision: next.Revision, Codes: u.lessons[i]}, false)
				continue
			}
			if err := tx.depart(sp, departures[row]); err != nil {
				return err
			}
		}
		tx.notPending(sp, u.seen)
		for it := recode.Iterator(); it.HasNext(); {
			tx.setOnline(sp, codec.SetRecode, it.Next(), true)
		}
		sp.revise(next)
		tx.c.touch(s)
		return nil
	})
	if err != nil || next == nil {
		return err
	}
	u.revision = next.Revision
	u.l.revision, u.l.forgotten = next.Revision, 0
	if statistics != nil {
		u.l.ahead = 0
	}
	return nil
}

// inSpace runs f, which stores about so many bytes, in the committer, alone, with the space,
// which must be as it was.
func (u *updater) inSpace(ctx context.Context, bytes int, f func(tx *tx, s *collectionState, sp *spaceState) error) error {
	return u.c.do(ctx, bytes, func(tx *tx, s *collectionState) error {
		sp := s.spaceByID(u.cv.space.ID)
		if sp == nil {
			return fault.NotFound("space %d of collection %q, which was being updated", u.cv.space.ID, s.Name)
		}
		if sp.Space != u.cv.space {
			return fmt.Errorf("%w: space %d of collection %q has got another revision meanwhile", fault.ErrBusy, sp.ID, s.Name)
		}
		return f(tx, s, sp)
	})
}

// departures returns what rows have just taught that have changed since: it has to be
// taken out again.
func (u *updater) departures(sp *spaceState) (map[uint32]*codec.Departure, error) {
	out := map[uint32]*codec.Departure{}
	bytes := 0
	for i, row := range u.rows {
		if !sp.changed.Contains(row) {
			continue
		}
		if bytes > record.MaxBatchBytes {
			return nil, fmt.Errorf("%w: too much of what taught space %d has been overwritten meanwhile: try again", fault.ErrBusy, sp.ID)
		}
		l := codec.Lesson{Revision: sp.Revision + 1, Codes: u.lessons[i]}
		d, err := record.Departure(u.v.snap, u.cv.Descriptor, sp.Positions, row, l)
		if err != nil {
			return nil, err
		}
		out[row] = d
		bytes += d.Bytes()
	}
	return out, nil
}

// notPending takes rows from the pending ones, but those that have changed since the
// updater took its view.
func (tx *tx) notPending(sp *spaceState, seen *roaring.Bitmap) {
	it := roaring.AndNot(seen, sp.changed).Iterator()
	for it.HasNext() {
		tx.setOnline(sp, codec.SetPending, it.Next(), false)
	}
}

// descriptor describes the revision.
func (u *updater) descriptor(m *model.Model, revision uint32, projections []byte) (*spaces.RevisionDescriptor, error) {
	residuals, err := m.Residual(u.l.online.Statistics())
	if err != nil {
		return nil, u.learning(err)
	}
	d := &spaces.RevisionDescriptor{Model: record.ChunksOf(projections), Outbox: u.l.outbox, RevisionInfo: report.RevisionInfo{
		Revision: revision, Parent: u.parent, Created: spaces.Now(),
		Teacher: u.teacherName, Lead: u.lead, Reason: u.reason,
		Items: u.labelled + u.unlabelled, Labelled: u.labelled, Unlabelled: u.unlabelled, Forgotten: u.forgotten,
		Residual: map[string]float64{}, Drift: u.drift,
	}}
	for i, t := range u.cv.space.Positions {
		d.Residual[u.cv.Modalities[t].Name] = residuals[i]
	}
	return d, nil
}

// keptRevisions is how many revisions are kept besides the first one and those that are
// pinned, the present one included.
const keptRevisions = 8

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
		if loose++; loose <= keptRevisions {
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
