package learn

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// What searches find with an index of vectors is measured with items as queries, by comparison with all
// vectors, one by one, by the metric. An item is left out of the answers to its own vector.

// The points that are measured: for each k the reaches, up to the first that finds all. Searches take the
// least that is enough, and most take one from .5 to 1.
var (
	measuredK     = []int{1, 10, 100}
	measuredReach = []float64{.1, .2, .3, .4, .5, .55, .6, .65, .7, .75, .8, .85, .9, 1, 1.2, 1.5}
)

// Queries is how many queries measure a reach. For k = 1 a query finds its neighbor or not, which says less,
// and by dot queries differ more: there queriesOf says how many measure it. Tests take fewer.
var Queries = 512

// queriesOf returns how many queries measure an index of n vectors of so many coordinates: four times
// Queries, or as many as can be compared with all vectors in some seconds, but not below Queries.
func queriesOf(n, size int) int {
	const most = 2e10 // products of two coordinates
	more := min(4, max(1, most/float64(Queries)/float64(n)/float64(size)))
	return min(int(more*float64(Queries)), n)
}

// enough is a mean recall below which the first Queries tell all that is to be told of a reach.
const enough = .75

// A probe is one query of a measurement.
type probe struct {
	row      uint32
	comparer *search.Comparer
	padded   []float32 // its vector, for cells.Product

	mu      sync.Mutex
	nearest []neighbor         // the nearest others, the nearest first
	known   map[uint32]float32 // similarities of rows, for one k: of the nearest, and of what searches have read

	recall float64 // of the last search
	looked search.Looked
}

// A neighbor is a row and its similarity to a probe.
type neighbor struct {
	similarity float32
	row        uint32
}

// beyond is how many more neighbors are found than are asked for. Where the last one is farther than those
// that count, no search of a measurement has to read a vector.
const beyond = 28

// measureIndex measures an index with the vectors of modality t of some rows.
func (c Collection) measureIndex(ctx context.Context, t int, index uint32, rows []uint32, workers int) (curve []record.RecallAt, err error) {
	err = c.look(func(v *state.View, cv *state.CollectionView) error {
		x := cv.IndexNumber(index)
		if x == nil {
			return gone(cv.Name, index)
		}
		probes, err := probesOf(v, cv, x.VectorIndex, rows)
		if err != nil {
			return err
		}
		if err := findNearest(ctx, v, cv, t, probes, measuredK[len(measuredK)-1]+beyond, workers); err != nil {
			return err
		}
		tools := search.NewTools(0, 0)
		probes = slices.DeleteFunc(probes, func(p *probe) bool { return len(p.nearest) == 0 })
		some, others := split(probes, Queries)
		for _, k := range measuredK {
			for _, p := range probes {
				p.known = map[uint32]float32{}
				for _, n := range p.nearest {
					p.known[n.row] = n.similarity
				}
			}
			for _, reach := range measuredReach {
				ask := func(probes []*probe) error {
					return work.ParallelBy(ctx, workers, 1, len(probes), func(i int) error {
						return probes[i].ask(ctx, tools, v, cv, t, search.ByCells{Index: index, Reach: reach}, k)
					})
				}
				if err := ask(some); err != nil {
					return err
				}
				asked := some
				if mean, _ := meanOf(some); (k == 1 || cv.Modalities[t].Metric == record.Dot) && mean >= enough {
					if err := ask(others); err != nil {
						return err
					}
					asked = probes
				}
				at := pointOf(asked, k, reach)
				if curve = append(curve, at); at.Recall == 1 || len(probes) == 0 {
					break
				}
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
// Searches compare any other vector with all.
func probesOf(v *state.View, cv *state.CollectionView, index *record.VectorIndex, rows []uint32) (probes []*probe, err error) {
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
		probes = append(probes, &probe{row: row, comparer: search.NewComparer(m.Metric, record.CloneVector(x)), padded: padded(nil, x.Value)})
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

// findNearest finds the k nearest of each probe. It reads each vector once. The products of most vectors
// with a probe, of which the error has a bound, say that they are not among the nearest; the others are
// compared as searches compare them.
func findNearest(ctx context.Context, v *state.View, cv *state.CollectionView, t int, probes []*probe, k, workers int) error {
	const part = 1 << 13 // rows
	m := &cv.Modalities[t]
	// A sum of n products in parts of 32 has an error of at most so much of the product of the lengths.
	unsure := float64(cells.Size(m.Dim)/32+8) / (1 << 23)
	return work.ParallelBy(ctx, workers, 1, int((cv.NextRow+part-1)/part), func(i int) error {
		tops := make([][]neighbor, len(probes))
		floors := make([]float64, len(probes))
		for j := range floors {
			floors[j] = math.Inf(-1)
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
				if p.row == row || p.most(float64(cells.Product(y, p.padded)), square, length, unsure) < floors[j] {
					continue
				}
				tops[j] = insert(tops[j], neighbor{p.comparer.Compare(x), row}, k)
				if len(tops[j]) == k {
					floors[j] = float64(tops[j][k-1].similarity)
				}
			}
			return nil
		})
		for j, p := range probes {
			p.mu.Lock()
			for _, n := range tops[j] {
				p.nearest = insert(p.nearest, n, k)
			}
			p.mu.Unlock()
		}
		return err
	})
}

// most returns a similarity that a vector is not above, of which the length and its square are known and
// the product with that of the probe; infinity where that has overflowed.
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
func (p *probe) ask(ctx context.Context, tools *search.Tools, v *state.View, cv *state.CollectionView, t int, by search.ByCells, k int) error {
	truth := p.nearest[:min(k, len(p.nearest))]
	least, last := truth[len(truth)-1].similarity, p.nearest[len(p.nearest)-1].similarity
	by.But, by.Known, by.KnownAll = p.row, p.known, last < least
	name := cv.Modalities[t].Name
	got, looked, err := search.Similarities(ctx, tools, v, cv, search.Query{From: name, To: name, Vector: p.comparer.Vector.Value, K: k, Forced: &by})
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

// pointOf returns what probes have measured. The worst part is a sixteenth, or by dot 32, of those whose
// k-th neighbors are about as near. By dot a cluster of some hundredths of the items may find little, as the
// first hits are the longest vectors, which may lie in cells that promise little.
func pointOf(asked []*probe, k int, reach float64) record.RecallAt {
	parts := 16
	if len(asked) > 0 && asked[0].comparer.Metric == record.Dot {
		parts = max(parts, len(asked)/32)
	}
	asked = slices.SortedStableFunc(slices.Values(asked), func(a, b *probe) int { return cmp.Compare(a.kth(k), b.kth(k)) })
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

// kth returns the similarity of the k-th nearest, or of the last; by dot that of a query of length 1, as the
// length of a query says nothing of where its nearest are.
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
