package learn

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
)

// An evaluation measures retrieval as the papers on cross-modal hashing do: every query ranks all items of
// another modality, and an item is relevant if it shares a label with the query. It uses no index and no plan
// (eval.Evaluate), so it measures the codes alone. TestEvaluateAgreesWithTheDefinition of db.

// An Evaluation has the queries of a measurement, as db.Evaluation describes them. It shares
// the vectors and labels of the caller, and never writes to them.
type Evaluation struct {
	Queries map[string][][]float32    // dense query vectors, by modality, then query
	Sparse  map[string][]model.Vector // sparse query vectors; a modality is in one of the two maps
	Labels  [][]string                // the labels of each query
	Truth   [][]string                // the labels of each item, ascending by row; nil: those stored
	Where   string                    // ranks the items that match this filter only; empty: all
	Args    []any                     // the values of placeholders in Where
	Top     int                       // N of the figures over the first N hits; 0: 50
}

// Evaluate measures queries in the space of cv, by the stored codes: every ordered pair of two
// modalities, or the one modality that the model knows with itself. It ranks all items for
// each query, by Hamming distance and by score. All codes that it needs are in memory, bits/8
// bytes an item and modality. Errors: ErrNoModel, and ErrInvalid for queries that do not fit.
func Evaluate(ctx context.Context, v *state.View, cv *state.CollectionView,
	e *Evaluation) ([]report.Retrieval, error) {
	top := cmp.Or(e.Top, 50)
	if top < 0 {
		return nil, fault.Invalid("top %d: 1 or more are possible", top)
	}
	if len(e.Queries)+len(e.Sparse) == 0 {
		return nil, fault.Invalid("no queries to evaluate")
	}
	if err := e.check(cv); err != nil {
		return nil, err
	}
	if e.Truth != nil && len(e.Truth) != cv.Items {
		return nil, fault.Invalid("truth about %d items, collection %q has %d", len(e.Truth), cv.Name,
			cv.Items)
	}
	ids := newLabelIDs(cv.Names)
	filter, err := search.Matching(ctx, cv, v.Snap, e.Where, e.Args)
	if err != nil {
		return nil, err
	}
	if cv.Space == nil {
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	}
	var out []report.Retrieval
	database, err := readEvaluated(ctx, v, cv, e.Truth, ids, filter)
	if err != nil {
		return nil, err
	}
	queryLabels := ids.sets(e.Labels)
	for from, m := range cv.Modalities {
		dense, isDense := e.Queries[m.Name]
		sparse, isSparse := e.Sparse[m.Name]
		if !isDense && !isSparse {
			continue
		}
		// The projections z rank by score, their signs rank by Hamming distance.
		z, codes, err := projectAll(ctx, cv, v, from, len(e.Labels), func(i int) (model.Vector, error) {
			if isSparse {
				return cv.Modalities[from].OfSparse(sparse[i].Index, sparse[i].Value)
			}
			return cv.Modalities[from].OfDense(dense[i])
		})
		if err != nil {
			return nil, err
		}
		for to, target := range cv.Modalities {
			if from == to && len(cv.Space.Positions) > 1 {
				continue // retrieval is measured across modalities, unless there is only one
			}
			r := report.Retrieval{From: m.Name, To: target.Name}
			items, err := database.having(ctx, v, cv, to)
			if err != nil {
				return nil, err
			}
			for _, l := range items.labels {
				if len(l) == 0 {
					r.Unlabelled++
				}
			}
			if r.Hamming, err = eval.Evaluate(ctx, items.codes, items.labels, codes, queryLabels,
				top); err != nil {
				return nil, err
			}
			if r.Asymmetric, err = eval.EvaluateAsymmetric(ctx, items.codes, items.labels, z, queryLabels,
				top); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// check checks that each modality of the queries exists, has a vector for each query, and is
// given in one form.
func (e *Evaluation) check(cv *state.CollectionView) error {
	check := func(name string, queries int) error {
		if _, err := cv.ModalityOf(name); err != nil {
			return err
		}
		if queries != len(e.Labels) {
			return fault.Invalid("%d queries of modality %q, labels of %d", queries, name, len(e.Labels))
		}
		return nil
	}
	for name, vectors := range e.Queries {
		if err := check(name, len(vectors)); err != nil {
			return err
		}
	}
	for name, vectors := range e.Sparse {
		if err := check(name, len(vectors)); err != nil {
			return err
		}
		if _, both := e.Queries[name]; both {
			return fault.Invalid("modality %q: there are dense and sparse queries of it", name)
		}
	}
	return nil
}

// labelIDs numbers the names of labels: labels of the collection have their ids, others get numbers behind
// them as they appear.
type labelIDs map[string]uint32

// newLabelIDs returns the ids of the labels of a collection, whose names are by id.
func newLabelIDs(names []string) labelIDs {
	ids := labelIDs{}
	for i, name := range names {
		ids[name] = uint32(i)
	}
	return ids
}

// sets returns the ids of each list of names, ascending and distinct. It numbers new names.
func (l labelIDs) sets(lists [][]string) [][]uint32 {
	out := make([][]uint32, len(lists))
	for i, list := range lists {
		for _, name := range list {
			id, ok := l[name]
			if !ok {
				id = uint32(len(l))
				l[name] = id
			}
			out[i] = append(out[i], id)
		}
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out
}

// evaluated holds the items that are ranked, in the goroutine of an evaluation.
type evaluated struct {
	rows   []uint32   // ascending
	labels [][]uint32 // the labels of each of rows, by id
	ranked []*ranked  // by modality, as having reads them; nil: not yet
}

// ranked holds the items that have a modality and a code, ascending by row.
type ranked struct {
	codes  codec.Codes
	labels [][]uint32 // of each of codes
}

// readEvaluated reads the rows and labels of the items in filter; nil means all. truth, unless
// nil, replaces the stored labels.
func readEvaluated(ctx context.Context, v *state.View, cv *state.CollectionView, truth [][]string,
	ids labelIDs, filter *roaring.Bitmap) (*evaluated, error) {
	given := ids.sets(truth)
	out := &evaluated{ranked: make([]*ranked, len(cv.Modalities))}
	at := 0
	err := record.ForEach(v.Snap, codec.CollectionKey(codec.KindItem, cv.ID), func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return fault.Corrupt(err, "item in row %d", row)
		}
		labels := rec.Labels
		if truth != nil {
			labels = given[at]
		}
		// truth has all items in the order of rows, filtered or not.
		at++
		if filter == nil || filter.Contains(row) {
			out.rows, out.labels = append(out.rows, row), append(out.labels, labels)
		}
		return nil
	})
	return out, err
}

// having returns the items that have a modality, with the codes by which searches for it find
// them. It reads them at the first call.
func (e *evaluated) having(ctx context.Context, v *state.View, cv *state.CollectionView,
	modality int) (*ranked, error) {
	if e.ranked[modality] != nil {
		return e.ranked[modality], nil
	}
	out := &ranked{codes: codec.NewCodes(cv.Space.Bits, 0)}
	at := 0
	err := eachCode(ctx, v, cv, func(row uint32, code codec.Code) error {
		// Both lists ascend: merge them. An item without a code is in e.rows alone, an
		// item outside of the filter in the codes alone.
		for at < len(e.rows) && e.rows[at] < row {
			at++
		}
		if at == len(e.rows) || e.rows[at] != row || !cv.Presence[modality].Contains(row) {
			return nil
		}
		out.codes.Append(code)
		out.labels = append(out.labels, e.labels[at])
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.ranked[modality] = out
	return out, nil
}

// eachCode calls f with the rows of the space of cv that have a code, ascending, and with their codes, each
// valid until f returns.
func eachCode(ctx context.Context, v *state.View, cv *state.CollectionView,
	f func(row uint32, code codec.Code) error) error {
	set, err := cv.CodesFor("")
	if err != nil {
		return err
	}
	return record.ForEachEntry(v.Snap, set.Prefix(codec.KindRowCodes), func(row uint32, entry []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rc, err := codec.DecodeRowCode(entry)
		if err != nil {
			return fault.Corrupt(err, "code of row %d", row)
		}
		code, err := set.CodeOf(v.Snap, rc.Code, row)
		if err != nil {
			return err
		}
		return f(row, code)
	})
}

// projectAll encodes n queries by modality t, on all processors. query returns the vector of
// one, and is called by several goroutines. z[i] is the projection of query i, a number a bit;
// the codes are the signs.
func projectAll(ctx context.Context, cv *state.CollectionView, v *state.View, t, n int,
	query func(i int) (model.Vector, error)) ([][]float64, codec.Codes, error) {
	points := make([]*search.Point, n)
	// As a search does with the vector of a query.
	s := search.Searcher{V: v, Cv: cv}
	err := work.Parallel(ctx, n, func(i int) error {
		x, err := query(i)
		if err == nil {
			points[i], err = s.Project(t, x)
		}
		if err != nil {
			err = fmt.Errorf("%w (query %d)", err, i)
		}
		return err
	})
	codes := codec.NewCodes(cv.Space.Bits, len(points))
	z := make([][]float64, len(points))
	if err != nil {
		return nil, codes, err
	}
	for i, p := range points {
		z[i] = p.Z
		codes.Append(p.Code)
	}
	return z, codes, nil
}
