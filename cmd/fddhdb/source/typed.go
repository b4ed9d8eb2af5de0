package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// ParseVector parses v,v,...
func ParseVector(s string) ([]float32, error) {
	fields := strings.Split(s, ",")
	x := make([]float32, len(fields))
	for i, f := range fields {
		v, err := parseNumber(f)
		if err != nil {
			return nil, fmt.Errorf("number %d, %w: v,v,... is expected", i, err)
		}
		x[i] = v
	}
	return x, nil
}

// IsSparse reports whether a text is i:v,i:v,... and not v,v,...
func IsSparse(s string) bool { return strings.Contains(s, ":") }

// ParseSparse parses i:v,i:v,... in any order, or ":" for a vector without numbers.
func ParseSparse(s string) (db.Sparse, error) {
	x := db.Sparse{}
	if strings.TrimSpace(s) == ":" {
		return x, nil
	}
	values := map[uint32]float32{}
	for i, f := range strings.Split(s, ",") {
		index, value, _ := strings.Cut(f, ":")
		j, err := strconv.ParseUint(strings.TrimSpace(index), 10, 32)
		if err != nil {
			return x, fmt.Errorf("entry %d, %q: a dimension, a colon and a number are expected, such as 3:1.5,17:2", i, f)
		}
		v, err := parseNumber(value)
		if err != nil {
			return x, fmt.Errorf("entry %d, %w: i:v,i:v,... is expected", i, err)
		}
		if _, twice := values[uint32(j)]; twice {
			return x, fmt.Errorf("dimension %d is given twice", j)
		}
		values[uint32(j)] = v
		x.Index = append(x.Index, uint32(j))
	}
	slices.Sort(x.Index)
	for _, j := range x.Index {
		x.Value = append(x.Value, values[j])
	}
	return x, nil
}

func parseNumber(s string) (float32, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q, is too large for float32", s)
	case err != nil:
		return 0, fmt.Errorf("%q, is not a number", s)
	}
	return float32(v), nil
}
