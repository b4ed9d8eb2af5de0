package db_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// What it says is what a training and an evaluation after it say, and until then
// nothing has changed.
func TestEvaluateTraining(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	all := dbkit.Pairs(260, synth.Config{Seed: 3, Classes: 6, LabelsPerItem: 2, Noise: 1.5})
	items, queries := all[:200:200], all[200:]
	for i := range 60 {
		items[2*i+30].Labels = nil // coded by their features
	}
	delete(items[31].Vectors, "text")
	items = append(items, &db.Item{Key: "no code"})
	putAll(t, c, items)
	e := db.Evaluation{Queries: map[string][][]float32{}, Where: "has(image)", Top: 10}
	for _, q := range queries {
		e.Labels = append(e.Labels, q.Labels)
		for m, x := range q.Vectors {
			e.Queries[m] = append(e.Queries[m], x)
		}
	}
	for _, it := range all[:200] {
		e.Truth = append(e.Truth, it.Labels)
	}
	e.Truth = append(e.Truth, nil)

	options := func(seed uint64, method model.Method) db.TrainOptions {
		return db.TrainOptions{Rows: 120, Options: fit.Options{
			Bits: 32, Seed: seed, Method: method, Delta: math.Inf(1), Anchors: 60,
		}}
	}
	for seed := range uint64(2) {
		for _, method := range []model.Method{model.MethodLabels, model.MethodJoint} {
			before, err := c.Stats()
			if err != nil {
				t.Fatal(err)
			}
			training, found, err := c.EvaluateTraining(ctx, options(seed, method), e)
			if err != nil {
				t.Fatal(err)
			}
			if after, err := c.Stats(); err != nil || !reflect.DeepEqual(before, after) {
				t.Fatalf("%+v became %+v, %v", before, after, err)
			}
			want := dbkit.MustTrain(t, c, options(seed, method))
			wanted, err := c.Evaluate(ctx, e)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(found, wanted) {
				t.Errorf("seed %d, %v: %+v, after training %+v", seed, method, found, wanted)
			}
			if training.Items != want.Items || training.Items != 200 || training.Space != 0 || training.Revision != 0 {
				t.Errorf("%+v, trained %+v", training, want)
			}
			training.Seconds, want.Seconds = nil, nil
			if !reflect.DeepEqual(training.Report, want.Report) {
				t.Errorf("%+v, trained %+v", training.Report, want.Report)
			}
			if found[0].Hamming.Database != 199 || found[0].Hamming.MAP < .3 {
				t.Errorf("%+v", found[0].Hamming)
			}
		}
	}
}

func TestEvaluateTrainingOfASnapshot(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	all := dbkit.Pairs(80, synth.Config{Seed: 3})
	putAll(t, c, all[:60])
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	old, err := s.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, all[60:])
	e := db.Evaluation{Queries: map[string][][]float32{"text": {all[70].Vectors["text"]}}, Labels: [][]string{all[70].Labels}}
	for _, tc := range []struct {
		c     *db.Collection
		items int
	}{{old, 60}, {c, 80}} {
		training, found, err := tc.c.EvaluateTraining(ctx, db.TrainOptions{}, e)
		if err != nil || training.Items != tc.items || training.TrainItems != tc.items || found[0].Hamming.Database != tc.items {
			t.Errorf("%+v, %+v, %v: want %d items", training, found, err, tc.items)
		}
	}
}

func TestEvaluateTrainingErrors(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	all := dbkit.Pairs(60, synth.Config{Seed: 3})
	putAll(t, c, all)
	e := db.Evaluation{Queries: map[string][][]float32{"text": {all[0].Vectors["text"]}}, Labels: [][]string{all[0].Labels}}
	cancelled, cancel := context.WithCancel(ctx)
	if _, _, err := c.EvaluateTraining(cancelled, db.TrainOptions{Options: fit.Options{Progress: func(string, int64, int64) { cancel() }}}, e); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	given, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		c   *db.Collection
		opt db.TrainOptions
		e   db.Evaluation
	}{
		"codes only":   {given, db.TrainOptions{}, db.Evaluation{Queries: map[string][][]float32{"text": {}}}},
		"rows":         {c, db.TrainOptions{Rows: -1}, e},
		"bits":         {c, db.TrainOptions{Options: fit.Options{Bits: 7}}, e},
		"no queries":   {c, db.TrainOptions{}, db.Evaluation{}},
		"labels":       {c, db.TrainOptions{}, db.Evaluation{Queries: e.Queries}},
		"query vector": {c, db.TrainOptions{}, db.Evaluation{Queries: map[string][][]float32{"text": {{1}}}, Labels: e.Labels}},
		"where":        {c, db.TrainOptions{}, db.Evaluation{Queries: e.Queries, Labels: e.Labels, Where: "maker = 1"}},
	} {
		if _, _, err := bad.c.EvaluateTraining(ctx, bad.opt, bad.e); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := c.Stats(); err != nil || s.Trained {
		t.Errorf("%+v, %v", s, err)
	}
	dbkit.MustClose(t, d)
	if _, _, err := c.EvaluateTraining(ctx, db.TrainOptions{}, e); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
