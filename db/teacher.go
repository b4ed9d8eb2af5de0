package db

import (
	"fmt"
)

// A lteacher says what the projections learn from in an update; db.Teacher says what each does.
type lteacher int

// The teachers, in the order of their names.
const (
	teachAuto lteacher = iota
	teachLabels
	teachModality
	teachSelf
)

// TeacherNames are the names of the teachers, by their numbers.
var TeacherNames = [...]string{"auto", "labels", "modality", "self"}

// String returns the name of the teacher.
func (t lteacher) String() string {
	if t.Known() {
		return TeacherNames[t]
	}
	return fmt.Sprintf("Teacher(%d)", int(t))
}

// Known reports whether there is such a teacher.
func (t lteacher) Known() bool { return t >= 0 && int(t) < len(TeacherNames) }
