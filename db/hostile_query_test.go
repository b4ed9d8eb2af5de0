package db

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// costs fails if f allocates more than so many bytes.
func costs(t *testing.T, what string, most uint64, f func()) {
	t.Helper()
	before := allocated()
	f()
	if n := allocated() - before; n > most {
		t.Errorf("%s: %d KiB allocated, at most %d are expected", what, n>>10, most>>10)
	}
}

// hostile has a learned collection of 200 items with an indexed field, and one of 9,000
// items of a few codes.
func hostile(t *testing.T) (learned, codes *Collection) {
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	t.Cleanup(func() { mustClose(t, d) })
	schema := pairsSchema
	schema.Fields = []Field{{"year", Int, true}, {"title", String, true}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(200, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i, "title": fmt.Sprint("t", i)}
	}
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 32, Anchors: 20}})
	if codes, err = d.CreateCollection(ctx, "codes", Schema{Bits: 16}); err != nil {
		t.Fatal(err)
	}
	var given []*Item
	for i := range 9000 {
		given = append(given, &Item{Code: []byte{byte(i % 3), byte(i % 5)}})
	}
	putAll(t, codes, given)
	return c, codes
}

// Numbers of any size cost no more than there are items.
func TestAnswersAreNoLongerThanThereAreItems(t *testing.T) {
	longTest(t)
	c, codes := hostile(t)
	const each = 1 << 10 // bytes an item
	for _, k := range []int{1 << 31, math.MaxInt - 1, math.MaxInt} {
		for r := range rerankNames {
			for _, where := range []string{"", "year >= 0"} {
				costs(t, "search", 4<<20, func() {
					res, err := c.Search(ctx, Query{Key: "k7", From: "text", To: "image", K: k, Window: k, Where: where, Rerank: Rerank(r)})
					if err != nil || len(res.Hits) != 200 || res.Next != "" {
						t.Errorf("k = %d, %v: %v", k, Rerank(r), err)
					}
				})
			}
		}
		for _, plan := range []Plan{PlanAuto, PlanScan, PlanMemory, PlanFilter, PlanBlockScan} {
			costs(t, "codes", 9000*each, func() {
				res, err := codes.Search(ctx, Query{Key: "7", K: k, Plan: plan})
				if err != nil || len(res.Hits) != 9000 || res.Next != "" {
					t.Errorf("k = %d, plan %v: %v", k, plan, err)
				}
			})
		}
	}
	for _, radius := range []int{16, 17, 1 << 31, math.MaxInt} {
		costs(t, "radius", 9000*each, func() {
			if n, err := codes.CountRadius(ctx, Query{Key: "7"}, radius); n != 9000 || err != nil {
				t.Errorf("radius %d: %d, %v", radius, n, err)
			}
			runs, err := codes.SearchRadius(ctx, Query{Key: "7"}, radius)
			if err != nil || runs.Total() != 9000 {
				t.Fatalf("radius %d: %v", radius, err)
			}
			defer runs.Close()
			if res, err := runs.First(ctx, math.MaxInt); err != nil || len(res.Hits) != 9000 {
				t.Errorf("radius %d: %v", radius, err)
			}
			if _, res, err := codes.Explain(ctx, Query{Key: "7", K: math.MaxInt}, radius); err != nil || res.Total != 9000 {
				t.Errorf("radius %d, explained: %v", radius, err)
			}
		})
	}
	n := 0
	for _, err := range codes.Neighbors(ctx, Query{Key: "7", Window: math.MaxInt, K: math.MaxInt}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 9000 {
		t.Errorf("%d neighbours", n)
	}
	queries := make([]Query, 20_000)
	for i := range queries {
		queries[i] = Query{Key: fmt.Sprint(i % 9000), K: 1}
	}
	costs(t, "many queries", 20_000*8<<10, func() {
		if res, err := codes.SearchAll(ctx, queries); err != nil || len(res) != len(queries) {
			t.Error(err)
		}
	})
	found, err := c.Evaluate(ctx, Evaluation{
		Queries: map[string][][]float32{"text": {make([]float32, pairsSchema.Modalities[1].Dim)}}, Labels: [][]string{{"c0"}}, Top: math.MaxInt,
	})
	if err != nil && !errors.Is(err, ErrInvalid) {
		t.Errorf("evaluate with the largest top: %v, %v", found, err)
	}
}

// What makes no sense is refused, in a few words, whatever its length.
func TestHostileQueriesAreRefused(t *testing.T) {
	longTest(t)
	c, codes := hostile(t)
	dim := pairsSchema.Modalities[1].Dim
	odd := func(x float64) []float32 {
		v := make([]float32, dim)
		v[dim-1] = float32(x)
		return v
	}
	long := strings.Repeat("x", 16<<20)
	cursor := func() string {
		res, err := codes.Search(ctx, Query{Key: "7", K: 3})
		if err != nil {
			t.Fatal(err)
		}
		return res.Next
	}()
	for name, q := range map[string]Query{
		"a negative k":          {Key: "k1", K: -1},
		"the least k":           {Key: "k1", K: math.MinInt},
		"a negative window":     {Key: "k1", From: "text", Rerank: RerankFeatures, Window: math.MinInt},
		"no order":              {Key: "k1", Rerank: 99},
		"no order below":        {Key: "k1", Rerank: -1},
		"no plan":               {Key: "k1", Plan: 99},
		"nothing":               {},
		"everything":            {Key: "k1", Code: []byte{1}, Vector: odd(1)},
		"NaN":                   {From: "text", Vector: odd(math.NaN())},
		"Inf":                   {From: "text", Vector: odd(math.Inf(-1))},
		"no dimensions":         {From: "text", Vector: []float32{}},
		"too many dimensions":   {From: "text", Vector: make([]float32, 1<<20)},
		"a sparse lie":          {From: "text", Sparse: &Sparse{Index: []uint32{math.MaxUint32}, Value: []float32{1}}},
		"a sparse NaN":          {From: "text", Sparse: &Sparse{Index: []uint32{0}, Value: []float32{float32(math.NaN())}}},
		"a long modality":       {From: long, Vector: odd(1)},
		"a long target":         {Key: "k1", To: long},
		"a short code":          {Code: []byte{}},
		"a long code":           {Code: make([]byte, 1<<20)},
		"an expression of MBs":  {Key: "k1", Where: "year IN (" + strings.Repeat("1,", 5<<20) + "1)"},
		"parentheses":           {Key: "k1", Where: strings.Repeat("(", 100_000) + "year = 1" + strings.Repeat(")", 100_000)},
		"parentheses that fit":  {Key: "k1", Where: strings.Repeat("(", 101) + "year = 1" + strings.Repeat(")", 101)},
		"negations":             {Key: "k1", Where: strings.Repeat("NOT ", 10_000) + "year = 1"},
		"a long field":          {Key: "k1", Where: strings.Repeat("x", 60_000) + " = 1"},
		"no UTF-8":              {Key: "k1", Where: "title = '\xff'"},
		"a cursor of strangers": {Key: "k1", After: cursor},
		"a cursor of noise":     {Key: "k1", After: strings.Repeat("A", 1<<20)},
		"half a cursor":         {Key: "k1", After: cursor[:len(cursor)/2]},
		"a cursor of codes":     {Key: "k1", From: "text", Rerank: RerankFeatures, After: cursor},
	} {
		check := func(how string, err error) {
			if !errors.Is(err, ErrInvalid) || len(err.Error()) > 1<<10 {
				t.Errorf("%s, %s: %.300v", name, how, err)
			}
		}
		costs(t, name, 8<<20, func() {
			_, err := c.Search(ctx, q)
			check("search", err)
			_, err = c.CountRadius(ctx, q, 3)
			check("count", err)
			_, _, err = c.Explain(ctx, q, -1)
			check("explain", err)
			for _, err := range c.Neighbors(ctx, q) {
				check("neighbours", err)
			}
			_, err = c.SearchAll(ctx, []Query{{Key: "k1"}, q})
			check("all", err)
		})
	}
	for name, err := range map[string]error{
		"a radius below 0":  second(c.SearchRadius(ctx, Query{Key: "k1"}, math.MinInt)),
		"a count below 0":   second(c.CountRadius(ctx, Query{Key: "k1"}, -1)),
		"rows":              second(c.Train(ctx, TrainOptions{Rows: math.MinInt})),
		"bits":              second(c.Train(ctx, TrainOptions{Options: model.Options{Bits: 1 << 40}})),
		"anchors":           second(c.Train(ctx, TrainOptions{Options: model.Options{Anchors: 1e9}})),
		"all anchors":       second(c.Train(ctx, TrainOptions{Options: model.Options{Anchors: math.MaxInt}})),
		"anchors below 0":   second(c.Train(ctx, TrainOptions{Options: model.Options{Anchors: math.MinInt}})),
		"sweeps":            second(c.Train(ctx, TrainOptions{Options: model.Options{Sweeps: 1e9}})),
		"sweeps below 0":    second(c.Train(ctx, TrainOptions{Options: model.Options{Sweeps: -1}})),
		"delta":             second(c.Train(ctx, TrainOptions{Options: model.Options{Delta: math.NaN()}})),
		"gamma":             second(c.Train(ctx, TrainOptions{Options: model.Options{Gamma: map[string]float64{"text": math.Inf(1)}}})),
		"a map":             second(c.Train(ctx, TrainOptions{Options: model.Options{Map: map[string]model.MapKind{"text": 200}}})),
		"features":          second(c.Train(ctx, TrainOptions{Options: model.Options{Features: map[string]model.FeatureKind{"text": 200}}})),
		"views":             second(c.Train(ctx, TrainOptions{Options: model.Options{Views: 77}})),
		"a teacher":         second(c.Update(ctx, UpdateOptions{Teacher: -5})),
		"a rate":            second(c.Reindex(ctx, ReindexOptions{Rate: math.MinInt})),
		"labels of queries": second(c.Evaluate(ctx, Evaluation{Labels: [][]string{{"a"}}, Top: math.MinInt})),
		"a count by MBs":    second(c.CountWhere(ctx, long)),
		"a deletion by MBs": second(c.DeleteWhere(ctx, long)),
	} {
		if !errors.Is(err, ErrInvalid) || len(err.Error()) > 1<<10 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	costs(t, "long names", 1<<20, func() {
		for name, err := range map[string]error{
			"get":        second(c.Get(ctx, long)),
			"search":     second(c.Search(ctx, Query{Key: long})),
			"collection": second(c.db.Collection(long)),
			"drop":       c.db.DropCollection(ctx, long),
		} {
			if !errors.Is(err, ErrNotFound) || len(err.Error()) > 1<<10 {
				t.Errorf("%s: %.300v", name, err)
			}
		}
	})
	// The longest expression that is possible is answered.
	in := "year IN (" + strings.Repeat("1,", (60<<10)/2) + "1)"
	if n, err := c.CountWhere(ctx, in); n != 1 || err != nil {
		t.Errorf("the longest IN: %d, %v", n, err)
	}
}

// The largest numbers that are possible give an answer or an error.
func TestLargestVectors(t *testing.T) {
	longTest(t)
	c, _ := hostile(t)
	for _, x := range []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		v := make([]float32, pairsSchema.Modalities[1].Dim)
		for i := range v {
			v[i] = x
		}
		for r := range rerankNames {
			if _, err := c.Search(ctx, Query{From: "text", Vector: v, Rerank: Rerank(r)}); err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%g, %v: %v", x, Rerank(r), err)
			}
		}
		item := &Item{Key: fmt.Sprint(x), Labels: []string{"c0"}, Vectors: map[string][]float32{"text": v}}
		if _, err := c.Put(ctx, item); err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%g: %v", x, err)
		}
	}
	if _, err := c.Update(ctx, UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.Search(ctx, Query{Key: "k7"}); err != nil {
		t.Error(err)
	}
}

// Options of any size open a database.
func TestOptionsOfAnySize(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, 1, math.MaxInt64} {
		mem := vfs.NewMem()
		for range 2 {
			opts := &Options{FS: mem}
			for _, field := range reflect.ValueOf(opts).Elem().Fields() {
				if field.CanInt() {
					field.SetInt(n)
				}
			}
			d, err := Open("db", opts)
			if err != nil {
				t.Fatalf("%d: %v", n, err)
			}
			c, err := d.Collection("main")
			if err != nil {
				c, err = d.CreateCollection(ctx, "main", Schema{Bits: 8})
			}
			if err == nil {
				_, err = c.Put(ctx, &Item{Key: "k", Code: []byte{1}})
			}
			if err == nil {
				_, err = c.Search(ctx, Query{Key: "k"})
			}
			if err = errors.Join(err, d.Close()); err != nil {
				t.Errorf("%d: %v", n, err)
			}
		}
	}
}

// A context that has ended ends everything that takes one.
func TestEndedContextEndsEverything(t *testing.T) {
	c, _ := hostile(t)
	d := c.db
	runs, err := c.SearchRadius(ctx, Query{Key: "k7"}, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ctx := ended
	dim := pairsSchema.Modalities[1].Dim
	one := Evaluation{Queries: map[string][][]float32{"text": {make([]float32, dim)}}, Labels: [][]string{{"c0"}}}
	errs := map[string]error{
		"put":              second(c.Put(ctx, &Item{Key: "new"})),
		"merge":            second(c.Merge(ctx, &Item{Key: "k1"})),
		"delete":           second(c.Delete(ctx, "k1")),
		"delete where":     second(c.DeleteWhere(ctx, "year = 1")),
		"get":              second(c.Get(ctx, "k1")),
		"create":           second(d.CreateCollection(ctx, "x", pairsSchema)),
		"alter":            c.Alter(ctx, Alteration{AddFields: []Field{place}}),
		"drop":             d.DropCollection(ctx, "codes"),
		"drop space":       c.DropSpace(ctx, 1),
		"activate":         c.Activate(ctx, 1),
		"rollback":         second(c.Rollback(ctx)),
		"pin":              c.PinRevision(ctx, 1, 1, true),
		"restore revision": second(c.RestoreRevision(ctx, 1, 1)),
		"train":            second(c.Train(ctx, TrainOptions{})),
		"reindex":          second(c.Reindex(ctx, ReindexOptions{})),
		"update":           second(c.Update(ctx, UpdateOptions{})),
		"search":           second(c.Search(ctx, Query{Key: "k7"})),
		"search all":       second(c.SearchAll(ctx, []Query{{Key: "k7"}})),
		"radius":           second(c.SearchRadius(ctx, Query{Key: "k7"}, 3)),
		"count":            second(c.CountRadius(ctx, Query{Key: "k7"}, 3)),
		"count where":      second(c.CountWhere(ctx, "year > 3")),
		"spaces":           second(c.Spaces(ctx)),
		"evaluate":         second(c.Evaluate(ctx, one)),
		"compact":          d.Compact(ctx),
		"verify":           second(d.Verify(ctx, VerifyOptions{}, func(Finding) error { return nil })),
		"first":            second(runs.First(ctx, 3)),
	}
	_, _, err = c.Explain(ctx, Query{Key: "k7"}, -1)
	errs["explain"] = err
	if res, _ := runs.First(ctx, 3); res != nil {
		t.Errorf("first: %+v beside an error", res)
	}
	_, _, err = c.EvaluateTraining(ctx, TrainOptions{}, one)
	errs["evaluate training"] = err
	var e error
	for _, err := range c.Items(ctx) {
		e = err
	}
	errs["items"], e = e, nil
	for _, err := range c.ItemsWhere(ctx, "year > 3") {
		e = err
	}
	errs["items where"], e = e, nil
	for _, err := range c.Codes(ctx, "") {
		e = err
	}
	errs["codes"], e = e, nil
	for _, err := range c.Neighbors(ctx, Query{Key: "k7"}) {
		e = err
	}
	errs["neighbours"], e = e, nil
	for _, err := range runs.Hits(ctx) {
		e = err
	}
	errs["hits"], e = e, nil
	for _, err := range runs.All(ctx) {
		e = err
	}
	errs["runs"] = e
	for what, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
