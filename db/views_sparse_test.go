package db_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// TestSparseViews: a code for each target of items with sparse texts, loaded in bulk
// before and after the training, is that of the same texts stored dense, in every
// order, page by page, in a snapshot and after reopening.
func TestSparseViews(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	w := openTwin(t, dir)
	items := dbkit.Bags(t, 4, 2*learn.TableRows+10)
	load := func(items []*db.Item) {
		b := w.d.NewBatch()
		for _, it := range items {
			if err := b.Put(w.sparse, it); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		b = w.d.NewBatch()
		for _, it := range items {
			if err := b.Put(w.dense, filled(it)); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	load(items[:learn.TableRows])
	opt := db.TrainOptions{Rows: 500, Options: model.Options{
		Bits: 16, Anchors: 40, Views: model.ViewsTarget,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Gamma:    map[string]float64{"image": .1, "text": .1},
	}}
	w.same("train", func(c *db.Collection) (any, error) {
		tr, err := c.Train(ctx, opt)
		if err != nil {
			return nil, err
		}
		return tr.Items, nil
	})
	load(items[learn.TableRows:])
	check := func(sparse, dense *db.Collection) {
		t.Helper()
		v := *w
		v.sparse, v.dense = sparse, dense
		for _, to := range []string{"image", "text"} {
			v.same("codes for "+to, func(c *db.Collection) (any, error) {
				var all []string
				for x, err := range c.Codes(ctx, to) {
					if err != nil {
						return nil, err
					}
					all = append(all, fmt.Sprintf("%s %x", x.Key, x.Code))
				}
				if len(all) < learn.TableRows {
					return nil, fmt.Errorf("%d codes", len(all))
				}
				return all, nil
			})
			for _, order := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric, db.RerankFeatures} {
				for _, q := range []db.Query{
					{From: "text", Sparse: &db.Sparse{items[7].Sparse["text"].Index, items[7].Sparse["text"].Value}},
					{From: "image", Vector: items[8].Vectors["image"]},
					{From: "text", Key: "k9"},
				} {
					q.To, q.Rerank, q.K = to, order, 40
					v.same(fmt.Sprintf("search %+v", q), func(c *db.Collection) (any, error) {
						q := q
						res, err := c.Search(ctx, q)
						if err != nil || order == db.RerankFeatures {
							return hits(res, err)
						}
						found := res.Hits
						for range 2 {
							q.After = res.Next
							if res, err = c.Search(ctx, q); err != nil {
								return nil, err
							}
							found = append(found, res.Hits...)
						}
						q.After, q.K = "", 120
						all, err := c.Search(ctx, q)
						if err != nil || !oracle.SameHits(all.Hits, found) {
							return nil, fmt.Errorf("pages differ from the whole: %w", err)
						}
						return found, nil
					})
				}
			}
		}
	}
	check(w.sparse, w.dense)
	keys := func(c *db.Collection) (got []db.Item) {
		for _, key := range []string{"k1", "k3", "k4", fmt.Sprint("k", learn.TableRows+4)} {
			it, err := c.Get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, *it)
		}
		return got
	}
	before := keys(w.sparse)
	dbkit.MustClose(t, w.d)
	w.d = dbkit.MustOpen(t, dir, nil)
	sparse, dense := dbkit.MustCollection(t, w.d, "sparse"), dbkit.MustCollection(t, w.d, "dense")
	check(sparse, dense)
	if !slices.EqualFunc(before, keys(sparse), func(a, b db.Item) bool {
		return slices.Equal(a.Codes["text"].Code, b.Codes["text"].Code) && slices.Equal(a.Codes["image"].Code, b.Codes["image"].Code) &&
			a.Codes["text"].From == b.Codes["text"].From
	}) {
		t.Error("codes changed by reopening")
	}
}

// Features that no item of the target has put nothing in order, in a target's view
// as in the shared one.
func TestFeaturesThatNoTargetHas(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	for i, it := range dbkit.Pairs(80, synth.Config{Classes: 4, Noise: 2, Seed: 1}) {
		delete(it.Vectors, []string{"image", "text"}[i%2])
		putAll(t, c, []*db.Item{it})
	}
	for _, views := range []model.Views{model.ViewsShared, model.ViewsTarget} {
		dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 16, Anchors: 20, Views: views}})
		q := db.Query{From: "image", To: "text", Vector: make([]float32, 8), Rerank: db.RerankFeatures}
		q.Vector[0] = 1
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%v: %v", views, err)
		}
		q.To = "image"
		if _, err := c.Search(ctx, q); err != nil {
			t.Errorf("%v: %v", views, err)
		}
	}
}

// The code of a vector as a query is the same for every target, which need not be
// named.
func TestEncodeQueryOfViews(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(100, 5)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"]}
	if _, _, err := c.EncodeQuery(ctx, q); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("without a model: %v", err)
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.ViewsTraining)
	var codes [][]byte
	for _, to := range []string{"", "image", "text"} {
		q.To = to
		code, z, err := c.EncodeQuery(ctx, q)
		if err != nil || len(z) != 32 {
			t.Fatalf("to %q: %v", to, err)
		}
		codes = append(codes, code)
	}
	if !slices.Equal(codes[0], codes[1]) || !slices.Equal(codes[0], codes[2]) {
		t.Errorf("%x", codes)
	}
	for what, q := range map[string]db.Query{
		"of no modality": {From: "text", To: "smell", Vector: q.Vector},
		"by key":         {Key: "k0"},
		"by nothing":     {},
	} {
		if _, _, err := c.EncodeQuery(ctx, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Trainings that change the views while everything else goes on: every answer is one
// of the space that it names.
func TestViewsChangeUnderLoad(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(400, 9)
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.ViewsTraining)
	done := make(chan struct{})
	var wg sync.WaitGroup
	work := func(f func(i int) error) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], K: 5}
	work(func(i int) error {
		q := q
		q.To = []string{"image", "text"}[i%2]
		q.Rerank = db.Rerank(i % 4)
		res, err := c.SearchAll(ctx, []db.Query{q, q, {To: q.To, Code: make([]byte, 4), K: 3}})
		if err == nil && len(res[0].Hits) != 5 {
			err = fmt.Errorf("%d hits", len(res[0].Hits))
		}
		return err
	})
	work(func(i int) error {
		it := *items[i%len(items)]
		if i%3 == 0 {
			_, err := c.Delete(ctx, it.Key)
			return err
		}
		return dbkit.Second(c.Put(ctx, &it))
	})
	e := db.Evaluation{Queries: map[string][][]float32{"text": {items[0].Vectors["text"]}}, Labels: [][]string{items[0].Labels}}
	work(func(i int) error {
		_, found, err := c.EvaluateTraining(ctx, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 20, Views: model.Views(i % 2)}}, e)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
	work(func(int) error {
		s, err := d.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		sc, err := s.Collection("main")
		if err != nil {
			return err
		}
		a, err := sc.Evaluate(ctx, e)
		if err != nil {
			return err
		}
		b, err := sc.Evaluate(ctx, e)
		if err == nil && a[0].Hamming.MAP != b[0].Hamming.MAP {
			err = errors.New("a snapshot has changed")
		}
		return err
	})
	for i := range effort.Of(4, 2) {
		opt := dbkit.ViewsTraining
		opt.Views, opt.Fusion = model.Views((i+1)%2), model.Fusion{}
		dbkit.MustTrain(t, c, opt)
	}
	close(done)
	wg.Wait()
	checkViews(t, d, c)
}
