package learn

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// Data that changes moves away from what a model was trained on, and searches get worse without an
// error. Drift shows it, by a sample of items, for each modality that the model knows:
//
//	residual  the sum of |g - z|^2 over labelled items, as a share of that of |g|^2: g is what
//	          the labels teach, z the projection; 0 where projections give it, 1 where they
//	          tell nothing
//	offset    for a model without labels, |mean of z|^2 as a share of the mean of |z|^2: 0 where items
//	          have the mean of the training, 1 where all have the same projection
//	far       items whose projection is zero: nothing that was learned is near them
//	balance   whether bits are as often set as not
//	MAP       how well labelled items find each other (drift_retrieval.go)
//	nearest   distances from the code of the projection to the nearest code of another item
//
// TestDriftIsThatOfALinearScan of db compares all of it with the definition.

// ComparedDrift returns the drifts for Stats to show: the latest, and before it the one to
// compare it with. The items of a training are nearer to the model than any others, so the
// latest is compared with the first drift of later items; if it is the first itself, with the
// drift of the training. There are two, one, or none. revisions are ascending.
func ComparedDrift(revisions []*spaces.RevisionDescriptor) []report.RevisionDrift {
	var measured []report.RevisionDrift
	for _, r := range revisions {
		if r.Drift != nil {
			measured = append(measured, report.RevisionDrift{Revision: r.Revision, Drift: *r.Drift})
		}
	}
	if n := len(measured); n > 2 {
		first := measured[0]
		if first.Trained {
			first = measured[1]
		}
		measured = []report.RevisionDrift{first, measured[n-1]}
	}
	return measured
}

const (
	sampledItems = 256 // the largest sample
	// The sample shrinks with the number of distinct codes, down to driftLeast items, so that
	// at most driftCompared pairs of a query and a code are compared, in some 20 ms.
	driftLeast    = 64
	driftCompared = 32 << 20
)

// MeasureDrift measures how far items are from the model of the space of cv. It reads a sample
// spread evenly over rows, and leaves out rows without an item. ErrBusy: the codes of the space
// are not in memory yet. It returns nil if nothing can be measured: the space has no model, or
// no item of the sample has a modality that the model knows. It takes some tens of
// milliseconds, on half of the processors.
func MeasureDrift(ctx context.Context, v *state.View, cv *state.CollectionView, rows *roaring.Bitmap) (*report.Drift, error) {
	if cv.Space == nil || cv.Space.Learned == nil {
		return nil, nil
	}
	m := newDriftMeasure(cv)
	for run := range slices.Chunk(evenly(rows, m.sample()).ToArray(), spaces.EncodeRun) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.add(v, run); err != nil {
			return nil, err
		}
	}
	return m.drift(ctx)
}

// A driftMeasure sums up the items of one MeasureDrift, in its goroutine.
type driftMeasure struct {
	cv         *state.CollectionView // the collection as seen in the space
	items      int                   // the items with a modality of the model so far
	modalities []modalityMeasure     // by modality of the model
}

// A modalityMeasure sums up the projections of the sample by one modality.
type modalityMeasure struct {
	report.ModalityDrift // counts the items; the rest is filled in at the end

	t       int              // the position of the modality in the collection
	missed  float64          // the sum of |g - z|^2 over the labelled items, see report.ModalityDrift
	learned float64          // the sum of |g|^2 over them
	sum     []float64        // the sum of the projections; nil unless the model was learned without labels
	squares float64          // the sum of |z|^2, likewise
	bits    bitCounts        // of codes
	codes   codec.Codes      // the codes of the projections, of the items that are not far
	rows    []uint32         // the rows of codes
	finds   retrievalMeasure // the labelled items that are not far
}

// newDriftMeasure returns a measure in the space of cv, without items.
func newDriftMeasure(cv *state.CollectionView) *driftMeasure {
	m := &driftMeasure{cv: cv}
	for _, t := range cv.Space.Positions {
		of := modalityMeasure{t: t, bits: newBitCounts(cv.Space.Bits), codes: codec.NewCodes(cv.Space.Bits, 0), finds: newRetrievalMeasure(cv.Space.Bits)}
		if !cv.Space.HasStatistics() {
			of.sum = make([]float64, cv.Space.Bits)
		}
		m.modalities = append(m.modalities, of)
	}
	return m
}

// sample returns the number of items to measure, from driftLeast to sampledItems.
func (m *driftMeasure) sample() int {
	codes := 1 + len(m.modalities)*m.cv.Codes.Codes
	return min(max(driftCompared/codes, driftLeast), sampledItems)
}

// add reads the items of at most spaces.EncodeRun rows, projects them, and adds them up.
func (m *driftMeasure) add(v *state.View, rows []uint32) error {
	cv := m.cv
	sp := cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	var vectors [][]model.Vector
	var labels [][]uint32
	var read []uint32
	for _, row := range rows {
		// The sample is of rows, and some may have been deleted since they were chosen.
		if !cv.Live.Contains(row) {
			continue
		}
		rec, err := record.ReadItem(v.Snap, cv.ID, row)
		if err != nil {
			return err
		}
		x := make([]model.Vector, len(cv.Modalities))
		found := false
		for _, t := range sp.Positions {
			has := false
			if x[t], has, err = record.ReadVector(v.Snap, cv.ID, row, t, cv.Modalities[t]); err != nil {
				return err
			}
			found = found || has
		}
		if found {
			vectors, labels, read = append(vectors, x), append(labels, rec.Labels), append(read, row)
		}
	}
	if at, err := e.Project(vectors); err != nil {
		return fmt.Errorf("fddhdb: measure row %d: %w", read[at], err)
	}
	h, g := codec.NewCode(sp.Bits), make([]float64, sp.Bits)
	for i, row := range read {
		m.items++
		labelled := sp.Learned.LabelCode(h, labels[i]) && sp.Learned.LabelAim(g, labels[i])
		for t := range m.modalities {
			// The projection P_t phi_t(x), a number for each bit; nil: the item lacks the modality.
			z := e.Parts[i*len(m.modalities)+t]
			if z == nil {
				continue
			}
			of := &m.modalities[t]
			of.Items++
			if labelled {
				of.Labelled++
				for j, x := range z {
					of.missed += (g[j] - x) * (g[j] - x)
					of.learned += g[j] * g[j]
				}
			}
			if spaces.IsZero(z) { // too far from all that was learned to have a direction
				of.Far++
				continue
			}
			for j := range of.sum {
				of.sum[j] += z[j]
				of.squares += z[j] * z[j]
			}
			code := codec.PackSigns(codec.NewCode(sp.Bits), z)
			of.bits.add(code, 1)
			of.codes.Append(code)
			of.rows = append(of.rows, row)
			if labelled {
				of.finds.add(code, h, labels[i])
			}
		}
	}
	return nil
}

// drift returns the drift of the items that were added, nil if there are none. It searches the
// nearest code of each.
func (m *driftMeasure) drift(ctx context.Context) (*report.Drift, error) {
	if m.items == 0 {
		return nil, nil
	}
	d := &report.Drift{Items: m.items, Modalities: map[string]report.ModalityDrift{}}
	for i := range m.modalities {
		of := &m.modalities[i]
		if of.Items == 0 {
			continue
		}
		if of.learned > 0 {
			// model.Model.ResidualOf, for this sample.
			residual := of.missed / of.learned
			of.Residual = &residual
		}
		if n := len(of.rows); of.sum != nil && n > 0 {
			offset := 0.0
			for _, s := range of.sum {
				offset += s / float64(n) * s / of.squares
			}
			of.Offset = &offset
		}
		spaces.SetBalance(&of.ModalityDrift, of.bits.balance())
		var err error
		if of.MAP, err = of.finds.mean(ctx); err != nil {
			return nil, err
		}
		counts := make([]int64, m.cv.Space.Bits+1)
		if err := of.search(ctx, &m.cv.Codes, counts); err != nil {
			return nil, err
		}
		of.Nearest = state.DistancesOf(counts)
		d.Modalities[m.cv.Modalities[of.t].Name] = of.ModalityDrift
	}
	return d, nil
}

// search finds, for each code, the nearest stored code that another item has, and
// counts the distances: counts[d] is the number of queries at distance d bits.
func (m *modalityMeasure) search(ctx context.Context, set *state.CodeSetView, counts []int64) error {
	if set.Table == nil {
		return fmt.Errorf("%w: the codes of space %d are not in memory yet", fault.ErrBusy, set.Space)
	}
	// By code. Each goroutine writes the part of its group.
	nearest := make([]int, len(m.rows))
	groups := (len(m.rows) + search.MaxShared - 1) / search.MaxShared
	err := work.ParallelBy(ctx, work.Background(), 1, groups, func(g int) error {
		from, to := g*search.MaxShared, min((g+1)*search.MaxShared, len(m.rows))
		return m.searchGroup(ctx, set.Table, nearest, from, to)
	})
	for _, d := range nearest {
		if err == nil && d >= 0 {
			counts[d]++
		}
	}
	return err
}

// searchGroup searches for the codes [from, to) together and writes their distances to nearest;
// -1 means that no other item has a code.
func (m *modalityMeasure) searchGroup(ctx context.Context, t *mih.Table, nearest []int, from, to int) error {
	var queries []*mih.Query
	var k []int
	for i := from; i < to; i++ {
		// The nearest two items: at least one of them is not the query itself.
		queries, k = append(queries, &mih.Query{Code: m.codes.At(i)}), append(k, 2)
	}
	found, err := t.NearestEach(ctx, queries, k)
	if err != nil {
		return err
	}
	for i, near := range found {
		own, has := t.CodeOf(m.rows[from+i])
		// A code that only the query has is no hit. A labelled item's own code is the one of
		// its labels, at any distance from the query.
		alone := has && t.Cardinality(own) == 1
		nearest[from+i] = -1
		for _, x := range near {
			if !alone || x.Position() != own {
				nearest[from+i] = x.Distance()
				break
			}
		}
	}
	return nil
}
