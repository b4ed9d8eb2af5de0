package db

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// audio is what the tests add.
var (
	audio = Modality{Name: "audio", Dim: 3}
	place = Field{Name: "place", Type: String, Indexed: true}
)

func mustAlter(t testing.TB, c *Collection, a Alteration) {
	t.Helper()
	if err := c.Alter(ctx, a); err != nil {
		t.Fatal(err)
	}
}

// sounds gives items vectors of audio that tell their classes.
func sounds(items []*Item) {
	for i, it := range items {
		x := make([]float32, audio.Dim)
		for j := range x {
			x[j] = float32((i*7+j*3)%5) / 20
		}
		if len(it.Labels) > 0 {
			x[int(it.Labels[0][len("class")])%audio.Dim]++
		}
		it.Vectors[audio.Name] = x
	}
}

// What is added is there for all handles, and at once for writes and filters; items that
// were there lack it, and a snapshot shows what was there before.
func TestAlter(t *testing.T) {
	opts := &Options{FS: vfs.NewMem()}
	d := mustOpen(t, "db", opts)
	defer func() { d.Close() }()
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(40, synth.Config{Seed: 1})
	putAll(t, c, items)
	other, before := mustCollection(t, d, "main"), allItems(t, c)
	snap, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	then, err := snap.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	a := Alteration{AddModalities: []Modality{audio, {Name: "bag", Dim: 100, Sparse: true}}, AddFields: []Field{place, {Name: "note", Type: String}}}
	mustAlter(t, c, a)
	want := Schema{Modalities: slices.Concat(pairsSchema.Modalities, a.AddModalities), Fields: slices.Concat(pairsSchema.Fields, a.AddFields)}
	a.AddModalities[0].Dim, a.AddFields[0].Type = 99, Bool // what is given is the caller's own
	for _, c := range []*Collection{c, other} {
		if diff := cmp.Diff(want, mustSchema(t, c)); diff != "" {
			t.Error(diff)
		}
	}
	equalItems(t, before, allItems(t, c))
	added := &Item{Key: "k3", Vectors: map[string][]float32{"audio": {1, 2, 3}}, Sparse: map[string]Sparse{"bag": {Index: []uint32{99}, Value: []float32{1}}},
		Fields: map[string]any{"place": "Bern", "note": "x"}}
	if _, err := other.Merge(ctx, added); err != nil {
		t.Fatal(err)
	}
	check := func(c *Collection) {
		t.Helper()
		for where, want := range map[string]int{
			"has(audio)": 1, "has(bag)": 1, "NOT has(audio)": 39, "has(image)": 40, "place = 'Bern'": 1, "place != 'Bern'": 0, "NOT place = 'Bern'": 39,
		} {
			if n, err := c.CountWhere(ctx, where); err != nil || n != want {
				t.Errorf("%s: %d items, %v", where, n, err)
			}
		}
		it, err := c.Get(ctx, "k3")
		if err != nil || cmp.Diff(it.Vectors["audio"], added.Vectors["audio"]) != "" || cmp.Diff(it.Sparse, added.Sparse) != "" || cmp.Diff(it.Fields, added.Fields) != "" ||
			it.Vectors["image"] == nil || len(it.Labels) == 0 {
			t.Errorf("%+v, %v", it, err)
		}
	}
	check(c)
	checkSpaces(t, d)

	// The snapshot.
	if diff := cmp.Diff(pairsSchema, mustSchema(t, then)); diff != "" {
		t.Error(diff)
	}
	equalItems(t, before, allItems(t, then))
	if _, err := then.CountWhere(ctx, "has(audio)"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a modality of later: %v", err)
	}
	if err := then.Alter(ctx, a); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a snapshot is altered: %v", err)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}

	// And after opening again.
	mustClose(t, d)
	d = mustOpen(t, "db", opts)
	c = mustCollection(t, d, "main")
	if diff := cmp.Diff(want, mustSchema(t, c)); diff != "" {
		t.Error(diff)
	}
	check(c)
	checkSound(t, d, "opened again")
	mustAlter(t, c, Alteration{AddFields: []Field{{Name: "third", Type: Bool}}})
	if s := mustSchema(t, c); len(s.Fields) != len(want.Fields)+1 || len(s.Modalities) != len(want.Modalities) {
		t.Errorf("%+v", s)
	}
	mustClose(t, d)
	if err := c.Alter(ctx, Alteration{AddFields: []Field{{Name: "late", Type: Bool}}}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// What cannot be added is refused with what is wrong, and then nothing of it is added.
func TestAlterRefuses(t *testing.T) {
	opts := &Options{FS: vfs.NewMem()}
	d := mustOpen(t, "db", opts)
	defer func() { d.Close() }()
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	codes, err := d.CreateCollection(ctx, "codes", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int) (list []Modality) {
		for i := range n {
			list = append(list, Modality{Name: fmt.Sprint("m", i), Dim: 1})
		}
		return list
	}
	manyFields := make([]Field, MaxFields)
	for i := range manyFields {
		manyFields[i] = Field{Name: fmt.Sprint("f", i), Type: Bool}
	}
	fresh := Field{Name: "fresh", Type: Int}
	commits := mustStats(t, d).Sequence
	for _, r := range []struct {
		c    *Collection
		a    Alteration
		want error
		says string
	}{
		{c, Alteration{}, ErrInvalid, `alter collection "main": neither modalities nor fields`},
		{c, Alteration{AddModalities: []Modality{{Name: "image", Dim: 9}}, AddFields: []Field{fresh}}, ErrExists,
			`modality "image": collection "main" has a modality of that name, of dimension 8`},
		{c, Alteration{AddModalities: []Modality{{Name: "year", Dim: 9}}}, ErrExists, `modality "year": collection "main" has a field of that name, of type int`},
		{c, Alteration{AddFields: []Field{fresh, {Name: "text", Type: Int}}}, ErrExists, `field "text": collection "main" has a modality of that name`},
		{c, Alteration{AddFields: []Field{fresh, {Name: "year", Type: Int, Indexed: true}}}, ErrExists, `field "year"`},
		{c, Alteration{AddModalities: []Modality{audio, audio}}, ErrInvalid, `modality "audio": there is a modality of that name already`},
		{c, Alteration{AddModalities: []Modality{audio}, AddFields: []Field{{Name: "audio", Type: Int}}}, ErrInvalid, `field "audio": there is a modality`},
		{c, Alteration{AddModalities: []Modality{{Name: "audio"}}, AddFields: []Field{fresh}}, ErrInvalid, `modality "audio": 0 dimensions`},
		{c, Alteration{AddFields: []Field{{Name: "audio", Type: "date"}}}, ErrInvalid, `unknown type "date"`},
		{c, Alteration{AddFields: []Field{{Name: "a b", Type: Int}}}, ErrInvalid, `field name "a b"`},
		{c, Alteration{AddModalities: many(MaxModalities - 1)}, ErrInvalid, "257 modalities, at most 256"},
		{c, Alteration{AddFields: manyFields}, ErrInvalid, "1028 fields, at most 1024"},
		{codes, Alteration{AddModalities: []Modality{audio}, AddFields: []Field{fresh}}, ErrInvalid, `modality "audio": the items of collection "codes" bring codes`},
	} {
		schema := mustSchema(t, r.c)
		err := r.c.Alter(ctx, r.a)
		if !errors.Is(err, r.want) || !strings.Contains(fmt.Sprint(err), r.says) || strings.Count(fmt.Sprint(err), "fddhdb: ") != 1 {
			t.Errorf("%+v: %v", r.a, err)
		}
		if diff := cmp.Diff(schema, mustSchema(t, r.c)); diff != "" {
			t.Errorf("%+v: %s", r.a, diff)
		}
	}
	if now := mustStats(t, d).Sequence; now != commits {
		t.Errorf("%d commits", now-commits)
	}
	mustAlter(t, codes, Alteration{AddFields: []Field{{Name: "n", Type: Int, Indexed: true}}})
	if _, err := codes.Put(ctx, &Item{Key: "k", Code: []byte{1, 2}, Fields: map[string]any{"n": 5}}); err != nil {
		t.Fatal(err)
	}
	if n, err := codes.CountWhere(ctx, "n = 5"); n != 1 || err != nil {
		t.Error(n, err)
	}
	mustAlter(t, c, Alteration{AddModalities: many(MaxModalities - 2), AddFields: manyFields[:MaxFields-4]}) // as many as there may be
	if err := d.DropCollection(ctx, "codes"); err != nil {
		t.Fatal(err)
	}
	if err := codes.Alter(ctx, Alteration{AddFields: []Field{fresh}}); !errors.Is(err, ErrNotFound) {
		t.Error("dropped: ", err)
	}
	mustClose(t, d)
	opts.ReadOnly = true
	d = mustOpen(t, "db", opts)
	if err := mustCollection(t, d, "main").Alter(ctx, Alteration{AddFields: []Field{fresh}}); !errors.Is(err, ErrReadOnly) {
		t.Error("read-only: ", err)
	}
	if len(mustSchema(t, mustCollection(t, d, "main")).Modalities) != MaxModalities {
		t.Error("not as many as were added")
	}
}

// A model goes on with the modalities that it knows, and the next training learns the
// others; what an older space cannot answer it says.
func TestModelsOfAnAlteredCollection(t *testing.T) {
	longTest(t)
	for _, views := range []model.Views{model.ViewsShared, model.ViewsTarget} {
		t.Run(views.String(), func(t *testing.T) { checkModelsOfAnAlteredCollection(t, views) })
	}
}

func checkModelsOfAnAlteredCollection(t *testing.T, views model.Views) {
	d, c := openPairs(t)
	items := pairs(90, synth.Config{Classes: 3, Seed: 3})
	putAll(t, c, items[:60])
	training := tinyTraining(1, views)
	mustTrain(t, c, training)
	query := Query{From: "image", To: "text", Vector: items[7].Vectors["image"], K: 90}
	before, err := c.Search(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	mustAlter(t, c, Alteration{AddModalities: []Modality{audio}, AddFields: []Field{place}})
	after, err := c.Search(ctx, query)
	if diff := cmp.Diff(before.Hits, after.Hits); diff != "" || err != nil {
		t.Error(diff, err)
	}

	// Items come with it, one with nothing else, while the model does not know it.
	sounds(items[50:])
	items[80].Vectors, items[80].Labels = map[string][]float32{"audio": {1, 0, 0}}, nil
	putAll(t, c, items[50:])
	if it, err := c.Get(ctx, "k80"); err != nil || it.Code != nil || it.Codes != nil {
		t.Errorf("%+v, %v", it, err)
	}
	checkCodes(t, c, allItems(t, c))
	checkSound(t, d, "altered")
	unlearned := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), `knows nothing of modality "audio"`) || !strings.Contains(err.Error(), "train again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	from := Query{From: "audio", To: "text", Vector: []float32{1, 0, 0}, K: 90}
	unlearned("search", second(c.Search(ctx, from)))
	unlearned("all", second(c.SearchAll(ctx, []Query{from})))
	unlearned("radius", second(c.CountRadius(ctx, from, 3)))
	_, _, err = c.EncodeQuery(ctx, from)
	unlearned("encode a query", err)
	_, _, err = c.Encode("image", &Item{Vectors: map[string][]float32{"audio": {1, 0, 0}}})
	unlearned("encode", err)
	of := func(name string) Evaluation {
		return Evaluation{Queries: map[string][][]float32{name: {items[88].Vectors[name], items[89].Vectors[name]}}, Labels: [][]string{items[88].Labels, items[89].Labels}}
	}
	unlearned("evaluate", second(c.Evaluate(ctx, of("audio"))))
	found, err := c.Evaluate(ctx, of("image"))
	if err != nil || found[0].To != "text" || found[0].Hamming.Database != 89 {
		t.Errorf("%+v, %v", found, err)
	}
	// What has it can be found by the codes that it has, unless codes are those of targets.
	to := Query{From: "image", To: "audio", Vector: items[7].Vectors["image"], K: 90}
	if views == model.ViewsTarget {
		unlearned("target", second(c.Search(ctx, to)))
		if len(found) != 1 {
			t.Errorf("%+v", found)
		}
	} else if res, err := c.Search(ctx, to); err != nil || len(res.Hits) != 40-1 {
		t.Errorf("%d hits, %v", len(res.Hits), err)
	}
	s, err := c.Stats()
	if err != nil || !s.Modalities[0].Learned || s.Modalities[2].Learned || s.Modalities[2].Items != 40 || s.CodedItems != 89 {
		t.Errorf("%+v, %v", s, err)
	}
	mustUpdate(t, c, UpdateOptions{Teacher: TeacherLabels})
	checkSound(t, d, "updated")

	// A reindexing keeps the model, a training learns.
	re, err := c.Reindex(ctx, ReindexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unlearned("reindexed", second(mustInSpace(t, c, re.Space).Search(ctx, from)))
	training.Map["audio"] = model.MapRBF
	if tr := mustTrain(t, c, training); len(tr.LeftOut) > 0 {
		t.Errorf("%+v", tr)
	}
	for _, q := range []Query{from, to, query} {
		if res, err := c.Search(ctx, q); err != nil || len(res.Hits) == 0 {
			t.Errorf("from %s to %s: %+v, %v", q.From, q.To, res, err)
		}
	}
	if it, err := c.Get(ctx, "k80"); err != nil || it.Code == nil && it.Codes["audio"].Code == nil {
		t.Errorf("%+v, %v", it, err)
	}
	checkCodes(t, c, allItems(t, c))
	unlearned("the space before", second(mustInSpace(t, c, 1).Search(ctx, from)))
	checkSound(t, d, "trained")
	if _, err := c.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	unlearned("rolled back", second(c.Search(ctx, from)))
}

// The pair of the only modality with itself is measured as long as the model knows no
// other.
func TestEvaluateWhatWasAlone(t *testing.T) {
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	defer mustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", Schema{Modalities: pairsSchema.Modalities[:1]})
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(60, synth.Config{Classes: 3, Seed: 3})
	for _, it := range items {
		delete(it.Vectors, "text")
	}
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 16, Anchors: 6}})
	e := Evaluation{Queries: map[string][][]float32{"image": {items[0].Vectors["image"]}}, Labels: [][]string{items[0].Labels}}
	before, err := c.Evaluate(ctx, e)
	if err != nil || len(before) != 1 {
		t.Fatal(before, err)
	}
	mustAlter(t, c, Alteration{AddModalities: []Modality{audio}})
	after, err := c.Evaluate(ctx, e)
	if err != nil || len(after) != 2 || after[1].To != "audio" || after[1].Hamming.Database != 0 {
		t.Fatalf("%+v, %v", after, err)
	}
	if diff := cmp.Diff(before[0], after[0]); diff != "" {
		t.Error(diff)
	}
}

// What was put into a batch before the schema grew is stored as it was meant, whether the
// batch goes item by item or in bulk, and beside what came later.
func TestBatchesAcrossAlter(t *testing.T) {
	for _, n := range []int{10, bulkItems + 10} {
		if testing.Short() && n > bulkItems {
			continue
		}
		d, c := openPairs(t)
		vector := map[string][]float32{"text": {1, 2, 3, 4, 5}}
		b := d.NewBatch()
		put := func(i int, it Item) {
			t.Helper()
			it.Key = fmt.Sprint("k", i)
			if err := b.Put(c, &it); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n / 2 {
			put(i, Item{Vectors: vector, Labels: []string{"old"}})
		}
		mustAlter(t, c, Alteration{AddModalities: []Modality{audio}, AddFields: []Field{place}})
		for i := n / 2; i < n; i++ {
			put(i, Item{Vectors: map[string][]float32{"audio": {1, 2, 3}}, Fields: map[string]any{"place": "Bern"}})
		}
		if n < bulkItems { // items that are merged with what was checked before, and the other way round
			for _, it := range []*Item{{Key: "k0", Vectors: map[string][]float32{"audio": {4, 5, 6}}}, {Key: "k9", Vectors: vector}} {
				if err := b.Merge(c, it); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		sum := func(where string) int {
			t.Helper()
			count, err := c.CountWhere(ctx, where)
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
		both := 0
		if n < bulkItems {
			both = 2
		}
		if sum("has(text)") != n/2+both/2 || sum("has(audio)") != n-n/2+both/2 || sum("has(text) AND has(audio)") != both || sum("place = 'Bern'") != n-n/2 {
			t.Errorf("%d items: %d have text, %d audio, %d both", n, sum("has(text)"), sum("has(audio)"), sum("has(text) AND has(audio)"))
		}
		checkSpaces(t, d)
	}

	// A merge and an expectation that were made before.
	d, c := openPairs(t)
	if _, err := c.Put(ctx, &Item{Key: "a", Vectors: map[string][]float32{"image": make([]float32, 8)}}); err != nil {
		t.Fatal(err)
	}
	old, err := c.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	merge, expect := d.NewBatch(), d.NewBatch()
	merge.Merge(c, &Item{Key: "a", Vectors: map[string][]float32{"text": {1, 2, 3, 4, 5}}})
	expect.PutIf(c, &Item{Key: "a"}, old)
	mustAlter(t, c, Alteration{AddModalities: []Modality{audio}})
	if _, err := c.Merge(ctx, &Item{Key: "a", Vectors: map[string][]float32{"audio": {1, 2, 3}}}); err != nil {
		t.Fatal(err)
	}
	if err := merge.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	it, err := c.Get(ctx, "a")
	if err != nil || len(it.Vectors) != 3 {
		t.Errorf("%+v, %v", it, err)
	}
	if err := expect.Commit(ctx); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
	checkSpaces(t, d)
}

// A collection can be altered before its codes are in memory, and nothing is lost by it.
func TestAlterRightAfterOpening(t *testing.T) {
	opts := &Options{FS: vfs.NewMem()}
	d := mustOpen(t, "db", opts)
	defer func() { d.Close() }()
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	const n = state.LoadAtOnce + 50
	b := d.NewBatch()
	for i := range n {
		b.Put(c, &Item{Key: fmt.Sprint(i), Code: []byte{byte(i), byte(i >> 8)}})
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	for i := range 2 {
		d = mustOpen(t, "db", opts)
		c = mustCollection(t, d, "main")
		mustAlter(t, c, Alteration{AddFields: []Field{{Name: fmt.Sprint("f", i), Type: Int, Indexed: true}}})
		if i == 0 { // it is closed before anybody has waited for the codes
			mustClose(t, d)
		}
	}
	if _, err := c.Put(ctx, &Item{Key: "new", Code: []byte{1, 2}, Fields: map[string]any{"f0": 1, "f1": 2}}); err != nil {
		t.Fatal(err)
	}
	if found, err := c.CountWhere(ctx, "f0 = 1 AND f1 = 2"); found != 1 || err != nil {
		t.Error(found, err)
	}
	if res, err := c.Search(ctx, Query{Code: []byte{1, 2}, K: 2}); err != nil || len(res.Hits) != 2 || res.Hits[1].Distance != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if s := mustStats(t, d); s.Items != n+1 {
		t.Errorf("%d items", s.Items)
	}
	checkSound(t, d, "altered")
}

// The schema may grow while everything else goes on.
func TestAlterDuringEverything(t *testing.T) {
	d, c := openPairs(t)
	items := viewItems(120, 4)
	putAll(t, c, items)
	mustTrain(t, c, tinyTraining(1, model.ViewsShared))
	rounds := 4
	var all sync.WaitGroup
	do := func(f func(i int) error) {
		all.Go(func() {
			for i := range rounds {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	do(func(i int) error {
		return c.Alter(ctx, Alteration{AddModalities: []Modality{{Name: fmt.Sprint("m", i), Dim: 2}}, AddFields: []Field{{Name: fmt.Sprint("f", i), Type: Int, Indexed: true}}})
	})
	do(func(i int) error {
		b := d.NewBatch()
		for k := range 30 {
			it := *items[(i*30+k)%120]
			if s := mustSchema(t, c); k%2 == 0 {
				it.Fields = map[string]any{s.Fields[len(s.Fields)-1].Name: true}
				if len(s.Fields) > len(pairsSchema.Fields) {
					it.Fields = map[string]any{s.Fields[len(s.Fields)-1].Name: k}
				}
			}
			b.Put(c, &it)
		}
		return b.Commit(ctx)
	})
	do(func(i int) error {
		_, err := c.Train(ctx, tinyTraining(uint64(i), []model.Views{model.ViewsShared, model.ViewsTarget}[i%2]))
		return busy(err)
	})
	do(func(int) error { return busy(second(c.Update(ctx, UpdateOptions{Teacher: TeacherLabels}))) })
	do(func(int) error { return busy(second(c.Reindex(ctx, ReindexOptions{}))) })
	do(func(i int) error {
		s, err := d.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		then, err := s.Collection("main")
		if err != nil {
			return err
		}
		schema := mustSchema(t, then)
		for _, m := range schema.Modalities {
			if _, err := then.CountWhere(ctx, "has("+m.Name+")"); err != nil {
				return err
			}
		}
		if len(schema.Modalities)-2 != len(schema.Fields)-4 {
			return fmt.Errorf("half an alteration: %+v", schema)
		}
		_, err = then.Search(ctx, Query{From: "image", To: "text", Vector: items[0].Vectors["image"]})
		return err
	})
	all.Wait()
	if s := mustSchema(t, c); len(s.Modalities) != 2+rounds || len(s.Fields) != 4+rounds {
		t.Errorf("%+v", s)
	}
	checkSound(t, d, "afterwards")
	checkSpaces(t, d)
}

// busy is nil where others were at it.
func busy(err error) error {
	if errors.Is(err, ErrBusy) {
		return nil
	}
	return err
}
