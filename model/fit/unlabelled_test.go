package fit

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// A halving is the experiment of docs/EVALUATION.md, "Unlabelled items": a random half
// of the training items trains, and the other half is the database.
type halving struct {
	result            *Result
	database, queries *synth.Data
	z, queryZ         [][][]float64 // by modality and item; nil if the item lacks the modality
}

func halve(t testing.TB, train, queries *synth.Data, opt Options) *halving {
	t.Helper()
	order := rand.New(rand.NewPCG(opt.Seed, 77)).Perm(train.Items())
	h := &halving{database: picked(train, order[len(order)/2:]), queries: queries}
	h.result = trained(t, picked(train, order[:len(order)/2]), opt)
	project := func(d *synth.Data) [][][]float64 {
		e := h.result.Model.NewEncoder()
		z := make([][][]float64, len(d.Vectors))
		for m, rows := range d.Vectors {
			z[m] = make([][]float64, len(rows))
			for i, x := range rows {
				if x == nil {
					continue
				}
				z[m][i] = make([]float64, h.result.Model.Bits())
				must(t, e.Project(z[m][i], m, x))
			}
		}
		return z
	}
	h.z, h.queryZ = project(h.database), project(queries)
	return h
}

// figures returns the mAP of each direction, in Hamming order. Items of the database
// have the codes that the trained model gives them without labels, with the given
// fusion.
func (h *halving) figures(t testing.TB, how rank.Fusion) (all []float64) {
	q := h.result.Model.Bits()
	parts := h.result.Model.Parts()
	parts.Fusion, parts.Mean = how.Weights, how.Mean
	m := need(model.New(parts))(t)
	code, z := codec.NewCode(q), make([]float64, q)
	for from := range h.z {
		for to := range h.z {
			if from == to {
				continue
			}
			db, queries := codec.NewCodes(q, 0), codec.NewCodes(q, 0)
			var labels, queryLabels [][]uint32
			for i, l := range h.database.Labels {
				parts := make([][]float64, len(h.z))
				for t := range parts {
					parts[t] = h.z[t][i]
				}
				if parts[to] != nil {
					m.Fuse(z, parts)
					db.Append(codec.PackSigns(code, z))
					labels = append(labels, l)
				}
			}
			for i, l := range h.queries.Labels {
				if x := h.queryZ[from][i]; x != nil {
					queries.Append(codec.PackSigns(code, x))
					queryLabels = append(queryLabels, l)
				}
			}
			e := need(eval.Evaluate(t.Context(), db, labels, queries, queryLabels, 50))(t)
			all = append(all, e.MAP)
		}
	}
	return all
}

// TestUnlabelledQuality pins the mAP of a database without labels. It checks that the fusion of a training is
// about as good as the plain sum, each modality alone, and all of these without the mean aim.
func TestUnlabelledQuality(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	type set struct {
		name           string
		train, queries *synth.Data
		goal           []float64 // by direction, in the order of figures
		worse          float64   // largest distance to the best of all
	}
	of := func(name string, d *synth.Data, worse float64) set {
		n := d.Items() - 300
		return set{name: name, train: d.Slice(0, n), queries: d.Slice(n, n+300), worse: worse}
	}
	sets := []set{
		of("noise", noisy(1500), .01),
		of("pairs", synth.Pairs(synth.Config{Items: 1500, Classes: 8, Dims: []int{20, 12}, Noise: 2.5,
			LabelsPerItem: 2}), .01),
	}
	if effort.Long() || *allFigures {
		if *allFigures {
			g := need(synth.NewNUSWide(1, synth.DefaultNUSWideNoise))(t)
			sets = append(sets, of("nuswide", g.Data(0, 3000), .015))
		}
		for _, s := range []struct {
			name string
			goal []float64
		}{{"wiki", []float64{.26, .59}}, {"ucidigits", []float64{.84, .955}}} {
			t.Run(s.name, func(t *testing.T) { // skips if the data is not here
				d := readDataset(t, s.name)
				sets = append(sets, set{s.name, d.train, d.query, s.goal, .01})
			})
		}
	}
	for _, s := range sets {
		seeds := 1
		switch {
		case *allFigures && s.goal != nil:
			seeds = 5
		case *allFigures:
			seeds = 2
		}
		mean := map[string][]float64{}
		var names []string
		note := func(name string, figures []float64) {
			if mean[name] == nil {
				names, mean[name] = append(names, name), make([]float64, len(figures)+1)
			}
			for i, v := range figures {
				mean[name][i] += v / float64(seeds)
				mean[name][len(figures)] += v / float64(seeds*len(figures))
			}
		}
		for seed := range seeds {
			opt := Options{Seed: uint64(seed)}
			if !*allFigures {
				opt.Anchors = 400 // choosing takes a fraction of the time
			}
			h := halve(t, s.train, s.queries, opt)
			report := h.result.Report.Fusion
			stopIf(t, report.Unfit != "", "%v", report.Unfit)
			parts := h.result.Model.Parts()
			tried := map[string][]float64{"sum": {1, 1}, "weighted": parts.Fusion}
			for t, m := range h.result.Model.Modalities() {
				tried[m.Name] = make([]float64, len(s.train.Vectors))
				tried[m.Name][t] = 1
			}
			for _, name := range slices.Sorted(maps.Keys(tried)) {
				note(name, h.figures(t, rank.Fusion{Weights: tried[name]}))
				note(name+", less the mean",
					h.figures(t, rank.Fusion{Weights: tried[name], Mean: parts.Mean}))
			}
			note("trained", h.figures(t, rank.Fusion{Weights: parts.Fusion, Mean: parts.Mean}))
			t.Logf("%s, seed %d: %+v; %.2v s", s.name, seed, report, h.result.Report.Seconds["choose"])
		}
		chosen := mean["trained"]
		last := len(chosen) - 1
		for _, name := range names {
			t.Logf("%-10s %-22s %.3f", s.name, name, mean[name])
			failIf(t, mean[name][last] > chosen[last]+s.worse, "%s: %s gives %.3f, what was trained %.3f",
				s.name, name, mean[name], chosen)
		}
		for i, goal := range s.goal {
			if chosen[i] < goal {
				t.Errorf("%s: %.3f, the goal is %.3f", s.name, chosen[:last], s.goal)
				break
			}
		}
	}
}
