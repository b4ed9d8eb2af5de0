package db_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Distances counts what a scan finds at each distance, by every plan and order, filtered
// or not.
func TestRunsDistances(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenCoded(t, 32)
	r := seed.Rand(t, 1, 2)
	batch := d.NewBatch()
	codes := make([]uint32, 600)
	for i := range codes {
		codes[i] = r.Uint32() & r.Uint32() & 0xff0f
		it := &db.Item{Key: fmt.Sprint(i), Code: binary.LittleEndian.AppendUint32(nil, codes[i])}
		if i%3 == 0 {
			it.Labels = []string{"third"}
		}
		if err := batch.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	const query = 0x0f03
	for _, where := range []string{"", "label = 'third'"} {
		for _, radius := range []int{0, 3, 9, 32, 1000} {
			want := make([]int, min(radius, 32)+1)
			for i, code := range codes {
				if n := bits.OnesCount32(code ^ query); n < len(want) && (where == "" || i%3 == 0) {
					want[n]++
				}
			}
			for _, plan := range []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanDisk, db.PlanBlockScan} {
				q := db.Query{Code: binary.LittleEndian.AppendUint32(nil, query), Where: where, Plan: plan}
				runs, err := c.SearchRadius(t.Context(), q, radius)
				if err != nil {
					t.Fatal(err)
				}
				got, err := runs.Distances(t.Context())
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%q, radius %d, plan %v: %v, %v, want %v", where, radius, plan, got, err, want)
				}
				if err := runs.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := runs.Distances(t.Context()); !errors.Is(err, db.ErrClosed) {
					t.Errorf("closed: %v", err)
				}
			}
		}
	}
	runs, err := c.SearchRadius(t.Context(), db.Query{Key: "5"}, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runs.Distances(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// By score the codes are elsewhere, and counted as well.
func TestRunsDistancesByScore(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(120, synth.Config{Seed: 1, Noise: 1}))
	if _, err := c.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16}}); err != nil {
		t.Fatal(err)
	}
	q := db.Query{From: "image", To: "text", Key: "k7"}
	var counts [2][]int
	for i, rerank := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric} {
		q.Rerank = rerank
		runs, err := c.SearchRadius(t.Context(), q, 9)
		if err != nil {
			t.Fatal(err)
		}
		if counts[i], err = runs.Distances(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range counts[i] {
			sum += n
		}
		if sum != runs.Total() || sum == 0 {
			t.Errorf("%v: %d in all, total %d", rerank, sum, runs.Total())
		}
		if err := runs.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(counts[0], counts[1]) {
		t.Errorf("%v by distance, %v by score", counts[0], counts[1])
	}
}
