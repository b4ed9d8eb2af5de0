package db_test

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"sort"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// meanAveragePrecision is computed from codes as a user has them, by the definition: rank by (distance,
// position), average the precision at each relevant item.
func meanAveragePrecision(queries [][]byte, queryLabels [][]string, codes [][]byte,
	labels [][]string) float64 {
	sum := 0.0
	for i, q := range queries {
		order := make([]int, len(codes))
		dist := make([]int, len(codes))
		for j, c := range codes {
			order[j] = j
			for b := range c {
				dist[j] += bits.OnesCount8(c[b] ^ q[b])
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return dist[order[a]] < dist[order[b]] })
		found, ap := 0, 0.0
		for rank, j := range order {
			if slices.ContainsFunc(labels[j],
				func(l string) bool { return slices.Contains(queryLabels[i], l) }) {
				found++
				ap += float64(found) / float64(rank+1)
			}
		}
		if found > 0 {
			sum += ap / float64(found)
		}
	}
	return sum / float64(len(queries))
}

// withinRadius returns precision and recall of all pairs within a radius.
func withinRadius(queries [][]byte, queryLabels [][]string, codes [][]byte, labels [][]string,
	radius int) (precision, recall float64) {
	var within, good, relevant float64
	for i, q := range queries {
		for j, c := range codes {
			dist := 0
			for b := range c {
				dist += bits.OnesCount8(c[b] ^ q[b])
			}
			match := slices.ContainsFunc(labels[j],
				func(l string) bool { return slices.Contains(queryLabels[i], l) })
			if match {
				relevant++
			}
			if dist <= radius {
				within++
				if match {
					good++
				}
			}
		}
	}
	return good / within, good / relevant
}

func TestEvaluateAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	all := dbkit.Pairs(260, synth.Config{Seed: 3, Classes: 6, LabelsPerItem: 2, Noise: 1.5})
	items, queries := all[:200:200], all[200:]
	items[20].Labels = nil                          // unlabelled, coded by its features
	items[30].Vectors = nil                         // of no modality: in no answer
	delete(items[31].Vectors, "text")               // of one
	items = append(items, &db.Item{Key: "no code"}) // of nothing
	items[40].Labels = append(items[40].Labels, "not learned")
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}, Rows: 30})

	e := db.Evaluation{Queries: map[string][][]float32{}, Top: 10}
	for _, q := range queries {
		e.Labels = append(e.Labels, q.Labels)
		for m, x := range q.Vectors {
			e.Queries[m] = append(e.Queries[m], x)
		}
	}
	got, err := c.Evaluate(ctx, e)
	must(t, err)
	stopIf(t, len(got) != 2 || got[0].From != "image" || got[0].To != "text" || got[1].From != "text" ||
		got[1].To != "image", "%+v", got)
	for _, r := range got {
		var codes, queryCodes [][]byte
		var labels [][]string
		for it := range every(t, c.Items(ctx, "")) {
			if it.Vectors[r.To] != nil {
				codes, labels = append(codes, it.Code), append(labels, it.Labels)
			}
		}
		for _, x := range e.Queries[r.From] {
			code, _ := need2(c.EncodeQuery(ctx, db.Query{From: r.From, Vector: x}))(t)
			queryCodes = append(queryCodes, code)
		}
		want := meanAveragePrecision(queryCodes, e.Labels, codes, labels)
		failIf(t, math.Abs(r.Hamming.MAP-want) > 1e-12 || r.Hamming.Database != len(codes) ||
			r.Hamming.Queries != 60, "%s->%s: %+v, want mAP %g over %d", r.From, r.To, r.Hamming, want,
			len(codes))
		within2, recall2 := withinRadius(queryCodes, e.Labels, codes, labels, 2)
		p := r.Hamming.ByRadius[2]
		failIf(t, len(r.Hamming.ByRadius) != 33 || math.Abs(p.Precision-within2) > 1e-12 ||
			math.Abs(p.Recall-recall2) > 1e-12, "%s->%s: %+v, want %g, %g", r.From, r.To, p, within2, recall2)
		for _, m := range []eval.Metrics{r.Hamming, r.Asymmetric} {
			failIf(t, len(m.ByTop) != 5 || m.ByTop[4].K != 100 || m.ByTop[4].Precision < .4, "%s->%s: %+v",
				r.From, r.To, m.ByTop)
		}
		failIf(t, r.Hamming.MAP < .4 || r.Asymmetric.MAP < .4, "%s->%s: %+v", r.From, r.To, r)
	}

	// Scored by a truth in which nothing is relevant.
	e.Truth = make([][]string, len(items))
	got, err = c.Evaluate(ctx, e)
	failIf(t, err != nil || got[0].Hamming.MAP != 0, "%+v, %v", got, err)
	for name, bad := range map[string]db.Evaluation{
		"no queries":       {},
		"unknown modality": {Queries: map[string][][]float32{"smell": {{1}}}, Labels: [][]string{{"a"}}},
		"labels missing":   {Queries: e.Queries, Labels: e.Labels[:3]},
		"truth too short":  {Queries: e.Queries, Labels: e.Labels, Truth: e.Truth[:3]},
		"dimension":        {Queries: map[string][][]float32{"text": {{1}}}, Labels: [][]string{{"a"}}},
		"top":              {Queries: e.Queries, Labels: e.Labels, Top: -1},
	} {
		_, err := c.Evaluate(ctx, bad)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%s: %v", name, err)
	}
}
