package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// TestEncodeAllIsEncode: an item has the same encoding in any company.
func TestEncodeAllIsEncode(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(120, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	const n = 3*spaces.EncodeRun + 7
	data := synth.Pairs(synth.Config{Items: n, Dims: []int{8, 5}, Missing: .3, Seed: 2})
	vectors := make([][]model.Vector, n)
	labels := make([][]uint32, n)
	for i := range n {
		for _, x := range data.Item(i) {
			vectors[i] = append(vectors[i], model.Dense(x))
		}
		switch i % 5 {
		case 0:
			labels[i] = []uint32{0, 1}
		case 1:
			vectors[i] = nil
		case 2:
			vectors[i] = []model.Vector{model.Dense([]float32{1e30, 0, 0, 0, 0, 0, 0, 0})} // far from all
		}
	}
	err := db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		s := cv.Space
		encs := make([]spaces.Encoding, n)
		encode := func(ctx context.Context) error {
			return s.EncodeAll(ctx, work.All(), encs,
				func(i int) ([]model.Vector, []uint32) { return vectors[i], labels[i] },
				func(i int, err error) error { return fmt.Errorf("item %d: %w", i, err) })
		}
		if err := encode(ctx); err != nil {
			return err
		}
		for i, got := range encs {
			want, err := s.Encode(vectors[i], labels[i], nil)
			if err != nil {
				return err
			}
			if got.Space != s || !slices.Equal(got.Code, want.Code) || got.From != want.From || cmp.Diff(got.Projection, want.Projection) != "" {
				t.Fatalf("item %d is %+v among others, and %+v alone", i, got, want)
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := encode(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		vectors[77] = []model.Vector{{}, model.Dense([]float32{0, 0, float32(math.NaN()), 0, 0})}
		if err := encode(ctx); !errors.Is(err, model.ErrNotFinite) || err.Error()[:8] != "item 77:" {
			t.Errorf("NaN in item 77: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
