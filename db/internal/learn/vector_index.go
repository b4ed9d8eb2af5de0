package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
)

// A training of an index of vectors founds an index, finds the centres of its cells from a sample, has it
// take in all rows, and measures what searches find with it. Searches use it from the commit that stores
// what was measured, which drops the index before it. Whatever ends a training earlier drops the new index.

// IndexOptions has the fields of db.IndexOptions, and two more.
type IndexOptions struct {
	Recall   float64
	Cells    int
	Seed     uint64
	Progress event.Progress

	Workers  int    // goroutines
	Replaces uint32 // the index that is made anew: nothing is to be made if that has gone; 0: whichever there is
}

// DefaultRecall is the recall of an index whose options name none.
const DefaultRecall = .99

const (
	sampleOfCell = 24 // vectors of a sample for each cell
	rounds       = 6  // of k-means
	foldBlock    = 1 << 14
)

// IndexVectors makes an index of the vectors of modality t for a caller of the database.
func (c Collection) IndexVectors(ctx context.Context, t int, opt IndexOptions) (*record.VectorIndex, error) {
	defer c.in.giveWay()()
	opt.Workers = work.All()
	return c.indexVectors(ctx, t, opt)
}

func (c Collection) indexVectors(ctx context.Context, t int, opt IndexOptions) (_ *record.VectorIndex, err error) {
	ctx, stop := c.untilDropped(ctx)
	defer stop()
	defer func() { err = c.dropped(ctx, err) }()
	opt.Recall = cmp.Or(opt.Recall, DefaultRecall)
	start := time.Now()
	seconds := map[string]float64{}
	took := func(what string) {
		seconds[what] = time.Since(start).Seconds()
		seconds["total"] += seconds[what]
		start = time.Now()
	}
	var id uint32
	err = c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		m := &s.Modalities[t]
		if m.Sparse {
			return fault.Invalid("modality %q of collection %q is sparse: an index of vectors is of dense ones", m.Name, s.Name)
		}
		if s.Presence[t].B.IsEmpty() {
			return fault.Invalid("no item of collection %q has a vector of modality %q", s.Name, m.Name)
		}
		x, err := tx.FoundIndex(s, &record.VectorIndex{
			Modality: t, Dim: m.Dim, Metric: m.Metric, Seed: opt.Seed,
			Created: spaces.Now().Format(time.RFC3339), Recall: opt.Recall, Report: new(record.IndexReport),
		})
		if err == nil {
			id = x.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	complete := false
	defer func() {
		if !complete { // also if a callback panics
			ctx := context.WithoutCancel(ctx)
			err := c.Free(ctx, func(tx *state.Tx, s *state.CollectionState) error {
				if x := s.IndexByID(id); x != nil {
					return tx.DropIndex(s, x)
				}
				return nil
			})
			if err != nil { // of a disk that is full, say: it is dropped later
				_ = c.Look(ctx, func(s *state.CollectionState) error {
					s.LeaveIndex(id)
					return nil
				})
			}
		}
	}()
	found, err := c.findCells(ctx, id, opt)
	if err != nil {
		return nil, err
	}
	took("centres")
	found.report.Seconds = seconds
	err = c.Do(ctx, 4*found.centres.Size()*found.centres.Count(), func(tx *state.Tx, s *state.CollectionState) error {
		x := s.IndexByID(id)
		if x == nil {
			return gone(s.Name, id)
		}
		return tx.SetCells(s, x, found.centres, found.until, &found.report)
	})
	if err != nil {
		return nil, err
	}
	for total := int64(0); ; {
		left, err := c.DB.TakeIn(ctx, c.ID, id, opt.Workers, foldBlock)
		if err != nil {
			return nil, err
		}
		total = max(total, int64(left)+foldBlock)
		if opt.Progress != nil {
			opt.Progress("encode", total-int64(left), total)
		}
		if left == 0 {
			break
		}
	}
	err = c.Do(ctx, 4*found.centres.Size()*found.centres.Count(), func(tx *state.Tx, s *state.CollectionState) error {
		x := s.IndexByID(id)
		if x == nil {
			return gone(c.Name, id)
		}
		return tx.FitIndex(s, x)
	})
	if err != nil {
		return nil, err
	}
	took("encode")
	if opt.Progress != nil {
		opt.Progress("measure", 0, int64(len(found.held)))
	}
	curve, err := c.measureIndex(ctx, t, id, found.held, opt.Workers)
	if err != nil {
		return nil, err
	}
	took("measure")
	var done *record.VectorIndex
	err = c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		x := s.IndexByID(id)
		if x == nil {
			return gone(s.Name, id)
		}
		if opt.Replaces != 0 && s.IndexByID(opt.Replaces) == nil {
			return fault.NotFound("index %d of collection %q, which was being made anew", opt.Replaces, s.Name)
		}
		if m := s.Modalities[t]; m.Metric != x.Metric {
			return fmt.Errorf("%w: the metric of modality %q of collection %q has been altered while an index was made: make it again", fault.ErrBusy, m.Name, s.Name)
		}
		d := *x.VectorIndex
		d.Curve, d.Complete, d.Churn = curve, true, 0
		done = &d
		return tx.CompleteIndex(s, x, done)
	})
	complete = err == nil
	return done, err
}

func gone(collection string, id uint32) error {
	return fault.NotFound("index %d of collection %q, which was being made", id, collection)
}

// cellsFound are the cells of a new index.
type cellsFound struct {
	centres *cells.Centres
	until   uint64   // the rows below it were there
	held    []uint32 // rows that were left out of the sample
	report  record.IndexReport
}

// findCells finds the cells of an index that has been founded, from a sample of the vectors.
func (c Collection) findCells(ctx context.Context, id uint32, opt IndexOptions) (found cellsFound, err error) {
	err = c.look(func(v *state.View, cv *state.CollectionView) error {
		d := cv.IndexNumber(id)
		if d == nil {
			return gone(cv.Name, id)
		}
		t := d.Modality
		rows := roaring.And(cv.Live, cv.Presence[t])
		n := int(rows.GetCardinality())
		if n == 0 {
			return gone(cv.Name, id) // the last vectors have gone meanwhile
		}
		count := opt.Cells
		if count == 0 {
			count = int(2 * math.Sqrt(float64(n)))
		}
		count = max(1, min(count, n/8, record.MaxCells/2))
		random := rand.New(rand.NewPCG(opt.Seed, 1))
		held, sample := drawn(random, rows.ToArray(), queriesOf(n, d.Geometry().Size()), min(count*sampleOfCell, n))
		found.until, found.held = cv.NextRow, held
		found.report = record.IndexReport{Sample: len(sample), Queries: len(held), Items: n}
		g := d.Geometry()
		x, err := cv.Placed(ctx, v.Snap, t, g, opt.Workers, sample)
		if err != nil {
			return err
		}
		random.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] }) // k-means begins with the first
		x = slices.DeleteFunc(x, func(y []float32) bool { return !cells.HasPlace(y) })
		if len(x) == 0 {
			x = [][]float32{make([]float32, g.Size())}
		}
		found.centres, err = cells.Train(ctx, g, x, count, rounds, opt.Workers)
		slices.Sort(found.held)
		return err
	})
	return found, err
}

// drawn draws rows at random: some first, and others that ascend. Where there are too few for both,
// the latter have some of the first.
func drawn(random *rand.Rand, all []uint32, n, m int) (first, others []uint32) {
	for i := range min(n+m, len(all)) {
		j := i + random.IntN(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	first, others = slices.Clone(all[:n]), slices.Clone(all[max(0, min(n, len(all)-m)):][:m])
	slices.Sort(others)
	return first, others
}
