package learn

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// The commit of an update.

// commit stores a revision with the projections that the learner has by now, the lessons of
// the rows that have taught it, and the statistics if a checkpoint is due. If nothing has
// taught or been forgotten, and no checkpoint was asked for, there is no commit. A row that has
// changed since the view departs in this very commit. Errors: ErrBusy, ErrNotFound, ErrFull; the
// caller then has to forget the learner.
func (u *updater) commit(ctx context.Context) error {
	m, err := u.imported, error(nil)
	if m == nil {
		if len(u.rows) == 0 && u.forgotten == 0 && !u.checkpoint {
			return nil
		}
		if m, err = u.l.online.Revision(); err != nil {
			return u.learning(err)
		}
	}
	next := u.cv.Space.Revised(cmp.Or(u.number, u.cv.Space.Revision+1), m)
	projections, err := m.MarshalRevision(u.cv.Space.Trained)
	if err != nil {
		return u.learning(err)
	}
	d := u.descriptor(next.Revision, projections)
	var statistics []byte // nil: no checkpoint is due
	u.l.ahead += len(u.rows)
	if u.checkpoint || u.l.ahead >= checkpointItems && !u.l.shrunk() {
		if statistics, err = u.l.online.Statistics().MarshalBinary(); err != nil {
			return u.learning(err)
		}
	}
	// The latest numbers, spaces.Kept of them, all exist: those that number skips are stored as the same
	// revision.
	var passed []*spaces.RevisionDescriptor
	for n := max(int64(u.cv.Space.Revision)+1, int64(next.Revision)-(spaces.Kept-1)); n < int64(next.Revision); n++ {
		same := *d
		same.Revision = uint32(n)
		passed = append(passed, &same)
	}
	bytes := (1+len(passed))*len(projections) + len(statistics)
	for _, t := range u.lessons {
		bytes += 10 + len(t.Codes) + 5*len(t.Labels)
	}
	err = u.inSpace(ctx, bytes, func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error {
		if next.Revision > codec.MaxRevision {
			return fmt.Errorf("%w: revisions of space %d", fault.ErrFull, sp.ID)
		}
		// Everything that may fail comes first: a change in memory would stay after an error.
		departures, err := u.departures(sp, next.Revision)
		if err != nil {
			return err
		}
		recode, err := carriers(tx.Committer.Reader(), s.ID, u.recode)
		if err != nil {
			return err
		}
		for _, d := range append(passed, d) {
			if err := tx.WriteRevision(sp, d, projections); err != nil {
				return err
			}
		}
		if statistics != nil {
			if err := tx.WriteCheckpoint(s, sp, next, statistics, u.l.outbox); err != nil {
				return err
			}
			sp.Numbers.Checkpoint = uint64(next.Revision)
		}
		for i, row := range u.rows {
			// If the row has changed, it has taught as it was in the view. The statistics contain that,
			// so it departs at once, and its lesson is never stored. TestWritesDuringAnUpdate of db.
			if departures[row] == nil {
				tx.Learn(sp, row, codec.Lesson{Revision: next.Revision, Taught: u.lessons[i]}, false)
				continue
			}
			if err := tx.Depart(sp, departures[row]); err != nil {
				return err
			}
		}
		notPending(tx, sp, u.rows)
		for it := recode.Iterator(); it.HasNext(); {
			tx.SetOnline(sp, codec.SetRecode, it.Next(), true)
		}
		// Last: the commit is for the revision of the view up to here (inSpace).
		sp.Revise(next)
		tx.Committer.Touch(s)
		return nil
	})
	if err != nil {
		return err
	}
	u.revision = next.Revision
	// The learner follows only a commit that is durable. If the commit fails, revise forgets it.
	u.l.revision, u.l.forgotten = next.Revision, 0
	if statistics != nil {
		u.l.ahead = 0
	}
	return nil
}

// inSpace runs f in the committer, alone in its commit of about so many bytes, with the space
// that is being updated. ErrBusy: the space has got another revision since the view.
func (u *updater) inSpace(ctx context.Context, bytes int, f func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error) error {
	return u.c.Do(ctx, bytes, func(tx *state.Tx, s *state.CollectionState) error {
		sp := s.SpaceByID(u.cv.Space.ID)
		if sp == nil {
			return fault.NotFound("space %d of collection %q, which was being updated", u.cv.Space.ID, s.Name)
		}
		if sp.Space != u.cv.Space {
			return fmt.Errorf("%w: space %d of collection %q has got another revision meanwhile", fault.ErrBusy, sp.ID, s.Name)
		}
		return f(tx, s, sp)
	})
}

// departures returns, by row, the lessons of this update whose rows have changed since the
// view, with the features of the view: the statistics have these. It runs in the committer.
// ErrBusy: they are too large for one batch (record.MaxBatchBytes).
func (u *updater) departures(sp *state.SpaceState, revision uint32) (map[uint32]*codec.Departure, error) {
	out := map[uint32]*codec.Departure{}
	bytes := 0
	for i, row := range u.rows {
		if !sp.Changed.Contains(row) {
			continue
		}
		if bytes > record.MaxBatchBytes {
			return nil, fmt.Errorf("%w: too much of what taught space %d has been overwritten meanwhile: try again", fault.ErrBusy, sp.ID)
		}
		// Of the revision that this commit makes: the statistics with that revision have the lesson.
		l := codec.Lesson{Revision: revision, Taught: u.lessons[i]}
		d, err := record.Departure(u.v.Snap, u.cv.Descriptor, sp.Positions, row, l)
		if err != nil {
			return nil, err
		}
		out[row] = d
		bytes += d.Bytes()
	}
	return out, nil
}

// notPending takes rows out of the pending ones, but for those that have changed since the
// view: they have to teach as they are now. It runs in the committer.
func notPending(tx *state.Tx, sp *state.SpaceState, rows []uint32) {
	for _, row := range rows {
		if !sp.Changed.Contains(row) {
			tx.SetOnline(sp, codec.SetPending, row, false)
		}
	}
}

// descriptor returns the descriptor of a revision with this number. projections is the
// binary form of its model.
func (u *updater) descriptor(revision uint32, projections []byte) *spaces.RevisionDescriptor {
	return &spaces.RevisionDescriptor{Model: record.ChunksOf(projections), Outbox: u.l.outbox, RevisionInfo: report.RevisionInfo{
		Revision: revision, Parent: u.parent, Created: spaces.Now(),
		Teacher: u.teacherName, Lead: u.lead, Reason: u.reason,
		Items: u.labelled + u.unlabelled, Labelled: u.labelled, Unlabelled: u.unlabelled, Forgotten: u.forgotten,
		Drift: u.drift,
	}}
}
