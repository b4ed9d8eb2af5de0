package model

import (
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

// Reasons for which training cannot start. Errors wrap these or are one of the types
// below; test with errors.Is and errors.As.
var (
	// ErrNoLabels says that there is no training item, or one without a label.
	ErrNoLabels = errors.New("no labels to learn from")
	// ErrOneClass says that all training items have the same labels.
	ErrOneClass = errors.New("only one distinct set of labels")
	// ErrNotFinite says that a vector holds NaN or an infinity.
	ErrNotFinite = errors.New("not a finite number")
	// ErrOption says that an option has a value that it cannot have.
	ErrOption = errors.New("invalid option")
	// ErrMismatch says that statistics, model or source do not belong together.
	ErrMismatch = errors.New("mismatch")
)

// errNoneHasLabels is the ErrNoLabels of items of which none has a label.
var errNoneHasLabels = fmt.Errorf("%w: no item has any: give items labels, or learn without by the method itq (vectors of one space) or cca-itq (items with vectors in several); to search by vectors nothing is to be learned", ErrNoLabels)

// A DimensionError is a vector with another length than its modality.
type DimensionError struct {
	Modality  string
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("a vector of %d numbers, but modality %q has %d dimensions", e.Got, e.Modality, e.Want)
}

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

// A ModalityError names a modality that is unknown, or that no training item has.
type ModalityError struct {
	Modality string
	Problem  string // the rest of the message
}

func (e *ModalityError) Error() string { return fmt.Sprintf("modality %q %s", e.Modality, e.Problem) }

// A SingularError is a ridge regression without a stable solution: the Gram matrix plus
// Gamma I is not positive definite in 53 bits. Enough is a gamma to try instead: a
// millionth of the mean of the diagonal, or 10 Gamma if that is more.
type SingularError struct {
	Modality      string
	Gamma, Enough float64
}

func (e *SingularError) Error() string {
	return fmt.Sprintf("the Gram matrix of modality %q with gamma %g is not positive definite: use a larger gamma, such as %.2g",
		e.Modality, e.Gamma, e.Enough)
}

// A FormatError is a model, statistics or a revision in another format than this version reads.
type FormatError struct {
	What             string // what was read
	Found, Supported int    // its format, and the one that this version reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this version reads format %d alone: use the version that has written it", e.What, e.Found, e.Supported)
}

// guard turns a panic of gonum (or of this package) into an error, at the border of the
// package. Shapes are checked before every call, so no such panic is expected.
func guard(err *error, doing string) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%s: internal error: %w", doing, r)
	default:
		*err = fmt.Errorf("%s: internal error: %v", doing, r)
	}
}
