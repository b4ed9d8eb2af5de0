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
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
)

// A training of an index of vectors finds the centres of cells from a sample, founds an index with
// them, has it take in all rows, and measures what searches find with it. Searches use it from the
// commit that stores what was measured, which drops the index before it. Whatever ends a training
// earlier drops the new index.

// IndexOptions has the fields of db.IndexOptions, which is converted to it.
type IndexOptions struct {
	Recall   float64
	Cells    int
	Seed     uint64
	Progress event.Progress
}

// DefaultRecall is the recall of an index whose options name none.
const DefaultRecall = .99

const (
	sampleOfCell = 24  // vectors of a sample for each cell
	rounds       = 6   // of k-means
	queries      = 256 // that measure the recall
	deepQueries  = 64  // that measure it for the largest k, too, and what searches look into
	foldBlock    = 1 << 14
	lastFold     = 256 // rows that a training may leave to the indexer
)

// The points that are measured: for each k the reaches.
var (
	measuredK     = []int{1, 10, 100}
	measuredReach = []float64{.1, .15, .2, .25, .3, .35, .4, .45, .5, .55, .6, .65, .7, .75, .8, .9, 1}
)

// IndexVectors makes an index of the vectors of modality t.
func (c Collection) IndexVectors(ctx context.Context, t int, opt IndexOptions) (_ *record.VectorIndex, err error) {
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
	d, centres, held, err := c.findCentres(ctx, t, opt)
	if err != nil {
		return nil, err
	}
	d.Report.Seconds = seconds
	took("centres")
	var id uint32
	err = c.Do(ctx, 4*centres.Size()*centres.Count(), func(tx *state.Tx, s *state.CollectionState) error {
		x, err := tx.FoundIndex(s, d, centres)
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
	for total := int64(0); ; {
		left, err := c.DB.FoldIndex(ctx, c.ID, id, work.All(), foldBlock)
		if err != nil {
			return nil, err
		}
		total = max(total, int64(left)+foldBlock)
		if opt.Progress != nil {
			opt.Progress("encode", total-int64(left), total)
		}
		if left < lastFold { // writes may bring as many meanwhile: the indexer takes them in
			break
		}
	}
	took("encode")
	if opt.Progress != nil {
		opt.Progress("measure", 0, int64(len(held)))
	}
	curve, err := c.measure(ctx, t, id, held)
	if err != nil {
		return nil, err
	}
	took("measure")
	var done *record.VectorIndex
	err = c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		x := s.IndexByID(id)
		if x == nil {
			return fault.NotFound("index %d of collection %q, which was being made", id, s.Name)
		}
		if m := s.Modalities[t]; m.Metric != x.Metric {
			return fmt.Errorf("%w: the metric of modality %q of collection %q has been altered while an index was made: make it again", fault.ErrBusy, m.Name, s.Name)
		}
		d := *x.VectorIndex
		d.Curve, d.Complete = curve, true
		done = &d
		return tx.CompleteIndex(s, x, done)
	})
	complete = err == nil
	return done, err
}

// findCentres finds centres from a sample of the vectors of a modality. It returns the descriptor of
// their index, and rows that were left out of the sample.
func (c Collection) findCentres(ctx context.Context, t int, opt IndexOptions) (d *record.VectorIndex, centres *cells.Centres, held []uint32, err error) {
	err = c.Read(func(v *state.View, cv *state.CollectionView) error {
		m := cv.Modalities[t]
		if m.Sparse {
			return fault.Invalid("modality %q of collection %q is sparse: an index of vectors is of dense ones", m.Name, cv.Name)
		}
		rows := roaring.And(cv.Live, cv.Presence[t])
		n := int(rows.GetCardinality())
		if n == 0 {
			return fault.Invalid("no item of collection %q has a vector of modality %q", cv.Name, m.Name)
		}
		count := opt.Cells
		if count == 0 {
			count = int(2 * math.Sqrt(float64(n)))
		}
		count = max(1, min(count, n/8, record.MaxCells/2))
		random := rand.New(rand.NewPCG(opt.Seed, 1))
		all := rows.ToArray()
		var sample []uint32
		held, sample = drawn(random, all, min(queries, n), min(count*sampleOfCell, n))
		d = &record.VectorIndex{
			Version: record.IndexVersion, Modality: t, Dim: m.Dim, Metric: m.Metric, Seed: opt.Seed,
			Created: spaces.Now().Format(time.RFC3339), Recall: opt.Recall,
			Report: &record.IndexReport{Sample: len(sample), Queries: len(held), Items: n},
		}
		g := d.Geometry()
		x, err := cv.Placed(ctx, v.Snap, t, g, work.All(), sample)
		if err != nil {
			return err
		}
		random.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] }) // k-means begins with the first
		x = slices.DeleteFunc(x, func(y []float32) bool { return !cells.HasPlace(y) })
		if len(x) == 0 {
			x = [][]float32{make([]float32, g.Size())}
		}
		if centres, err = cells.Train(ctx, g, x, count, rounds, work.All()); err != nil {
			return err
		}
		slices.Sort(held)
		return nil
	})
	return d, centres, held, err
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

// measure measures how many of the nearest items searches find. Queries are items, which are left
// out of their own answers. What is to be found is what a search finds that looks into all cells, and
// allows for half as much error again as others.
func (c Collection) measure(ctx context.Context, t int, index uint32, held []uint32) ([]record.RecallAt, error) {
	results := make([]measured, len(held))
	err := c.Read(func(v *state.View, cv *state.CollectionView) error {
		tools := search.NewTools(0, 0)
		return work.Parallel(ctx, len(held), func(i int) error {
			m := &measurement{tools: tools, v: v, cv: cv, t: t, index: index, row: held[i], ks: measuredK}
			if m.deep = i%max(1, len(held)/deepQueries) == 0; !m.deep { // rows ascend, and may change on the way
				m.ks = m.ks[:len(m.ks)-1]
			}
			return m.run(ctx, &results[i])
		})
	})
	if err != nil {
		return nil, err
	}
	var curve []record.RecallAt
	for i, k := range measuredK {
		for j, reach := range measuredReach {
			p := record.RecallAt{K: k, Reach: reach}
			var n, sum, squares, deep, probes, entries float64
			for _, r := range results {
				if i < len(r.recall) {
					x := r.recall[i][j]
					n, sum, squares = n+1, sum+x, squares+x*x
				}
				if i < len(r.looked) {
					deep, probes, entries = deep+1, probes+float64(r.looked[i][j].Cells), entries+float64(r.looked[i][j].Entries)
				}
			}
			if n > 1 {
				p.Recall = sum / n
				p.Error = math.Sqrt(max(0, squares/n-p.Recall*p.Recall) / (n - 1))
			}
			if deep > 0 {
				p.Probes, p.Entries = probes/deep, entries/deep
			}
			curve = append(curve, p)
		}
	}
	return curve, nil
}

// A measurement measures what searches find with one query: the vector of a row.
type measurement struct {
	tools *search.Tools
	v     *state.View
	cv    *state.CollectionView
	t     int
	index uint32
	row   uint32
	ks    []int
	deep  bool
}

// measured is what a measurement has found, by k and reach; nothing where there was nothing to ask.
type measured struct {
	recall [][]float64
	looked [][]search.Looked // of a deep one
}

// run fills in r.
func (m *measurement) run(ctx context.Context, r *measured) error {
	modality := m.cv.Modalities[m.t]
	x, found, err := record.ReadVector(m.v.Snap, m.cv.ID, m.row, m.t, modality)
	if err != nil || !found || !m.cv.Live.Contains(m.row) || modality.Metric.OrCosine() == record.Cosine && cells.IsZero(x.Value) {
		return err // its item has gone meanwhile, or has no direction
	}
	known := map[uint32]float32{}
	similarities := func(k int, reach float64, sure float32) ([]float32, search.Looked, error) {
		q := search.Query{From: modality.Name, To: modality.Name, Vector: x.Value, K: k + 1, Forced: &search.ByCells{Index: m.index, Reach: reach, Sure: sure, Known: known}}
		return search.Similarities(ctx, m.tools, m.v, m.cv, q, m.row)
	}
	all, _, err := similarities(m.ks[len(m.ks)-1], math.Inf(1), 1.5*search.Sure)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, k := range m.ks {
		truth := all[:min(k, len(all))]
		recall, looked := make([]float64, len(measuredReach)), make([]search.Looked, len(measuredReach))
		for j, reach := range measuredReach {
			if j > 0 && recall[j-1] == 1 && !m.deep { // with more it is not less
				recall[j] = 1
				continue
			}
			got, l, err := similarities(k, reach, search.Sure)
			if err != nil {
				return err
			}
			n := 0
			for n < min(len(truth), len(got)) && got[n] >= truth[len(truth)-1] {
				n++
			}
			recall[j], looked[j] = float64(n)/float64(len(truth)), l
		}
		r.recall = append(r.recall, recall)
		if m.deep {
			r.looked = append(r.looked, looked)
		}
	}
	return nil
}
