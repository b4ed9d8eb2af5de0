package learn

import (
	"fmt"
)

// A Teacher says what the projections learn from in an update; db.Teacher says what each does.
type Teacher int

// The teachers, in the order of their names.
const (
	Auto Teacher = iota
	Labels
	Modality
	Self
)

// TeacherNames are the names of the teachers, by their numbers.
var TeacherNames = [...]string{"auto", "labels", "modality", "self"}

// String returns the name of the teacher.
func (t Teacher) String() string {
	if t.Known() {
		return TeacherNames[t]
	}
	return fmt.Sprintf("Teacher(%d)", int(t))
}

// Known reports whether there is such a teacher.
func (t Teacher) Known() bool { return t >= 0 && int(t) < len(TeacherNames) }
