package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// codeByModel computes from the definition the code that an item has by the model of its collection; nil for
// none.
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

// codeOfItem computes the code of an item with these labels and vectors, one for each modality of the model,
// from the definition, and the sum of its projections.
func codeOfItem(m *model.Model, labels []uint32,
	vectors []model.Vector) (code []byte, total []float64, err error) {
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
	if floats.Norm(m.Parts().Mean, 1) != 0 { // what else there is to it is for the tests of the model
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

// TestEncodeAllIsEncode: an item has the same encoding in any company.
func TestEncodeAllIsEncode(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 120, synth.Config{})
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
	must(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
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
			if got.Space != s || !slices.Equal(got.Code, want.Code) || got.From != want.From ||
				cmp.Diff(got.Projection, want.Projection) != "" {
				t.Fatalf("item %d is %+v among others, and %+v alone", i, got, want)
			}
		}
		errorIs(t, encode(cancelled), context.Canceled)
		vectors[77] = []model.Vector{{}, model.Dense([]float32{0, 0, float32(math.NaN()), 0, 0})}
		if err := encode(ctx); !errors.Is(err, model.ErrNotFinite) || err.Error()[:8] != "item 77:" {
			t.Errorf("NaN in item 77: %v", err)
		}
		return nil
	}))
}

// itemProjections returns the projections of an item by modality of the collection, nil where it has none.
func itemProjections(t *testing.T, c *db.Collection, it *db.Item) (z [][]float64) {
	t.Helper()
	for _, m := range dbkit.PairsSchema.Modalities {
		var p []float64
		if x := it.Vectors[m.Name]; x != nil {
			_, q := need2(c.EncodeQuery(ctx, db.Query{From: m.Name, Vector: x}))(t)
			p = q
		}
		z = append(z, p)
	}
	return z
}

// TestUnlabelledItemsAreFused: items without labels get the codes that the report of
// the training says, whichever vectors they have, put before the training and after it, in
// batches and one by one, and have them after reopening.
func TestUnlabelledItemsAreFused(t *testing.T) {
	dbkit.LongTest(t)
	const bits = 32
	items := dbkit.Pairs(260, synth.Config{Seed: 2, Noise: 2.5, Missing: .2})
	rng := rand.New(rand.NewPCG(1, 1))
	for _, it := range items {
		for j := range it.Vectors["image"] {
			it.Vectors["image"][j] = float32(rng.NormFloat64()) // noise
		}
	}
	for _, tc := range []struct {
		fusion string
		alone  string // the modality that makes the codes of items that have both
	}{{"auto", ""}, {"sum", ""}, {"image", "image"}} {
		t.Run(tc.fusion, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			d, c := openNew(t, dir, nil, dbkit.PairsSchema)
			defer func() { d.Close() }()
			var unlabelled []*db.Item
			for _, it := range items[200:] {
				other := *it
				other.Labels = nil
				unlabelled = append(unlabelled, &other)
			}
			putAll(t, c, items[:200])
			putAll(t, c, unlabelled[:20]) // which the training encodes
			fusion := need(fit.ParseFusion(tc.fusion))(t)
			// A small gamma makes the noise loud.
			training := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{
				Bits: bits, Fusion: fusion, Gamma: map[string]float64{"image": 1e-5, "text": .1},
			}})
			putAll(t, c, unlabelled[20:40])
			putEach(t, c, unlabelled[40:])
			view := training.Fusion
			failIf(t, tc.fusion == "auto" && (view.Weights["image"] > .5 || view.Weights["text"] != 1),
				"noise counts: %+v", view)
			// The mean of what the labelled items teach, which is subtracted unless the fusion is given.
			mean, aim := make([]float64, bits), make([]float64, bits)
			check := func() {
				t.Helper()
				clear(mean)
				cv := inSpace(t, c, 1)
				for _, it := range items[:200] {
					stored := need(c.Get(ctx, it.Key))(t)
					stopIf(t, stored.CodeFrom != "labels", "the code of a labelled item is from %q",
						stored.CodeFrom)
					stopIf(t, !cv.Space.Learned.LabelAim(aim, cv.Labels.Lookup(it.Labels)),
						"the model does not know the labels %q", it.Labels)
					for j := range mean {
						if tc.fusion == "auto" {
							mean[j] += aim[j] / 200
						}
					}
				}
				for i, it := range unlabelled {
					z := itemProjections(t, c, it)
					weights := []float64{view.Weights["image"], view.Weights["text"]}
					counts := 0
					for m := range z {
						if z[m] == nil {
							weights[m] = 0
						} else if weights[m] > 0 {
							counts++
						}
					}
					if counts == 0 {
						for m := range z {
							if z[m] != nil {
								weights[m] = 1
							}
						}
					}
					want := make([]float64, bits)
					for m := range z {
						for j, v := range z[m] {
							want[j] += weights[m] * (v - mean[j])
						}
					}
					stored := need(c.Get(ctx, it.Key))(t)
					code := codec.PackSigns(codec.NewCode(bits), want).AppendBytes(nil, bits)
					stopIf(t, !slices.Equal(stored.Code, code), "item %d has code %x, want %x", i,
						stored.Code, code)
					from := "fused"
					if tc.alone != "" && z[0] != nil && z[1] != nil {
						from = tc.alone
					}
					if weights[0] > 0 != (weights[1] > 0) && z[0] != nil && z[1] != nil && tc.alone == "" {
						from = "text"
					}
					failIf(t, stored.CodeFrom != from, "item %d has its code from %q, want %q", i,
						stored.CodeFrom, from)
					if encoded, _, err := c.Encode(it); err != nil || !slices.Equal(encoded, code) {
						t.Errorf("item %d would get %x (%v), and has %x", i, encoded, err, code)
					}
				}
			}
			check()
			d, _ = reopen(t, d, dir, nil)
			c = need(d.Collection("main"))(t)
			check()
		})
	}
}

// storedNear opens a database of manyCodes and returns its codes as they are found
// in the store, and where they are in memory.
func storedNear(t *testing.T, n int) (cold *search.StoredCodes, warm *state.CodeSetView) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: manyCodes(t, n)})
	c := dbkit.MustCollection(t, d, "main")
	must(t, db.Inside(c).Loaded(ctx))
	v, done := need2(db.State(d).Acquire())(t)
	cv := need(v.Collection(db.Inside(c).ID, db.Inside(c).Name))(t)
	warm = &cv.Codes
	without := *warm
	without.Table = nil
	cold = search.NewStoredCodes(v.Snap, &without, nil)
	t.Cleanup(func() {
		fine(t, cold.Close())
		done()
		dbkit.MustClose(t, d)
	})
	return cold, warm
}

// numbersOf returns the numbers of all codes in memory.
func numbersOf(set *state.CodeSetView) []uint32 {
	var out []uint32
	for n := range uint32(set.NextCode) {
		if set.Table.Code(n) != nil {
			out = append(out, n)
		}
	}
	return out
}

// Codes that several goroutines read from the store are those in memory, however
// many there are, and so are the rows that carry them.
func TestNearInParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s, warm := storedNear(t, 3000)
	all := numbersOf(warm)
	query := need(codec.CodeFromBytes(codeAt(77)))(t)
	for _, n := range []int{0, 1, search.MinPart, 2*search.MinPart - 1, 2 * search.MinPart,
		5*search.MinPart + 3, len(all)} {
		for _, r := range []int{0, 20, 64} {
			numbers := all[len(all)-n:]
			want := []codec.Near{3}
			for _, x := range numbers {
				if d := codec.Distance(query, warm.Table.Code(x)); d <= r {
					want = append(want, codec.NearOf(d, x))
				}
			}
			got, err := s.Near(ctx, []codec.Near{3}, query, numbers, r)
			slices.Sort(want[1:])
			slices.Sort(got[1:])
			stopIf(t, err != nil || !slices.Equal(got, want), "%d of %d codes within %d, want %d: %v",
				len(got), n, r, len(want), err)
			for _, x := range got[1:] {
				rows, err := s.Rows(x.Position())
				if a, b := rows.AppendTo(nil, nil), warm.Table.Rows(x.Position()).AppendTo(nil,
					nil); err != nil || !slices.Equal(a, b) {
					t.Fatalf("rows %d of code %d, want %d: %v", a, x.Position(), b, err)
				}
			}
		}
	}
}

// What ends one of the goroutines ends the search, with an error that says what it was, and a panic is one.
func TestNearFails(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s, warm := storedNear(t, 3000)
	all := numbersOf(warm)
	query := codec.NewCode(64)
	missing := append(slices.Clone(all), uint32(warm.NextCode)+1000)
	if got, err := s.Near(ctx, nil, query, missing, 64); len(got) != 0 || !errors.Is(err, db.ErrCorrupt) ||
		!strings.Contains(err.Error(), "code number 4000: missing") {
		t.Errorf("a code that is missing: %d, %v", len(got), err)
	}
	if got, err := s.Near(ctx, nil, codec.NewCode(128), all, 64); len(got) != 0 || err == nil ||
		!strings.Contains(err.Error(), "index out of range") {
		t.Errorf("a panic: %d, %v", len(got), err)
	}
	got, err := s.Near(cancelled, nil, query, all, 64)
	failIf(t, len(got) != 0 || !errors.Is(err, context.Canceled), "cancelled: %d, %v", len(got), err)
	got, err = s.Near(ctx, nil, query, all, 64)
	failIf(t, len(got) != len(all) || err != nil, "after that: %d of %d, %v", len(got), len(all), err)
}

// Codes that are far apart cost the blocks that they are in, and none between.
func TestCodesFarApartAreReadAlone(t *testing.T) {
	s, warm := storedNear(t, 9000)
	read := func(step uint32) uint64 {
		b := record.NewCodeBlocks(s.Snap, s.Set.CodeKeys)
		for n := uint32(0); n < uint32(warm.NextCode); n += step * codec.BlockRows {
			need2(b.Read(n))(t)
		}
		stats := b.It.Stats()
		fine(t, b.Close())
		return stats.InternalStats.BlockBytes
	}
	if all, some := read(1), read(9); some > all/3 {
		t.Errorf("%d bytes for one block of nine, %d for all", some, all)
	}
}
