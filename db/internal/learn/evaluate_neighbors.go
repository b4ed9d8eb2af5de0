package learn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/model/eval"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// Codes can also be measured by what vectors say, without labels: how many of the items that are
// nearest by vectors, exactly, are among the first so many by codes.

// A NeighborEvaluation has the queries of such a measurement, as db.NeighborEvaluation describes them.
type NeighborEvaluation struct {
	Queries map[string][][]float32    // dense query vectors, by modality
	Sparse  map[string][]model.Vector // sparse query vectors
	K       int                       // the nearest items by vectors; 0: 10
	Windows []int                     // the first items by codes; nil: 100, 200, 500 and 1,000
	Where   string                    // of the items that match this filter only; empty: of all
	Args    []any                     // the values of placeholders in Where
}

// EvaluateNeighbors measures queries of each modality among the items that have it, in the space of
// cv, by Hamming distance of the stored codes. It holds these codes, and one answer a processor.
// Errors: ErrNoModel, and ErrInvalid for queries that do not fit or a copy without vectors.
func EvaluateNeighbors(ctx context.Context, tools *search.Tools, v *state.View, cv *state.CollectionView, e *NeighborEvaluation) (all []report.NeighborRecall, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, windows := cmp.Or(e.K, 10), e.Windows
	if windows == nil {
		windows = []int{100, 200, 500, 1000}
	}
	switch {
	case cv.Space == nil:
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	case len(cv.Modalities) == 0:
		return nil, fault.Invalid("collection %q has no vectors, whose neighbours could be found", cv.Name)
	case cv.IndexOnly:
		return nil, cv.LacksVectors("to compare with")
	case k < 0:
		return nil, fault.Invalid("%d neighbours: 1 or more are possible", k)
	case len(e.Queries)+len(e.Sparse) == 0:
		return nil, fault.Invalid("no queries to evaluate")
	}
	for _, w := range windows {
		if w < 1 {
			return nil, fault.Invalid("a window of %d: 1 or more are possible", w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Queries)) {
		if _, err := cv.ModalityOf(name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Sparse)) {
		if _, err := cv.ModalityOf(name); err != nil {
			return nil, err
		}
	}
	filter, err := search.Matching(ctx, cv, v.Snap, e.Where, e.Args)
	if err != nil {
		return nil, err
	}
	for t, m := range cv.Modalities {
		var queries []search.Query
		for _, x := range e.Queries[m.Name] {
			queries = append(queries, search.Query{Vector: x})
		}
		for _, x := range e.Sparse[m.Name] {
			queries = append(queries, search.Query{Sparse: true, Index: x.Index, Value: x.Value})
		}
		if len(queries) == 0 {
			continue
		}
		r, err := e.recall(ctx, tools, v, cv, t, filter, queries, k, windows)
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
	return all, nil
}

// recall measures the queries of modality t.
func (e *NeighborEvaluation) recall(ctx context.Context, tools *search.Tools, v *state.View, cv *state.CollectionView, t int, filter *roaring.Bitmap, queries []search.Query, k int, windows []int) (*report.NeighborRecall, error) {
	name := cv.Modalities[t].Name
	codes := codec.NewCodes(cv.Space.Bits, 0)
	var rows []uint32 // of codes, ascending
	err := eachCode(ctx, v, cv, func(row uint32, code codec.Code) error {
		if cv.Presence[t].Contains(row) && (filter == nil || filter.Contains(row)) {
			codes.Append(code)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &report.NeighborRecall{Modality: name, Queries: len(queries), Items: len(rows), K: min(k, len(rows))}
	sums := make([][]float64, len(queries))
	err = work.Parallel(ctx, len(queries), func(i int) error {
		sums[i] = make([]float64, len(windows))
		q := &queries[i]
		q.From, q.To, q.K, q.ByVectors, q.Where, q.Args = name, name, k, true, e.Where, e.Args // its own vectors, also where a space is shared
		wrong := func(err error) error { return fmt.Errorf("%w (query %d of modality %q)", err, i, name) }
		s, err := search.New(ctx, tools, v, cv, *q)
		if err != nil {
			return wrong(err)
		}
		defer s.Close()
		var truth []int32
		nearest := 0
		for h, err := range s.Hits(ctx, k) {
			if err != nil {
				return err
			}
			nearest++
			if at, has := slices.BinarySearch(rows, h.Row); has { // without a code nothing finds it
				truth = append(truth, int32(at))
			}
		}
		if len(truth) == 0 {
			return nil
		}
		x, err := cv.Modalities[t].OfDense(q.Vector)
		if q.Sparse {
			x, err = cv.Modalities[t].OfSparse(q.Index, q.Value)
		}
		if err != nil {
			return wrong(err)
		}
		p, err := (&search.Searcher{V: v, Cv: cv}).Project(t, x)
		if err != nil {
			return wrong(err)
		}
		distances := make([]uint16, len(rows))
		codec.Distances(distances, p.Code, codes.Slice(0, len(rows)))
		eval.AddRecall(sums[i], cv.Space.Bits, distances, truth, windows)
		for w := range sums[i] {
			sums[i][w] *= float64(len(truth)) / float64(nearest)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for w, window := range windows {
		mean := 0.0
		for _, s := range sums {
			mean += s[w]
		}
		out.Windows = append(out.Windows, report.WindowRecall{Window: window, Recall: mean / float64(len(queries))})
	}
	return out, nil
}
