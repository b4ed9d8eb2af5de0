package db

import "context"

// Distances returns how many items are at each distance from the query: element d is the
// number of those at d bits, up to the radius or to the bits of a code, whichever is
// less. The sum is Total. It looks at each code that was found, and at no item; the slice
// is the caller's.
func (r *Runs) Distances(ctx context.Context) ([]int, error) {
	r = r.orNone()
	var counts []int
	err := r.read(func(s *searcher) error {
		counts = make([]int, min(s.radius, s.set.Bits)+1)
		looked := 0
		count := func(number uint32, distance int) error {
			if looked++; looked%betweenLooks == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			rows, err := s.rowsOf(number)
			if err != nil {
				return err
			}
			counts[distance] += rows.LenIn(s.filter)
			return nil
		}
		for _, x := range s.matches {
			if err := count(x.Position(), x.Distance()); err != nil {
				return err
			}
		}
		for _, x := range s.scored { // in place of matches, by score
			if err := count(x.Number, x.Distance); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}
