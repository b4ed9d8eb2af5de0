package eval

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// Metrics measure retrieval, as means over the queries. An item is relevant if it
// shares a label with the query. A query without a relevant item in the database counts
// 0 everywhere.
type Metrics struct {
	MAP    float64 `json:"map"`     // mean average precision of the whole ranking, ties by row
	MAPTie float64 `json:"map_tie"` // MAP expected over random orders of each tie
	// mean average precision of the first Top, divided by the relevant items among them
	MAPAt float64 `json:"map_at"`
	// relevant items among the first min(Top, Database), divided by that number
	PrecisionAt float64 `json:"precision_at"`
	// relevant items among the first Top, divided by all relevant items
	RecallAt float64 `json:"recall_at"`
	Top      int     `json:"top"`      // as given to Evaluate
	Queries  int     `json:"queries"`  // number of queries
	Database int     `json:"database"` // number of items ranked

	// Curves cost next to nothing beside the rest. They are nil without queries or
	// without a database.
	// for K = 1, 10, 20, 50, 100, 200, 500, 1000, at most Database
	ByTop []TopPoint `json:"by_top,omitempty"`
	// for each radius from 0 to the bits of the codes; of Evaluate only
	ByRadius []RadiusPoint `json:"by_radius,omitempty"`
}

// Evaluate ranks the database by (Hamming distance, row) for each query. Labels are
// sorted and distinct, one set for each code; an item or query without labels is
// relevant to nothing. It costs a distance for each query and distinct code, and a few
// nanoseconds for each query and row. Queries run in parallel, and the result is the
// same to the last bit for any GOMAXPROCS. It takes a few bytes of memory a row and 100
// a query, for any length of codes. The error wraps ErrMismatch if lengths differ.
// After a cancellation it is ctx.Err(), soon.
func Evaluate(ctx context.Context, db codec.Codes, dbLabels [][]uint32, queries codec.Codes,
	queryLabels [][]uint32, top int) (Metrics, error) {
	if queries.Len() > 0 && db.Len() > 0 && queries.Bits() != db.Bits() {
		return Metrics{}, fmt.Errorf("evaluating: %w: queries of %d bits, database of %d", model.ErrMismatch,
			queries.Bits(), db.Bits())
	}
	if queries.Len() != len(queryLabels) {
		return Metrics{}, fmt.Errorf("evaluating: %w: %d queries with %d sets of labels", model.ErrMismatch,
			queries.Len(), len(queryLabels))
	}
	return evaluate(ctx, db, dbLabels, queryLabels, top, db.Bits()+1, func(d *database) ranker {
		dist := make([]uint16, d.distinct.Len())
		return func(query int, rank []int32) int {
			codec.Distances(dist, queries.At(query), d.distinct.Slice(0, len(dist)))
			for i, x := range dist {
				rank[i] = int32(x)
			}
			return db.Bits() + 1
		}
	})
}

// EvaluateAsymmetric ranks the database by (-z.h, row) for each query. z is the
// real-valued projection of the query, and h the code of the row as +-1, so only one
// side is a code. Otherwise it is Evaluate, and it sorts the distinct codes once for
// each query. Each z has as many numbers as the codes have bits, all finite.
func EvaluateAsymmetric(ctx context.Context, db codec.Codes, dbLabels [][]uint32, z [][]float64,
	queryLabels [][]uint32, top int) (Metrics, error) {
	if len(z) != len(queryLabels) {
		return Metrics{}, fmt.Errorf("evaluating: %w: %d queries with %d sets of labels", model.ErrMismatch,
			len(z), len(queryLabels))
	}
	for i, x := range z {
		if db.Len() > 0 && len(x) != db.Bits() {
			return Metrics{}, fmt.Errorf(
				"evaluating: %w: query %d has %d projections, the codes have %d bits", model.ErrMismatch, i,
				len(x), db.Bits())
		}
		for j, v := range x {
			if v-v != 0 {
				return Metrics{}, fmt.Errorf("evaluating: projection %d of query %d is %v: %w", j, i, v,
					model.ErrNotFinite)
			}
		}
	}
	return evaluate(ctx, db, dbLabels, queryLabels, top, 0, func(d *database) ranker {
		s := newScorer(d.distinct)
		return func(query int, rank []int32) int { return s.rank(z[query], rank) }
	})
}

// A ranker writes to rank[i] the tie of the i-th distinct code of the database; the
// best tie is 0. It returns a number above all ties. It holds scratch memory, so each
// worker has one.
type ranker func(query int, rank []int32) int

// figures are the metrics of one query.
type figures struct {
	ap, apTie, apAt, precision, recall float64
	topPrecision                       [len(topKs)]float64
}

// evaluate ranks and measures with any ranker. If radii is not 0 it is the number of
// radii, tie i of the ranker is distance i, and evaluate counts by radius as well.
func evaluate(ctx context.Context, db codec.Codes, dbLabels, queryLabels [][]uint32, top, radii int,
	newRanker func(*database) ranker) (m Metrics, err error) {
	defer parallel.Guard(&err, "evaluating")
	if db.Len() != len(dbLabels) {
		return m, fmt.Errorf("evaluating: %w: %d codes with %d sets of labels", model.ErrMismatch, db.Len(),
			len(dbLabels))
	}
	if top < 1 {
		return m, fmt.Errorf("evaluating: %w: top %d: it is 1 or more", model.ErrOption, top)
	}
	if int64(db.Len()) > math.MaxInt32 {
		return m, fmt.Errorf("evaluating: %w: %d rows: at most %d can be evaluated", model.ErrOption,
			db.Len(), math.MaxInt32)
	}
	n := len(queryLabels)
	m = Metrics{Top: top, Queries: n, Database: db.Len()}
	if n == 0 || db.Len() == 0 {
		return m, ctx.Err()
	}
	d := newDatabase(db, dbLabels)
	workers := make([]*walker, parallel.Workers())
	results := make([]figures, n)
	var cancelled atomic.Bool
	parallel.Do(len(workers), n, func(worker, q int) {
		if cancelled.Load() || ctx.Err() != nil {
			cancelled.Store(true)
			return
		}
		w := workers[worker]
		if w == nil {
			w = newWalker(d, newRanker(d), radii)
			workers[worker] = w
		}
		results[q] = w.query(q, queryLabels[q], top)
	})
	if cancelled.Load() {
		return Metrics{}, ctx.Err()
	}
	for _, f := range results { // in query order, so that the sum is always the same
		m.MAP += f.ap / float64(n)
		m.MAPTie += f.apTie / float64(n)
		m.MAPAt += f.apAt / float64(n)
		m.PrecisionAt += f.precision / float64(n)
		m.RecallAt += f.recall / float64(n)
	}
	m.ByTop = topPoints(results, db.Len())
	if radii > 0 {
		m.ByRadius = radiusPoints(workers, radii, n)
	}
	return m, nil
}

// A database is the ranked side of an evaluation: distinct codes and distinct label
// sets, and the code and the set of each row. Learned codes have few of both.
type database struct {
	distinct codec.Codes
	codeOf   []int32            // by row
	setOf    []int32            // by row
	sets     int                // number of label sets
	having   map[uint32][]int32 // by label: the sets that hold it
	harmonic []float64          // H(i) = 1 + 1/2 + ... + 1/i
}

// newDatabase numbers the distinct codes and label sets of the items, by first appearance.
func newDatabase(db codec.Codes, labels [][]uint32) *database {
	n := db.Len()
	d := &database{
		distinct: codec.NewCodes(db.Bits(), 0),
		codeOf:   make([]int32, n),
		setOf:    make([]int32, n),
		having:   map[uint32][]int32{},
		harmonic: rank.HarmonicNumbers(n),
	}
	codes, sets := map[string]int32{}, map[string]int32{}
	var key []byte
	for i := range n {
		key = db.At(i).AppendBytes(key[:0], db.Bits())
		c, ok := codes[string(key)]
		if !ok {
			c = int32(len(codes))
			codes[string(key)] = c
			d.distinct.Append(db.At(i))
		}
		d.codeOf[i] = c

		key = key[:0]
		for _, l := range labels[i] {
			key = binary.LittleEndian.AppendUint32(key, l)
		}
		s, ok := sets[string(key)]
		if !ok {
			s = int32(len(sets))
			sets[string(key)] = s
			for _, l := range labels[i] {
				d.having[l] = append(d.having[l], s)
			}
		}
		d.setOf[i] = s
	}
	d.sets = len(sets)
	return d
}

// A walker computes the figures of one query at a time, in one goroutine.
type walker struct {
	*database
	rank     ranker
	tieOf    []int32 // by distinct code
	relevant []bool  // by label set: whether it is relevant to the query
	ties     []rank.Tie
	radii    []pairs // by radius, summed over the queries so far
}

// newWalker returns the memory of one goroutine that ranks d by r, with counts for so many
// radii.
func newWalker(d *database, r ranker, radii int) *walker {
	return &walker{
		database: d, rank: r, radii: make([]pairs, radii),
		tieOf: make([]int32, d.distinct.Len()), relevant: make([]bool, d.sets),
	}
}

// query ranks without sorting rows. It counts the rows and the relevant rows of each
// tie, which gives the start of each tie. Then it goes over the rows in order, and each
// row takes the next place of its tie.
func (w *walker) query(query int, labels []uint32, top int) (f figures) {
	ties := w.rank(query, w.tieOf)
	if cap(w.ties) < ties {
		w.ties = make([]rank.Tie, ties)
	}
	w.ties = w.ties[:ties]
	clear(w.ties)
	clear(w.relevant)
	for _, l := range labels {
		for _, s := range w.having[l] {
			w.relevant[s] = true
		}
	}
	for row, c := range w.codeOf {
		t := &w.ties[w.tieOf[c]]
		t.Rows++
		if w.relevant[w.setOf[row]] {
			t.Relevant++
		}
	}
	w.addRadii()
	var rows, relevant int32
	for i := range w.ties {
		t := &w.ties[i]
		t.Before, t.RelevantBefore = rows, relevant
		f.apTie += t.Expectation(w.harmonic)
		rows += t.Rows
		relevant += t.Relevant
	}
	if relevant == 0 {
		return figures{}
	}
	w.expectedTop(&f.topPrecision)
	var inTop int32
	for row, c := range w.codeOf {
		t := &w.ties[w.tieOf[c]]
		t.Before++
		if !w.relevant[w.setOf[row]] {
			continue
		}
		t.RelevantBefore++
		precision := float64(t.RelevantBefore) / float64(t.Before)
		f.ap += precision
		if int(t.Before) <= top {
			f.apAt += precision
			inTop++
		}
	}
	f.ap /= float64(relevant)
	f.apTie /= float64(relevant)
	f.apAt /= float64(max(inTop, 1))
	f.precision = float64(inTop) / float64(min(top, int(rows)))
	f.recall = float64(inTop) / float64(relevant)
	return f
}

// A scorer ranks distinct codes by z.h, with 256 partial sums for each byte of the
// code: q/8 additions a code instead of q.
type scorer struct {
	codes  codec.Codes
	table  []float64 // q/8 x 256
	scores []float64
	order  []int32
}

// newScorer returns the memory of one goroutine that scores the distinct codes of a
// database.
func newScorer(codes codec.Codes) *scorer {
	return &scorer{
		codes:  codes,
		table:  make([]float64, codec.Bytes(codes.Bits())*256),
		scores: make([]float64, codes.Len()),
		order:  make([]int32, codes.Len()),
	}
}

// rank computes the scores, sorts the codes, and gives equal scores the same tie.
func (s *scorer) rank(z []float64, rank []int32) int {
	for b := range len(z) / 8 {
		sums := s.table[256*b : 256*b+256]
		for v := range sums {
			var sum float64
			for j, x := range z[8*b : 8*b+8] {
				if v>>j&1 == 1 {
					sum += x
				} else {
					sum -= x
				}
			}
			sums[v] = sum
		}
	}
	for i := range s.scores {
		var sum float64
		code, table := s.codes.At(i), s.table
		for _, w := range code {
			for k := 0; k < 8 && len(table) > 0; k++ {
				sum += table[w>>(8*k)&0xff]
				table = table[256:]
			}
		}
		s.scores[i] = sum
		s.order[i] = int32(i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		switch {
		case s.scores[a] > s.scores[b]:
			return -1
		case s.scores[a] < s.scores[b]:
			return 1
		}
		return 0 // one tie, in which the order of rows decides
	})
	ties := -1
	var last float64
	for _, i := range s.order {
		if ties < 0 || s.scores[i] != last {
			ties++
			last = s.scores[i]
		}
		rank[i] = int32(ties)
	}
	return ties + 1
}
