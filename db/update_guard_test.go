package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// With two hundred labelled items there are enough both to judge by and to leave in the
// statistics: items that teach well do so, and those that do harm do not.
func TestGuardOfFewLabelled(t *testing.T) {
	dbkit.LongTest(t)
	for _, c := range []struct {
		what  string
		cfg   synth.Config
		adopt bool
	}{
		{"teaches well", synth.Config{Classes: 24, Noise: 1}, true},
		{"does harm", synth.Config{Classes: 12, Noise: 2, LabelsPerItem: 3}, false},
	} {
		cfg := c.cfg
		cfg.Items, cfg.Dims, cfg.Seed = 1200, []int{24, 16}, 3
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 24}, {Name: "text", Dim: 16}}}
		col, err := d.CreateCollection(ctx, "main", schema)
		if err != nil {
			t.Fatal(err)
		}
		data := synth.Pairs(cfg)
		var items []*db.Item
		for i := range cfg.Items {
			it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": data.Vectors[0][i], "text": data.Vectors[1][i]}}
			for _, l := range data.Labels[i] {
				it.Labels = append(it.Labels, fmt.Sprint(l))
			}
			items = append(items, it)
		}
		putAll(t, col, items[:200])
		dbkit.MustTrain(t, col, db.TrainOptions{Options: fit.Options{Bits: 32}})
		for _, it := range items[200:] {
			it.Labels = nil
		}
		putAll(t, col, items[200:])
		if u := dbkit.MustUpdate(t, col, db.UpdateOptions{}); u.Revised != c.adopt || (u.Adopted.Unlabelled == "modality") != c.adopt || (u.Refused == 1000) == c.adopt {
			t.Errorf("%s: %+v", c.what, u)
		} else {
			t.Log(c.what, u.Reason)
		}
		// Labelled items teach in any case, which is no adoption of the others.
		more := []*db.Item{{Key: "more", Labels: []string{fmt.Sprint(data.Labels[0][0])}, Vectors: items[0].Vectors}}
		putAll(t, col, more)
		u := dbkit.MustUpdate(t, col, db.UpdateOptions{})
		if refused := map[bool]int{false: 1000}[c.adopt]; !u.Revised || u.Adopted != (db.Adoption{Labelled: "labels"}) || u.Refused != refused || u.Skipped != refused {
			t.Errorf("%s: with a labelled item: %+v", c.what, u)
		}
		dbkit.MustClose(t, d)
	}
}
