package model

import (
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// byClass returns the mAP of queries, of one label each, among items with labels, which have the codes of
// these, the mean over the modalities: over all queries, and averaged over classes.
func byClass(t *testing.T, m *Model, labels [][]uint32, queries *synth.Data) (all, class float64) {
	t.Helper()
	db, code := codec.NewCodes(m.bits, 0), codec.NewCode(m.bits)
	for _, l := range labels {
		m.LabelCode(code, l)
		db.Append(code)
	}
	e, z := m.NewEncoder(), make([]float64, m.bits)
	for mod, rows := range queries.Vectors {
		of := map[uint32]codec.Codes{}
		for i, l := range queries.Labels {
			must(t, e.Project(z, mod, rows[i]))
			codes, known := of[l[0]]
			if !known {
				codes = codec.NewCodes(m.bits, 0)
			}
			codes.Append(codec.PackSigns(code, z))
			of[l[0]] = codes
		}
		for l, codes := range of {
			asked := slices.Repeat([][]uint32{{l}}, codes.Len())
			found := need(MAPTie(t.Context(), db, labels, codes, asked))(t)
			all += found * float64(codes.Len()) / float64(len(queries.Labels)) / 2
			class += found / float64(len(of)) / 2
		}
	}
	return all, class
}

// TestWeightsFollowShiftingClasses: what was rare in the training is frequent later, and the
// other way round. The weights of labels follow, so classes are found better than with those
// of the training.
func TestWeightsFollowShiftingClasses(t *testing.T) {
	effort.WithoutRace(t)
	train, later := synth.Unbalanced(1, 400, false), synth.Unbalanced(2, 2400, true)
	prior := .375
	r := trained(t, train, settled(modalitiesOf([]int{64, 32}), Options{Prior: &prior}))
	o := learner(t, r)
	for e := range slices.Chunk(examples(later, never), 1) {
		need(o.Learn(t.Context(), e, TeacherLabels, 0))(t)
	}
	followed := need(o.Revision())(t)
	// The same statistics with the weights of the training.
	frozen := *followed
	frozen.p, frozen.weights = nil, r.Model.weights
	for mod := range frozen.maps {
		w, _ := need2(o.Statistics().solve(mod, frozen.gammas[mod]))(t)
		frozen.p = append(frozen.p, dense.Pack(frozen.mix(mixture{frozen.weights, 0}, w)))
	}
	labels, queries := slices.Concat(train.Labels, later.Labels), synth.Unbalanced(3, 1000, true)
	all, class := byClass(t, followed, labels, queries)
	frozenAll, frozenClass := byClass(t, &frozen, labels, queries)
	t.Logf("mAP %.3f, by class %.3f; with the weights of the training %.3f, %.3f", all, class, frozenAll,
		frozenClass)
	failIf(t, class < frozenClass+.02 || all < frozenAll-.02, "classes are found no better")
}
