package db

import (
	"context"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A Teacher says what the projections learn from in an update.
type Teacher int

// Teachers. Labelled items, those with a label that the model knows, teach their labels
// in every case (model.Aim). They differ in what items without labels do.
const (
	// TeacherAuto tries what they would teach with TeacherModality, on a copy, and
	// lets them only if retrieval of labelled items that are held back for that is
	// better for it. Once refused, they are tried again when there are twice as many,
	// or when the database has been opened again.
	TeacherAuto Teacher = iota
	// TeacherLabels: nothing.
	TeacherLabels
	// TeacherModality: the projection of the modality that finds labelled items best
	// gives the code that the others learn, and it itself.
	TeacherModality
	// TeacherSelf: each modality learns the code that its own projection gives, as in
	// the paper.
	TeacherSelf
)

// String returns the name of the teacher.
func (t Teacher) String() string { return learn.Teacher(t).String() }

// ParseTeacher returns the teacher of that name.
func ParseTeacher(s string) (Teacher, error) {
	if i := slices.Index(learn.TeacherNames[:], strings.ToLower(s)); i >= 0 {
		return Teacher(i), nil
	}
	return 0, fault.Invalid("unknown teacher %q: auto, labels, modality and self are possible", s)
}

// UpdateOptions say what an update is to do. The zero value updates the active space
// with TeacherAuto.
type UpdateOptions struct {
	Space   Space
	Teacher Teacher

	// GrowLabels gives labels that training has never seen a direction in the code
	// space first, and the items that carry them another code, by which they then
	// teach. There are as many directions left as bits exceed the labels, or one more.
	GrowLabels bool

	// Progress is called from Update's goroutine after each block of items, in the stages
	// "try" while those without labels are tried on a copy, "learn" while items teach.
	Progress event.Progress
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
// stay in memory with their factors: 16 k (k+c) bytes a modality for k features and c labels,
// 16 k (k+c+q) once projections have taught. It looks at a million pending items at most:
// call it again for more. Updates of one space wait for each other. A space that is being
// built gives ErrBusy, a codes-only collection ErrInvalid, one without a model ErrNoModel.
// With an error, or when the context ends early, the revision is what it was, or the one
// that labels have grown in.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !learn.Teacher(opt.Teacher).Known() {
		return nil, fault.Invalid("unknown teacher %v", opt.Teacher)
	}
	ctx, op := in.DB.Signals.Begin(ctx, event.OpUpdate, in.Name)
	defer op.Abandon()
	u, err := in.Update(ctx, learn.UpdateOptions{
		Space: c.spaceOr(opt.Space), Teacher: learn.Teacher(opt.Teacher), GrowLabels: opt.GrowLabels, Progress: op.Telling(opt.Progress),
	})
	op.End(err, learn.UpdateEvent(u))
	return u, err
}
