package db_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model"
)

// A collection whose items get labels one after the other has a space without labels, and beside it
// one that learns from the labels that there are. Searches in either are exact, and find items without
// labels, too.
func TestLabelsLater(t *testing.T) {
	dbkit.LongTest(t)
	const n = 200
	items, fs := pairedItems(n), vfs.NewMem()
	d, c := openWith(t, fs, pairedSchema, items)
	free := db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ, Bits: 16}}
	if training := dbkit.MustTrain(t, c, free); !training.Active {
		t.Fatalf("%+v", training)
	}
	checkInEach(t, c, items, 1)

	for _, labelled := range []int{4, n / 10, n} {
		for i, it := range items[:labelled] {
			it.Labels = []string{fmt.Sprint("class", i%3)}
		}
		dbkit.PutAll(t, d, c, items[:labelled])
		opt := dbkit.TinyTraining(1)
		opt.Bits, opt.Anchors = 24, 4
		training, err := c.Train(ctx, opt)
		if err != nil {
			t.Fatal(err)
		}
		if training.Method != model.MethodLabels || training.TrainItems != labelled || training.Items != n || training.Active {
			t.Fatalf("%d labelled: %+v", labelled, training)
		}
		checkInEach(t, c, items, 1, training.Space)
		if labelled < n {
			if err := c.DropSpace(ctx, training.Space); err != nil {
				t.Fatal(err)
			}
		}
	}

	copied := dbkit.MustCollection(t, indexOnlyOf(t, d, &db.Options{FS: fs}), "main")
	checkCodesOf(t, copied, items, 1)
	checkCodesOf(t, copied, items, 4)

	// Labels go, and a space that has learned from them goes on with the codes of vectors.
	const fddh = 4
	if err := c.Activate(ctx, fddh); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		it.Labels = nil
	}
	dbkit.PutAll(t, d, c, items)
	if updated, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}); err != nil || updated.Forgotten != n {
		t.Errorf("%+v, %v", updated, err)
	}
	checkInEach(t, c, items, 1, fddh)
	dbkit.MustTrain(t, c, free)
	dbkit.CheckSound(t, d, "in the end")
}

// checkInEach checks the searches of spaces by codes, and those by vectors.
func checkInEach(t *testing.T, c *db.Collection, items []*db.Item, spaces ...db.Space) {
	t.Helper()
	for _, space := range spaces {
		checkCodesOf(t, c, items, space)
		q := db.Query{Space: space, From: "image", To: "image", Vector: items[1].Vectors["image"], K: 30, Recall: 1}
		e, res, err := c.Explain(ctx, q, -1)
		if err != nil || e.Plan != "vectors" {
			t.Fatalf("space %d: %+v, %v", space, e, err)
		}
		var want []*db.Item
		for _, it := range items {
			if it.Vectors["image"] != nil {
				want = append(want, it)
			}
		}
		cosine := map[*db.Item]float32{}
		for _, it := range want {
			cosine[it] = plainCosine(q.Vector, it.Vectors["image"])
		}
		slices.SortStableFunc(want, func(a, b *db.Item) int { return cmp.Compare(cosine[b], cosine[a]) })
		for i, h := range res.Hits {
			if h.Key != want[i].Key {
				t.Errorf("space %d: hit %d by vectors is %s, by a scan %s", space, i, h.Key, want[i].Key)
			}
		}
	}
}

// checkCodesOf compares searches by the codes of a space with a scan of all items, and finds each item.
func checkCodesOf(t *testing.T, c *db.Collection, items []*db.Item, space db.Space) {
	t.Helper()
	in, err := c.InSpace(space)
	if err != nil {
		t.Fatal(err)
	}
	image, text := items[1].Vectors["image"], items[1].Vectors["text"]
	var queries []db.Query
	for i, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanMemory, db.PlanDisk} {
		if !effort.Sampled(i, 2) { // from disk it takes a hundred times as long
			continue
		}
		queries = append(queries,
			db.Query{From: "image", To: "text", Vector: image, Plan: plan, K: 20},
			db.Query{From: "text", To: "image", Vector: text, Plan: plan, Where: "NOT has(label)"},
			db.Query{From: "text", Vector: text, Plan: plan, Where: "label = 'class1'", Rerank: db.RerankNone},
			db.Query{Key: "k2", Plan: plan, Rerank: db.RerankProjection},
		)
	}
	dbtest.CheckSearches(t, in, queries...)

	res, err := in.Search(ctx, db.Query{From: "image", Vector: image, Rerank: db.RerankProjection, K: 2 * len(items)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, h := range res.Hits {
		found[h.Key] = true
	}
	if len(found) != len(items) {
		t.Errorf("space %d: %d of %d items are found", space, len(found), len(items))
	}
}
