package model

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

// ConditionLimit is the condition number above which a projection is unreliable.
// Rounding in float64 leaves it four digits, and the rounding of features to float32
// moves it by too much. A larger gamma helps, or features of one scale.
const ConditionLimit = 1e12

// A BitsError is a training with too many labels. C'C = I needs a dimension of the code
// space for each label, unless labels are embedded. Limit is the largest number of
// labels: Bits, or more with Options.LabelEmbedding.
type BitsError struct{ Bits, Labels, Limit int }

func (e *BitsError) Error() string {
	if e.Limit > e.Bits {
		return fmt.Sprintf("%d labels are too many for codes of %d bits, even embedded: use at most %d labels", e.Labels, e.Bits, e.Limit)
	}
	if bits := (e.Labels + 7) / 8 * 8; bits <= codec.MaxBits {
		return fmt.Sprintf("%d labels do not fit in codes of %d bits: use at least %d bits, fewer labels, or label embedding (LabelEmbedding, --label-embedding), which costs some retrieval",
			e.Labels, e.Bits, bits)
	}
	return fmt.Sprintf("%d labels do not fit in codes of %d bits, nor in any of at most %d: use fewer labels, or label embedding (LabelEmbedding, --label-embedding), which costs some retrieval",
		e.Labels, e.Bits, codec.MaxBits)
}

// An AnchorsError is a request for more anchors than there are vectors to draw them
// from.
type AnchorsError struct {
	Modality       string
	Anchors, Items int
}

func (e *AnchorsError) Error() string {
	return fmt.Sprintf("%d anchors asked for, but only %d training items have modality %q: ask for at most %d, or for 0, the default",
		e.Anchors, e.Items, e.Modality, e.Items)
}

// A FeaturesError is a map with too few features for the method. Train needs Need
// features (labels for joint, bits for paper), and the map has Features.
type FeaturesError struct {
	Modality       string
	Features, Need int
	Method         Method
}

func (e *FeaturesError) Error() string {
	return fmt.Sprintf("the map of modality %q has %d features, but method %v needs at least %d: use more anchors, or method labels",
		e.Modality, e.Features, e.Method, e.Need)
}

// errNoneHasLabels is the ErrNoLabels of items of which none has a label.
var errNoneHasLabels = fmt.Errorf("%w: no item has any: give items labels, or learn without by the method itq (vectors of one space) or cca-itq (items with vectors in several); to search by vectors nothing is to be learned", ErrNoLabels)
