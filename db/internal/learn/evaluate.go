package learn

import (
	"context"
	"errors"
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
)

// A Evaluation is db.Evaluation. It changes neither it nor what it holds.
type Evaluation struct {
	Queries map[string][][]float32    // dense, by modality
	Sparse  map[string][]model.Vector // by modality
	Labels  [][]string                // by query
	Truth   [][]string                // by item; nil: the labels that are stored
	Where   string
	Args    []any
	Top     int
}

// Evaluate measures queries in the space that cv looks at, by the codes that are stored.
func Evaluate(ctx context.Context, v *state.View, cv *state.CollectionView, e *Evaluation) ([]report.Retrieval, error) {
	return e.evaluate(ctx, v, cv, func(v *state.View, cv *state.CollectionView) (*state.CollectionView, rowCodes, error) {
		if cv.Space == nil {
			return nil, nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
		}
		return cv, storedRowCodes(cv, v), nil
	})
}

// rowCodes calls f with the rows that have a code by which searches for a target find
// them, ascending, and with the codes. ErrNoModel says that there are none for it.
type rowCodes func(ctx context.Context, target int, f func(row uint32, code codec.Code) error) error

// storedRowCodes reads what is stored.
func storedRowCodes(cv *state.CollectionView, v *state.View) rowCodes {
	return func(ctx context.Context, target int, f func(row uint32, code codec.Code) error) error {
		set, err := cv.CodesFor(cv.Modalities[target].Name)
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
}

// evaluate measures the queries in the space, and with the codes, that a function gives a view.
func (e *Evaluation) evaluate(ctx context.Context, v *state.View, cv *state.CollectionView, space func(*state.View, *state.CollectionView) (*state.CollectionView, rowCodes, error)) ([]report.Retrieval, error) {
	if e.Top == 0 {
		e.Top = 50
	}
	if e.Top < 0 {
		return nil, fault.Invalid("top %d: 1 or more are possible", e.Top)
	}
	if len(e.Queries)+len(e.Sparse) == 0 {
		return nil, fault.Invalid("no queries to evaluate")
	}
	if err := e.check(cv); err != nil {
		return nil, err
	}
	if e.Truth != nil && len(e.Truth) != cv.Items {
		return nil, fault.Invalid("truth about %d items, collection %q has %d", len(e.Truth), cv.Name, cv.Items)
	}
	ids := newLabelIDs(cv.Names)
	filter, err := search.Matching(ctx, cv, v.Snap, e.Where, e.Args)
	if err != nil {
		return nil, err
	}
	cv, codes, err := space(v, cv)
	if err != nil {
		return nil, err
	}
	var out []report.Retrieval
	database, err := readEvaluated(ctx, v, cv, e.Truth, ids, filter, codes)
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
				continue
			}
			r := report.Retrieval{From: m.Name, To: target.Name}
			items, err := database.having(ctx, cv, to)
			if errors.Is(err, fault.ErrNoModel) {
				continue // there are no codes for this target
			}
			if err != nil {
				return nil, err
			}
			if r.Hamming, err = model.Evaluate(ctx, items.codes, items.labels, codes, queryLabels, e.Top); err != nil {
				return nil, err
			}
			if r.Asymmetric, err = model.EvaluateAsymmetric(ctx, items.codes, items.labels, z, queryLabels, e.Top); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// check holds the queries against the collection and the labels.
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

// labelIDs numbers the names of labels, those of the collection as it does and
// others after them.
type labelIDs map[string]uint32

func newLabelIDs(names []string) labelIDs {
	ids := labelIDs{}
	for i, name := range names {
		ids[name] = uint32(i)
	}
	return ids
}

// sets returns the ids of the labels in each list, ascending and distinct.
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

// evaluated is the items of a collection that are ranked, in database order, and what
// has been read of their codes.
type evaluated struct {
	rows   []uint32
	labels [][]uint32
	codes  rowCodes
	ranked []*ranked // by target modality; nil until it is asked for
}

// ranked is the items that have a code and a modality.
type ranked struct {
	codes  codec.Codes
	labels [][]uint32
}

// readEvaluated reads the items in filter; nil holds all items.
func readEvaluated(ctx context.Context, v *state.View, cv *state.CollectionView, truth [][]string, ids labelIDs, filter *roaring.Bitmap, codes rowCodes) (*evaluated, error) {
	given := ids.sets(truth)
	out := &evaluated{codes: codes, ranked: make([]*ranked, len(cv.Modalities))}
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
		at++
		if filter == nil || filter.Contains(row) {
			out.rows, out.labels = append(out.rows, row), append(out.labels, labels)
		}
		return nil
	})
	return out, err
}

// having returns the items that have a modality, with the codes by which they are
// found in searches for it.
func (e *evaluated) having(ctx context.Context, cv *state.CollectionView, modality int) (*ranked, error) {
	if e.ranked[modality] != nil {
		return e.ranked[modality], nil
	}
	out := &ranked{codes: codec.NewCodes(cv.Space.Bits, 0)}
	at := 0
	err := e.codes(ctx, modality, func(row uint32, code codec.Code) error {
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

// projectAll encodes n queries of one modality.
func projectAll(ctx context.Context, cv *state.CollectionView, v *state.View, t, n int, query func(i int) (model.Vector, error)) ([][]float64, codec.Codes, error) {
	points := make([]*search.Point, n)
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
