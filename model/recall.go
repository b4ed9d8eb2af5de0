package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A RecallChoice says how method and bits of a training without labels were chosen: by held-out items
// as queries. For each, the items of the sample are ranked by the distance of their codes, items at
// one distance in random order. The recall in a window of so many items is the mean share, of those
// that a query should find, that is among the first so many.
//
// A query should find the K items whose vectors are nearest to its own by their cosine, of a vector
// of the same modality, or, where modalities share a space, of each other one. With cca-itq there is
// no such distance: a query by one modality should find the same item by another one, among the
// sampled and all other held-out items, each with the code of that other modality alone.
//
// The least number of bits is taken that reaches Goal in the window GoalWindow, or is within
// a hundredth of the most that was reached; of several methods the better one.
type RecallChoice struct {
	// Unfit is not empty if nothing could be measured, and gives the reason.
	Unfit      string   `json:"unfit,omitempty"`
	Queries    int      `json:"queries"`          // held-out items; each is a query for each pair of modalities
	Items      int      `json:"items"`            // of the sample, that are ranked
	K          int      `json:"k"`                // items that a query should find
	Paired     bool     `json:"paired,omitempty"` // the item is the query's own, by another modality
	Goal       float64  `json:"goal"`
	GoalWindow int      `json:"goal_window"`
	Tried      []Recall `json:"tried"` // by bits, then method and window
}

// Recall is the recall of codes in a window.
type Recall struct {
	Method Method  `json:"method"`
	Bits   int     `json:"bits"`
	Window int     `json:"window"` // items
	Recall float64 `json:"recall"`
	Chosen bool    `json:"chosen,omitempty"`
}

// Constants of the choice.
const (
	recallK       = 10
	recallGoal    = .95
	recallMargin  = .01
	mostChosenITQ = 256 // bits up to which itq and cca-itq are tried: their time grows with the cube
)

// recallWindows are windows of sampleItems items. Of fewer items the same shares are taken, as by
// chance alone a window finds its share; but the first is at least k, the second 2k, and so on.
// goalWindow is the place of the one that decides.
var recallWindows = []int{100, 200, 500, 1000}

const goalWindow = 1

// windows returns the windows for n items.
func windows(n, k int) []int {
	var list []int
	for _, w := range recallWindows {
		list = append(list, min(max(w/recallWindows[0]*k, (w*n+sampleItems-1)/sampleItems), n))
	}
	return slices.Compact(list)
}

// A candidate is a method with a number of bits.
type candidate struct {
	method Method
	bits   int
}

// candidates returns what is tried, by bits and then method.
func (tr *freeTrainer) candidates() (list []candidate) {
	bits := triedBits
	if tr.opt.Bits != 0 {
		bits = []int{tr.opt.Bits}
	}
	methods := []Method{MethodRotation, MethodITQ}
	if tr.opt.Method != MethodAuto {
		methods = []Method{tr.opt.Method}
	}
	dim := tr.modalities[0].Dim
	for _, b := range bits {
		for _, m := range methods {
			if m == MethodITQ && b > dim || m != MethodRotation && tr.opt.Bits == 0 && b > mostChosenITQ {
				continue
			}
			list = append(list, candidate{m, b})
		}
	}
	if list == nil { // itq of few dimensions
		list = append(list, candidate{MethodITQ, dim / 8 * 8})
	}
	return list
}

// choose returns the model of the best candidate, and reports all that were tried.
func (tr *freeTrainer) choose(ctx context.Context) (*Model, error) {
	choice := &RecallChoice{Queries: len(tr.held), Goal: recallGoal}
	tr.report.Recall = choice
	judges, err := tr.judges(ctx)
	if err != nil {
		return nil, err
	}
	list := tr.candidates()
	if len(judges) == 0 {
		choice.Unfit = fmt.Sprintf("with %d items there are too few to hold some out", len(tr.learn)+len(tr.held))
		fallback := list[0] // of its method the longest that is not longer than the default
		for _, c := range list {
			if c.bits <= defaultLabelFreeBits && c.method == fallback.method {
				fallback = c
			}
		}
		return tr.model(ctx, fallback.method, fallback.bits)
	}
	choice.Items, choice.K, choice.Paired = judges[0].items, judges[0].k, judges[0].paired
	for _, j := range judges {
		choice.Items, choice.K = min(choice.Items, j.items), min(choice.K, j.k)
	}
	ws := windows(choice.Items, choice.K)
	goal := min(goalWindow, len(ws)-1)
	choice.GoalWindow = ws[goal]
	type outcome struct {
		candidate
		recall float64 // in the window that decides
		m      *Model
	}
	var tried []outcome
	reached := false
	for i, c := range list {
		if reached && (i == 0 || c.bits != list[i-1].bits) {
			break // more bits would only cost more
		}
		m, err := tr.model(ctx, c.method, c.bits)
		if err != nil {
			return nil, err
		}
		recall := make([]float64, len(ws))
		for _, j := range judges {
			of, err := j.recall(m, ws)
			if err != nil {
				return nil, err
			}
			for w := range recall {
				recall[w] += of[w] / float64(len(judges))
			}
		}
		for w, r := range recall {
			choice.Tried = append(choice.Tried, Recall{Method: c.method, Bits: c.bits, Window: ws[w], Recall: r})
		}
		tried = append(tried, outcome{c, recall[goal], m})
		reached = reached || recall[goal] >= recallGoal
		if tr.opt.Progress != nil {
			tr.opt.Progress("choose", int64(i+1), int64(len(list)))
		}
	}
	enough := recallGoal
	if !reached {
		enough = slices.MaxFunc(tried, func(a, b outcome) int { return cmp.Compare(a.recall, b.recall) }).recall - recallMargin
	}
	first := slices.IndexFunc(tried, func(o outcome) bool { return o.recall >= enough })
	best := tried[first]
	for _, o := range tried[first:] {
		if o.bits == best.bits && o.recall > best.recall {
			best = o
		}
	}
	for i := range choice.Tried {
		r := &choice.Tried[i]
		r.Chosen = r.Method == best.method && r.Bits == best.bits
	}
	return best.m, nil
}

// A recallJudge measures the recall of queries by modality from that look for items by modality to.
type recallJudge struct {
	from, to int
	queries  [][]Vector // held-out items that have from, with only that
	database [][]Vector // items that have to
	truth    [][]int32  // by query: the items of database that it should find
	items, k int
	paired   bool
}

// judges returns what to measure with: none if there are too few items.
func (tr *freeTrainer) judges(ctx context.Context) (list []*recallJudge, err error) {
	if len(tr.held) == 0 {
		return nil, nil
	}
	spaces := map[int]int{}
	for g, group := range tr.groups {
		for _, t := range group {
			spaces[t] = g
		}
	}
	for from := range tr.modalities {
		for to := range tr.modalities {
			var j *recallJudge
			switch {
			case tr.opt.Method == MethodCCAITQ && spaces[from] != spaces[to]:
				j = tr.pairedJudge(from, to)
			case len(tr.groups) == 1 && (from != to || len(tr.modalities) == 1):
				if j, err = tr.exactJudge(ctx, from, to); err != nil {
					return nil, err
				}
			}
			if j != nil && len(j.queries) > 0 && j.items > 1 {
				list = append(list, j)
			}
		}
	}
	return list, nil
}

// only returns an item with its vector of one modality alone.
func only(vectors []Vector, t int) []Vector {
	one := make([]Vector, len(vectors))
	one[t] = vectors[t]
	return one
}

// pairedJudge looks for each held-out item that has both modalities.
func (tr *freeTrainer) pairedJudge(from, to int) *recallJudge {
	j := &recallJudge{from: from, to: to, k: 1, paired: true}
	for _, item := range tr.held {
		if !item[to].Present() {
			continue
		}
		if item[from].Present() {
			j.queries, j.truth = append(j.queries, only(item, from)), append(j.truth, []int32{int32(len(j.database))})
		}
		j.database = append(j.database, only(item, to))
	}
	for _, item := range tr.learn {
		if item[to].Present() {
			j.database = append(j.database, only(item, to))
		}
	}
	j.items = len(j.database)
	return j
}

// exactJudge looks for the items whose vectors have the highest cosines.
func (tr *freeTrainer) exactJudge(ctx context.Context, from, to int) (*recallJudge, error) {
	j := &recallJudge{from: from, to: to}
	for _, item := range tr.held {
		if x := item[from]; x.Present() && squaredNorm(x.Value) > 0 {
			j.queries = append(j.queries, only(item, from))
		}
	}
	for _, item := range tr.learn {
		if item[to].Present() {
			j.database = append(j.database, item)
		}
	}
	if j.items = len(j.database); j.items == 0 {
		return j, nil
	}
	j.k = min(recallK, j.items)
	d := tr.modalities[to].Dim
	unit := func(items [][]Vector, t int) dense.Matrix[float32] {
		rows := dense.Of(len(items), d, make([]float32, len(items)*d))
		chunks(workerCount(), len(items), mapRows, func(_, first, last int) {
			for i := first; i < last; i++ {
				row, x := rows.Data[i*d:(i+1)*d], items[i][t]
				if x.IsSparse() {
					scatter(row, x)
					x = Dense(row)
				}
				normalise(row, x.Value)
			}
		})
		return rows
	}
	asked, packed := unit(j.queries, from), dense.Pack(unit(j.database, to))
	j.truth = make([][]int32, len(j.queries))
	chunks(workerCount(), len(j.queries), mapRows, func(_, first, last int) {
		cosines := dense.Of(last-first, j.items, make([]float32, (last-first)*j.items))
		dense.MulNT(cosines, asked.Slice(first, last), packed)
		for i := first; i < last; i++ {
			j.truth[i] = largest(cosines.Data[(i-first)*j.items:(i-first+1)*j.items], j.k)
		}
	})
	return j, ctx.Err()
}

// largest returns the places of the k largest numbers; of equal ones those of the first.
func largest(x []float32, k int) []int32 {
	top := make([]int32, 0, k+1)
	for i, v := range x {
		if len(top) == k && v <= x[top[k-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, v, func(e int32, v float32) int {
			if x[e] >= v {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, at, int32(i))
		top = top[:min(len(top), k)]
	}
	return top
}

// recall returns the recall of the codes of a model in each window, which ascend.
func (j *recallJudge) recall(m *Model, windows []int) ([]float64, error) {
	queries, err := itemCodes(m, j.queries)
	if err != nil {
		return nil, err
	}
	database, err := itemCodes(m, j.database)
	if err != nil {
		return nil, err
	}
	byQuery := make([][]float64, len(j.queries))
	workers := workerCount()
	distances := make([][]uint16, workers)
	parallel(workers, len(j.queries), func(worker, i int) {
		if distances[worker] == nil {
			distances[worker] = make([]uint16, j.items)
		}
		dist := distances[worker]
		codec.Distances(dist, queries.At(i), database.Slice(0, j.items))
		byQuery[i] = make([]float64, len(windows))
		AddRecall(byQuery[i], m.bits, dist, j.truth[i], windows)
	})
	mean := make([]float64, len(windows))
	for _, of := range byQuery {
		for w, r := range of {
			mean[w] += r
		}
	}
	for w := range mean {
		mean[w] /= float64(len(byQuery))
	}
	return mean, nil
}

// AddRecall adds to dst[w] the share of the items of truth, by their places in distances, that is
// among the first windows[w] items by distance, from 0 to bits. Items at one distance come in random
// order, and the share is the expected one. It costs some nanoseconds an item. truth is not empty.
func AddRecall(dst []float64, bits int, distances []uint16, truth []int32, windows []int) {
	count := make([]int, bits+2) // count[d+1] items are at distance d
	for _, d := range distances {
		count[d+1]++
	}
	for d := 1; d < len(count); d++ {
		count[d] += count[d-1] // count[d] items are nearer than d
	}
	for w, window := range windows {
		found := 0.0
		for _, place := range truth {
			d := distances[place]
			nearer, ties := count[d], count[d+1]-count[d]
			found += min(max(float64(window-nearer)/float64(ties), 0), 1)
		}
		dst[w] += found / float64(len(truth))
	}
}

// itemCodes returns the codes that a model gives to items, without regard to labels. An item whose
// projection is zero has the code of sgn(0) = +1 here.
func itemCodes(m *Model, items [][]Vector) (codec.Codes, error) {
	words, q, T := codec.Words(m.bits), m.bits, len(m.maps)
	packed := make([]uint64, len(items)*words)
	workers := workerCount()
	failed := make([]error, workers)
	encoders := make([]*Encoder, workers)
	chunks(workers, len(items), mapRows, func(worker, from, to int) {
		if encoders[worker] == nil {
			encoders[worker] = m.NewEncoder()
		}
		e, parts, fused := encoders[worker], make([][]float64, (to-from)*T), make([]float64, q)
		for t := range T {
			xs, of := vectorsOf(items[from:to], t)
			zs := make([]float64, len(xs)*q)
			if err := e.ProjectVectors(zs, t, xs); err != nil {
				failed[worker] = err
				return
			}
			for r, i := range of {
				parts[i*T+t] = zs[r*q : (r+1)*q]
			}
		}
		for i := range to - from {
			m.Fuse(fused, parts[i*T:(i+1)*T])
			codec.PackSigns(packed[(from+i)*words:(from+i+1)*words], fused)
		}
	})
	codes := codec.NewCodes(q, len(items))
	for i := range items {
		codes.Append(packed[i*words : (i+1)*words])
	}
	return codes, cmp.Or(failed...)
}
