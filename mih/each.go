package mih

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
)

// cached is the size of codes, in bytes, that stay in the caches of a processor from one scan to
// the next.
const cached = 32 << 20

// NearestEach answers several queries as Nearest does: query i with its k[i]. Where
// scans are needed, and the codes are larger than the caches, it reads these once for all
// queries, a block at a time. It runs in the caller's goroutine and holds all answers in
// memory. It finds all results, whatever the Recall of a query is.
func (t *Table) NearestEach(ctx context.Context, queries []*Query, k []int) ([][]codec.Near, error) {
	searches := make([]*search, len(queries))
	defer func() {
		for _, s := range searches {
			if s != nil {
				s.release()
			}
		}
	}()
	for i, q := range queries {
		searches[i] = t.newSearch(q.Code)
		exact := *q
		exact.Recall, q = 0, &exact
		if err := searches[i].begin(ctx, q, k[i]); err != nil {
			return nil, err
		}
	}
	for _, g := range t.segments {
		var scans []*search
		for i, s := range searches {
			if k[i] <= 0 {
				continue
			}
			scan, err := s.visit(ctx, g)
			if err != nil {
				return nil, err
			}
			switch {
			case scan && s.table != nil && g.len()*g.codes.Bits()/8 <= cached:
				if err := g.scanNearest(ctx, s); err != nil {
					return nil, err
				}
			case scan:
				scans = append(scans, s)
			}
		}
		if err := g.scanEach(ctx, scans); err != nil {
			return nil, err
		}
	}
	out := make([][]codec.Near, len(queries))
	for i, s := range searches {
		if k[i] > 0 {
			out[i] = s.appendTo(nil)
		}
	}
	return out, nil
}

// scanEach is scan for several searches at once.
func (g *segment) scanEach(ctx context.Context, searches []*search) error {
	if len(searches) == 0 {
		return nil
	}
	n := g.len()
	nears := make([][]codec.Near, len(searches))
	counts := make([]int, len(searches))
	queries := make([]codec.Code, len(searches))
	bounds := make([]int, len(searches))
	for i, s := range searches {
		queries[i], bounds[i] = s.query, s.bound
		nears[i] = make([]codec.Near, scanBlock)
		s.explain.Scanned += n
	}
	for from, size := 0, scanBlock/32; from < n; from += size {
		size = min(2*size, scanBlock)
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+size, n)
		codec.WithinEach(nears, counts, queries, g.codes.Slice(from, to), bounds, uint32(from))
		for i, s := range searches {
			for _, x := range nears[i][:counts[i]] {
				s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[x.Position()]))
			}
			if counts[i] > 0 {
				s.take()
				bounds[i] = s.bound
			}
		}
	}
	return nil
}
