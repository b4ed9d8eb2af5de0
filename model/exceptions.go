package model

import "github.com/fddhdb/fddhdb/codec"

// Lesson returns what a training item has taught the Statistics, for Online.Forget. item
// is its position in the source, from 0, and labels are its labels. With AimCodes it is
// LabelCode of the labels, except for the exceptions. It is empty if the model
// knows none of the labels.
func (r *Result) Lesson(item int, labels []uint32) Lesson {
	if code, ok := r.exceptions[item]; ok {
		return Lesson{Codes: []codec.Code{code}}
	}
	return r.Model.LabelLesson(labels)
}
