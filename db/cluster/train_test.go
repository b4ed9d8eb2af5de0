package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// A model that is learned across shards is that of one database with the items of the shards one after the
// other: every item has the same code, and the same answers come.
func TestTrain(t *testing.T) {
	const shards = 3
	h := build(t, 3, 3, shards, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16}}); !errors.Is(err, fit.ErrNoItems) {
		t.Error("without items:", err)
	}
	items := dbkit.Pairs(600, synth.Config{Seed: 5, Missing: .2})
	for i, it := range items {
		if i%5 == 0 {
			it.Labels = nil
		}
	}
	importAll(t, pairs, items)
	slices.SortStableFunc(items, func(a, b *db.Item) int { return shard.Of(a.Key, shards) - shard.Of(b.Key, shards) })
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	one := mustCreate(t, d, "pairs", dbkit.PairsSchema)
	dbkit.PutAll(t, d, one, items)
	for _, opt := range []db.TrainOptions{
		{Options: fit.Options{Bits: 24, Anchors: 40, Seed: 3}},
		{Options: fit.Options{Bits: 16, Anchors: 20, Aim: model.AimCodes}, Rows: 300, Activate: true},
		{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}, Activate: true},
	} {
		want := dbkit.MustTrain(t, one, opt)
		var got *cluster.Training
		beside(t, func(ctx context.Context) error {
			_, err := pairs.Search(ctx, cluster.Query{Query: db.Query{From: "image", Vector: items[0].Vectors["image"]}})
			return err
		}, func() {
			if got, err = pairs.Train(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
		})
		if got.Items == 0 || fmt.Sprint(got.LeftOut) != fmt.Sprint(want.LeftOut) {
			t.Errorf("learned from %d items, without %v", got.Items, got.LeftOut)
		}
		for it, err := range one.Items(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			is, err := pairs.Get(t.Context(), it.Key)
			if err != nil || !slices.Equal(is.Code, it.Code) || is.CodeFrom != it.CodeFrom {
				t.Fatalf("%s has code %x, from %s, and in one database %x, from %s; %v", it.Key, is.Code, is.CodeFrom, it.Code, it.CodeFrom, err)
			}
		}
		pair{t, pairs, one, 1e-6}.compare(fmt.Sprint(opt.Bits, " bits"), db.Query{From: "image", Vector: items[9].Vectors["image"], To: "text", K: 50, Rerank: db.RerankProjection}, -1)
	}
	h.inStep(2, 600)
}

// One at a time trains.
func TestOneTrains(t *testing.T) {
	h := build(t, 1, 1, 2, 1)
	a, b := h.connect(), h.connect()
	pairs, err := a.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	importAll(t, pairs, dbkit.Pairs(300, synth.Config{Seed: 5}))
	begun, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		once := false
		_, err := pairs.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Progress: func(string, int64, int64) {
			if !once {
				once = true
				close(begun)
				<-goOn
			}
		}}})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal("it did not tell of its progress", err)
	}
	if _, err := b.Collection("pairs").Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16}}); !errors.Is(err, db.ErrBusy) {
		t.Error(err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := b.Collection("pairs").Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}); err != nil {
		t.Error(err)
	}
}
