package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// codesByModel computes from the definition the codes that an item has by the model
// of its collection, by target; the shared one is under "".
func codesByModel(cv *state.CollectionView, it *db.Item) (map[string][]byte, error) {
	m := cv.Space.Learned
	vectors := make([]model.Vector, len(m.Modalities()))
	for i, mod := range m.Modalities() {
		if dense := it.Vectors[mod.Name]; dense != nil {
			vectors[i] = model.Dense(dense)
		} else if sparse, ok := it.Sparse[mod.Name]; ok {
			vectors[i] = model.Sparse(sparse.Index, sparse.Value)
		}
	}
	codes, _, err := codesOf(m, cv.Labels.Lookup(it.Labels), vectors)
	return codes, err
}

// codesOf computes the codes of an item with these labels and vectors, one for each
// modality of the model, from the definition, by target, and the sum of its projections.
func codesOf(m *model.Model, labels []uint32, vectors []model.Vector) (codes map[string][]byte, total []float64, err error) {
	bits := m.Bits()
	label := codec.NewCode(bits)
	labelled := m.LabelCode(label, labels)
	z := make([][]float64, len(vectors)) // by modality of the model; nil where the item lacks it
	total = make([]float64, bits)
	for i, x := range vectors {
		if x.Present() {
			z[i] = make([]float64, bits)
			if err := m.NewEncoder().ProjectVectors(z[i], i, []model.Vector{x}); err != nil {
				return nil, nil, err
			}
			for j, v := range z[i] {
				total[j] += v
			}
		}
	}
	codes = map[string][]byte{}
	add := func(name string, target int) {
		if labelled {
			codes[name] = label.AppendBytes(nil, bits)
			return
		}
		weights, given := m.Weights(target), false
		for i := range z {
			given = given || z[i] != nil && weights[i] > 0
		}
		sum := make([]float64, bits)
		any := false
		for i := range z {
			for j := range z[i] {
				w := 1.0
				if given {
					w = weights[i]
				}
				sum[j] += w * z[i][j]
			}
		}
		for _, x := range sum {
			any = any || x != 0
		}
		if m.Centre(target) != 0 { // what else there is to it is for the tests of the model
			m.Fuse(sum, target, z)
		}
		if any {
			codes[name] = codec.PackSigns(codec.NewCode(bits), sum).AppendBytes(nil, bits)
		}
	}
	if m.Views() == model.ViewsShared {
		add("", 0)
		return codes, total, nil
	}
	for i, mod := range m.Modalities() {
		if z[i] != nil {
			add(mod.Name, i)
		}
	}
	return codes, total, nil
}

// fataler is what tests and checks of random histories have in common.
type fataler interface {
	Helper()
	Fatal(...any)
}

// checkCodes compares the codes of items with what the model makes of them.
func checkCodes(t fataler, c *db.Collection, items []*db.Item) {
	t.Helper()
	err := db.Read(c, func(v *state.View, cv *state.CollectionView) error {
		if cv.Space == nil || cv.CodesOnly() {
			return nil
		}
		coded := 0
		for _, it := range items {
			want, err := codesByModel(cv, it)
			if err != nil {
				return err
			}
			got := map[string][]byte{}
			if it.Code != nil {
				got[""] = it.Code
			}
			for target, code := range it.Codes {
				if code.From == "" {
					return fmt.Errorf("item %s has a code from nowhere", it.Key)
				}
				got[target] = code.Code
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("item %s: %s", it.Key, diff)
			}
			if len(want) > 0 {
				coded++
			}
		}
		if s, err := db.StatsOf(v, cv); err != nil || s.CodedItems != coded {
			return fmt.Errorf("%d items have a code, %d are reported, %v", coded, s.CodedItems, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// codeFor returns the code by which an item is found, nil for none.
func codeFor(it *db.Item, to string, s *db.CollectionStats) []byte {
	if len(s.Views) > 0 {
		return it.Codes[to].Code
	}
	return it.Code
}

func drawViews(t *rapid.T) (model.Views, model.Fusion) {
	views := rapid.SampledFrom([]model.Views{model.ViewsShared, model.ViewsTarget}).Draw(t, "views")
	if views == model.ViewsShared {
		return views, model.Fusion{Rule: model.FusionSum}
	}
	return views, rapid.SampledFrom([]model.Fusion{{Rule: model.FusionSum}, {Rule: model.FusionTarget}}).Draw(t, "fusion")
}

// drawTarget returns the target of a query; where it has to have one of those that
// there are, it checks that others are refused.
func drawTarget(t *rapid.T, c *db.Collection, s *db.CollectionStats, q db.Query) string {
	if len(s.Views) == 0 {
		return q.To
	}
	var targets []string
	for _, v := range s.Views {
		targets = append(targets, v.Target)
	}
	for _, to := range []string{"", "image", "text"} {
		probe := q
		probe.From, probe.Vector, probe.Key, probe.To = "", nil, "", to
		probe.Code = make([]byte, s.Bits/8)
		want := error(nil)
		switch {
		case to == "":
			want = db.ErrInvalid
		case !slices.Contains(targets, to):
			want = db.ErrNoModel
		}
		if _, err := c.Search(ctx, probe); !errors.Is(err, want) {
			t.Fatalf("a search to %q, with codes for %v: %v", to, targets, err)
		}
	}
	if q.To != "" && !slices.Contains(targets, q.To) {
		return ""
	}
	return rapid.SampledFrom(targets).Draw(t, "target")
}

// checkViews compares all that a collection says with the definition.
func checkViews(t *testing.T, d *db.DB, c *db.Collection) {
	t.Helper()
	items := dbkit.AllItems(t, c)
	checkCodes(t, c, items)
	checkSpaces(t, d)
	s, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{"", "image", "text"}
	if len(s.Views) > 0 {
		targets = targets[1:]
	}
	memory, distinct := int64(0), 0
	for _, v := range s.Views {
		memory, distinct = memory+v.MemoryBytes, distinct+v.DistinctCodes
	}
	if len(s.Views) > 0 && (memory > s.MemoryBytes || distinct != s.DistinctCodes) {
		t.Errorf("the views do not add up: %+v", s)
	}
	cold, release := coldCollection(d, c)
	defer release()
	var queries []db.Query
	var answers []*db.Result
	for i, to := range targets {
		keys := map[string]int{}
		codes := map[string][]byte{}
		for row, it := range items {
			if code := codeFor(it, to, s); code != nil && (to == "" || it.Vectors[to] != nil) {
				keys[it.Key], codes[it.Key] = row, code
			}
		}
		for _, c := range []*db.Collection{c, cold} {
			n := 0
			for x, err := range c.Codes(ctx, to) {
				if n++; err != nil || !slices.Equal(codes[x.Key], x.Code) {
					t.Fatalf("to %q: %+v, not %x, %v", to, x, codes[x.Key], err)
				}
			}
			if n != len(codes) {
				t.Fatalf("to %q: %d codes, not %d", to, n, len(codes))
			}
		}
		q := db.Query{To: to, Code: dbkit.RandomCodes(1, s.Bits, uint64(i))[0], K: len(items) + 1}
		if it := items[(7*i+5)%len(items)]; codeFor(it, to, s) != nil {
			q.Code = codeFor(it, to, s) // so that something is near
		}
		if i%2 == 1 {
			q.Where = "has(text) OR has(image)"
		}
		for _, plan := range dbkit.AllPlans {
			q.Plan = plan
			for _, c := range []*db.Collection{c, cold} {
				r := s.Bits
				if plan == db.PlanDisk {
					r = 6 // more are very many lookups
				}
				got, err := dbkit.FirstWithin(c, q, r)
				if err != nil || got.Total != len(got.Hits) {
					t.Fatalf("to %q, plan %v: %v, %v", to, plan, got, err)
				}
				seen := map[string]bool{}
				for j, h := range got.Hits {
					code, ok := codes[h.Key]
					if !ok || seen[h.Key] || hamming(code, q.Code) != h.Distance || j > 0 && h.Distance < got.Hits[j-1].Distance {
						t.Fatalf("to %q, plan %v, hit %d: %+v, code %x", to, plan, j, h, code)
					}
					seen[h.Key] = true
				}
				want := 0
				for key, code := range codes {
					if (q.Where == "" || len(items[keys[key]].Vectors) > 0) && hamming(code, q.Code) <= r {
						want++
					}
				}
				if len(got.Hits) != want {
					t.Fatalf("to %q, plan %v: %d hits of %d", to, plan, len(got.Hits), want)
				}
			}
		}
		q.Plan = db.PlanAuto
		for range 5 { // so that there are some to share a scan
			res, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			queries, answers = append(queries, q), append(answers, res)
			q.Code = dbkit.RandomCodes(1, s.Bits, uint64(len(queries)))[0]
		}
	}
	all, err := c.SearchAll(ctx, queries)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if !oracle.SameHits(all[i].Hits, answers[i].Hits) {
			t.Fatalf("query %d to %q has other answers among others", i, queries[i].To)
		}
	}
}

func hamming(a, b []byte) int {
	x, _ := codec.CodeFromBytes(a)
	y, _ := codec.CodeFromBytes(b)
	return codec.Distance(x, y)
}

// Training goes from shared views to those of targets and back; writes, reopening and
// compaction in between change nothing about what the model says.
func TestViewsThroughALife(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.ViewItems(170, 3)
	w.put(items[:120])
	spaces := 0
	trainings := []model.Options{
		{Bits: 32, Anchors: 30}, dbkit.ViewsTraining.Options, {Bits: 32, Anchors: 30}, {Bits: 16, Anchors: 20, Views: model.ViewsTarget, Fusion: model.Fusion{Rule: model.FusionSum}}, dbkit.ViewsTraining.Options,
	}
	for _, opt := range trainings[:effort.Of(5, 3)] {
		tr := dbkit.MustTrain(t, w.c, db.TrainOptions{Options: opt})
		if spaces++; int(tr.Space) != spaces {
			t.Errorf("%+v", tr)
		}
		checkViews(t, w.d, w.c)
		// An item comes, loses what it has bit by bit, and gets it back.
		both := items[7*spaces]
		for _, it := range []*db.Item{
			{Key: "new", Vectors: both.Vectors, Labels: items[0].Labels},
			{Key: "new", Vectors: both.Vectors},
			{Key: "new", Vectors: map[string][]float32{"text": items[1].Vectors["text"]}},
			{Key: "new"},
			{Key: "new", Labels: items[2].Labels},
		} {
			w.put([]*db.Item{it})
			checkViews(t, w.d, w.c)
		}
		if _, err := w.c.Merge(ctx, &db.Item{Key: "new", Vectors: map[string][]float32{"image": items[4].Vectors["image"]}}); err != nil {
			t.Fatal(err)
		}
		if n, err := w.c.Delete(ctx, "k3", "k10", "k11", "k12"); n == 0 && spaces == 1 || err != nil {
			t.Fatal(n, err)
		}
		w.put(items[10:13])
		w.put(items[120 : 120+10*spaces])
		checkViews(t, w.d, w.c)
		w.reopen()
		checkViews(t, w.d, w.c)
		if err := w.d.Compact(ctx); err != nil {
			t.Fatal(err)
		}
		checkViews(t, w.d, w.c)
	}
	// Of spaces that are dropped nothing is left.
	for space := 1; space < spaces; space++ {
		if err := w.c.DropSpace(ctx, db.Space(space)); err != nil {
			t.Fatal(err)
		}
	}
	for key := range contents(t, w.d) {
		if kind := key[0]; kind >= codec.KindSpace && kind <= codec.KindSubstring && key[8] != byte(spaces) {
			t.Fatalf("key %x", key)
		}
	}
}

// A target view and the shared one with the same weights have the same codes, for the
// items that have the target.
func TestTargetViewsOfSumsAreTheSharedOne(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.ViewItems(200, 4))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 30, Fusion: model.Fusion{Rule: model.FusionSum}}})
	shared := dbkit.AllItems(t, c)
	q := db.Query{From: "image", To: "text", Vector: shared[0].Vectors["image"], K: 500}
	want, err := c.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 30, Views: model.ViewsTarget, Fusion: model.Fusion{Rule: model.FusionSum}}})
	for i, it := range dbkit.AllItems(t, c) {
		if it.Code != nil || it.CodeFrom != "" {
			t.Errorf("item %s has a shared code", it.Key)
		}
		for target := range shared[i].Vectors {
			if got := it.Codes[target]; !slices.Equal(got.Code, shared[i].Code) || got.From != shared[i].CodeFrom {
				t.Errorf("item %s to %s: %x from %s, not %x from %s", it.Key, target, got.Code, got.From, shared[i].Code, shared[i].CodeFrom)
			}
		}
		if len(it.Codes) != len(it.Vectors) {
			t.Errorf("item %s has %d codes and %d vectors", it.Key, len(it.Codes), len(it.Vectors))
		}
	}
	got, err := c.Search(ctx, q)
	if err != nil || !slices.Equal(got.Hits, want.Hits) {
		t.Errorf("%d hits, not %d, or in another order: %v", len(got.Hits), len(want.Hits), err)
	}
}

// What has no target is told to name one, and what names none that is known so.
func TestTargetsMustBeNamed(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}, {Name: "sound", Dim: 3}}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.ViewItems(100, 5)
	putAll(t, c, items)
	tr := dbkit.MustTrain(t, c, dbkit.ViewsTraining)
	if !slices.Equal(tr.LeftOut, []string{"sound"}) || tr.Items == 0 {
		t.Fatalf("%+v", tr)
	}
	image := map[string][]float32{"image": items[0].Vectors["image"]}
	for to, want := range map[string]error{"": db.ErrInvalid, "smell": db.ErrInvalid, "sound": db.ErrNoModel} {
		q := db.Query{To: to, Key: "k0"}
		for what, err := range map[string]error{
			"search":  dbkit.Second(c.Search(ctx, q)),
			"radius":  dbkit.Second(c.SearchRadius(ctx, q, 3)),
			"count":   dbkit.Second(c.CountRadius(ctx, q, 3)),
			"all":     dbkit.Second(c.SearchAll(ctx, []db.Query{q})),
			"near":    dbkit.Second(dbkit.Collect(c.Neighbors(ctx, q))),
			"explain": func() error { _, _, err := c.Explain(ctx, q, -1); return err }(),
			"encode":  func() error { _, _, err := c.Encode(to, &db.Item{Vectors: image}); return err }(),
			"codes": func() error {
				for _, err := range c.Codes(ctx, to) {
					return err
				}
				return nil
			}(),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s to %q: %v", what, to, err)
			}
		}
	}
	// Targets of which nothing is learned have no figures.
	got, err := c.Evaluate(ctx, db.Evaluation{Queries: map[string][][]float32{"image": {items[0].Vectors["image"]}}, Labels: [][]string{items[0].Labels}})
	if err != nil || len(got) != 1 || got[0].To != "text" {
		t.Errorf("%+v, %v", got, err)
	}
	// An item without the target is a query by what it has elsewhere.
	res, err := c.Search(ctx, db.Query{To: "text", Key: "k3", K: 3}) // it lacks text
	if err != nil || len(res.Hits) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	it, err := c.Get(ctx, "k3")
	if err != nil {
		t.Fatal(err)
	}
	byCode, err := c.Search(ctx, db.Query{To: "text", Code: it.Codes["image"].Code, K: 3})
	if err != nil || !oracle.SameHits(res.Hits, byCode.Hits) {
		t.Errorf("%+v and %+v, %v", res.Hits, byCode.Hits, err)
	}
	// A cursor goes on in the view that it comes from.
	first, err := c.Search(ctx, db.Query{To: "text", Key: "k0", K: 3})
	if err != nil || first.Next == "" {
		t.Fatal(first, err)
	}
	if _, err := c.Search(ctx, db.Query{To: "image", Key: "k0", K: 3, After: first.Next}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a cursor of another target: %v", err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 30}})
	if _, err := c.Search(ctx, db.Query{To: "text", Key: "k0", K: 3, After: first.Next}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a cursor of another space: %v", err)
	}
}

// A bulk load that cannot be stored leaves all views as they were.
func TestFailedBulkLoadOfViews(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	broken := false
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, store.IngestName) {
			return dbkit.ErrInjected
		}
		return nil
	}))
	w := &world{t: t, fs: fsys}
	w.d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer func() { w.d.Close() }()
	var err error
	if w.c, err = w.d.CreateCollection(ctx, "main", dbkit.PairsSchema); err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.ViewItems(bulkItems+300, 8)
	for _, w := range []*world{w, other} {
		w.put(items[:300])
		dbkit.MustTrain(t, w.c, dbkit.ViewsTraining)
	}
	broken = true
	b := w.d.NewBatch()
	for _, it := range items[300:] {
		b.Put(w.c, it)
	}
	if err := b.Commit(ctx); !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed) {
		t.Fatal(err)
	}
	broken = false
	sameContents(t, w.d, other.d)
	sameAnswers(t, w.c, other.c)
	for _, w := range []*world{w, other} {
		w.put(items[300:])
	}
	for range 2 {
		sameAnswers(t, w.c, other.c)
		w.reopen()
		other.reopen()
	}
}

// Views of many codes are loaded in the background; searches give the same answers
// before, and writers wait for all of them.
func TestViewsAreLoadedInTheBackground(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, false)
	items := dbkit.Pairs(state.LoadAtOnce+2000, synth.Config{Classes: 30, Noise: 30, Seed: 9})
	for i, it := range items {
		if i >= 600 {
			it.Labels = nil
		}
	}
	w.put(items)
	opt := db.TrainOptions{Options: model.Options{
		Bits: 128, Anchors: 300, Views: model.ViewsTarget,
		Gamma: map[string]float64{"image": 1e-8, "text": 1e-8}, // so that many codes come out
		Map:   map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
	}}
	dbkit.MustTrain(t, w.c, opt)
	s, err := w.c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Views {
		if v.DistinctCodes <= state.LoadAtOnce {
			t.Fatalf("%+v", v)
		}
	}
	var queries []db.Query
	for i := range 6 {
		q := db.Query{From: "image", To: "text", Vector: items[i].Vectors["image"]}
		if i%2 == 1 {
			q = db.Query{From: "text", To: "image", Vector: items[i].Vectors["text"]}
		}
		queries = append(queries, q)
	}
	want, err := w.c.SearchAll(ctx, queries)
	if err != nil {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		for i, q := range queries {
			if got, err := w.c.Search(ctx, q); err != nil || !oracle.SameHits(got.Hits, want[i].Hits) {
				t.Errorf("%s: query %d: %v, not %v, %v", when, i, got, want[i], err)
			}
		}
	}
	w.reopen()
	same("at once")
	w.put([]*db.Item{{Key: "far", Vectors: map[string][]float32{"text": {9, 9, 9, 9, 9}}}})
	for set := range db.State(w.d).Current.Load().Sets() {
		if set.Table == nil {
			t.Errorf("view %d was not waited for", set.Target)
		}
	}
	if _, err := w.c.Delete(ctx, "far"); err != nil {
		t.Fatal(err)
	}
	if err := w.d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
	same("loaded")
	if s, err := w.c.Stats(); err != nil || s.Views[0].IndexBytes == 0 || s.Views[1].IndexBytes == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	// A budget that one of them fits into: the other is not indexed.
	s, err = w.c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, w.d)
	budget := (s.Views[0].IndexBytes + s.Views[1].IndexBytes) * 3 / 4
	w.d = dbkit.MustOpen(t, "db", &db.Options{FS: w.fs, IndexCacheBytes: budget})
	w.c = dbkit.MustCollection(t, w.d, "main")
	if err := w.d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
	same("within a budget")
	if s, err = w.c.Stats(); err != nil || s.IndexBytes > budget {
		t.Errorf("%d bytes of %d, %v", s.IndexBytes, budget, err)
	}
}

// The modalities that a byte cannot number have no views.
func TestTooManyModalitiesForViews(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	var schema db.Schema
	for i := range db.MaxModalities {
		schema.Modalities = append(schema.Modalities, db.Modality{Name: fmt.Sprint("m", i), Dim: 2})
	}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []int{db.MaxModalities - 2, db.MaxModalities - 1} {
		var items []*db.Item
		for i := range 20 {
			x := []float32{float32(i % 3), float32(i)}
			items = append(items, &db.Item{
				Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(i % 3)},
				Vectors: map[string][]float32{"m3": x, fmt.Sprint("m", last): x},
			})
		}
		putAll(t, c, items)
		opt := db.TrainOptions{Options: model.Options{Bits: 16, Views: model.ViewsTarget}}
		if last > record.MaxTargetModality {
			if _, err := c.Train(ctx, opt); !errors.Is(err, db.ErrInvalid) {
				t.Errorf("view %d: %v", last+1, err)
			}
			opt.Views = model.ViewsShared
		}
		dbkit.MustTrain(t, c, opt)
		checkCodes(t, c, dbkit.AllItems(t, c))
		if _, err := c.Search(ctx, db.Query{To: fmt.Sprint("m", last), Key: "3"}); err != nil {
			t.Error(err)
		}
	}
}

// Counters that do not fit the spaces are damage.
func TestCountersMustFitTheSpace(t *testing.T) {
	for _, views := range []model.Views{model.ViewsShared, model.ViewsTarget} {
		mem := vfs.NewCrashableMem()
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
		if err != nil {
			t.Fatal(err)
		}
		putAll(t, c, dbkit.ViewItems(60, 6))
		dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 16, Anchors: 10, Views: views}})
		want := dbkit.AllItems(t, c)
		key := codec.CollectionKey(codec.KindCounters, db.Inside(c).ID)
		b, err := record.Get(db.State(d).Engine.DB, key)
		if err != nil {
			t.Fatal(err)
		}
		dbkit.MustClose(t, d)
		n, err := codec.DecodeCounters(b)
		if err != nil {
			t.Fatal(err)
		}
		change := func(f func(s *codec.SpaceCounters)) []byte {
			other := n
			other.Spaces = slices.Clone(n.Spaces)
			other.Spaces[0].Sets = slices.Clone(n.Spaces[0].Sets)
			f(&other.Spaces[0])
			return other.Append(nil)
		}
		noSpace := n
		noSpace.Spaces = nil
		for what, tc := range map[string]struct {
			value []byte
			good  bool
		}{
			"as they are":   {b, true},
			"another space": {change(func(s *codec.SpaceCounters) { s.ID++ }), false},
			"no space":      {noSpace.Append(nil), false},
			"a revision":    {change(func(s *codec.SpaceCounters) { s.Revision++ }), false},
			"another view":  {change(func(s *codec.SpaceCounters) { s.Sets[0].Target = 9 }), false},
			"no views":      {change(func(s *codec.SpaceCounters) { s.Sets = nil }), false},
			"a view more":   {change(func(s *codec.SpaceCounters) { s.Sets = append(s.Sets, codec.CodeCounters{Target: 77}) }), false},
		} {
			opts := &db.Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})}
			cfg := db.StoreConfig(opts)
			kv, err := store.Open(opts.FS.PathJoin("db", store.StoreName), cfg, store.NewLog(cfg.Signals), false)
			if err == nil {
				err = errors.Join(kv.Set(key, tc.value, pebble.Sync), kv.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := db.Open("db", opts)
			if !tc.good {
				if !errors.Is(err, db.ErrCorrupt) {
					t.Errorf("%v, %s: %v", views, what, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%v, %s: %v", views, what, err)
			}
			if diff := cmp.Diff(want, dbkit.AllItems(t, dbkit.MustCollection(t, d, "main"))); diff != "" {
				t.Errorf("%v, %s: %s", views, what, diff)
			}
			dbkit.MustClose(t, d)
		}
	}
}
