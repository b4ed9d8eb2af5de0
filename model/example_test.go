package model_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// items are training items in memory; a database would read its own.
type items struct{ *synth.Data }

func (s items) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		for i := range s.Items() {
			ex := model.Example{Labels: s.Labels[i]}
			for _, x := range s.Item(i) {
				ex.Vectors = append(ex.Vectors, model.Dense(x))
			}
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// Pictures and texts with four labels: train, store the codes of the labels,
// and search the texts with a picture.
func Example() {
	ctx := context.Background()
	data := synth.Pairs(synth.Config{Items: 300, Classes: 4, Dims: []int{16, 8}, Seed: 1})
	known, queries := data.Slice(0, 250), data.Slice(250, 300)

	modalities := []model.Modality{{Name: "image", Dim: 16}, {Name: "text", Dim: 8}}
	result, err := fit.Train(ctx, modalities, items{known}, fit.Options{Bits: 32, Anchors: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := result.Model

	db := codec.NewCodes(m.Bits(), known.Items())
	code := codec.NewCode(m.Bits())
	for _, labels := range known.Labels {
		m.LabelCode(code, labels)
		db.Append(code)
	}
	encoder, z := m.NewEncoder(), make([]float64, m.Bits())
	codes := codec.NewCodes(m.Bits(), queries.Items())
	for i := range queries.Items() {
		if err := encoder.Project(z, 0, queries.Vectors[0][i]); err != nil {
			fmt.Println(err)
			return
		}
		codes.Append(codec.PackSigns(code, z))
	}
	metrics, err := eval.Evaluate(ctx, db, known.Labels, codes, queries.Labels, 50)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d items, method %v, %d distinct codes\n", result.Report.TrainItems, m.Method(),
		result.Report.DistinctCodes)
	fmt.Printf("mAP %.2f, precision at %d %.2f\n", metrics.MAP, metrics.Top, metrics.PrecisionAt)

	// Output:
	// 250 items, method labels, 4 distinct codes
	// mAP 1.00, precision at 50 1.00
}
