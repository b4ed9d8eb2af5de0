package encoder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/fddhdb/fddhdb/db"
)

// A Vector is dense or sparse: one of the two is nil.
type Vector struct {
	Dense  []float32
	Sparse *db.Sparse
}

// Check compares a vector with the dimensions of its modality.
func (x Vector) Check(dim int) error {
	if x.Sparse == nil {
		if len(x.Dense) != dim {
			return fmt.Errorf("a vector of %d numbers, the modality has %d dimensions", len(x.Dense), dim)
		}
		return nil
	}
	if len(x.Sparse.Index) != len(x.Sparse.Value) {
		return fmt.Errorf("a vector of %d dimensions with %d numbers", len(x.Sparse.Index), len(x.Sparse.Value))
	}
	for n, i := range x.Sparse.Index {
		switch {
		case int64(i) >= int64(dim):
			return fmt.Errorf("a number of dimension %d, the modality has %d dimensions, counted from 0", i, dim)
		case n > 0 && i <= x.Sparse.Index[n-1]:
			return fmt.Errorf("dimension %d behind dimension %d: they have to ascend", i, x.Sparse.Index[n-1])
		}
	}
	return nil
}

// A refusal is an encoder's own reason for having no vector.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

// ParseVector parses the output of an encoder: a JSON array; the object {"i": [...],
// "v": [...]} of a sparse vector; numbers separated by commas or blanks; or {"error":
// "..."}.
func ParseVector(b []byte) (Vector, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return Vector{}, errors.New("nothing where a vector was expected")
	case b[0] == '[':
		var x []float32
		if err := decode(b, &x); err != nil {
			return Vector{}, err
		}
		return Vector{Dense: x}, nil
	case b[0] == '{':
		var x struct {
			db.Sparse
			Error *string `json:"error"`
		}
		if err := decode(b, &x); err != nil {
			return Vector{}, err
		}
		if x.Error != nil {
			return Vector{}, &refusal{*x.Error}
		}
		return Vector{Sparse: &x.Sparse}, nil
	}
	var x []float32
	for part := range bytes.SplitSeq(b, []byte(",")) {
		words := bytes.Fields(part)
		if len(words) == 0 {
			return Vector{}, fmt.Errorf("a comma where number %d was expected", len(x))
		}
		for _, word := range words {
			v, err := strconv.ParseFloat(string(word), 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return Vector{}, fmt.Errorf("%.40q, number %d, where a number was expected", word, len(x))
			}
			x = append(x, float32(v))
		}
	}
	return Vector{Dense: x}, nil
}

// decode reads one JSON value and nothing else.
func decode(b []byte, x any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return fmt.Errorf("no vector: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one vector")
	}
	return nil
}

// parseAnswer parses the output of an encoder, a vector of dim dimensions. inStep says that an error is
// about one vector, and that the program can go on.
func parseAnswer(b []byte, dim int) (x Vector, inStep bool, err error) {
	if x, err = ParseVector(b); err == nil {
		inStep, err = true, x.Check(dim)
	} else if _, refused := errors.AsType[*refusal](err); refused {
		return x, true, err
	}
	if err != nil {
		err = fmt.Errorf("it printed %w", err)
	}
	return x, inStep, err
}
