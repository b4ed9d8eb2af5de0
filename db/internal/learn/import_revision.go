package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// ImportRevision makes the model of a file the next revision of a space; 0 is the active one. The model has
// to be a revision of that of the space. revision is its number; 0 means the next one. Labels that have grown
// in the file grow here too, and the items that carry them get new codes. The statistics stay as they are:
// they hold what items here have taught. If the space has that revision already, only the codes that an
// interrupted call has left out are made.
//
// Errors: ErrInvalid if the model is no revision of that of the space, or lacks labels that the space knows;
// ErrExists if the number is not greater than that of the present revision; and those of Update.
func (c Collection) ImportRevision(ctx context.Context, f *fit.File, space, revision uint32) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: spaces.Imported}
	err := c.revise(ctx, space, func(u *updater) error {
		sp := u.cv.Space
		space, out.Space, out.Revision = sp.ID, report.Space(sp.ID), sp.Revision
		m, err := modelOf(u.cv, f)
		if err != nil {
			return err
		}
		there, err := u.has(m, revision)
		if there || err != nil {
			return err
		}
		if revision != 0 && revision <= sp.Revision {
			return fmt.Errorf("%w: revision %d of space %d of collection %q, whose present one is %d", fault.ErrExists, revision, sp.ID, u.cv.Name, sp.Revision)
		}
		grown, err := m.GrownSince(sp.Learned)
		if err == nil {
			err = u.l.online.Follow(m)
		}
		if err != nil {
			return fault.Invalid("the file is no revision of space %d of collection %q: %w", sp.ID, u.cv.Name, err)
		}
		for _, id := range grown {
			out.Grown = append(out.Grown, u.cv.Names[id])
		}
		u.imported, u.number = m, revision
		u.teacherName, u.recode = spaces.Imported, grown
		if u.checkpoint = len(grown) > 0; u.checkpoint && u.l.shrunk() {
			if err := u.l.learnAnew(ctx, u.v, u.cv, nil); err != nil {
				return err
			}
			if err := u.l.online.Follow(m); err != nil {
				return u.learning(err)
			}
		}
		err = u.commit(ctx)
		out.Revision, out.Revised = u.revision, err == nil
		// Its statistics would stay in memory for updates that may never come.
		u.l.forget()
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Recoded, err = c.recode(ctx, space); err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// has reports whether the space has m as its present revision, with this number, or with any if it is 0.
func (u *updater) has(m *model.Model, number uint32) (bool, error) {
	sp := u.cv.Space
	if number != 0 && number != sp.Revision || m.Fingerprint() != sp.Learned.Fingerprint() {
		return false, nil
	}
	a, err := m.MarshalRevision(sp.Trained)
	if errors.Is(err, model.ErrMismatch) {
		return false, nil // and GrownSince says why
	} else if err != nil {
		return false, u.learning(err)
	}
	b, err := sp.Learned.MarshalRevision(sp.Trained)
	if err != nil {
		return false, u.learning(err)
	}
	return bytes.Equal(a, b), nil
}

// modelOf returns the model of a file for a collection, which has ids for its labels.
func modelOf(cv *state.CollectionView, f *fit.File) (*model.Model, error) {
	ids := make([]uint32, len(f.Labels()))
	for i, name := range f.Labels() {
		id, known := cv.Labels.ID(name)
		if !known { // it was renamed since it has been registered
			return nil, fmt.Errorf("%w: label %q of collection %q has got another name meanwhile: try again", fault.ErrBusy, record.Shortened(name), cv.Name)
		}
		ids[i] = id
	}
	m, err := f.Model(ids)
	if err != nil {
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	return m, nil
}
