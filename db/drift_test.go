package db_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// driftByDefinition computes from the items, one by one, what MeasureDrift says of those
// in rows.
func driftByDefinition(t *testing.T, cv *state.CollectionView, all []*db.Item, rows []uint32) *db.Drift {
	t.Helper()
	m := cv.Space.Learned
	q := m.Bits()
	want := &db.Drift{Modalities: map[string]db.ModalityDrift{}}
	var examples []model.Example
	byRow := map[uint32]*db.Item{}
	it := cv.Live.Iterator()
	for _, item := range all {
		byRow[it.Next()] = item
	}
	for _, row := range rows {
		item := byRow[row]
		if item == nil {
			continue
		}
		e := model.Example{Labels: cv.Labels.Lookup(item.Labels)}
		known := false
		for _, mod := range m.Modalities() {
			x := item.Vectors[mod.Name]
			known = known || x != nil
			e.Vectors = append(e.Vectors, model.Dense(x))
		}
		if known {
			want.Items++
			examples = append(examples, e)
		}
	}
	residuals, labelled, err := m.ResidualOf(examples)
	if err != nil {
		t.Fatal(err)
	}
	for i, mod := range m.Modalities() {
		md := db.ModalityDrift{Labelled: labelled[i]}
		if md.Labelled > 0 {
			md.Residual = &residuals[i]
		}
		md.MAP = mapByDefinition(t, m, i, mod.Name, cv, byRow, rows)
		var distances []int
		means := make([]float64, q)
		for _, row := range rows {
			item := byRow[row]
			if item == nil || item.Vectors[mod.Name] == nil {
				continue
			}
			md.Items++
			z := make([]float64, q)
			if err := m.NewEncoder().Project(z, i, item.Vectors[mod.Name]); err != nil {
				t.Fatal(err)
			}
			if spaces.IsZero(z) {
				md.Far++
				continue
			}
			code := codec.PackSigns(codec.NewCode(q), z).AppendBytes(nil, q)
			for j := range means {
				means[j] += float64(int(code[j/8]>>(j%8)&1)*2 - 1)
			}
			nearest := math.MaxInt
			for other, o := range byRow {
				if other != row && o.Code != nil {
					nearest = min(nearest, hamming(code, o.Code))
				}
			}
			if nearest < math.MaxInt {
				distances = append(distances, nearest)
			}
		}
		if md.Items == 0 {
			continue
		}
		md.Nearest = summaryOf(distances)
		if n := float64(md.Items - md.Far); n > 0 {
			b := &db.Balance{}
			for _, sum := range means {
				b.BitBalance += math.Abs(sum/n) / float64(q)
				if math.Abs(sum) == n {
					b.ConstantBits++
				}
			}
			spaces.SetBalance(&md, b)
		}
		want.Modalities[mod.Name] = md
	}
	return want
}

// mapByDefinition is the mean average precision of labelled items in the half of them that
// a query is not in, every place in a tie being as likely as any other.
func mapByDefinition(t *testing.T, m *model.Model, at int, name string, cv *state.CollectionView, byRow map[uint32]*db.Item, rows []uint32) *float64 {
	t.Helper()
	q := m.Bits()
	type labelledItem struct {
		query, stored []byte
		labels        []string
	}
	var halves [2][]labelledItem
	n := 0
	for _, row := range slices.Sorted(slices.Values(rows)) {
		item := byRow[row]
		h, z := codec.NewCode(q), make([]float64, q)
		if item == nil || item.Vectors[name] == nil || !m.LabelCode(h, cv.Labels.Lookup(item.Labels)) {
			continue
		}
		if err := m.NewEncoder().Project(z, at, item.Vectors[name]); err != nil {
			t.Fatal(err)
		}
		if spaces.IsZero(z) {
			continue
		}
		code := codec.PackSigns(codec.NewCode(q), z)
		halves[n%2] = append(halves[n%2], labelledItem{code.AppendBytes(nil, q), h.AppendBytes(nil, q), item.Labels})
		n++
	}
	sum, queries := 0.0, 0
	for half, items := range halves {
		for _, x := range items {
			var all, relevant [1025]float64 // by distance
			count := 0.0
			for _, o := range halves[1-half] {
				d := hamming(x.query, o.stored)
				all[d]++
				if slices.ContainsFunc(o.labels, func(l string) bool { return slices.Contains(x.labels, l) }) {
					relevant[d]++
					count++
				}
			}
			if count == 0 {
				continue
			}
			precision, before, found := 0.0, 0.0, 0.0
			for d, m := range all {
				for place := 1.; place <= m; place++ {
					// Something relevant is there with probability r/m; then as many of the
					// others as are in front of it are, in the mean.
					inFront := 0.0
					if m > 1 {
						inFront = (place - 1) * (relevant[d] - 1) / (m - 1)
					}
					precision += relevant[d] / m * (found + 1 + inFront) / (before + place)
				}
				before, found = before+m, found+relevant[d]
			}
			sum += precision / count
			queries++
		}
	}
	if queries < driftQueries {
		return nil
	}
	mean := sum / float64(queries)
	return &mean
}

// How large a sample is at most, and from how many queries on their mean is told.
const driftItems, driftQueries = 256, 16

// summaryOf sums up distances by sorting them.
func summaryOf(distances []int) *db.Distances {
	n := len(distances)
	if n == 0 {
		return nil
	}
	slices.Sort(distances)
	sum := 0
	for _, d := range distances {
		sum += d
	}
	return &db.Distances{
		Queries: n, Mean: float64(sum) / float64(n),
		P50: distances[int(math.Ceil(float64(n)/2))-1], P90: distances[int(math.Ceil(float64(9*n)/10))-1],
	}
}

// nearly compares floats up to rounding, and all else exactly.
var nearly = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })

// driftOf measures rows of a collection in a space.
func driftOf(t *testing.T, c *db.Collection, space uint32, rows []uint32) (d *db.Drift, in *state.CollectionView) {
	t.Helper()
	err := db.Read(c, func(v *state.View, cv *state.CollectionView) (err error) {
		if in, err = cv.InSpace(space); err == nil {
			d, err = learn.MeasureDrift(ctx, v, in, roaring.BitmapOf(rows...))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, in
}

func allRows(n int) []uint32 {
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}

func TestDriftIsThatOfALinearScan(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(170, 3)
	items[6].Vectors = nil                             // labels alone
	items[8].Labels = append(items[8].Labels, "other") // that training sees with one more
	putAll(t, c, items[:150])
	opt := db.TrainOptions{Rows: 60, Options: model.Options{
		Bits: 32, Anchors: 30, Seed: 1, Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
	}}
	dbkit.MustTrain(t, c, opt)
	far := *items[150]
	far.Vectors = map[string][]float32{"image": slices.Repeat([]float32{1e9}, 8), "text": items[1].Vectors["text"]}
	items[150] = &far
	items[151].Labels = []string{"never trained"}
	items[152].Vectors = items[153].Vectors
	items[152].Labels, items[153].Labels = nil, nil
	putAll(t, c, items[150:])
	if _, err := c.Delete(ctx, items[4].Key, items[77].Key); err != nil {
		t.Fatal(err)
	}
	all := dbkit.AllItems(t, c)
	for _, rows := range [][]uint32{allRows(200), allRows(40), {150}, {150, 151, 152, 153, 154, 155}} {
		got, in := driftOf(t, c, 0, rows)
		want := driftByDefinition(t, in, all, rows)
		if diff := cmp.Diff(want, got, nearly); diff != "" {
			t.Fatal(diff)
		}
		if len(rows) < 200 && rows[0] == 150 && got.Modalities["image"].Far != 1 {
			t.Errorf("%+v", got)
		}
	}
	for _, rows := range [][]uint32{nil, {4, 77}, {6}, {999}} {
		if d, _ := driftOf(t, c, 0, rows); d != nil {
			t.Errorf("%+v of rows %v", d, rows)
		}
	}
}

func TestDriftOfOneModality(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "text", Dim: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(60, synth.Config{Noise: 2})
	for i, it := range items {
		delete(it.Vectors, "image")
		if i%3 == 0 {
			it.Labels = nil
		}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 16}})
	got, in := driftOf(t, c, 0, allRows(60))
	want := driftByDefinition(t, in, dbkit.AllItems(t, c), allRows(60))
	if diff := cmp.Diff(want, got, nearly); diff != "" || got.Modalities["text"].Nearest.Queries != 60 {
		t.Error(diff)
	}
	only, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := only.Put(ctx, &db.Item{Key: "a", Code: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	if d, _ := driftOf(t, only, 0, []uint32{0}); d != nil {
		t.Errorf("codes without a model drift: %+v", d)
	}
}

// Of many rows a sample is measured, the same one each time.
func TestDriftOfASample(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(1000, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 30}})
	var rows, sample []uint32
	for i := range 900 {
		rows = append(rows, uint32(100+i))
	}
	for i := range driftItems {
		sample = append(sample, rows[i*900/driftItems])
	}
	got, _ := driftOf(t, c, 0, rows)
	want, _ := driftOf(t, c, 0, sample)
	again, _ := driftOf(t, c, 0, rows)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(got, again) || got.Items != driftItems {
		t.Errorf("%+v, %+v and %+v", got, want, again)
	}
}

// A space begins with the drift of what it was trained on, and items of other kinds than
// these are farther off.
func TestDriftShowsThatTheDataHasChanged(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(300, synth.Config{Seed: 1}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32}, Rows: 200})
	first := spacesOf(t, c)[0].Revisions[0].Drift
	trained, _ := driftOf(t, c, 0, allRows(200))
	trained.Trained = true
	if diff := cmp.Diff(trained, first, nearly); diff != "" {
		t.Fatal("of the training items:", diff)
	}
	same, _ := driftOf(t, c, 0, allRows(300)[200:])
	strange := dbkit.Pairs(60, synth.Config{Seed: 1})
	for i, it := range strange { // the labels of one item with the vectors of another
		it.Key = "s" + it.Key
		it.Vectors = dbkit.Pairs(60, synth.Config{Seed: 77})[i].Vectors
	}
	putAll(t, c, strange)
	other, _ := driftOf(t, c, 0, allRows(360)[300:])
	for name, was := range first.Modalities {
		is, new := same.Modalities[name], other.Modalities[name]
		if *was.Residual > .3 || *is.Residual > .4 || *new.Residual < 2**is.Residual {
			t.Errorf("%s: residual %.3f of training, %.3f of items like these, %.3f of others", name, *was.Residual, *is.Residual, *new.Residual)
		}
		if *was.MAP < .9 || *is.MAP < .9 || *new.MAP > *is.MAP-.2 {
			t.Errorf("%s: mAP %.3f of training, %.3f of items like these, %.3f of others", name, *was.MAP, *is.MAP, *new.MAP)
		}
		if new.Nearest.Mean < 2*is.Nearest.Mean || is.Far > 0 {
			t.Errorf("%s: %+v of items like those of training, %+v of others", name, is, new)
		}
	}
	// The revision that learns from them says so.
	if _, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}); err != nil {
		t.Fatal(err)
	}
	revisions := spacesOf(t, c)[0].Revisions
	if len(revisions) != 2 || revisions[1].Drift == nil || revisions[1].Drift.Trained || revisions[1].Drift.Items != 160 {
		t.Fatalf("%+v", revisions)
	}
	for name, was := range first.Modalities {
		if is := revisions[1].Drift.Modalities[name]; *is.Residual < 1.5**was.Residual {
			t.Errorf("%s: residual %.3f after %.3f", name, *is.Residual, *was.Residual)
		}
	}
	dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, dbkit.MustOpen(t, db.State(d).Engine.Dir, nil), "main")
	defer db.Of(c).Close()
	if diff := cmp.Diff(revisions, spacesOf(t, c)[0].Revisions); diff != "" {
		t.Error("reopened:", diff)
	}
}

func TestDriftIsKeptAsJSON(t *testing.T) {
	residual := .25
	want := &db.Drift{Items: 3, Modalities: map[string]db.ModalityDrift{
		"text":  {Items: 3, Labelled: 1, Residual: &residual, MAP: &residual, Nearest: &db.Distances{Queries: 3, Mean: 2.5, P50: 2, P90: 3}, Balance: &db.Balance{BitBalance: 0, ConstantBits: 0}},
		"image": {Items: 1, Far: 1},
	}}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &db.Drift{}
	if err := json.Unmarshal(b, got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s became %+v, %v", b, got, err)
	}
}

func TestDistancesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distances := rapid.SliceOfN(rapid.IntRange(0, 16), 0, 40).Draw(t, "distances")
		counts := make([]int64, 17)
		for _, d := range distances {
			counts[d]++
		}
		if diff := cmp.Diff(summaryOf(distances), state.DistancesOf(counts), nearly); diff != "" {
			t.Fatal(diff)
		}
	})
}
