package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// unbalanced returns n items of 20 Gaussian classes in two modalities. The most frequent
// class has 300 times as many items as the rarest, which is the last one or, reversed, the
// first. The first 20 items are one of each class.
func unbalanced(seed uint64, n int, reversed bool) *memory {
	const classes = 20
	dims, noise := []int{64, 32}, []float64{2.6, 2}
	centres := rand.New(rand.NewPCG(9, 9)) // the same for all seeds
	var centre [2][classes][]float64
	for t, d := range dims {
		for l := range classes {
			for range d {
				centre[t][l] = append(centre[t][l], centres.NormFloat64())
			}
		}
	}
	var share [classes]float64
	total := 0.0
	for l := range classes {
		at := float64(l) / (classes - 1)
		if reversed {
			at = 1 - at
		}
		share[l] = math.Pow(300, -at)
		total += share[l]
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	m := &memory{vectors: make([][][]float32, 2)}
	for i := range n {
		l := i
		if i >= classes {
			l = 0
			for u := rng.Float64() * total; l < classes-1 && u >= share[l]; l++ {
				u -= share[l]
			}
		}
		m.labels = append(m.labels, []uint32{uint32(l)})
		for t := range dims {
			x := make([]float32, dims[t])
			for j := range x {
				x[j] = float32(centre[t][l][j] + noise[t]*rng.NormFloat64())
			}
			m.vectors[t] = append(m.vectors[t], x)
		}
	}
	return m
}

// byClass returns the mAP of queries among items under the codes of their labels, the mean
// over the modalities: over all queries, and averaged over classes.
func byClass(t *testing.T, m *Model, items, queries *memory) (all, class float64) {
	t.Helper()
	db, code := codec.NewCodes(m.bits, 0), codec.NewCode(m.bits)
	for _, l := range items.labels {
		m.LabelCode(code, l)
		db.Append(code)
	}
	e, z := m.NewEncoder(), make([]float64, m.bits)
	for mod := range queries.vectors {
		of := map[uint32]codec.Codes{}
		for i, l := range queries.labels {
			if err := e.Project(z, mod, queries.vectors[mod][i]); err != nil {
				t.Fatal(err)
			}
			codes, known := of[l[0]]
			if !known {
				codes = codec.NewCodes(m.bits, 0)
			}
			codes.Append(codec.PackSigns(code, z))
			of[l[0]] = codes
		}
		for l, codes := range of {
			labels := make([][]uint32, codes.Len())
			for i := range labels {
				labels[i] = []uint32{l}
			}
			metrics, err := Evaluate(t.Context(), db, items.labels, codes, labels, 50)
			if err != nil {
				t.Fatal(err)
			}
			all += metrics.MAPTie * float64(codes.Len()) / float64(len(queries.labels)) / 2
			class += metrics.MAPTie / float64(len(of)) / 2
		}
	}
	return all, class
}

// TestWeightsFollowShiftingClasses: what was rare in the training is frequent later, and the
// other way round. The weights of labels follow, so classes are found better than with those
// of the training.
func TestWeightsFollowShiftingClasses(t *testing.T) {
	effort.WithoutRace(t)
	train, later := unbalanced(1, 400, false), unbalanced(2, 2400, true)
	opt := settled(modalitiesOf([]int{64, 32}), Options{Prior: new(float64)})
	*opt.Prior = .375
	r, err := Train(t.Context(), modalitiesOf([]int{64, 32}), train, opt)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOnline(r.Model, r.Statistics.Clone())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range later.Examples(t.Context()) {
		if err == nil {
			_, err = o.Learn(t.Context(), []Example{e}, TeacherLabels, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	followed, err := o.Revision()
	if err != nil {
		t.Fatal(err)
	}
	// The same statistics with the weights of the training.
	frozen := *followed
	frozen.p, frozen.weights = nil, r.Model.weights
	for mod := range frozen.maps {
		w, _, err := o.Statistics().solve(mod, frozen.gammas[mod])
		if err != nil {
			t.Fatal(err)
		}
		frozen.p = append(frozen.p, dense.Pack(frozen.mix(mixture{frozen.weights, 0}, w)))
	}
	items := &memory{}
	items.labels = append(append(items.labels, train.labels...), later.labels...)
	queries := unbalanced(3, 1000, true)
	all, class := byClass(t, followed, items, queries)
	frozenAll, frozenClass := byClass(t, &frozen, items, queries)
	t.Logf("mAP %.3f, by class %.3f; with the weights of the training %.3f, %.3f", all, class, frozenAll, frozenClass)
	if class < frozenClass+.02 || all < frozenAll-.02 {
		t.Error("classes are found no better")
	}
}
