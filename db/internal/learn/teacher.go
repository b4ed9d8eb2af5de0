package learn

import (
	"fmt"
)

// A Teacher says from which codes the projections learn in an update. It has the numbers of
// db.Teacher. Items with a label that the model knows teach what its aim says under every
// Teacher; the teachers differ in the other items.
type Teacher int

// The teachers, in the order of TeacherNames.
const (
	Auto     Teacher = iota // as Modality, if a trial on a copy shows that it helps retrieval
	Labels                  // items without known labels teach nothing
	Modality                // one modality gives the code that all modalities of an item learn
	Self                    // each modality learns the code of its own projection, as in the paper
)

// TeacherNames are the names of the teachers, by number.
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
