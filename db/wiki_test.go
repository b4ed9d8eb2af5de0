package db_test

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model"
)

// sharedSet reads one of the real data sets that stand beside a checkout of the
// repository: the first count items of a part as items, and what queries need.
func sharedSet(t testing.TB, set, part string) (vectors map[string][][]float32, labels [][]string) {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "data", set)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set %s is not here: %v", set, err)
	}
	vectors = map[string][][]float32{}
	for _, m := range []string{"image", "text"} {
		data, rows, cols, err := vecfile.ReadAll(filepath.Join(dir, part+"_"+m+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			vectors[m] = append(vectors[m], data[i*cols:(i+1)*cols])
		}
	}
	l := need(vecfile.ReadLabels(filepath.Join(dir, part+"_labels.npy")))(t)
	for _, set := range l.Sets {
		var names []string
		for _, i := range set {
			names = append(names, l.Names[i])
		}
		labels = append(labels, names)
	}
	return vectors, labels
}

// openShared makes a database of the training part of a real data set.
func openShared(t testing.TB, set string) *db.Collection {
	t.Helper()
	vectors, labels := sharedSet(t, set, "train")
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { d.Close() })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: len(vectors["image"][0])}, {Name: "text", Dim: len(vectors["text"][0])},
	}}))(t)
	var items []*db.Item
	for i := range labels {
		items = append(items, &db.Item{Key: strconv.Itoa(i), Labels: labels[i], Vectors: map[string][]float32{
			"image": vectors["image"][i], "text": vectors["text"][i],
		}})
	}
	putAll(t, c, items)
	return c
}

// authorsSettings are those of the authors' experiments.
func authorsSettings(bits int, seed uint64) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits: bits, Seed: seed, Anchors: 800, Aim: model.AimCodes,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Width:    map[string]float64{"image": 1, "text": 1},
		Gamma:    map[string]float64{"image": 1e-4, "text": 1e-4},
	}}
}

func TestRealSetsRetrieveAsTheReference(t *testing.T) {
	dbkit.LongTest(t)
	for _, tc := range []struct {
		set                      string
		imageToText, textToImage float64
	}{{"wiki", .365, .753}, {"ucidigits", .867, .981}} {
		if tc.set == "wiki" && !effort.Long() {
			continue
		}
		t.Run(tc.set, func(t *testing.T) {
			c := openShared(t, tc.set)
			dbkit.MustTrain(t, c, authorsSettings(64, 1))
			vectors, labels := sharedSet(t, tc.set, "query")
			got := need(c.Evaluate(ctx, db.Evaluation{Queries: vectors, Labels: labels}))(t)
			for i, want := range []float64{tc.imageToText, tc.textToImage} {
				// One seed: the standard deviation over seeds is about .01.
				if m := got[i].Hamming.MAP; math.Abs(m-want) > .04 {
					t.Errorf("%s->%s: mAP %.3f, the reference implementation %.3f", got[i].From, got[i].To, m, want)
				}
			}
		})
	}
}
