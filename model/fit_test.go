package model_test

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// The internal tests of package model learn by package fit, and measure by package eval; see
// kit_test.go.
func init() {
	model.Train = func(ctx context.Context, modalities []model.Modality, src model.Source,
		opt model.Options) (*model.Result, error) {
		full := fit.Options{
			Bits: opt.Bits, Anchors: opt.Anchors, Sweeps: opt.Sweeps, Seed: opt.Seed, Method: opt.Method,
			Aim:   opt.Aim,
			Prior: opt.Prior, Delta: opt.Delta, LabelEmbedding: opt.LabelEmbedding, Features: opt.Features,
			Map:   opt.Map,
			Width: opt.Width, Gamma: opt.Gamma,
		}
		if opt.Fusion != "" {
			var err error
			if full.Fusion, err = fit.ParseFusion(opt.Fusion); err != nil {
				return nil, err
			}
		}
		r, err := fit.Train(ctx, modalities, src, full)
		if err != nil {
			return nil, err
		}
		return &model.Result{Model: r.Model, Statistics: r.Statistics, Lesson: r.Lesson}, nil
	}
	model.MAPTie = func(ctx context.Context, db codec.Codes, dbLabels [][]uint32, queries codec.Codes,
		queryLabels [][]uint32) (float64, error) {
		m, err := eval.Evaluate(ctx, db, dbLabels, queries, queryLabels, 50)
		return m.MAPTie, err
	}
}
