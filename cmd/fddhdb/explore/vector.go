package explore

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

// encoderSays is an encoder's own reason for having no vector.
type encoderSays struct{ text string }

func (e *encoderSays) Error() string { return e.text }

// parseVector parses the output of an encoder: a JSON array; the object {"i": [...],
// "v": [...]} of a sparse vector; numbers separated by commas or blanks; or {"error":
// "..."}.
func parseVector(b []byte) (vector, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return vector{}, errors.New("it printed nothing")
	case b[0] == '[':
		var x []float32
		if err := decode(b, &x); err != nil {
			return vector{}, err
		}
		return vector{dense: x}, nil
	case b[0] == '{':
		var x struct {
			db.Sparse
			Error *string `json:"error"`
		}
		if err := decode(b, &x); err != nil {
			return vector{}, err
		}
		if x.Error != nil {
			return vector{}, &encoderSays{*x.Error}
		}
		return vector{sparse: &x.Sparse}, nil
	}
	var x []float32
	for i, word := range bytes.FieldsFunc(b, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
		v, err := strconv.ParseFloat(string(word), 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return vector{}, fmt.Errorf("it printed %.40q, number %d, where a number was expected", word, i)
		}
		x = append(x, float32(v))
	}
	if x == nil {
		return vector{}, errors.New("it printed commas and no numbers")
	}
	return vector{dense: x}, nil
}

// decode reads one JSON value and nothing else.
func decode(b []byte, x any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return fmt.Errorf("it printed no vector: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("it printed more than one vector")
	}
	return nil
}
