package db

import (
	"testing"

	"github.com/fddhdb/fddhdb/model"
)

// mustTrain trains, and makes the new space the active one.
func mustTrain(t testing.TB, c *Collection, opt TrainOptions) *Training {
	t.Helper()
	opt.Activate = true
	tr, err := c.Train(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func mustUpdate(t testing.TB, c *Collection, opt UpdateOptions) *Update {
	t.Helper()
	u, err := c.Update(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// tinyTraining is one whose space is small: what follows from it is checked often.
func tinyTraining(seed uint64, views model.Views) TrainOptions {
	return TrainOptions{Options: model.Options{
		Bits: 16, Anchors: 6, Seed: seed, Views: views, Fusion: model.Fusion{Rule: model.FusionSum},
		Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}, Sweeps: 1,
	}}
}

var viewsTraining = TrainOptions{Options: model.Options{Bits: 32, Anchors: 30, Seed: 1, Views: model.ViewsTarget, Fusion: model.Fusion{Rule: model.FusionTarget}}}
