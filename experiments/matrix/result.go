package matrix

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// A result is one line of the file of results.
type result struct {
	Set  string `json:"set"`
	Bits int    `json:"bits"`
	N    int    `json:"n"`
	Kind string `json:"kind,omitempty"` // kind of the queries; absent if op is "store"
	Op   string `json:"op"`             // knn, radius, hits or store

	// These fields say how long searches took; times are in microseconds.
	K       *int    `json:"k,omitempty"`
	Radius  *int    `json:"radius,omitempty"`
	Tier    string  `json:"tier,omitempty"`
	Queries int     `json:"queries,omitempty"`
	P50     float64 `json:"p50_us,omitempty"`
	P99     float64 `json:"p99_us,omitempty"`
	Mean    float64 `json:"mean_us,omitempty"`
	Find    float64 `json:"find_us,omitempty"` // of this, finding the codes of the k nearest; median
	AvgHits float64 `json:"avg_hits"`

	// These fields say what it took to store the set.
	Seconds        float64 `json:"seconds,omitempty"` // to import the set
	ItemsPerSecond float64 `json:"items_per_second,omitempty"`
	DiskBytes      int64   `json:"disk_bytes,omitempty"` // of the folder of the database
	MemoryBytes    int64   `json:"memory_bytes,omitempty"`
	DistinctCodes  int     `json:"distinct_codes,omitempty"`
}

const store = "store"

// param returns k or the radius.
func (r *result) param() int {
	switch {
	case r.K != nil:
		return *r.K
	case r.Radius != nil:
		return *r.Radius
	}
	return 0
}

// A place is a measured set.
type place struct {
	set     string
	bits, n int
}

func (r *result) place() place { return place{r.Set, r.Bits, r.N} }

// results is the content of a file of results.
type results []*result

// readResults reads a file. A missing file has no results.
func readResults(path string) (results, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list results
	scanner := bufio.NewScanner(f)
	for line := 1; scanner.Scan(); line++ {
		var r result
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, line, err)
		}
		list = append(list, &r)
	}
	return list, scanner.Err()
}

// appendResults adds lines in one write, so that an interrupt leaves all of them or
// none.
func appendResults(path string, list results) error {
	var b []byte
	for _, r := range list {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// has reports whether the queries of a kind were measured on a set. The kind "" asks
// for its storage.
func (l results) has(p place, kind string) bool {
	return slices.ContainsFunc(l, func(r *result) bool { return r.place() == p && r.Kind == kind })
}

// filter returns the results for which f is true.
func (l results) filter(f func(*result) bool) results {
	var some results
	for _, r := range l {
		if f(r) {
			some = append(some, r)
		}
	}
	return some
}

// find returns a result, or nil if it was not measured.
func (l results) find(p place, kind, op string, param int, tier string) *result {
	for _, r := range l {
		if r.place() == p && r.Kind == kind && r.Op == op && r.param() == param && r.Tier == tier {
			return r
		}
	}
	return nil
}

// distinct returns the values of f without repetitions, sorted by compare. If compare
// is nil, they are in the order in which they first occur.
func distinct[T comparable](l results, f func(*result) T, compare func(a, b T) int) []T {
	var values []T
	for _, r := range l {
		if v := f(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if compare != nil {
		slices.SortFunc(values, compare)
	}
	return values
}
