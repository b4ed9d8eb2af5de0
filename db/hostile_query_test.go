package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// costs fails if f allocates more than so many bytes.
func costs(t *testing.T, what string, most uint64, f func()) {
	t.Helper()
	before := allocated()
	f()
	n := allocated() - before
	failIf(t, n > most, "%s: %d KiB allocated, at most %d are expected", what, n>>10, most>>10)
}

// hostile has a learned collection of 200 items with an indexed field, and one of 9,000 items of a few codes.
func hostile(t *testing.T) (learned, codes *db.Collection) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{"year", db.Int, true}, {"title", db.String, true}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	items := dbkit.Pairs(200, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i, "title": fmt.Sprint("t", i)}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	codes = need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	var given []*db.Item
	for i := range 9000 {
		given = append(given, &db.Item{Code: []byte{byte(i % 3), byte(i % 5)}})
	}
	putAll(t, codes, given)
	return c, codes
}

// Numbers of any size cost no more than there are items.
func TestAnswersAreNoLongerThanThereAreItems(t *testing.T) {
	effort.Slow(t)
	c, codes := hostile(t)
	const each = 1 << 10 // bytes an item
	for _, k := range []int{1 << 31, math.MaxInt - 1, math.MaxInt} {
		for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
			for _, where := range []string{"", "year >= 0"} {
				costs(t, "search", 4<<20, func() {
					res, err := c.Search(ctx, db.Query{Key: "k7", From: "text", To: "image", K: k,
						Where: where, Rerank: r})
					failIf(t, err != nil || len(res.Hits) != 200 || res.Next != "", "k = %d, %v: %v", k, r,
						err)
				})
			}
		}
		for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanMemory, db.PlanFilter,
			db.PlanBlockScan} {
			costs(t, "codes", 9000*each, func() {
				res, err := codes.Search(ctx, db.Query{Key: "7", K: k, Plan: plan})
				failIf(t, err != nil || len(res.Hits) != 9000 || res.Next != "", "k = %d, plan %v: %v", k,
					plan, err)
			})
		}
	}
	for _, radius := range []int{16, 17, 1 << 31, math.MaxInt} {
		costs(t, "radius", 9000*each, func() {
			gives(t, 9000, radius)(dbkit.CountWithin(codes, db.Query{Key: "7"}, radius))
			runs, err := codes.SearchRadius(ctx, db.Query{Key: "7"}, radius)
			stopIf(t, err != nil || runs.Total() != 9000, "radius %d: %v", radius, err)
			defer runs.Close()
			if res, err := runs.First(ctx, math.MaxInt); err != nil || len(res.Hits) != 9000 {
				t.Errorf("radius %d: %v", radius, err)
			}
			if _, res, err := codes.Explain(ctx, db.Query{Key: "7", K: math.MaxInt}, radius); err != nil ||
				res.Total != 9000 {
				t.Errorf("radius %d, explained: %v", radius, err)
			}
		})
	}
	queries := make([]db.Query, 20_000)
	for i := range queries {
		queries[i] = db.Query{Key: fmt.Sprint(i % 9000), K: 1}
	}
	costs(t, "many queries", 20_000*8<<10, func() {
		res, err := codes.SearchAll(ctx, queries)
		failIf(t, err != nil || len(res) != len(queries), "%v", err)
	})
	found, err := c.Evaluate(ctx, db.Evaluation{
		Queries: map[string][][]float32{"text": {make([]float32, dbkit.PairsSchema.Modalities[1].Dim)}},
		Labels:  [][]string{{"c0"}}, Top: math.MaxInt,
	})
	failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "evaluate with the largest top: %v, %v", found,
		err)
}

// What makes no sense is refused, in a few words, whatever its length.
func TestHostileQueriesAreRefused(t *testing.T) {
	effort.Slow(t)
	c, codes := hostile(t)
	dim := dbkit.PairsSchema.Modalities[1].Dim
	odd := func(x float64) []float32 {
		v := make([]float32, dim)
		v[dim-1] = float32(x)
		return v
	}
	long := strings.Repeat("x", 16<<20)
	cursor := func() string {
		res := need(codes.Search(ctx, db.Query{Key: "7", K: 3}))(t)
		return res.Next
	}()
	for name, q := range map[string]db.Query{
		"a negative k":        {Key: "k1", K: -1},
		"the least k":         {Key: "k1", K: math.MinInt},
		"no order":            {Key: "k1", Rerank: 99},
		"no order below":      {Key: "k1", Rerank: -1},
		"no plan":             {Key: "k1", Plan: 99},
		"nothing":             {},
		"everything":          {Key: "k1", Code: []byte{1}, Vector: odd(1)},
		"NaN":                 {From: "text", Vector: odd(math.NaN())},
		"Inf":                 {From: "text", Vector: odd(math.Inf(-1))},
		"no dimensions":       {From: "text", Vector: []float32{}},
		"too many dimensions": {From: "text", Vector: make([]float32, 1<<20)},
		"a sparse lie": {From: "text", Sparse: &db.Sparse{Index: []uint32{math.MaxUint32},
			Value: []float32{1}}},
		"a sparse NaN": {From: "text", Sparse: &db.Sparse{Index: []uint32{0},
			Value: []float32{float32(math.NaN())}}},
		"a long modality":      {From: long, Vector: odd(1)},
		"a long target":        {Key: "k1", To: long},
		"a short code":         {Code: []byte{}},
		"a long code":          {Code: make([]byte, 1<<20)},
		"an expression of MBs": {Key: "k1", Where: "year IN (" + strings.Repeat("1,", 5<<20) + "1)"},
		"parentheses": {Key: "k1",
			Where: strings.Repeat("(", 100_000) + "year = 1" + strings.Repeat(")", 100_000)},
		"parentheses that fit": {Key: "k1", Where: strings.Repeat("(", 101) + "year = 1" + strings.Repeat(
			")", 101)},
		"negations":             {Key: "k1", Where: strings.Repeat("NOT ", 10_000) + "year = 1"},
		"a long field":          {Key: "k1", Where: strings.Repeat("x", 60_000) + " = 1"},
		"no UTF-8":              {Key: "k1", Where: "title = '\xff'"},
		"a cursor of strangers": {Key: "k1", After: cursor},
		"a cursor of noise":     {Key: "k1", After: strings.Repeat("A", 1<<20)},
		"half a cursor":         {Key: "k1", After: cursor[:len(cursor)/2]},
	} {
		check := func(how string, err error) {
			failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "%s, %s: %.300v", name, how,
				err)
		}
		costs(t, name, 8<<20, func() {
			_, err := c.Search(ctx, q)
			check("search", err)
			_, err = c.SearchRadius(ctx, q, 3)
			check("radius", err)
			_, _, err = c.Explain(ctx, q, -1)
			check("explain", err)
			_, err = c.SearchAll(ctx, []db.Query{{Key: "k1"}, q})
			check("all", err)
		})
	}
	for name, err := range map[string]error{
		"a radius below 0": errOf(c.SearchRadius(ctx, db.Query{Key: "k1"}, math.MinInt)),
		"a count below 0":  errOf(dbkit.CountWithin(c, db.Query{Key: "k1"}, -1)),
		"rows":             errOf(c.Train(ctx, db.TrainOptions{Rows: math.MinInt})),
		"bits":             errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 1 << 40}})),
		"anchors":          errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: 1e9}})),
		"all anchors":      errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: math.MaxInt}})),
		"anchors below 0":  errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: math.MinInt}})),
		"sweeps":           errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Sweeps: 1e9}})),
		"sweeps below 0":   errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Sweeps: -1}})),
		"delta":            errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Delta: math.NaN()}})),
		"gamma": errOf(c.Train(ctx,
			db.TrainOptions{Options: fit.Options{Gamma: map[string]float64{"text": math.Inf(1)}}})),
		"a map": errOf(
			c.Train(ctx, db.TrainOptions{Options: fit.Options{Map: map[string]model.MapKind{"text": 200}}})),
		"features": errOf(c.Train(ctx,
			db.TrainOptions{Options: fit.Options{Features: map[string]model.FeatureKind{"text": 200}}})),
		"a teacher": errOf(c.Update(ctx, db.UpdateOptions{Teacher: -5})),
		"a rate":    errOf(c.Reindex(ctx, db.ReindexOptions{Rate: math.MinInt})),
		"labels of queries": errOf(c.Evaluate(ctx, db.Evaluation{Labels: [][]string{{"a"}},
			Top: math.MinInt})),
		"a count by MBs":    errOf(c.Count(ctx, long)),
		"a deletion by MBs": errOf(c.DeleteWhere(ctx, long)),
	} {
		failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "%s: %.300v", name, err)
	}
	costs(t, "long names", 1<<20, func() {
		for name, err := range map[string]error{
			"get":        errOf(c.Get(ctx, long)),
			"search":     errOf(c.Search(ctx, db.Query{Key: long})),
			"collection": errOf(db.Of(c).Collection(long)),
			"drop":       db.Of(c).DropCollection(ctx, long),
		} {
			failIf(t, !errors.Is(err, db.ErrNotFound) || len(err.Error()) > 1<<10, "%s: %.300v", name, err)
		}
	})
	// The longest expression that is possible is answered.
	in := "year IN (" + strings.Repeat("1,", (60<<10)/2) + "1)"
	holds(t, c, 1, in)
}

// The largest numbers that are possible give an answer or an error.
func TestLargestVectors(t *testing.T) {
	effort.Slow(t)
	c, _ := hostile(t)
	for _, x := range []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		v := make([]float32, dbkit.PairsSchema.Modalities[1].Dim)
		for i := range v {
			v[i] = x
		}
		for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
			_, err := c.Search(ctx, db.Query{From: "text", Vector: v, Rerank: r})
			failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "%g, %v: %v", x, r, err)
		}
		item := &db.Item{Key: fmt.Sprint(x), Labels: []string{"c0"}, Vectors: map[string][]float32{"text": v}}
		_, err := c.Put(ctx, item)
		failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "%g: %v", x, err)
	}
	fine(t, errOf(c.Update(ctx, db.UpdateOptions{})))
	fine(t, errOf(c.Search(ctx, db.Query{Key: "k7"})))
}

// Options of any size open a database.
func TestOptionsOfAnySize(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, 1, math.MaxInt64} {
		mem := vfs.NewMem()
		for range 2 {
			opts := &db.Options{FS: mem}
			for _, field := range reflect.ValueOf(opts).Elem().Fields() {
				if field.CanInt() {
					field.SetInt(n)
				}
			}
			d, err := db.Open("db", opts)
			must(t, err, n)
			c, err := d.Collection("main")
			if err != nil {
				c, err = d.CreateCollection(ctx, "main", db.Schema{Bits: 8})
			}
			if err == nil {
				_, err = c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}})
			}
			if err == nil {
				_, err = c.Search(ctx, db.Query{Key: "k"})
			}
			err = errors.Join(err, d.Close())
			failIf(t, err != nil, "%d: %v", n, err)
		}
	}
}

// A context that has ended ends everything that takes one.
func TestEndedContextEndsEverything(t *testing.T) {
	t.Parallel()
	c, _ := hostile(t)
	d := db.Of(c)
	runs := need(c.SearchRadius(ctx, db.Query{Key: "k7"}, 32))(t)
	defer runs.Close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ctx := ended
	dim := dbkit.PairsSchema.Modalities[1].Dim
	one := db.Evaluation{Queries: map[string][][]float32{"text": {make([]float32, dim)}},
		Labels: [][]string{{"c0"}}}
	errs := map[string]error{
		"put":              errOf(c.Put(ctx, &db.Item{Key: "new"})),
		"merge":            errOf(c.Merge(ctx, &db.Item{Key: "k1"})),
		"delete":           errOf(c.Delete(ctx, "k1")),
		"delete where":     errOf(c.DeleteWhere(ctx, "year = 1")),
		"get":              errOf(c.Get(ctx, "k1")),
		"create":           errOf(d.CreateCollection(ctx, "x", dbkit.PairsSchema)),
		"alter":            c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"drop":             d.DropCollection(ctx, "codes"),
		"drop space":       c.DropSpace(ctx, 1),
		"activate":         c.Activate(ctx, 1),
		"rollback":         errOf(c.Rollback(ctx)),
		"pin":              c.PinRevision(ctx, 1, 1, true),
		"restore revision": errOf(c.RestoreRevision(ctx, 1, 1)),
		"train":            errOf(c.Train(ctx, db.TrainOptions{})),
		"reindex":          errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"update":           errOf(c.Update(ctx, db.UpdateOptions{})),
		"search":           errOf(c.Search(ctx, db.Query{Key: "k7"})),
		"search all":       errOf(c.SearchAll(ctx, []db.Query{{Key: "k7"}})),
		"radius":           errOf(c.SearchRadius(ctx, db.Query{Key: "k7"}, 3)),
		"count where":      errOf(c.Count(ctx, "year > 3")),
		"spaces":           errOf(c.Spaces(ctx)),
		"evaluate":         errOf(c.Evaluate(ctx, one)),
		"compact":          d.Compact(ctx),
		"verify": errOf(d.Verify(ctx, db.VerifyOptions{},
			func(report.Finding) error { return nil })),
		"first": errOf(runs.First(ctx, 3)),
	}
	_, _, err := c.Explain(ctx, db.Query{Key: "k7"}, -1)
	errs["explain"] = err
	res, _ := runs.First(ctx, 3)
	failIf(t, res != nil, "first: %+v beside an error", res)
	var e error
	for _, err := range c.Items(ctx, "") {
		e = err
	}
	errs["items"], e = e, nil
	for _, err := range c.Items(ctx, "year > 3") {
		e = err
	}
	errs["items where"], e = e, nil
	for _, err := range c.Codes(ctx, "") {
		e = err
	}
	errs["codes"], e = e, nil
	for _, err := range runs.Hits(ctx) {
		e = err
	}
	errs["hits"], e = e, nil
	for _, err := range runs.All(ctx) {
		e = err
	}
	errs["runs"] = e
	for what, err := range errs {
		failIf(t, !errors.Is(err, context.Canceled), "%s: %v", what, err)
	}
}
