package model

import (
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

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
			must(t, e.Project(z, mod, queries.vectors[mod][i]))
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
			found := need(MAPTie(t.Context(), db, items.labels, codes, labels))(t)
			all += found * float64(codes.Len()) / float64(len(queries.labels)) / 2
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
	train, later := synthetic(synth.Unbalanced(1, 400, false)), synthetic(synth.Unbalanced(2, 2400, true))
	opt := settled(modalitiesOf([]int{64, 32}), Options{Prior: new(float64)})
	*opt.Prior = .375
	r := need(Train(t.Context(), modalitiesOf([]int{64, 32}), train, opt))(t)
	o := need(NewOnline(r.Model, r.Statistics.Clone()))(t)
	for e, err := range later.Examples(t.Context()) {
		if err == nil {
			_, err = o.Learn(t.Context(), []Example{e}, TeacherLabels, 0)
		}
		must(t, err)
	}
	followed := need(o.Revision())(t)
	// The same statistics with the weights of the training.
	frozen := *followed
	frozen.p, frozen.weights = nil, r.Model.weights
	for mod := range frozen.maps {
		w, _ := need2(o.Statistics().solve(mod, frozen.gammas[mod]))(t)
		frozen.p = append(frozen.p, dense.Pack(frozen.mix(mixture{frozen.weights, 0}, w)))
	}
	items := &memory{}
	items.labels = append(append(items.labels, train.labels...), later.labels...)
	queries := synthetic(synth.Unbalanced(3, 1000, true))
	all, class := byClass(t, followed, items, queries)
	frozenAll, frozenClass := byClass(t, &frozen, items, queries)
	t.Logf("mAP %.3f, by class %.3f; with the weights of the training %.3f, %.3f", all, class, frozenAll,
		frozenClass)
	failIf(t, class < frozenClass+.02 || all < frozenAll-.02, "classes are found no better")
}
