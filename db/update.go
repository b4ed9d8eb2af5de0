package db

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// UpdateOptions say what an update is to do. The zero value updates the active space
// with TeacherAuto.
type UpdateOptions struct {
	Space   Space
	Teacher Teacher

	// GrowLabels gives labels that training has never seen a direction in the code
	// space first, and the items that carry them another code, by which they then
	// teach. There are as many directions left as bits exceed the labels.
	GrowLabels bool

	// Progress is called from Update's goroutine after each block of items, in the stages
	// "try" while those without labels are tried on a copy, "learn" while items teach.
	Progress event.Progress
}

// adoption returns what an updater has adopted.
func (u *updater) adoption() (a Adoption) {
	if u.labelled > 0 {
		a.Labelled = TeacherLabels.String()
	}
	switch {
	case u.unlabelled == 0:
	case u.lead == "":
		a.Unlabelled = TeacherSelf.String()
	default:
		a.Unlabelled = TeacherModality.String()
	}
	return a
}

// Update carries on the learning of a space's projections with the items that have
// been written since it was trained, or last updated: the online step of FDDH (Liu,
// Wang, Cheung 2021, eqs. 22-24). That makes a new revision of the space, in one commit.
// Codes that items have stay as they are and remain comparable; queries, and items
// that are put from then on, are encoded by the new projections. Items that have
// taught and then changed or gone are taken out of what was learned, so that it is, but
// for rounding, what the items that are there now have taught. A modality that nothing is
// left of keeps its projection until something teaches it.
//
// Readers and writers go on while it runs, on half of the processors; writers wait for
// the commit. With 800 anchors, 128 bits and two modalities of 128 dimensions an item
// costs half a millisecond where a hundred come at a time, the revision included, and
// less where more do. The first update of a space after Open reads the statistics, which
// stay in memory with their factors, 16 k (k+q) bytes a modality. It looks at a million
// pending items at most: call it again for more. Updates of one space wait for each
// other. A space that is being built gives ErrBusy, a codes-only collection ErrInvalid,
// one without a model ErrNoModel. With an error, or when the context ends early, the
// revision is what it was, or the one that labels have grown in.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	c = c.orNone()
	if err := c.db.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer c.db.state.Guard.Leave()
	if !opt.Teacher.known() {
		return nil, fault.Invalid("unknown teacher %v", opt.Teacher)
	}
	if err := c.changeable(); err != nil {
		return nil, err
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return nil, err
	}
	opt.Space = Space(c.spaceOr(opt.Space))
	ctx, op := c.db.state.Signals.Begin(ctx, event.OpUpdate, c.name)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	u, err := c.update(ctx, opt)
	op.End(err, updateEvent(u))
	return u, err
}

// updateEvent returns what events say of an update, which may be nil.
func updateEvent(u *Update) event.Event {
	if u == nil {
		return event.Event{}
	}
	return event.Event{Space: uint32(u.Space), Revision: u.Revision, Items: int64(u.Items), Attrs: []slog.Attr{
		slog.Int("labelled", u.Labelled), slog.Int("unlabelled", u.Unlabelled), slog.Int("refused", u.Refused), slog.Bool("revised", u.Revised),
	}}
}

func (c *Collection) update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	start := time.Now()
	out := &Update{Teacher: opt.Teacher.String()}
	if opt.Space == 0 { // it stays this one, whatever is activated meanwhile
		err := c.read(func(_ *state.View, cv *state.CollectionView) error {
			if cv.Space != nil {
				opt.Space = Space(cv.Space.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if opt.GrowLabels {
		if err := c.growLabels(ctx, uint32(opt.Space), out); err != nil {
			return nil, err
		}
	}
	recoded, err := c.recode(ctx, uint32(opt.Space))
	if err != nil {
		return nil, err
	}
	out.Recoded = recoded
	err = c.revise(ctx, uint32(opt.Space), func(u *updater) error {
		out.Space, out.Revision = Space(u.cv.Space.ID), u.cv.Space.Revision
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
		out.Forgotten += u.forgotten // others have gone with the revision in which labels have grown
		out.Items = u.labelled + u.unlabelled
		out.Adopted, out.Lead, out.Reason = u.adoption(), u.lead, u.reason
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}
