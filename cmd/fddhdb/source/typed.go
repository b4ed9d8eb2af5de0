package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
)

// ParseVector parses a vector that is typed: v,v,..., i:v,i:v,..., or JSON as encoders print it.
func ParseVector(s string) (x encoder.Vector, err error) {
	if s = strings.TrimSpace(s); strings.Contains(s, ":") && !strings.HasPrefix(s, "{") {
		x.Sparse = new(db.Sparse)
		*x.Sparse, err = parseSparse(s)
		return x, err
	}
	return encoder.ParseVector([]byte(s))
}

// parseSparse parses i:v,i:v,... in any order, or ":" for a vector without numbers.
func parseSparse(s string) (db.Sparse, error) {
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
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 32)
		if err != nil {
			return x, fmt.Errorf("entry %d, %q, is not a number: i:v,i:v,... is expected", i, value)
		}
		if _, twice := values[uint32(j)]; twice {
			return x, fmt.Errorf("dimension %d is given twice", j)
		}
		values[uint32(j)] = float32(v)
		x.Index = append(x.Index, uint32(j))
	}
	slices.Sort(x.Index)
	for _, j := range x.Index {
		x.Value = append(x.Value, values[j])
	}
	return x, nil
}
