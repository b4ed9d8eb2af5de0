package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// A result is a line of the file of results.
type result struct {
	Set  string `json:"set"`
	Bits int    `json:"bits"`
	N    int    `json:"n"`
	Kind string `json:"kind,omitempty"` // of the queries; not where op is "store"
	Op   string `json:"op"`             // knn, radius, hits, count or store

	// What fddhdb bench measures, in microseconds.
	K          *int    `json:"k,omitempty"`
	Radius     *int    `json:"radius,omitempty"`
	Tier       string  `json:"tier,omitempty"`
	Queries    int     `json:"queries,omitempty"`
	P50        float64 `json:"p50_us,omitempty"`
	P99        float64 `json:"p99_us,omitempty"`
	Mean       float64 `json:"mean_us,omitempty"`
	Encode     float64 `json:"encode_us,omitempty"` // the parts of the searches, medians
	Find       float64 `json:"find_us,omitempty"`
	Order      float64 `json:"order_us,omitempty"`
	Keys       float64 `json:"keys_us,omitempty"`
	AvgHits    float64 `json:"avg_hits"`
	Checked    *int    `json:"checked,omitempty"`
	Mismatches *int    `json:"mismatches,omitempty"`

	// What storing the set took.
	Seconds        float64 `json:"seconds,omitempty"` // to import it
	ItemsPerSecond float64 `json:"items_per_second,omitempty"`
	DiskBytes      int64   `json:"disk_bytes,omitempty"` // of the folder
	MemoryBytes    int64   `json:"memory_bytes,omitempty"`
	DistinctCodes  int     `json:"distinct_codes,omitempty"`
}

const store = "store"

// param is k or the radius.
func (r *result) param() int {
	switch {
	case r.K != nil:
		return *r.K
	case r.Radius != nil:
		return *r.Radius
	}
	return 0
}

// A place is a set that was measured.
type place struct {
	set     string
	bits, n int
}

func (r *result) place() place { return place{r.Set, r.Bits, r.N} }

// results is what a file holds.
type results []*result

// readResults reads a file; none is an empty one.
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

// appendResults adds lines in one write, so that an interrupt leaves all or none.
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

// has says whether a kind of queries of a set was measured; "" asks for its storage.
func (l results) has(p place, kind string) bool {
	return slices.ContainsFunc(l, func(r *result) bool { return r.place() == p && r.Kind == kind })
}

// filter returns what f admits.
func (l results) filter(f func(*result) bool) results {
	var some results
	for _, r := range l {
		if f(r) {
			some = append(some, r)
		}
	}
	return some
}

// find returns a measurement, nil if it was not made.
func (l results) find(p place, kind, op string, param int, tier string) *result {
	for _, r := range l {
		if r.place() == p && r.Kind == kind && r.Op == op && r.param() == param && r.Tier == tier {
			return r
		}
	}
	return nil
}

// distinct returns the values of f, sorted by less or else as they first come.
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
