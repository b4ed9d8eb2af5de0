package db

import (
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
)

// A Teacher says what the projections learn from in an update.
type Teacher int

// Teachers. Labelled items, those with a label that the model knows, teach the code of
// their labels in every case. They differ in what items without labels do.
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
