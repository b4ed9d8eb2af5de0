package mih

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// filter finds the codes within r bits that rows of q.Filter carry, in any order. It
// reads the code of every row of the filter.
func (s *search) filter(ctx context.Context, q *Query, r int) error {
	t := s.t
	numbers := s.entries[:0]
	it := q.Filter.ManyIterator()
	var rows [256]uint32
	for n := it.NextMany(rows[:]); n > 0; n = it.NextMany(rows[:]) {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, row := range rows[:n] {
			if number, ok := t.CodeOf(row); ok {
				numbers = append(numbers, number)
			}
		}
	}
	s.entries = numbers
	if t.used < t.items { // rows may share codes
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
	}
	for i, n := range numbers {
		if i%scanBlock == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if d := codec.Distance(s.query, t.Code(n)); d <= r {
			s.found = append(s.found, codec.NearOf(d, n))
		}
	}
	s.explain.Scanned += len(numbers)
	return nil
}
