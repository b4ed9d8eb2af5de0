package model

import (
	"errors"
	"fmt"
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

// A DimensionError is a vector with another length than its modality.
type DimensionError struct {
	Modality  string
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("a vector of %d numbers, but modality %q has %d dimensions", e.Got, e.Modality, e.Want)
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
