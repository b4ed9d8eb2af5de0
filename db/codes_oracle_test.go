package db_test

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// codeByModel computes from the definition the code that an item has by the model of its collection; nil for none.
func codeByModel(cv *state.CollectionView, it *db.Item) ([]byte, error) {
	m := cv.Space.Learned
	vectors := make([]model.Vector, len(m.Modalities()))
	for i, mod := range m.Modalities() {
		if dense := it.Vectors[mod.Name]; dense != nil {
			vectors[i] = model.Dense(dense)
		} else if sparse, ok := it.Sparse[mod.Name]; ok {
			vectors[i] = model.Sparse(sparse.Index, sparse.Value)
		}
	}
	code, _, err := codeOfItem(m, cv.Labels.Lookup(it.Labels), vectors)
	return code, err
}

// codeOfItem computes the code of an item with these labels and vectors, one for each modality of the model, from the
// definition, and the sum of its projections.
func codeOfItem(m *model.Model, labels []uint32, vectors []model.Vector) (code []byte, total []float64, err error) {
	q := m.Bits()
	z := make([][]float64, len(vectors)) // by modality of the model; nil where the item lacks it
	total = make([]float64, q)
	weights, given := m.Weights(), false
	for i, x := range vectors {
		if x.Present() {
			z[i] = make([]float64, q)
			if err := m.NewEncoder().ProjectVectors(z[i], i, []model.Vector{x}); err != nil {
				return nil, nil, err
			}
			for j, v := range z[i] {
				total[j] += v
			}
			given = given || weights[i] > 0
		}
	}
	if label := codec.NewCode(q); m.LabelCode(label, labels) {
		return label.AppendBytes(nil, q), total, nil
	}
	sum, any := make([]float64, q), false
	for i := range z {
		for j := range z[i] {
			w := 1.0
			if given {
				w = weights[i]
			}
			sum[j] += w * z[i][j]
			any = any || sum[j] != 0
		}
	}
	if m.Centre() != 0 { // what else there is to it is for the tests of the model
		m.Fuse(sum, z)
	}
	if !any {
		return nil, total, nil
	}
	return codec.PackSigns(codec.NewCode(q), sum).AppendBytes(nil, q), total, nil
}

// checkCodes compares the codes of items with what the model makes of them.
func checkCodes(t fataler, c *db.Collection, items []*db.Item) {
	t.Helper()
	must(t, db.Read(c, func(v *state.View, cv *state.CollectionView) error {
		if cv.Space == nil || cv.CodesOnly() {
			return nil
		}
		coded := 0
		for _, it := range items {
			want, err := codeByModel(cv, it)
			if err != nil {
				return err
			}
			if !bytes.Equal(want, it.Code) || (it.Code != nil) != (it.CodeFrom != "") {
				return fmt.Errorf("item %s has code %x, from %q, not %x", it.Key, it.Code, it.CodeFrom, want)
			}
			if want != nil {
				coded++
			}
		}
		if s, err := db.StatsOf(v, cv); err != nil || s.CodedItems != coded {
			return fmt.Errorf("%d items have a code, %d are reported, %v", coded, s.CodedItems, err)
		}
		return nil
	}))
}

func hamming(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}
