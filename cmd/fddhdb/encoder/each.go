package encoder

import (
	"context"
	"errors"
)

// Each is Encode for many inputs, of which the program may refuse some: refused has the reason for each of
// these, and nil for the others.
func (e *Encoder) Each(ctx context.Context, dim int, inputs []string) (all []Vector, refused []error,
	err error) {
	refused = make([]error, len(inputs))
	if len(inputs) == 0 {
		return nil, refused, nil
	}
	all, err = e.Encode(ctx, dim, inputs)
	if !isRefused(err) {
		return all, refused, err
	}
	all = make([]Vector, len(inputs))
	for i := range inputs { // one at a time, to find out which
		one, err := e.Encode(ctx, dim, inputs[i:i+1])
		switch {
		case isRefused(err):
			refused[i] = err
		case err != nil:
			return nil, nil, err
		default:
			all[i] = one[0]
		}
	}
	return all, refused, nil
}

// isRefused reports whether a program says why it makes no vector of an input.
func isRefused(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Reason == Refused
}
