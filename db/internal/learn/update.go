package learn

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// An update has three parts, each with commits of its own: grow labels, recode rows, learn. What
// has been committed stays if a later part fails. So an update that is interrupted costs time and
// nothing else, and the next one goes on.

// adoption returns the teachers of the items that have taught in this update.
func (u *updater) adoption() (a report.Adoption) {
	if u.labelled > 0 {
		a.Labelled = Labels.String()
	}
	switch {
	case u.unlabelled == 0:
	case u.lead == "":
		a.Unlabelled = Self.String()
	default:
		a.Unlabelled = Modality.String()
	}
	return a
}

// UpdateEvent returns the fields that events have of an update; u may be nil.
func UpdateEvent(u *report.Update) event.Event {
	if u == nil {
		return event.Event{}
	}
	return event.Event{Space: uint32(u.Space), Revision: u.Revision, Items: int64(u.Items), Attrs: []slog.Attr{
		slog.Int("labelled", u.Labelled), slog.Int("unlabelled", u.Unlabelled), slog.Int("refused", u.Refused), slog.Bool("revised", u.Revised),
	}}
}

// UpdateOptions are the options of Collection.Update, as db.UpdateOptions has them.
type UpdateOptions struct {
	Space      uint32 // 0: the active space
	Teacher    Teacher
	GrowLabels bool           // give labels that the model does not know a direction first
	Progress   event.Progress // called in the goroutine of the caller; nil: none
}

// Update lets the pending rows of a space teach, and commits a revision if any does or had to
// be forgotten: the online step of FDDH (Liu, Wang, Cheung 2021, eqs. 22-24). Before that it
// grows labels, if asked to, and recodes rows that wait for it; each has commits of its own,
// which stay after a later error. db.Collection.Update has cost, memory and errors. Updates of
// one space wait for each other.
func (c Collection) Update(ctx context.Context, opt UpdateOptions) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: opt.Teacher.String()}
	if opt.Space == 0 { // all steps take this space, even if another one is activated meanwhile
		err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
			if cv.Space != nil {
				opt.Space = cv.Space.ID
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if opt.GrowLabels {
		if err := c.GrowLabels(ctx, opt.Space, out); err != nil {
			return nil, err
		}
	}
	// Recode first: these rows become pending, and teach their new codes in this update.
	recoded, err := c.recode(ctx, opt.Space)
	if err != nil {
		return nil, err
	}
	out.Recoded = recoded
	err = c.revise(ctx, opt.Space, func(u *updater) error {
		out.Space, out.Revision = report.Space(u.cv.Space.ID), u.cv.Space.Revision
		u.progress = opt.Progress
		if err := u.learn(ctx, opt.Teacher); err != nil {
			return err
		}
		if n := int(u.left.GetCardinality()); n > 0 {
			u.skipped += n - int(u.left.AndCardinality(u.waiting))
			u.reason = strings.TrimPrefix(u.reason+"; "+tooLong(n), "; ")
		}
		err := u.commit(ctx)
		out.Revision, out.Revised = u.revision, out.Revised || u.revision != u.cv.Space.Revision
		out.Labelled, out.Unlabelled, out.Skipped, out.Refused = u.labelled, u.unlabelled, u.skipped, u.refused
		out.Forgotten += u.forgotten // GrowLabels has counted those that its revision took out
		out.Items = u.labelled + u.unlabelled
		out.Adopted, out.Lead, out.Reason = u.adoption(), u.lead, u.reason
		out.Drift = u.drift
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}
