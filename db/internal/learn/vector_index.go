package learn

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// A training of an index of vectors installs an index, finds the centres of its cells from a sample, adds all
// rows, and measures the recall of searches. The commit that stores the measurements drops the old index, and
// searches use the new one from then on. A training that ends early drops the new one.

// IndexOptions has the fields of db.IndexOptions, and two more.
type IndexOptions struct {
	Recall   float64
	Cells    int
	Seed     uint64
	Progress event.Progress

	Workers  int    // goroutines
	Replaces uint32 // the index to make again, unless it has gone; 0: whichever there is
}

// DefaultRecall is the recall of an index whose options name none.
const DefaultRecall = .99

const (
	sampleOfCell = 24 // vectors of a sample for each cell
	rounds       = 6  // of k-means
	takeInBlock  = 1 << 14
)

// IndexVectors makes an index of the vectors of modality t for a caller of the database.
func (c Collection) IndexVectors(ctx context.Context, t int, opt IndexOptions) (*record.VectorIndex, error) {
	defer c.in.giveWay()()
	opt.Workers = work.All()
	return c.indexVectors(ctx, t, opt)
}

func (c Collection) indexVectors(ctx context.Context, t int,
	opt IndexOptions) (_ *record.VectorIndex, err error) {
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
		x, err := tx.AddIndex(s, &record.VectorIndex{
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
		if !complete { // even if a callback panics
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
	tell := func(stage string, done, total int64) {
		if opt.Progress != nil {
			opt.Progress(stage, done, total)
		}
	}
	tell("centres", 0, 0)
	found, err := c.findCells(ctx, id, opt)
	if err != nil {
		return nil, err
	}
	took("centres")
	found.report.Seconds = seconds
	err = c.Do(ctx, 4*found.centres.Size()*found.centres.Count(),
		func(tx *state.Tx, s *state.CollectionState) error {
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
		left, err := c.DB.TakeIn(ctx, c.ID, id, opt.Workers, takeInBlock)
		if err != nil {
			return nil, err
		}
		total = max(total, int64(left)+takeInBlock)
		tell("encode", total-int64(left), total)
		if left == 0 {
			break
		}
	}
	err = c.Do(ctx, 4*found.centres.Size()*found.centres.Count(),
		func(tx *state.Tx, s *state.CollectionState) error {
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
	curve, err := c.measureIndex(ctx, t, id, found.held, opt.Workers, tell)
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
			return fault.NotFound("index %d of collection %q, which was being made again", opt.Replaces,
				s.Name)
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

// findCells finds the cells of an index that has been installed, from a sample of the vectors.
func (c Collection) findCells(ctx context.Context, id uint32,
	opt IndexOptions) (found cellsFound, err error) {
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
		held, sample := drawn(random, rows.ToArray(), queriesOf(n, d.Geometry().Size()),
			min(count*sampleOfCell, n))
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

// Recall is measured with items as queries, by comparison with all vectors, one by one, by the metric. An
// item is left out of the answers to its own vector.

// The measured points: for each k the reaches, up to the first with full recall where none before was ample.
// Searches take the least sufficient one, and most take one from .5 to 1.
var (
	measuredK     = []int{1, 10, 100}
	measuredReach = []float64{.1, .2, .3, .4, .5, .55, .6, .65, .7, .75, .8, .85, .9, 1, 1.2, 1.5}
)

// Queries is the number of queries that measure a reach. For k = 1 a query finds its neighbor or not, which
// says less, and by dot queries differ more: there queriesOf returns the number. Tests take fewer.
var Queries = 512

// queriesOf returns how many queries measure an index of n vectors of so many coordinates: four times
// Queries, or as many as can be compared with all vectors in some seconds, but not below Queries.
func queriesOf(n, size int) int {
	const most = 2e10 // products of two coordinates
	more := min(4, max(1, most/float64(Queries)/float64(n)/float64(size)))
	return min(int(more*float64(Queries)), n)
}

// The first Queries suffice to judge a reach if their mean recall is below enough. They also suffice for the
// reaches beyond the first one whose recall is ample, in the mean and in the worst part: there only the cost
// of a larger reach is of interest.
const (
	enough = .75
	ample  = .999
)

// A probe is one query of a measurement.
type probe struct {
	row      uint32
	comparer *search.Comparer
	padded   []float32 // its vector, for cells.Product
	k        int       // how many of the nearest are found

	mu      sync.Mutex
	nearest []neighbor // the nearest others, the nearest first
	// similarities of rows, for one k: of the nearest, and of what searches have read
	known map[uint32]float32

	recall float64 // of the last search
	looked search.Looked
}

// A neighbor is a row and its similarity to a probe.
type neighbor struct {
	similarity float32
	row        uint32
}

// beyond is the number of extra neighbors to find. If the last one is farther than the neighbors that count,
// no search of a measurement has to read a vector.
const beyond = 28

// measureIndex measures an index with the vectors of modality t of some rows. It tells how many points are
// measured.
func (c Collection) measureIndex(ctx context.Context, t int, index uint32, rows []uint32,
	workers int, tell event.Progress) (curve []record.RecallAt, err error) {
	err = c.look(func(v *state.View, cv *state.CollectionView) error {
		x := cv.IndexNumber(index)
		if x == nil {
			return gone(cv.Name, index)
		}
		probes, err := probesOf(v, cv, x.VectorIndex, rows)
		if err != nil {
			return err
		}
		all := measuredK[len(measuredK)-1]
		some, others := split(probes, Queries)
		for _, p := range some {
			p.k = all + beyond
		}
		onlyFirst := cv.Modalities[t].Metric != record.Dot
		for _, p := range others {
			if p.k = all + beyond; onlyFirst {
				p.k = 1 + beyond
			}
		}
		points := int64(len(measuredK) * len(measuredReach))
		tell("measure", 0, points)
		if err := findNearest(ctx, v, cv, t, probes, workers); err != nil {
			return err
		}
		tools := search.NewTools(0, 0)
		none := func(p *probe) bool { return len(p.nearest) == 0 }
		probes = slices.DeleteFunc(probes, none)
		some, others = slices.DeleteFunc(some, none), slices.DeleteFunc(others, none)
		for i, k := range measuredK {
			for _, p := range probes {
				p.known = map[uint32]float32{}
				for _, n := range p.nearest {
					p.known[n.row] = n.similarity
				}
			}
			found := false // by a smaller reach, what is ample
			for j, reach := range measuredReach {
				tell("measure", int64(i*len(measuredReach)+j), points)
				ask := func(probes []*probe) error {
					return work.ParallelBy(ctx, workers, 1, len(probes), func(i int) error {
						return probes[i].ask(ctx, tools, v, cv, t, search.ByCells{Index: index, Reach: reach},
							k)
					})
				}
				if err := ask(some); err != nil {
					return err
				}
				asked := some
				if mean, _ := meanOf(some); !found && (k == 1 || !onlyFirst) && mean >= enough {
					if err := ask(others); err != nil {
						return err
					}
					asked = probes
				}
				at := pointOf(asked, k, reach)
				if curve = append(curve, at); at.Recall == 1 && !found || len(asked) == 0 {
					break
				}
				found = found || min(at.Recall-at.Error, at.Worst) >= ample
			}
		}
		return nil
	})
	return curve, err
}

// split returns n of the probes, which lie between the others, and these.
func split(probes []*probe, n int) (some, others []*probe) {
	for i, p := range probes {
		if i*n/len(probes) < (i+1)*n/len(probes) || n >= len(probes) {
			some = append(some, p)
		} else {
			others = append(others, p)
		}
	}
	return some, others
}

// probesOf returns a probe for each row whose vector has a place in the index and, by cosine, a direction.
// Searches compare every other vector.
func probesOf(v *state.View, cv *state.CollectionView, index *record.VectorIndex,
	rows []uint32) (probes []*probe, err error) {
	t := index.Modality
	m, g := &cv.Modalities[t], index.Geometry()
	place := make([]float32, g.Size())
	for _, row := range rows {
		if !cv.Live.Contains(row) {
			continue
		}
		x, found, err := record.ReadVector(v.Snap, cv.ID, row, t, *m)
		if err != nil {
			return nil, err
		}
		if !found || m.Metric.OrCosine() == record.Cosine && cells.IsZero(x.Value) {
			continue
		}
		if g.Place(place, x.Value); !cells.HasPlace(place) {
			continue
		}
		probes = append(probes, &probe{row: row, comparer: search.NewComparer(m.Metric,
			record.CloneVector(x)), padded: padded(nil, x.Value)})
	}
	return probes, nil
}

// padded writes a vector to dst, with zeros behind it for cells.Product.
func padded(dst, x []float32) []float32 {
	dst = append(dst[:0], x...)
	for len(dst) < cells.Size(len(x)) {
		dst = append(dst, 0)
	}
	return dst
}

// findNearest finds the k nearest of each probe. It reads each vector once. For most vectors the product with
// a probe, whose error is bounded, shows that they are not among the nearest; the others are compared as
// searches compare them.
func findNearest(ctx context.Context, v *state.View, cv *state.CollectionView, t int, probes []*probe,
	workers int) error {
	const part = 1 << 13 // rows
	m := &cv.Modalities[t]
	// A sum of n products in parts of 32 has an error of at most so much of the product of the lengths.
	unsure := float64(cells.Size(m.Dim)/32+8) / (1 << 23)
	return work.ParallelBy(ctx, workers, 1, int((cv.NextRow+part-1)/part), func(i int) error {
		tops := make([][]neighbor, len(probes))
		floors := make([]float64, len(probes))
		for j, p := range probes { // a part has nothing nearer to add than what other parts have found
			p.mu.Lock()
			if floors[j] = math.Inf(-1); len(p.nearest) == p.k {
				floors[j] = float64(p.nearest[p.k-1].similarity)
			}
			p.mu.Unlock()
		}
		var x model.Vector
		var y []float32
		lo := codec.FeatureKey(cv.ID, uint32(i*part), 0)
		hi := codec.FeatureKey(cv.ID, uint32(min(uint64(i+1)*part, math.MaxUint32)), 0)
		err := record.ForEachIn(v.Snap, lo, hi, func(key, value []byte) error {
			row, of := codec.FeatureKeyParts(key)
			if int(of) != t || !cv.Live.Contains(row) {
				return nil
			}
			if err := m.DecodeVector(&x, value); err != nil {
				return fault.Corrupt(err, "features %q of row %d", m.Name, row)
			}
			y = padded(y, x.Value)
			square := 0.
			for _, v := range x.Value {
				square += float64(v) * float64(v)
			}
			length := math.Sqrt(square)
			for j, p := range probes {
				if p.row == row || p.most(float64(cells.Product(y, p.padded)), square, length,
					unsure) < floors[j] {
					continue
				}
				tops[j] = insert(tops[j], neighbor{p.comparer.Compare(x), row}, p.k)
				if len(tops[j]) == p.k {
					floors[j] = max(floors[j], float64(tops[j][p.k-1].similarity))
				}
			}
			return nil
		})
		for j, p := range probes {
			p.mu.Lock()
			for _, n := range tops[j] {
				p.nearest = insert(p.nearest, n, p.k)
			}
			p.mu.Unlock()
		}
		return err
	})
}

// most returns an upper bound of the similarity of a vector, from its length, the square of that, and its
// product with the probe; infinity if the product has overflowed.
func (p *probe) most(product, square, length, unsure float64) float64 {
	own := p.comparer.Length()
	product += unsure * own * length
	if math.IsNaN(product) || math.IsInf(product, 0) || square < 1e-30 || own < 1e-15 { // or rounded to 0
		return math.Inf(1)
	}
	const rounded = 1e-6 // to float32
	switch p.comparer.Metric {
	case record.Dot:
		return product + rounded*math.Abs(product)
	case record.L2:
		far := square + own*own - 2*product
		return rounded*math.Abs(far) - far
	}
	return product/(own*length) + rounded
}

// insert puts x in its place among the k largest, which descend.
func insert(top []neighbor, x neighbor, k int) []neighbor {
	if len(top) == k {
		if x.similarity <= top[k-1].similarity {
			return top
		}
		top = top[:k-1]
	}
	at, _ := slices.BinarySearchFunc(top, x, func(a, b neighbor) int {
		if a.similarity >= b.similarity {
			return -1
		}
		return 1
	})
	return slices.Insert(top, at, x)
}

// ask measures what a search finds of the k nearest.
func (p *probe) ask(ctx context.Context, tools *search.Tools, v *state.View, cv *state.CollectionView, t int,
	by search.ByCells, k int) error {
	truth := p.nearest[:min(k, len(p.nearest))]
	least, last := truth[len(truth)-1].similarity, p.nearest[len(p.nearest)-1].similarity
	by.But, by.Known, by.KnownAll = p.row, p.known, last < least
	name := cv.Modalities[t].Name
	got, looked, err := search.Similarities(ctx, tools, v, cv,
		search.Query{From: name, To: name, Vector: p.comparer.Vector.Value, K: k, Forced: &by})
	if err != nil {
		return err
	}
	n := 0
	for n < min(len(truth), len(got)) && got[n] >= least {
		n++
	}
	p.recall, p.looked = float64(n)/float64(len(truth)), looked
	return nil
}

// pointOf returns the measurements of probes. The worst part is a sixteenth of them, or by dot 32, whose k-th
// neighbors are about equally near. By dot a cluster of some hundredths of the items may find little, because
// the first hits are the longest vectors, which may lie in cells that promise little.
func pointOf(asked []*probe, k int, reach float64) record.RecallAt {
	parts := 16
	if len(asked) > 0 && asked[0].comparer.Metric == record.Dot {
		parts = max(parts, len(asked)/32)
	}
	asked = slices.SortedStableFunc(slices.Values(asked),
		func(a, b *probe) int { return cmp.Compare(a.kth(k), b.kth(k)) })
	at := record.RecallAt{K: k, Reach: reach, Worst: 1}
	at.Recall, at.Error = meanOf(asked)
	for q := range parts {
		part := slices.Clone(asked[len(asked)*q/parts : len(asked)*(q+1)/parts])
		slices.SortFunc(part, func(a, b *probe) int { return cmp.Compare(a.recall, b.recall) })
		if len(part) > 2 { // one query says little
			recall, _ := meanOf(part[1:])
			at.Worst = min(at.Worst, recall)
		}
	}
	for _, p := range asked {
		at.Probes += float64(p.looked.Cells) / float64(len(asked))
		at.Entries += float64(p.looked.Entries) / float64(len(asked))
	}
	return at
}

// kth returns the similarity of the k-th nearest, or of the last; by dot for a query scaled to length 1,
// because the length of a query does not change where its nearest are.
func (p *probe) kth(k int) float64 {
	similarity := float64(p.nearest[min(k, len(p.nearest))-1].similarity)
	if length := p.comparer.Length(); p.comparer.Metric == record.Dot && length > 0 {
		return similarity / length
	}
	return similarity
}

// meanOf returns the mean recall of probes, and its standard error; 0 for fewer than two.
func meanOf(probes []*probe) (mean, unsure float64) {
	n := float64(len(probes))
	if n < 2 {
		return 0, 0
	}
	squares := 0.
	for _, p := range probes {
		mean += p.recall
		squares += p.recall * p.recall
	}
	mean, squares = mean/n, squares/n
	return mean, math.Sqrt(max(0, squares-mean*mean) / (n - 1))
}

// An index of vectors is made again in the background when enough of its vectors have come, changed or gone
// (state.IndexView.Due). Searches use the old one until the new one is complete.

// renewDue reports whether an index of one of the collections has to be made again.
func renewDue(changed []*state.CollectionView) bool {
	return slices.ContainsFunc(changed,
		func(cv *state.CollectionView) bool { return outgrown(cv, nil) != nil })
}

// outgrown returns an index of a collection that has to be made again, except the tried ones; nil if there is
// none.
func outgrown(cv *state.CollectionView, tried map[*record.VectorIndex]bool) *state.IndexView {
	for i := range cv.Indexes {
		x := &cv.Indexes[i]
		if x.Complete && x.Due() && x.Metric == cv.Modalities[x.Modality].Metric &&
			!cv.Presence[x.Modality].IsEmpty() && !tried[x.VectorIndex] {
			return x
		}
	}
	return nil
}

// A renewing lets callers that make indexes, who share the lock, stop the background renewal, which has it
// alone.
type renewing struct {
	sync.RWMutex
	stop atomic.Pointer[context.CancelFunc] // of the latest renewal; nil: there was none
}

// giveWay stops the background renewal until the caller calls the returned function.
func (d *Database) giveWay() (done func()) {
	if stop := d.renewing.stop.Load(); stop != nil {
		(*stop)()
	}
	d.renewing.RLock()
	return func() {
		d.renewing.RUnlock()
		d.wakeRenewer()
	}
}

// wakeRenewer wakes KeepRenewed.
func (d *Database) wakeRenewer() {
	select {
	case d.outgrown <- struct{}{}:
	default: // it will look anyway
	}
}

// KeepRenewed makes outgrown indexes again, until ctx ends or the database fails. Open runs it in a goroutine
// that Close waits for.
func (d *Database) KeepRenewed(ctx context.Context) {
	tried := map[*record.VectorIndex]bool{} // at the failed attempt
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.outgrown:
		}
		if d.renewAll(ctx, tried, math.MaxInt); ctx.Err() != nil || d.State.Engine.Log.Err() != nil {
			return
		}
	}
}

// renewAll makes outgrown indexes again whose vectors have at most so many numbers.
func (d *Database) renewAll(ctx context.Context, tried map[*record.VectorIndex]bool, most int) {
	due := func(cv *state.CollectionView) bool {
		x := outgrown(cv, tried)
		return x != nil && int(cv.Presence[x.Modality].GetCardinality())*x.Dim <= most
	}
	for _, c := range d.collectionsNow(due) {
		rctx, cancel := context.WithCancel(ctx)
		d.renewing.stop.Store(&cancel)
		if !d.renewing.TryLock() { // a caller makes an index
			cancel()
			return
		}
		op := d.State.Signals.BeginInBackground(rctx, event.OpVectorIndex, c.Name)
		var id uint32
		err := work.Safely(func() (err error) {
			id, err = c.renew(rctx, tried)
			return err
		})
		op.End(err, event.Event{Attrs: []slog.Attr{slog.Int("index", int(id))}})
		d.renewing.Unlock()
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

const (
	settleLoad  = 1 << 18 // rows of an index that Settle loads: a tenth of a second
	settleRows  = 1 << 16 // rows that it takes in: about half a second
	settleRenew = 1 << 22 // numbers of the vectors of an index that it makes again: some seconds
)

// Settle finishes background work on indexes of vectors at the end of a process, if that does not take long:
// many short processes would otherwise never do it. Close calls it after all other work. Failures become
// events, and a later process does the work.
func (d *Database) Settle() {
	ctx := context.Background()
	d.State.LoadIndexes(ctx, settleLoad)
	d.State.KeepIndexes(ctx, settleRows)
	d.renewAll(ctx, map[*record.VectorIndex]bool{}, settleRenew)
}

// renew makes an outgrown index again.
func (c Collection) renew(ctx context.Context, tried map[*record.VectorIndex]bool) (id uint32, err error) {
	var was *record.VectorIndex
	err = c.look(func(_ *state.View, cv *state.CollectionView) error {
		if x := outgrown(cv, tried); x != nil {
			was = x.VectorIndex
		}
		return nil
	})
	if was == nil || err != nil {
		return 0, err
	}
	x, err := c.indexVectors(ctx, was.Modality, IndexOptions{Recall: was.Recall, Seed: was.Seed,
		Workers: work.Background(), Replaces: was.ID})
	if err != nil {
		tried[was] = ctx.Err() == nil // else it has given way
		return was.ID, err
	}
	return x.ID, nil
}

// look calls f with the present view. Unlike Read it works while Close goes on, which waits for it.
func (c Collection) look(f func(v *state.View, cv *state.CollectionView) error) error {
	v := c.DB.Latest()
	defer v.Release()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return err
	}
	return f(v, cv)
}
