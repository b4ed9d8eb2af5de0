package learn

import (
	"context"
	"encoding/json"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// ImportOptions are what ImportModel can be told.
type ImportOptions struct {
	Activate bool           // make the new space the active one when it is complete; the first always becomes it
	Progress event.Progress // in the stage "encode", in items; nil: none
	Space    uint32         // number of the new space; 0: the next one
}

// ImportModel founds a space with a model from elsewhere, and gives all items their codes there. The labels
// of the file have ids in the collection. No item has taught the model here, so that its statistics are those
// of none, and all items wait to teach: an update learns from them alone. Errors, and what is left after one,
// are those of Train.
func (c Collection) ImportModel(ctx context.Context, f *fit.File, opt ImportOptions) (space uint32, t *report.Training, err error) {
	return c.newSpace(ctx, opt.Progress, func(_ context.Context, _ *state.View, cv *state.CollectionView) (*Foundation, *report.Training, error) {
		found, err := c.imported(cv, f, opt.Activate)
		if err == nil {
			found.number = opt.Space
		}
		t := &report.Training{Report: *f.Report()}
		t.Report.Seconds = map[string]float64{} // of here, which newSpace adds
		return found, t, err
	})
}

// imported returns the foundation of a space with the model of a file.
func (c Collection) imported(cv *state.CollectionView, file *fit.File, activate bool) (*Foundation, error) {
	m, err := modelOf(cv, file)
	if err != nil {
		return nil, err
	}
	positions, err := cv.Match(m)
	if err != nil {
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	f := &Foundation{activate: activate, pending: roaring.New(), before: cv.NextRow}
	f.space = spaces.New(spaces.SpaceDescriptor{Bits: m.Bits()}, m, positions)
	if f.model, err = m.MarshalBinary(); err != nil {
		return nil, err
	}
	if f.report, err = json.Marshal(file.Report()); err != nil {
		return nil, err
	}
	if f.space.HasStatistics() {
		f.pending = record.UnionOf(cv.Presence, positions)
		if f.statistics, err = model.NewStatistics(m).MarshalBinary(); err != nil {
			return nil, err
		}
	}
	// Before the work, and not after an hour of it. All items may teach, by and by.
	codes := state.CodesBytes(m.Bits(), true)
	return f, c.DB.Engine.Admit(foundedBytes(float64(f.bytes()), cv.Items, 0, codes), false)
}
