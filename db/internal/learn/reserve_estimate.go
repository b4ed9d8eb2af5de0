package learn

import (
	"cmp"
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/model"
)

// What long work will write is estimated before it begins, so that it does not end for
// want of space after an hour. The estimates are those of what is stored, uncompressed.

// trainingBytes estimates what a training stores: the model, its statistics, what the
// items have taught and their codes. Options that are impossible are left to the training.
func trainingBytes(cv *state.CollectionView, opt TrainOptions) int64 {
	bits := cmp.Or(opt.Bits, model.DefaultBits)
	if codec.CheckBits(bits) != nil || opt.Anchors < 0 {
		return 0
	}
	targets, sum := 1, 0.0
	if opt.Views == model.ViewsTarget {
		targets = len(cv.Modalities)
	}
	for _, m := range cv.Modalities {
		k := float64(min(cmp.Or(opt.Anchors, model.DefaultAnchorsOf(cv.Items)), cv.Items))
		sum += 4*k*float64(m.Dim) + 4*k*k + 2*8*k*float64(bits)
	}
	lesson := targets*codec.Bytes(bits) + 4
	return foundedBytes(sum, cv.Items, lesson, state.CodesBytes(bits, targets, true))
}

// foundedBytes estimates what a new space takes: its foundation is one commit, and codes go
// into tables.
func foundedBytes(model float64, items, lesson, codes int) int64 {
	return clampedBytes(store.WrittenTwice*(model+float64(items)*float64(lesson)) + float64(items)*float64(codes))
}

// reindexBytes estimates what a reindexing stores: what the space cv looks at has.
func reindexBytes(cv *state.CollectionView) int64 {
	sp := cv.Space
	if sp == nil || sp.Learned == nil {
		return 0 // there is nothing to reindex
	}
	lesson := len(sp.Targets)*codec.Bytes(sp.Bits) + 4
	return foundedBytes(float64(sp.Model.Bytes)+float64(sp.Statistics.Bytes), cv.Items, lesson, state.CodesBytes(sp.Bits, len(sp.Targets), true))
}

func clampedBytes(x float64) int64 { return int64(min(x, math.MaxInt64/4)) }

// RoomToTrain refuses a training for whose results there is no room on the disk.
func (c Collection) RoomToTrain(opt TrainOptions) error {
	return c.Read(func(_ *state.View, cv *state.CollectionView) error {
		return c.DB.Engine.Admit(trainingBytes(cv, opt), false)
	})
}
