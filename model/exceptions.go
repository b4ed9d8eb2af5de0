package model

import (
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// Lesson returns the code that a training item has in Statistics, for Online.Forget:
// item is its place in the source, from 0, and labels are its labels. That is
// LabelCode of the labels except for the items of Exceptions. It is nil if the model
// knows none of the labels.
func (r *Result) Lesson(item int, labels []uint32) Lesson {
	if code, ok := r.exceptions[item]; ok {
		return Lesson{code}
	}
	code := codec.NewCode(r.Model.bits)
	if !r.Model.LabelCode(code, labels) {
		return nil
	}
	return Lesson{code}
}

// Exceptions returns the places in the source, ascending, of the training items whose
// code in Statistics is not LabelCode of their labels. With MethodLabels there are
// none: codes follow from the labels. The others move Y of each item by its features,
// and with a small Delta there can be many; the Result keeps their codes.
func (r *Result) Exceptions() []int { return slices.Sorted(maps.Keys(r.exceptions)) }
