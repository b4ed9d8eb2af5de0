package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/search"
)

// Distances returns how many items are at each distance from the query: element d is the
// number of those at d bits, up to the radius or to the bits of a code, whichever is
// less. The sum is Total. It looks at each code that was found, and at no item; the slice
// is the caller's.
func (r *Runs) Distances(ctx context.Context) ([]int, error) {
	r = r.orNone()
	var counts []int
	err := r.read(func(s *search.Searcher) error {
		var err error
		counts, err = s.Distances(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}
