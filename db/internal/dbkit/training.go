package dbkit

import (
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// MustTrain trains, and makes the new space the active one.
func MustTrain(t testing.TB, c *db.Collection, opt db.TrainOptions) *db.Training {
	t.Helper()
	opt.Activate = true
	tr, err := c.Train(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// MustUpdate lets a space learn from what has come since.
func MustUpdate(t testing.TB, c *db.Collection, opt db.UpdateOptions) *db.Update {
	t.Helper()
	u, err := c.Update(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TinyTraining is one whose space is small: what follows from it is checked often.
func TinyTraining(seed uint64) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits: 16, Anchors: 6, Seed: seed, Fusion: fit.Fusion{Rule: fit.FusionSum},
		Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}, Sweeps: 1,
	}}
}
