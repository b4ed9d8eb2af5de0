package db_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// itemProjections returns the projections of an item by modality of the collection,
// nil where it has none.
func itemProjections(t *testing.T, c *db.Collection, it *db.Item) (z [][]float64) {
	t.Helper()
	for _, m := range dbkit.PairsSchema.Modalities {
		var p []float64
		if x := it.Vectors[m.Name]; x != nil {
			_, q, err := c.EncodeQuery(ctx, db.Query{From: m.Name, Vector: x})
			if err != nil {
				t.Fatal(err)
			}
			p = q
		}
		z = append(z, p)
	}
	return z
}

// TestUnlabelledItemsAreFused: items without labels get the codes that the report of
// the training says, whichever vectors they have, put before the training and after it, in
// batches and one by one, and have them after reopening.
func TestUnlabelledItemsAreFused(t *testing.T) {
	dbkit.LongTest(t)
	const bits = 32
	items := dbkit.Pairs(260, synth.Config{Seed: 2, Noise: 2.5, Missing: .2})
	rng := rand.New(rand.NewPCG(1, 1))
	for _, it := range items {
		for j := range it.Vectors["image"] {
			it.Vectors["image"][j] = float32(rng.NormFloat64()) // noise
		}
	}
	for _, tc := range []struct {
		fusion string
		alone  string // the modality that makes the codes of items that have both
	}{{"auto", ""}, {"sum", ""}, {"image", "image"}} {
		t.Run(tc.fusion, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			d := dbkit.MustOpen(t, dir, nil)
			defer func() { d.Close() }()
			c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
			if err != nil {
				t.Fatal(err)
			}
			var unlabelled []*db.Item
			for _, it := range items[200:] {
				other := *it
				other.Labels = nil
				unlabelled = append(unlabelled, &other)
			}
			putAll(t, c, items[:200])
			putAll(t, c, unlabelled[:20]) // which the training encodes
			fusion, err := fit.ParseFusion(tc.fusion)
			if err != nil {
				t.Fatal(err)
			}
			// A small gamma makes the noise loud.
			training := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{
				Bits: bits, Fusion: fusion, Gamma: map[string]float64{"image": 1e-5, "text": .1},
			}})
			putAll(t, c, unlabelled[20:40])
			for _, it := range unlabelled[40:] {
				if _, err := c.Put(ctx, it); err != nil {
					t.Fatal(err)
				}
			}
			view := training.Fusion
			if tc.fusion == "auto" && (view.Weights["image"] > .5 || view.Weights["text"] != 1 || view.OverSum == nil) {
				t.Errorf("noise counts: %+v", view)
			}
			// The mean of what the labelled items teach.
			mean, aim := make([]float64, bits), make([]float64, bits)
			check := func() {
				t.Helper()
				clear(mean)
				cv := inSpace(t, c, 1)
				for _, it := range items[:200] {
					stored, err := c.Get(ctx, it.Key)
					if err != nil {
						t.Fatal(err)
					}
					if stored.CodeFrom != "labels" {
						t.Fatalf("the code of a labelled item is from %q", stored.CodeFrom)
					}
					if !cv.Space.Learned.LabelAim(aim, cv.Labels.Lookup(it.Labels)) {
						t.Fatalf("the model does not know the labels %q", it.Labels)
					}
					for j := range mean {
						mean[j] += aim[j] / 200
					}
				}
				for i, it := range unlabelled {
					z := itemProjections(t, c, it)
					weights := []float64{view.Weights["image"], view.Weights["text"]}
					counts := 0
					for m := range z {
						if z[m] == nil {
							weights[m] = 0
						} else if weights[m] > 0 {
							counts++
						}
					}
					if counts == 0 {
						for m := range z {
							if z[m] != nil {
								weights[m] = 1
							}
						}
					}
					want := make([]float64, bits)
					for m := range z {
						for j, v := range z[m] {
							want[j] += weights[m] * (v - view.Centre*mean[j])
						}
					}
					stored, err := c.Get(ctx, it.Key)
					if err != nil {
						t.Fatal(err)
					}
					code := codec.PackSigns(codec.NewCode(bits), want).AppendBytes(nil, bits)
					if !slices.Equal(stored.Code, code) {
						t.Fatalf("item %d has code %x, want %x", i, stored.Code, code)
					}
					from := "fused"
					if tc.alone != "" && z[0] != nil && z[1] != nil {
						from = tc.alone
					}
					if weights[0] > 0 != (weights[1] > 0) && z[0] != nil && z[1] != nil && tc.alone == "" {
						from = "text"
					}
					if stored.CodeFrom != from {
						t.Errorf("item %d has its code from %q, want %q", i, stored.CodeFrom, from)
					}
					if encoded, _, err := c.Encode(it); err != nil || !slices.Equal(encoded, code) {
						t.Errorf("item %d would get %x (%v), and has %x", i, encoded, err, code)
					}
				}
			}
			check()
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = dbkit.MustOpen(t, dir, nil)
			if c, err = d.Collection("main"); err != nil {
				t.Fatal(err)
			}
			check()
		})
	}
}
