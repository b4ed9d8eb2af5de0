package db_test

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A twin is a collection with texts stored sparse, and another with the same items
// and texts stored dense: everything that can be asked has the same answer.
type twin struct {
	t             testing.TB
	d             *db.DB
	sparse, dense *db.Collection
}

func openTwin(t testing.TB, dir string) *twin {
	t.Helper()
	w := &twin{t: t, d: dbkit.MustOpen(t, dir, nil)}
	t.Cleanup(func() { _ = w.d.Close() })
	schema := func(sparse bool) db.Schema {
		return db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 6},
			{Name: "text", Dim: synth.NUSWideText, Sparse: sparse}}}
	}
	var err, other error
	w.sparse, err = w.d.CreateCollection(ctx, "sparse", schema(true))
	w.dense, other = w.d.CreateCollection(ctx, "dense", schema(false))
	must(t, errors.Join(err, other))
	return w
}

// same calls f for both collections, which must agree.
func (w *twin) same(what string, f func(c *db.Collection) (any, error)) any {
	w.t.Helper()
	a, errA := f(w.sparse)
	b, errB := f(w.dense)
	stopIf(w.t, (errA == nil) != (errB == nil), "%s: %v with sparse vectors, %v with dense ones", what, errA,
		errB)
	if reflect.DeepEqual(a, b) { // much faster
		return a
	}
	close := func(x, y float64) bool {
		return math.Abs(x-y) <= 1e-5*max(1, math.Abs(x)) || math.IsNaN(x) && math.IsNaN(y)
	}
	similar := func(x, y float32) bool { return close(float64(x), float64(y)) }
	diff := cmp.Diff(a, b, cmp.Comparer(close), cmp.Comparer(similar))
	stopIf(w.t, diff != "", "%s: sparse and dense differ:\n%s", what, diff)
	return a
}

// filled returns an item with its text in a dense vector.
func filled(it *db.Item) *db.Item {
	out := *it
	out.Vectors, out.Sparse = maps.Clone(it.Vectors), nil
	for name, x := range it.Sparse {
		if out.Vectors == nil {
			out.Vectors = map[string][]float32{}
		}
		out.Vectors[name] = record.Expand(model.Sparse(x.Index, x.Value), synth.NUSWideText)
	}
	return &out
}

func hits(r *db.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.Hits, nil
}

func TestSparseIsDense(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	w := openTwin(t, dir)
	items := dbkit.Bags(t, 1, 600)
	form := seed.Rand(t, 1, 1)
	// Either form goes into either collection.
	given := func(it *db.Item) *db.Item {
		if form.IntN(2) == 0 {
			return filled(it)
		}
		return it
	}
	for _, c := range []*db.Collection{w.sparse, w.dense} {
		b := w.d.NewBatch()
		for _, it := range items[:400] {
			must(t, b.Put(c, given(it)))
		}
		must(t, b.Commit(ctx))
		for _, it := range items[400:450] {
			need(c.Put(ctx, given(it)))(t)
		}
		need(c.Merge(ctx, given(&db.Item{Key: "k3", Sparse: map[string]db.Sparse{
			"text": {[]uint32{4, 900}, []float32{1, 2}}}})))(t)
		need(c.Merge(ctx, &db.Item{Key: "k5", Labels: []string{"label1"}}))(t)
		need(c.Delete(ctx, "k6"))(t)
	}
	all := func(c *db.Collection) (any, error) {
		var out []*db.Item
		for it, err := range c.Items(ctx, "") {
			if err != nil {
				return nil, err
			}
			if _, inVectors := it.Vectors["text"]; inVectors != (c == w.dense) &&
				(inVectors || it.Sparse != nil) {
				t.Fatalf("%s: the text of %s is in the other form", c.Name(), it.Key)
			}
			out = append(out, filled(it))
		}
		return out, nil
	}
	stored := w.same("items", all).([]*db.Item)
	for i, it := range stored { // k6 is gone
		want := filled(items[i+min(1, i/6)])
		if want.Key == "k3" || want.Key == "k5" {
			continue
		}
		it.Code, it.CodeFrom = nil, ""
		slices.Sort(it.Labels)
		slices.Sort(want.Labels)
		if !reflect.DeepEqual(it, want) {
			t.Fatal(cmp.Diff(it, want))
		}
	}
	train := func(c *db.Collection) (any, error) {
		r, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{
			Bits: 32, Anchors: 80, Map: map[string]model.MapKind{"text": model.MapRBF, "image": model.MapRBF},
			Gamma: map[string]float64{"text": .1, "image": .1},
		}})
		if err != nil {
			return nil, err
		}
		return r.Chosen, nil
	}
	w.same("training", train)
	check := func() {
		t.Helper()
		w.same("items", all)
		for i := 450; i < 460; i++ {
			x, ok := items[i].Sparse["text"]
			if !ok {
				continue
			}
			for _, rerank := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric, db.RerankAuto} {
				q := db.Query{From: "text", Sparse: &x, K: 30, Rerank: rerank}
				w.same("search", func(c *db.Collection) (any, error) { return hits(c.Search(ctx, q)) })
				dense := db.Query{From: "text", Vector: filled(items[i]).Vectors["text"], K: 30,
					Rerank: rerank}
				a, err := w.sparse.Search(ctx, q)
				b, other := w.sparse.Search(ctx, dense)
				must(t, errors.Join(err, other))
				equal(t, a, b)
			}
			w.same("code", func(c *db.Collection) (any, error) {
				code, z, err := c.Encode(given(items[i]))
				return []any{code, z}, err
			})
		}
		for _, key := range []string{"k1", "k2", "k3", "k10"} {
			w.same("search by key", func(c *db.Collection) (any, error) {
				return hits(c.Search(ctx, db.Query{Key: key, From: "text", To: "image"}))
			})
		}
	}
	check()
	evaluation := db.Evaluation{Top: 20}
	var queries []db.Sparse
	for _, it := range items[450:520] {
		if x, ok := it.Sparse["text"]; ok {
			queries, evaluation.Labels = append(queries, x), append(evaluation.Labels, it.Labels)
		}
	}
	evaluation.Sparse = map[string][]db.Sparse{"text": queries}
	w.same("evaluation", func(c *db.Collection) (any, error) { return c.Evaluate(ctx, evaluation) })
	// Writes with a model, and reopening.
	for _, c := range []*db.Collection{w.sparse, w.dense} {
		for _, it := range items[520:] {
			need(c.Put(ctx, given(it)))(t)
		}
	}
	check()
	dbkit.MustClose(t, w.d)
	w.d = dbkit.MustOpen(t, dir, nil)
	w.sparse, w.dense = dbkit.MustCollection(t, w.d, "sparse"), dbkit.MustCollection(t, w.d, "dense")
	schema, err := w.sparse.Schema()
	failIf(t, err != nil || !schema.Modalities[1].Sparse || schema.Modalities[0].Sparse, "%+v, %v", schema,
		err)
	check()
	// In the store a text takes what it holds.
	it := items[20]
	x := it.Sparse["text"]
	n := len(codec.AppendSparseFeatures(nil, x.Index, x.Value))
	failIf(t, n > 7*len(x.Index), "%d words take %d bytes", len(x.Index), n)
}

// TestSparseBulk: in a load that goes around the log.
func TestSparseBulk(t *testing.T) {
	dbkit.LongTest(t)
	w := openTwin(t, t.TempDir())
	items := dbkit.Bags(t, 2, bulkItems+10)
	b := w.d.NewBatch()
	for i, it := range items {
		if i%2 == 0 {
			it = filled(it)
		}
		must(t, b.Put(w.sparse, it))
	}
	must(t, b.Commit(ctx))
	i := 0
	for it := range every(t, w.sparse.Items(ctx, "")) {
		got, want := filled(it), filled(items[i])
		slices.Sort(got.Labels)
		slices.Sort(want.Labels)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s", cmp.Diff(got, want))
			break
		}
		i++
	}
	failIf(t, i != len(items), "%d items of %d", i, len(items))
}

func TestSparseRefuses(t *testing.T) {
	w := openTwin(t, t.TempDir())
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		item db.Item
		says string
	}{
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{1}, nil}}}, "1 indices and 0 values"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{5, 3}, []float32{1, 1}}}},
			"index 3 of a sparse vector follows 5"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{5, 5}, []float32{1, 1}}}},
			"index 5 of a sparse vector follows 5"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{1000}, []float32{1}}}},
			"index 1000, dimensions are 0 to 999"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{3, 17}, []float32{1, nan}}}},
			"dimension 17 is NaN"},
		{db.Item{Sparse: map[string]db.Sparse{"image": {[]uint32{3}, []float32{inf}}}},
			"dimension 3 is -Inf"},
		{db.Item{Vectors: map[string][]float32{"text": {1, 2}}}, "2"},
		{db.Item{Sparse: map[string]db.Sparse{"sound": {}}}, `unknown modality "sound"`},
		{db.Item{Sparse: map[string]db.Sparse{"image": {}},
			Vectors: map[string][]float32{"image": make([]float32, 6)}}, "a dense and a sparse vector"},
	} {
		for _, col := range []*db.Collection{w.sparse, w.dense} {
			c.item.Key = "k"
			_, err := col.Put(ctx, &c.item)
			failIf(t, !errors.Is(err, db.ErrInvalid) && !errors.As(err, new(*db.DimensionError)) ||
				!strings.Contains(err.Error(), c.says), "%s: %v", c.says, err)
		}
	}
	// Zeros are dropped, and what is put is copied.
	x := db.Sparse{[]uint32{1, 2, 3}, []float32{0, 5, 0}}
	need(w.sparse.Put(ctx, &db.Item{Key: "k", Sparse: map[string]db.Sparse{"text": x}}))(t)
	x.Index[1], x.Value[1] = 9, 9
	it, err := w.sparse.Get(ctx, "k")
	failIf(t, err != nil || !slices.Equal(it.Sparse["text"].Index, []uint32{2}) ||
		!slices.Equal(it.Sparse["text"].Value, []float32{5}), "%+v, %v", it, err)
	for name, q := range map[string]db.Query{
		"both forms": {From: "text", Vector: make([]float32, 1000), Sparse: &db.Sparse{}},
		"NaN":        {From: "text", Sparse: &db.Sparse{[]uint32{1}, []float32{nan}}},
		"no From":    {Sparse: &db.Sparse{}},
	} {
		need(w.sparse.Put(ctx, &db.Item{Key: "l", Labels: []string{"a"},
			Sparse: map[string]db.Sparse{"text": {[]uint32{1}, []float32{1}}}}))(t)
		_, err := w.sparse.Search(ctx, q)
		failIf(t, err == nil, "%s: no error", name)
	}
	for name, e := range map[string]db.Evaluation{
		"both forms": {Queries: map[string][][]float32{"text": {nil}},
			Sparse: map[string][]db.Sparse{"text": {{}}}, Labels: [][]string{{"a"}}},
		"labels":   {Sparse: map[string][]db.Sparse{"text": {{}}}},
		"modality": {Sparse: map[string][]db.Sparse{"sound": {{}}}, Labels: [][]string{{"a"}}},
	} {
		_, err := w.sparse.Evaluate(ctx, e)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%s: %v", name, err)
	}
}

// TestSparseFeatureOfAnotherForm: a record that is not of the form of its modality is damage, not a vector.
func TestSparseFeatureOfAnotherForm(t *testing.T) {
	m, n := record.Modality{Name: "a", Dim: 2, Sparse: true}, record.Modality{Name: "a", Dim: 2}
	var v model.Vector
	errorIs(t, m.DecodeVector(&v, codec.AppendFeatures(nil, []float32{1, 2})), codec.ErrCorrupt)
	errorIs(t, n.DecodeVector(&v, codec.AppendSparseFeatures(nil, nil, nil)), codec.ErrCorrupt)
}
