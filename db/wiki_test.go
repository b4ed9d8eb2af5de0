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
	l, err := vecfile.ReadLabels(filepath.Join(dir, part+"_labels.npy"))
	if err != nil {
		t.Fatal(err)
	}
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
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: len(vectors["image"][0])}, {Name: "text", Dim: len(vectors["text"][0])},
	}})
	if err != nil {
		t.Fatal(err)
	}
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
			got, err := c.Evaluate(ctx, db.Evaluation{Queries: vectors, Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []float64{tc.imageToText, tc.textToImage} {
				// One seed: the standard deviation over seeds is about .01.
				if m := got[i].Hamming.MAP; math.Abs(m-want) > .04 {
					t.Errorf("%s->%s: mAP %.3f, the reference implementation %.3f", got[i].From, got[i].To, m, want)
				}
			}
		})
	}
}

func BenchmarkWikiTrain(b *testing.B) {
	c := openShared(b, "wiki")
	for b.Loop() {
		dbkit.MustTrain(b, c, authorsSettings(64, 1))
	}
}

// BenchmarkWikiSearch takes the first ten hits, and what encoding the query takes of that.
func BenchmarkWikiSearch(b *testing.B) {
	c := openShared(b, "wiki")
	dbkit.MustTrain(b, c, authorsSettings(64, 1))
	vectors, _ := sharedSet(b, "wiki", "query")
	for _, pair := range [][2]string{{"image", "text"}, {"text", "image"}} {
		b.Run(pair[0]+"->"+pair[1], func(b *testing.B) {
			queries := vectors[pair[0]]
			for i := 0; b.Loop(); i++ {
				_, err := c.Search(ctx, db.Query{From: pair[0], To: pair[1], Vector: queries[i%len(queries)]})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(pair[0]+"-encode", func(b *testing.B) {
			queries := vectors[pair[0]]
			for i := 0; b.Loop(); i++ {
				if _, _, err := c.EncodeQuery(ctx, db.Query{From: pair[0], Vector: queries[i%len(queries)]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
