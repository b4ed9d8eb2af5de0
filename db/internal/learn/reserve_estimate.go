package learn

import (
	"cmp"
	"math"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Trainings and reindexings estimate how much they will write before they begin, so that none
// fails on a full disk after an hour. The estimates are of uncompressed bytes.

// trainingBytes estimates the bytes that a training stores: the model, its statistics, and the
// lessons and codes of all items. It returns 0 for impossible options, which fit.Train
// refuses.
func trainingBytes(cv *state.CollectionView, opt TrainOptions) int64 {
	bits := cmp.Or(opt.Bits, fit.DefaultBits)
	if codec.CheckBits(bits) != nil || opt.Anchors < 0 {
		return 0
	}
	sum := 0.0
	if opt.Method.LabelFree() {
		bits = cmp.Or(opt.Bits, fit.DefaultLabelFreeBits)
		for _, m := range cv.Modalities {
			sum += 8 * float64(bits+1) * float64(m.Dim)
		}
		return foundedBytes(sum, cv.Items, 0, state.CodesBytes(bits, true))
	}
	for _, m := range cv.Modalities {
		// k features of a modality: one an anchor. A training takes no more anchors than items.
		k := float64(min(cmp.Or(opt.Anchors, fit.DefaultAnchorsOf(cv.Items)), cv.Items))
		// k anchors in float32; half of the symmetric A, B and P in float64.
		sum += 4*k*float64(m.Dim) + 4*k*k + 2*8*k*float64(bits)
		// Half of the sums of pairs of labels, where there are no more labels than bits.
		c := float64(min(len(cv.Names), bits))
		sum += 4 * c * c
	}
	return foundedBytes(sum, cv.Items, codec.Bytes(bits)+4, state.CodesBytes(bits, true))
}

// foundedBytes estimates the bytes of a new space. model is the size of its model and
// statistics; lesson and codes are bytes an item. The foundation is a commit, which is written
// to the log and to a table; codes go into tables only.
func foundedBytes(model float64, items, lesson, codes int) int64 {
	return clampedBytes(store.WrittenTwice*(model+float64(items)*float64(lesson)) + float64(items)*float64(codes))
}

// reindexBytes estimates the bytes that a reindexing of the space of cv stores: the new space
// has a model, statistics, lessons and codes as large as the old one has. It returns 0
// where there is no model.
func reindexBytes(cv *state.CollectionView) int64 {
	sp := cv.Space
	if sp == nil || sp.Learned == nil {
		return 0 // there is nothing to reindex
	}
	lesson := 0
	if sp.HasStatistics() {
		lesson = codec.Bytes(sp.Bits) + 4
	}
	return foundedBytes(float64(sp.Model.Bytes)+float64(sp.Statistics.Bytes), cv.Items, lesson, state.CodesBytes(sp.Bits, true))
}

// clampedBytes converts an estimate to bytes, far below overflow.
func clampedBytes(x float64) int64 { return int64(min(x, math.MaxInt64/4)) }

// RoomToTrain returns an error, ErrDiskFull as a rule, if the disk has no room for the results
// of a training with these options.
func (c Collection) RoomToTrain(opt TrainOptions) error {
	return c.Read(func(_ *state.View, cv *state.CollectionView) error {
		return c.DB.Engine.Admit(trainingBytes(cv, opt), false)
	})
}
