package db

import (
	"context"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// IndexOptions are the options of IndexVectors. The zero value is for a collection with one modality.
type IndexOptions struct {
	// Modality is a dense modality. It may be empty if the collection has one modality.
	Modality string `json:"modality,omitempty"`

	// Recall is the recall of searches without Query.Recall: above 0, up to 1. 0 means .99.
	Recall float64 `json:"recall,omitempty"`

	// Cells is about the number of cells; there may be an eighth more. 0 means twice the square root of the
	// number of items with the modality.
	Cells int `json:"cells,omitempty"`

	// Seed is of the random choices; the same seed gives the same index of the same items.
	Seed uint64 `json:"seed,omitempty"`

	// Progress hears three stages: "centres", without a total; "encode", in items; "measure", in points of
	// the curve of recall.
	Progress event.Progress `json:"-"`
}

// IndexVectors makes an index of the vectors of a modality. Answers by vectors then take a fraction of the
// time and may lack items, as Query.Recall says. It needs no labels. k-means finds centres in a sample; each
// vector goes into the cell of a near centre, with a code of a bit a dimension. Then IndexVectors searches
// with some items as queries, and measures how many of their nearest it finds in how many cells.
//
// New and changed items are compared with every query until there are some hundred of them; then a goroutine
// adds them to the index. Items unlike the indexed ones fit no cell (VectorIndex.Loose) and are compared with
// every query. The index is made again, in the background on half of the processors, when a quarter of its
// vectors have come, changed or gone, or one in 256 is loose, plus some hundred. Searches use the old index
// until the new one is complete; if half of the vectors have changed before that, they compare all vectors.
// Close adds the rest of the items, and makes a small index again if that takes some seconds at most. Another
// call of IndexVectors replaces the index when the new one is complete.
//
// It costs some 30 microseconds of a processor an item of d = 384 dimensions, some seconds to measure, d/8 +
// 16 bytes an item on disk, some 10 more in memory, and at first 100 d bytes a cell. Reads and writes go on;
// each block of 16,384 items makes writers wait for some tens of milliseconds. After an error, or the end of
// the context, everything is as before. Errors: ErrInvalid for a sparse modality, or if no item has the
// modality; ErrBusy while another index of it is being made, or if its metric changes meanwhile; ErrReadOnly.
func (c *Collection) IndexVectors(ctx context.Context, opt IndexOptions) (*report.VectorIndex, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !(opt.Recall >= 0 && opt.Recall <= 1) {
		return nil, fault.Invalid("recall %v: above 0, up to 1, are possible; 0 means %v", opt.Recall,
			learn.DefaultRecall)
	}
	if opt.Cells < 0 {
		return nil, fault.Invalid("%d cells", opt.Cells)
	}
	t := 0
	err = in.Read(func(_ *state.View, cv *state.CollectionView) (err error) {
		t, err = indexedModality(cv.Descriptor, opt.Modality)
		return err
	})
	if err != nil {
		return nil, err
	}
	op := in.DB.Signals.Begin(ctx, event.OpVectorIndex, in.Name)
	defer op.Abandon()
	x, err := in.IndexVectors(ctx, t, learn.IndexOptions{Recall: opt.Recall, Cells: opt.Cells, Seed: opt.Seed,
		Progress: op.Telling(opt.Progress)})
	var e event.Event
	var out *report.VectorIndex
	if err == nil {
		_ = in.Read(func(_ *state.View, cv *state.CollectionView) error {
			if v := cv.IndexNumber(x.ID); v != nil {
				out = v.Report(cv)
			}
			return nil
		})
		e = event.Event{Items: int64(x.Report.Items), Attrs: []slog.Attr{slog.Int("index", int(x.ID))}}
	}
	op.End(err, e)
	return out, err
}

// indexedModality returns the modality with a name, or for an empty name the only modality.
func indexedModality(d *record.Descriptor, name string) (int, error) {
	switch {
	case d.CodesOnly():
		return 0, fault.Invalid("the items of collection %q bring codes: there are no vectors to index",
			d.Name)
	case name == "" && len(d.Modalities) == 1:
		return 0, nil
	case name == "":
		return 0, fault.Invalid("collection %q has the modalities %s: name the one whose vectors are meant",
			d.Name, record.Names(d.Modalities))
	}
	return d.ModalityOf(name)
}

// DropVectorIndex deletes the index of the vectors of a modality, whose name may be empty if there is one
// index. Answers by vectors then compare all vectors. Without such an index the error is ErrNotFound.
func (c *Collection) DropVectorIndex(ctx context.Context, modality string) error {
	in, leave, err := c.learning(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return in.Free(ctx, func(tx *state.Tx, s *state.CollectionState) error {
		t, err := indexedModality(s.Descriptor, modality)
		if err != nil {
			return err
		}
		found := false
		for _, x := range slices.Clone(s.Indexes) {
			if x.Modality == t && x.Complete {
				if err := tx.DropIndex(s, x); err != nil {
					return err
				}
				found = true
			}
		}
		if !found {
			return fault.NotFound("index of the vectors of modality %q of collection %q",
				s.Modalities[t].Name, s.Name)
		}
		return nil
	})
}
